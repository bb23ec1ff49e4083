package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/analysis/stats"
	x11control "eidetic/control/x11"
	"eidetic/internal/device"
	"eidetic/internal/experiment"
	"eidetic/internal/lab"
	"eidetic/internal/report"
	"eidetic/internal/store"
	"eidetic/netlab/archive"
	"eidetic/netlab/replay"
)

// archiveFile is the recording's name in the run's folder.
const archiveFile = "archive.wacz"

// frameRate of the virtual device's screen.
const frameRate = 60

// runDemo records the sample page, stops its origins, and replays it.
func runDemo(ctx context.Context, std *streams, job insideJob, s *setup) (err error) {
	begun := time.Now()
	plan := experiment.DefaultPlan(job.Page, syncURL(job.Page), job.Trials)
	plan.Still, plan.Limit, plan.Seed = job.Still, job.Limit, job.Seed
	run := &lab.Run{
		ID: begun.UTC().Format("20060102-150405") + "-demo", Name: "demo", Wall: begun, State: store.StateRunning,
		Page: job.Page, Plan: asMap(plan), Trials: []*lab.Trial{}, Summary: []lab.Summary{},
		Environment: s.environment(),
	}
	run.Link = asMap(s.profile)
	run.Link["back_end"] = s.network.LinkReport().Backend
	folder, err := store.Create(job.Out, run)
	if err != nil {
		return cannot(err)
	}
	defer folder.Close()
	save := func() error {
		run.Elapsed = time.Since(begun).Seconds()
		return folder.Save(run)
	}
	defer func() { err = finish(ctx, run, folder, save, err) }()

	bar := newProgress(std.out)
	defer bar.close()
	runner := &experiment.Runner{
		Device: virtual{s.device}, Screen: xscreen{s.device.X.Display, frameRate}, Analyst: analyst{},
		Link: emulated{s.network}, Host: device.Host{}, Clock: clock, Log: s.log, Progress: bar.step,
	}
	keys, err := x11control.Open(ctx, s.device.X.Display, clock)
	if err != nil {
		return cannot(err)
	}
	defer keys.Close()
	runner.Control = keys

	if job.Live {
		if err := s.network.SetLink(s.profile); err != nil {
			return cannot(err)
		}
		run.Warnings = append(run.Warnings, "These loads are live: each came from the origins, nothing was replayed or seeded.")
		runner.Network = &recording{network: s.network, path: "/tmp/live.wacz", page: plan.Page, wall: begun, plain: true}
		return asFailed(runner.Run(ctx, plan, run, folder, save))
	}
	path := filepath.Join(folder.Path(), archiveFile)
	if job.Archive != "" {
		err = copyFile(job.Archive, path)
	} else {
		err = s.record(ctx, runner, plan, run, path, filepath.Join(folder.Path(), "recording"), bar)
	}
	if err != nil {
		return err
	}
	recorded, err := openArchive(run, path, job.Archive == "")
	if err != nil {
		return err
	}
	bar.say("Replaying %d exchanges, %.1f MB, of %d hosts; no origin can be reached", run.Archive.Exchanges, float64(run.Archive.BodyBytes)/1e6, len(run.Archive.Hosts))
	if err := s.network.SetLink(s.profile); err != nil {
		return cannot(err)
	}
	runner.Network = &replaying{network: s.network, archive: recorded, timing: replay.Timing{Mode: replay.TimingRecorded}}
	if err := asFailed(runner.Run(ctx, plan, run, folder, save)); err != nil {
		return err
	}
	run.Environment["network"] = s.network.Environment()
	return s.isolation(run)
}

// asFailed marks a run's error: the lab worked, the trials did not.
func asFailed(err error) error {
	if err == nil {
		return nil
	}
	return failed(err)
}

// isolation writes down what proves that nobody outside was contacted.
func (s *setup) isolation(run *lab.Run) error {
	ways, err := device.Ways()
	if err != nil {
		return cannot(err)
	}
	strays, err := s.device.Strays()
	if err != nil {
		return cannot(err)
	}
	run.Environment["isolation"] = map[string]any{
		"interfaces": ways, "packets_for_outside": strays,
		"how": "own network namespaces without an uplink; default-deny rule that counts on device and box",
	}
	if strays > 0 {
		run.Warnings = append(run.Warnings, fmt.Sprintf("%d packets were meant for somebody outside the lab and were dropped", strays))
	}
	return nil
}

// record loads the page once from its origins into an archive, and stops them.
func (s *setup) record(ctx context.Context, runner *experiment.Runner, plan experiment.Plan, run *lab.Run, path, dir string, bar *progress) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return cannot(err)
	}
	bar.say("Recording %s from its origins", plan.Page)
	runner.Network = &recording{network: s.network, path: path, page: plan.Page, seed: plan.Seed, wall: run.Wall}
	once := plan
	once.Trials = 1
	trial, err := runner.Trial(ctx, once, 0, dir)
	if err != nil {
		return cannot(fmt.Errorf("recording: %w", err))
	}
	if trial.Ended != lab.EndStable && trial.Ended != lab.EndDone {
		return failed(fmt.Errorf("recording: the page did not load (%s)", strings.Join(trial.Invalid, "; ")))
	}
	s.origins.stop() // from here on nobody is there to be contacted
	return nil
}

// openArchive reads the recording into RAM and describes it, with its flaws,
// in the run. One that was made just now must have no grave ones; what a person
// brings is replayed as it is.
func openArchive(run *lab.Run, path string, requireGood bool) (*archive.Archive, error) {
	a, err := archive.Open(path)
	if err != nil {
		return nil, cannot(fmt.Errorf("reading the recording: %w", err))
	}
	run.Archive = a.Info()
	run.Archive.File = archiveFile
	run.Warnings = append(run.Warnings, a.Warnings()...)
	for _, p := range archive.Assess(a).Problems {
		if p.Grave && requireGood {
			return nil, failed(fmt.Errorf("the recording is unfit for a measurement: %s (%s); try again", p.What, p.URL))
		}
		run.Warnings = append(run.Warnings, fmt.Sprintf("The recording has a flaw: %s (%s)", p.What, p.URL))
	}
	return a, nil
}

// copyFile makes the run's folder complete in itself.
func copyFile(from, to string) error {
	content, err := os.Open(from)
	if err != nil {
		return usage(err)
	}
	defer content.Close()
	f, err := os.Create(to)
	if err != nil {
		return cannot(err)
	}
	if _, err := io.Copy(f, content); err != nil {
		f.Close()
		return cannot(fmt.Errorf("copying the archive into the run's folder: %w", err))
	}
	return f.Close()
}

// finish writes the run's end, whatever it was, and its report.
func finish(ctx context.Context, run *lab.Run, folder *store.Folder, save func() error, cause error) error {
	run.State = store.StateDone
	switch {
	case ctx.Err() != nil:
		run.State = store.StateInterrupted
	case cause != nil:
		run.State, run.Error = store.StateFailed, cause.Error()
	}
	run.Summary = summarise(run.Trials)
	if n := len(run.Trials) - valid(run.Trials); n > 0 {
		run.Warnings = append(run.Warnings, fmt.Sprintf("%d of %d trials are invalid and not in the summary; each says why", n, len(run.Trials)))
	}
	err := errors.Join(cause, save())
	if len(run.Trials) > 0 {
		err = errors.Join(err, report.Write(folder.Path(), run))
	}
	return err
}

func valid(trials []*lab.Trial) (n int) {
	for _, t := range trials {
		if t.Valid {
			n++
		}
	}
	return n
}

// summarise describes each metric over the valid trials of each arm.
func summarise(trials []*lab.Trial) []lab.Summary {
	type key struct{ arm, metric string }
	values := map[key][]float64{}
	units := map[string]string{}
	var order []key
	for _, t := range trials {
		if !t.Valid {
			continue
		}
		for _, m := range t.Measurements {
			k := key{t.Arm, m.Name}
			if values[k] == nil {
				order = append(order, k)
			}
			values[k] = append(values[k], m.Value)
			units[m.Name] = m.Unit
		}
	}
	out := make([]lab.Summary, 0, len(order))
	for _, k := range order {
		s := stats.Summarise(values[k])
		s.Arm, s.Metric, s.Unit = k.arm, k.metric, units[k.metric]
		out = append(out, s)
	}
	return out
}

// environment is what could explain a difference to another run.
func (s *setup) environment() map[string]any {
	env := device.Host{}.Facts()
	env["browser"] = s.device.Browser.Version
	env["appliance"] = versionLine()
	env["screen"] = fmt.Sprintf("%d×%d at %d Hz, Xvfb, read by MIT-SHM", s.device.Size.Width, s.device.Size.Height, frameRate)
	env["network"] = s.network.Environment()
	return env
}

// asMap turns a struct into what its JSON holds.
func asMap(v any) map[string]any {
	content, err := json.Marshal(v)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	m := map[string]any{}
	if err := json.Unmarshal(content, &m); err != nil {
		return map[string]any{"error": err.Error()}
	}
	return m
}

// ms is a number of milliseconds as a duration.
func ms(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
