package main

import (
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/analysis/bisect"
	"eidetic/analysis/filmtest"
	"eidetic/capture/reel"
	"eidetic/internal/box/bisection"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// TestBisectNamesTheFrame: the recordings of the runs that confirmed a culprit say where it and the revision before it
// part.
func TestBisectNamesTheFrame(t *testing.T) {
	out := t.TempDir()
	run := &lab.Run{
		ID: "20261123-100000-bisect", Name: "bisect", Wall: time.Now(), Page: "https://a.test/", State: store.StateDone,
		Plan: lab.Plan{Trials: 1, Treatment: &lab.Arm{}},
	}
	folder, err := store.Create(out, run)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for n, arm := range []string{lab.Control, lab.Treatment, lab.Treatment, lab.Control} {
		change := 5
		if arm == lab.Treatment {
			change = 8
		}
		run.Trials = append(run.Trials, filmedTrial(t, folder, n+1, arm, change))
	}
	if err := folder.Save(run); err != nil {
		t.Fatal(err)
	}
	c := &BisectCmd{Out: out, local: true}
	found := &bisection.Result{Kind: bisect.Culprit, Steps: []bisection.Step{{Size: 50, Runs: []string{run.ID}}}}
	p, err := c.partOf(found)
	if err != nil || p == nil || p.Shown[0].Frame != 5 || p.Shown[0].Trial != 1 || p.Shown[1].Frame != 8 || p.Shown[1].Trial != 2 {
		t.Fatalf("partOf() = %+v, %v; want frame 5 of trial 1 and frame 8 of trial 2", p, err)
	}
	for _, part := range []string{filepath.Join(run.ID, "trials", "001", experiment.ReelFile) + " --frame 5", "--frame 8"} {
		if !strings.Contains(p.Text, part) {
			t.Errorf("%q has no %q", p.Text, part)
		}
	}

	file := filepath.Join(folder.Path(), "trials", "001", experiment.ReelFile)
	if err := os.WriteFile(file, []byte("no recording"), 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err := c.partOf(found); err == nil {
		t.Errorf("of a damaged recording: %+v, want an error", p)
	}
	found.Steps[0].Runs = []string{"20261123-110000-removed"}
	if p, err := c.partOf(found); err == nil || !strings.Contains(err.Error(), "have been removed") {
		t.Errorf("of a run that was removed: %+v, %v", p, err)
	}
}

// filmedTrial is a trial whose page changes at a frame. No two trials show the same picture: visual progress tells
// where they part.
func filmedTrial(t *testing.T, folder *store.Folder, number int, arm string, change int) *lab.Trial {
	t.Helper()
	const side, frames = 16, 12
	states := make([]int, frames)
	trial := &lab.Trial{
		Number: number, Arm: arm, Block: (number + 1) / 2, Valid: true, StartTime: filmtest.Started, ContentW: side, ContentH: side,
	}
	for i := range states {
		progress := 0.0
		if i >= change {
			states[i], progress = number, 100
		}
		trial.FrameTimes, trial.VisualProgress = append(trial.FrameTimes, float64(i)*1000/60), append(trial.VisualProgress, progress)
	}
	film := filmtest.New(side, side, 60, func(pix []byte, n int) {
		filmtest.Fill(pix, side, image.Rect(0, 0, side, side), uint8(40*n), 100, 100)
	}, filmtest.States(states...))
	dir, err := folder.TrialDir(number)
	if err != nil {
		t.Fatal(err)
	}
	w, err := reel.Create(filepath.Join(dir, experiment.ReelFile), reel.Header{Format: film.Format(), Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range film.Len() {
		pix, err := film.Pixels(i)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteFrame(lab.Frame{FrameInfo: film.Info(i), Pix: pix}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return trial
}
