// Command bench measures what a trial of the demo costs: it runs the demo, reads the times
// that each trial recorded for its parts, and prints their medians and the processor time
// by consumer. It also writes out/bench/trial.json.
//
//	go run ./internal/run/experiment/bench [-trials 10] [-appliance FILE] [-out out/bench/trial.json]
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/benchtable"
	"eidetic/internal/run/experiment"
)

func main() { benchtable.Main("trial", run) }

// Goals on two idle cores: besides is the time of a trial in ms besides its load and its
// stillness, and whole the time of a demo of ten trials in s.
const (
	besides = 3000
	whole   = 75
)

func run(ctx context.Context) error {
	trials := flag.Int("trials", 10, "trials of the demo")
	appliance := flag.String("appliance", "", "program to try; built when it is not given")
	out := flag.String("out", "out/bench/trial.json", "file for the list of results")
	flag.Parse()
	if *trials < 1 {
		return errors.New("-trials must be at least 1")
	}
	dir, err := os.MkdirTemp("", "trial-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *appliance == "" {
		*appliance = filepath.Join(dir, "appliance")
		if text, err := exec.CommandContext(ctx, "go", "build", "-o", *appliance, "./cmd/appliance").CombinedOutput(); err != nil {
			return fmt.Errorf("build the appliance: %w: %s", err, text)
		}
	}
	start := time.Now()
	text, demoErr := demo(ctx, *appliance, dir, *trials)
	elapsed := time.Since(start)
	list, err := read(filepath.Join(dir, "demo", "latest", "trials"))
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return errors.Join(err, demoErr, errors.New(text))
	}
	if demoErr != nil { // invalid trials cost as much as valid ones
		fmt.Fprintf(os.Stderr, "trial: the demo failed, which says nothing of its cost: %v\n", demoErr)
	}
	results := measure(list)
	results = append(results, benchtable.More("trials that are valid", float64(valid(list)), "1"))
	all := benchtable.Less(fmt.Sprintf("demo of %d trials", *trials), elapsed.Seconds(), "s")
	if *trials == 10 {
		all = all.Aim(whole)
	}
	results = append(results, all)
	if err := show(os.Stdout, list, results); err != nil {
		return err
	}
	return benchtable.Write(*out, results)
}

// demo runs the demo and returns its output.
func demo(ctx context.Context, appliance, dir string, trials int) (string, error) {
	cmd := exec.CommandContext(ctx, appliance, "demo", "--no-serve", "--trials", fmt.Sprint(trials), "--out", filepath.Join(dir, "demo"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// read reads every trial of a run.
func read(dir string) ([]*lab.Trial, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "trial.json"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no trial is in %s", dir)
	}
	if err != nil {
		return nil, err
	}
	var list []*lab.Trial
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		t := &lab.Trial{}
		if err := json.Unmarshal(content, t); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, t)
	}
	return list, nil
}

func valid(list []*lab.Trial) (n int) {
	for _, t := range list {
		if t.Valid {
			n++
		}
	}
	return n
}

// measure computes the medians.
func measure(list []*lab.Trial) (results []benchtable.Result) {
	var rest []float64
	for _, t := range list {
		sum := 0.0
		for _, p := range t.Parts {
			if p.Name != experiment.PartLoad && p.Name != experiment.PartStill {
				sum += p.MS
			}
		}
		rest = append(rest, sum)
	}
	for _, name := range experiment.Parts() {
		results = append(results, benchtable.Less(name, median(list, name, ""), "ms"))
	}
	// The time from one start to the next includes saving the trial.
	var between []float64
	for i, t := range list[1:] {
		sum := t.Wall.Sub(list[i].Wall).Seconds() * 1e3
		for _, p := range list[i].Parts {
			sum -= p.MS
		}
		between = append(between, sum)
	}
	saved := middle(between)
	results = append(results,
		benchtable.Less("save", saved, "ms"),
		benchtable.Less("besides load and stillness", middle(rest)+saved, "ms").Aim(besides))
	for _, who := range takers(list) {
		sum := 0.0
		for _, name := range experiment.Parts() {
			sum += median(list, name, who)
		}
		results = append(results, benchtable.Less("processor time: "+who, sum, "ms"))
	}
	return results
}

// takers lists the consumers of processor time.
func takers(list []*lab.Trial) (names []string) {
	for _, t := range list {
		for _, p := range t.Parts {
			for who := range p.Processor {
				if !slices.Contains(names, who) {
					names = append(names, who)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// median is the median time of a part, or its median processor time if who is not empty.
func median(list []*lab.Trial, part, who string) float64 {
	var values []float64
	for _, t := range list {
		for _, p := range t.Parts {
			switch {
			case p.Name == part && who == "":
				values = append(values, p.MS)
			case p.Name == part:
				values = append(values, p.Processor[who])
			}
		}
	}
	return middle(values)
}

func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// show prints the table: a row for each part, a column for each consumer of processor time.
func show(w io.Writer, list []*lab.Trial, results []benchtable.Result) error {
	who := takers(list)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "medians of %d trials\tms\t", len(list))
	for _, name := range who {
		fmt.Fprintf(table, "%s\t", name)
	}
	fmt.Fprintln(table)
	for _, part := range experiment.Parts() {
		fmt.Fprintf(table, "%s\t%.0f\t", part, median(list, part, ""))
		for _, name := range who {
			if v := median(list, part, name); v > 0 {
				fmt.Fprintf(table, "%.0f", v)
			}
			fmt.Fprint(table, "\t")
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "Processor time, in ms: that of the birth is with the settling, and that of the load with the stillness.")
	for _, r := range results {
		goal := ""
		if aim := r.AimText(); aim != "" {
			goal = ", the aim is " + aim
		}
		fmt.Fprintf(w, "%s: %.1f %s%s\n", r.Name, r.Value, r.Unit, goal)
	}
	return nil
}
