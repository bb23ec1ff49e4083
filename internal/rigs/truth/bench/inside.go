package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/benchrig"
	"eidetic/internal/rigs/truth"
	"eidetic/internal/run/experiment"
	"eidetic/netlab/archive"
)

// inside carries out the trials of the plan that are missing.
func inside(ctx context.Context, text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	rig, err := benchrig.Open(ctx, benchrig.Config{
		Appliance: s.Appliance, Keep: []string{s.Dir}, Link: s.Plan.Link, Browser: s.Browser, Page: s.Page,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer rig.Close()
	s.Plan.Browser = rig.Browser()
	data, aside, err := truth.Open(s.Dir, s.Plan, time.Now())
	if err != nil {
		return err
	}
	defer data.Close()
	if aside != "" {
		fmt.Printf("The data belong to another plan, browser or recording: they are kept in %s, and new data begin.\n", aside)
	}
	b := &bench{settings: s, rig: rig, data: data, archives: map[int]*archive.Archive{}}
	if err := b.begin(); err != nil {
		return err
	}
	for _, e := range s.Plan.Experiments() {
		if err := b.carryOut(ctx, e); err != nil {
			return err
		}
	}
	end := &lab.Run{}
	err = rig.Finish(end)
	for _, w := range end.Warnings {
		fmt.Println(w)
	}
	return err
}

// bench is the inner half at work.
type bench struct {
	settings settings
	rig      *benchrig.Rig
	data     *truth.Data
	archives map[int]*archive.Archive // by delay

	left  int       // trials of the plan that are missing
	mean  float64   // seconds a trial
	since time.Time // the end of the last trial
	ticks benchrig.Ticks
}

// begin counts what is left to do.
func (b *bench) begin() (err error) {
	b.left, b.mean = b.settings.Plan.Trials(), 5
	for _, e := range b.settings.Plan.Experiments() {
		b.left -= valid(b.data.Of(e.Name))
	}
	if n := len(b.data.Trials); n > 0 {
		sum := 0.0
		for _, t := range b.data.Trials {
			sum += t.Seconds
		}
		b.mean = sum / float64(n)
		fmt.Printf("%d trials exist; about %d are missing.\n", n, b.left)
	}
	return b.mark()
}

// mark begins the time of the next trial.
func (b *bench) mark() (err error) {
	b.since = time.Now()
	b.ticks, err = benchrig.ReadTicks()
	return err
}

func valid(trials []truth.Trial) (n int) {
	for _, t := range trials {
		if t.Valid {
			n++
		}
	}
	return n
}

// carryOut carries out the missing trials of an experiment.
func (b *bench) carryOut(ctx context.Context, e truth.Experiment) error {
	control, err := b.archive(0)
	if err != nil {
		return err
	}
	treatment, err := b.archive(e.Delay)
	if err != nil {
		return err
	}
	run := &lab.Run{}
	for _, t := range b.data.Of(e.Name) {
		run.Trials = append(run.Trials, t.Lab())
	}
	arms := []experiment.Arm{b.rig.Arm(lab.Control, control), b.rig.Arm(lab.Treatment, treatment)}
	if err := b.mark(); err != nil {
		return err
	}
	err = b.rig.Runner.Run(
		ctx,
		benchrig.Plan(e.Pairs, b.settings.Plan.Still, e.Seed),
		arms,
		run,
		benchrig.Scratch{Dir: "/tmp/trial"},
		func() error {
			if err := b.rejudge(e, run.Trials[:len(run.Trials)-1]); err != nil {
				return err
			}
			return b.keep(e, run.Trials[len(run.Trials)-1])
		},
	)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil { // for example an arm without a valid trial; other experiments may succeed
		fmt.Printf("%s: %v\n", e.Name, err)
	}
	return nil
}

// rejudge updates earlier trials that a changed tolerance makes valid or invalid.
func (b *bench) rejudge(e truth.Experiment, trials []*lab.Trial) error {
	known := b.data.Of(e.Name)
	for i, t := range trials {
		if i >= len(known) || known[i].Valid == t.Valid {
			continue
		}
		one := known[i]
		one.Valid, one.Reasons = t.Valid, t.Invalid
		if err := b.data.Add(one); err != nil {
			return err
		}
		b.left += map[bool]int{true: -1, false: 1}[t.Valid]
	}
	return nil
}

// keep adds a trial to the data and prints the progress.
func (b *bench) keep(e truth.Experiment, t *lab.Trial) error {
	one := truth.FromLab(e, t)
	now, err := benchrig.ReadTicks()
	if err != nil {
		return err
	}
	one.Wall, one.Software = time.Now(), b.settings.Software
	one.Seconds, one.Steal = one.Wall.Sub(b.since).Seconds(), now.Since(b.ticks).Percent()
	if err := b.data.Add(one); err != nil {
		return err
	}
	b.mean += (one.Seconds - b.mean) / 20
	what := "first change " + fmt.Sprintf("%.0f ms", one.Metrics[metric.FirstChange.String()].Value)
	if one.Valid {
		b.left = max(b.left-1, 0)
	} else {
		what = "invalid: " + strings.Join(one.Reasons, "; ")
	}
	end := one.Wall.Add(time.Duration(b.mean * float64(b.left) * float64(time.Second)))
	fmt.Printf("%s trial %d, %s, %.1f s, %.1f %% stolen: %s (%d left, until about %s)\n",
		e.Name, t.Number, t.Arm, one.Seconds, one.Steal, what, b.left, end.Format("15:04"))
	return b.mark()
}

// archive returns the recording whose scripts work for the given number of milliseconds.
func (b *bench) archive(delay int) (*archive.Archive, error) {
	if a := b.archives[delay]; a != nil {
		return a, nil
	}
	a, err := archive.Open(b.settings.armFile(delay))
	if err == nil {
		b.archives[delay] = a
	}
	return a, err
}
