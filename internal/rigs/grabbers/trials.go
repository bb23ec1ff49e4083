package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/benchrig"
	"eidetic/internal/run/experiment"
	"eidetic/internal/tell/verdict"
)

// pages of the sample site: a shop whose last change is faint, a spinner that turns until the data is there, a video.
var pages = []struct{ name, url string }{
	{"shop", "https://www.shop.test/store/"},
	{"spinner", "https://www.shop.test/suite/dashboard?spin=600"},
	{"video", "https://www.shop.test/suite/video"},
}

// exact is the name of the run whose screen nothing degrades.
const exact = "exact"

// trials measures each page behind each way in so many trials, and prints how many were valid and what a verdict says of them
// when their arms are drawn by lot, as they are equal. Films of the exact runs show the error of each way, as degrade prints it.
func trials(ctx context.Context, dir string, count int, out io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	appliance, err := benchrig.Build(ctx, filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "page | way | valid | equal arms | SpeedIndex, median | quartiles")
	var films []string
	for _, page := range pages {
		archive := ""
		for _, way := range append([]string{exact}, asked...) {
			run, folder, err := measure(ctx, appliance, filepath.Join(dir, page.name, way), page.url, way, archive, count)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", page.name, way, err)
			}
			if way == exact {
				archive = filepath.Join(folder, run.Archive.File)
				if i := slices.IndexFunc(run.Trials, func(t *lab.Trial) bool { return t.Valid }); i >= 0 {
					films = append(films, filepath.Join(folder, "trials", fmt.Sprintf("%03d", run.Trials[i].Number), run.Trials[i].Files["reel"]))
				}
			}
			fmt.Fprintf(out, "%s | %s | %s\n", page.name, way, said(run, count))
		}
	}
	return degrade(films, out)
}

// asked are the ways that are measured in trials.
var asked = []string{"noise=1", "noise=3", "dither=4", "mjpeg=80", "420", "scale=1920x1080", "rotate=90"}

// measure carries out a run, or reads what an earlier call has kept of it.
func measure(ctx context.Context, appliance, dir, url, way, archive string, count int) (*lab.Run, string, error) {
	if run, folder, err := kept(dir); err == nil && run.State == "done" || err != nil && !errors.Is(err, os.ErrNotExist) {
		return run, folder, err
	}
	if err := os.RemoveAll(filepath.Join(dir, "run")); err != nil { // of a call that was ended
		return nil, "", err
	}
	plan := map[string]any{
		"name": "grabber", "page": url, "trials": count, "timing": "fixed:20ms",
	}
	if way != exact {
		plan["screen"], plan["archive"] = map[string]any{"through": way}, archive
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, "", err
	}
	said, err := exec.CommandContext(ctx, appliance, "run", "--plan", file, "--out", filepath.Join(dir, "run")).CombinedOutput()
	if ctx.Err() != nil {
		return nil, "", ctx.Err() // the next call makes it again
	}
	run, folder, missing := kept(dir)
	if missing != nil {
		return nil, "", fmt.Errorf("%w: %w: %s", err, missing, said)
	}
	return run, folder, nil // a run with too few valid trials is a result
}

// kept reads a run that has ended.
func kept(dir string) (run *lab.Run, folder string, err error) {
	found, err := filepath.Glob(filepath.Join(dir, "run", "*", "run.json"))
	if err != nil {
		return nil, "", err
	}
	found = append(found, filepath.Join(dir, "run", "run.json"))
	content, err := os.ReadFile(found[0])
	if err != nil {
		return nil, "", err
	}
	run = new(lab.Run)
	return run, filepath.Dir(found[0]), json.Unmarshal(content, run)
}

// said tells of a run what the table has of it.
func said(run *lab.Run, count int) string {
	slices.SortFunc(run.Trials, func(a, b *lab.Trial) int { return cmp.Compare(a.Number, b.Number) })
	valid, why := 0, map[string]bool{}
	var kept []*lab.Trial
	for i, t := range run.Trials {
		switch {
		case !t.Valid:
			why[strings.Join(t.Invalid, ", ")] = true
		case i < count:
			valid++
			fallthrough
		default:
			kept = append(kept, t)
		}
	}
	var values []float64
	for _, t := range kept {
		values = append(values, metric.SpeedIndex.In(t))
	}
	sum := stats.Summarise(values)
	text := fmt.Sprintf("%d of the first %d | %s | %.0f | %.0f to %.0f", valid, min(count, len(run.Trials)), equal(kept), sum.Median, sum.Q1, sum.Q3)
	for reason := range why {
		text += "\n    " + reason
	}
	if run.Error != "" {
		text += "\n    " + run.Error
	}
	return text
}

// equal counts of 20 draws of arms how many a verdict calls equal or unknown.
func equal(all []*lab.Trial) string {
	const draws = 20
	random, quiet := rand.New(rand.NewPCG(1, 1)), 0
	pairs := len(all) / 2
	if pairs == 0 {
		return "no pair"
	}
	for range draws {
		run := &lab.Run{}
		for i, slot := range experiment.Schedule(random.Uint64(), pairs, 2) {
			t := *all[i]
			t.Number, t.Block, t.Arm = i+1, slot.Block, [...]string{lab.Control, lab.Treatment}[slot.Arm]
			run.Trials = append(run.Trials, &t)
		}
		if v := verdict.Of(run, random.Uint64()).Verdict; v == lab.NoChange || v == lab.Unknown {
			quiet++
		}
	}
	return fmt.Sprintf("%d of %d quiet", quiet, draws)
}
