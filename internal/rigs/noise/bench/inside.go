package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/benchrig"
	"eidetic/internal/rigs/noise"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
	"eidetic/netlab/archive"
)

// still is the stillness that ends a load.
const still = 500 * time.Millisecond

// inside loads the page; the variants take turns.
func inside(ctx context.Context, text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	rig, err := benchrig.Open(ctx, benchrig.Config{
		Appliance: s.Appliance, Keep: []string{s.Dir}, Link: s.Link,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer rig.Close()
	recorded, err := archive.Open(filepath.Join(s.Dir, recordingFile))
	if err != nil {
		return err
	}
	b := &bench{settings: s, rig: rig, arm: rig.Arm(lab.Control, recorded)}
	if err := b.all(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	content, err := json.Marshal(b.loads) // saved after an interruption too
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, loadsFile), append(content, '\n'), 0o644)
}

// all makes every load of the plan.
func (b *bench) all(ctx context.Context) error {
	s, done := b.settings, map[string]int{}
	random := rand.New(rand.NewPCG(s.Seed, 0x6e6f697365)) // "noise"
	for range s.Loads + s.Loads/2 {
		for _, i := range random.Perm(len(s.Variants)) {
			v := s.Variants[i]
			if done[v.Name] >= s.Loads {
				continue
			}
			l, err := b.load(ctx, v)
			if err != nil {
				return err
			}
			if l.Valid {
				done[v.Name]++
			}
		}
	}
	return nil
}

type bench struct {
	settings settings
	rig      *benchrig.Rig
	arm      experiment.Arm
	loads    []noise.Load
}

// load loads the page once.
func (b *bench) load(ctx context.Context, v variant) (noise.Load, error) {
	runner := *b.rig.Runner
	b.rig.SetFlags(v.Flags)
	var trace *tracer
	if v.Trace {
		var err error
		if trace, err = newTracer(); err != nil {
			return noise.Load{}, err
		}
		runner.Device = tracedDevice{runner.Device, trace}
		b.rig.SetFlags(append([]string{"--remote-debugging-pipe"}, v.Flags...), trace.theirs...)
	}
	number := len(b.loads) + 1
	dir, err := benchrig.Scratch{Dir: "/tmp/trial"}.TrialDir(number)
	if err != nil {
		return noise.Load{}, err
	}
	if err := b.arm.Ready(); err != nil {
		return noise.Load{}, err
	}
	plan := benchrig.Plan(1, still, b.settings.Seed)
	plan.Page, plan.Sync = b.arm.Page, execute.SyncURL(lab.Arm{Page: b.arm.Page})
	runner.Network = b.arm.Network
	t, err := runner.Trial(ctx, plan, number, dir)
	if err != nil {
		return noise.Load{}, err
	}
	served, err := readServed(filepath.Join(dir, experiment.ReplayFile))
	if err != nil {
		return noise.Load{}, err
	}
	l := noise.New(v.Name, t, served, b.arm.Page)
	if trace != nil {
		events, err := trace.result()
		if err != nil {
			l.Valid, l.Reasons = false, append(l.Reasons, err.Error())
		}
		l.AddTrace(events, t.StartTime, b.arm.Page)
		if number <= len(b.settings.Variants) { // keep one for people to look at
			if err := keepTrace(filepath.Join(b.settings.Dir, "trace.json"), events); err != nil {
				return l, err
			}
		}
	}
	what := fmt.Sprintf("first change %.0f ms", l.Metrics[metric.FirstChange.String()])
	if !l.Valid {
		what += ", invalid: " + strings.Join(l.Reasons, "; ")
	}
	fmt.Printf("load %d, %s: %s\n", number, v.Name, what)
	b.loads = append(b.loads, l)
	return l, nil
}

// readServed reads the replay's log.
func readServed(name string) (all []lab.Served, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var s lab.Served
		if err := d.Decode(&s); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
}

// keepTrace saves a trace for people, who open it in a viewer.
func keepTrace(name string, events []noise.Event) error {
	content, err := json.Marshal(map[string]any{"traceEvents": events})
	if err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}
