package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/benchrig"
	"eidetic/internal/experiment"
	"eidetic/internal/job"
	"eidetic/internal/lab"
	"eidetic/internal/noise"
	"eidetic/netlab/archive"
)

const (
	traceFile = "/tmp/browser-trace.json"
	// traceSeconds is for how long a browser is traced from its start on. The load
	// ends within; the stillness at its end outlasts it, so that the trace is whole.
	traceSeconds = 4
	traceStill   = 3500 * time.Millisecond
	plainStill   = 500 * time.Millisecond
	categories   = "-*,blink.user_timing,loading,devtools.timeline,disabled-by-default-devtools.timeline,cc,viz,v8,netlog,toplevel"
)

// inside loads the page, the variants by turns.
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
	left := map[string]int{}
	random := rand.New(rand.NewPCG(s.Seed, 0x6e6f697365)) // "noise"
	for range s.Loads + s.Loads/2 {
		for _, i := range random.Perm(len(s.Variants)) {
			v := s.Variants[i]
			if left[v.Name] >= s.Loads {
				continue
			}
			l, err := b.load(ctx, v)
			if err != nil {
				return err
			}
			if l.Valid {
				left[v.Name]++
			}
		}
	}
	content, err := json.Marshal(b.loads)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, loadsFile), append(content, '\n'), 0o644)
}

type bench struct {
	settings settings
	rig      *benchrig.Rig
	arm      experiment.Arm
	loads    []noise.Load
}

// load loads the page once.
func (b *bench) load(ctx context.Context, v variant) (noise.Load, error) {
	flags, still := v.Flags, plainStill
	if v.Trace {
		flags = append([]string{
			"--trace-startup=" + categories, "--trace-startup-format=json",
			"--trace-startup-file=" + traceFile, fmt.Sprintf("--trace-startup-duration=%d", traceSeconds),
		}, flags...)
		still = traceStill
		if err := os.Remove(traceFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return noise.Load{}, err
		}
	}
	b.rig.SetFlags(flags)
	number := len(b.loads) + 1
	dir, err := benchrig.Scratch{Dir: "/tmp/trial"}.TrialDir(number)
	if err != nil {
		return noise.Load{}, err
	}
	if err := b.arm.Ready(); err != nil {
		return noise.Load{}, err
	}
	plan := benchrig.Plan(1, still, b.settings.Seed)
	plan.Page, plan.Sync = b.arm.Page, job.SyncURL(b.arm.Page)
	runner := *b.rig.Runner
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
	if v.Trace {
		if err := addTrace(&l, t, b.arm.Page); err != nil {
			l.Valid, l.Reasons = false, append(l.Reasons, err.Error())
		}
		if number <= 4 {
			if err := keepTrace(filepath.Join(b.settings.Dir, fmt.Sprintf("trace-%d.json", number))); err != nil {
				return l, err
			}
		}
	}
	what := fmt.Sprintf("first change %.0f ms", l.Metrics["first_visual_change_ms"])
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

// addTrace adds what the browser says of itself.
func addTrace(l *noise.Load, t *lab.Trial, page string) error {
	f, err := os.Open(traceFile)
	if err != nil {
		return err
	}
	defer f.Close()
	return l.AddTrace(f, t.StartTime, page)
}

// keepTrace keeps a trace for people, who open it in a viewer.
func keepTrace(name string) error {
	content, err := os.ReadFile(traceFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}
