// Command sensitivity measures how a late link changes results. It loads the sample
// page alternately without and with a stall of the link, at a random moment of the
// load, and prints for each metric and phase by how many ms the metric changed for each
// ms of stall. It also writes out/bench/sensitivity.json. It takes a quarter of an hour.
//
//	go run ./netlab/link/bench/sensitivity [-trials 20] [-stalls 50ms,100ms,300ms] [-link cable] [-until 2s]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"eidetic/internal/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sensitivity:", err)
		os.Exit(1)
	}
}

// result is one line of the benchmark's list.
type result struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Error float64 `json:"standard_error"`
	Loads int     `json:"loads"`
}

func run(ctx context.Context) error {
	trials := flag.Int("trials", 20, "loads with each stall, and as many without")
	stalls := flag.String("stalls", "50ms,100ms,300ms", "lengths of the stalls")
	link := flag.String("link", "cable", "link")
	until := flag.Duration("until", 2*time.Second, "the stalls begin between the start of the load and then")
	out := flag.String("out", "out/bench/sensitivity.json", "file for the list of results")
	flag.Parse()
	if *trials < 4 {
		return errors.New("-trials: at least 4")
	}
	dir, err := os.MkdirTemp("", "link-sensitivity-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := bench{dir: dir, appliance: filepath.Join(dir, "appliance"), link: *link}
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", b.appliance, "./cmd/appliance").CombinedOutput(); err != nil {
		return fmt.Errorf("build the appliance: %w: %s", err, text)
	}
	var results []result
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "stall\tbegins\tmetric\tloads\tmoved by\tper ms of stall\tmost\t")
	for i, text := range strings.Split(*stalls, ",") {
		length, err := time.ParseDuration(text)
		if err != nil || length <= 0 {
			return fmt.Errorf("-stalls: %q is no duration", text)
		}
		loads, err := b.load(ctx, length, *until, *trials, uint64(i+1))
		if err != nil {
			return err
		}
		for _, row := range rows(loads, length) {
			fmt.Fprintf(table, "%v\t%s\t%s\t%d\t%+.0f ms\t%+.2f ± %.2f\t%+.2f\t\n", length, row.phase, row.metric, row.n,
				row.shift, row.slope, row.standardError, row.most)
			results = append(results, result{fmt.Sprintf("stall %v, %s: %s", length, row.phase, row.metric), row.slope,
				"ms/ms", row.standardError, row.n})
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	content, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(*out, append(content, '\n'), 0o644)
}

type bench struct{ dir, appliance, link, archive string }

// load is one load of the page; stalled is when its stall began, in ms since the start,
// and negative without a stall.
type load struct {
	stalled float64
	metrics map[string]float64
}

// load runs the demo with two arms, the second one with a link that stalls. All runs
// replay the recording of the first one.
func (b *bench) load(ctx context.Context, length, until time.Duration, trials int, seed uint64) ([]load, error) {
	out := filepath.Join(b.dir, fmt.Sprint("stall-", length))
	args := []string{"demo", "--no-serve", "--trials", fmt.Sprint(trials), "--out", out, "--seed", fmt.Sprint(seed), "--tolerance", "1m",
		"--link", b.link, "--treatment-link", fmt.Sprintf("%s,seed=%d,stall=%v@0s-%v", b.link, seed, length, until)}
	if b.archive != "" {
		args = append(args, "--archive", b.archive)
	}
	cmd := exec.CommandContext(ctx, b.appliance, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout = os.Stderr
	cmd.Stderr = os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil // the treatment is slower, of course
	}
	if err != nil {
		return nil, fmt.Errorf("loads with a stall of %v: %w", length, err)
	}
	latest, err := filepath.EvalSymlinks(filepath.Join(out, "latest"))
	if err != nil {
		return nil, err
	}
	b.archive = filepath.Join(latest, "archive.wacz")
	return read(latest)
}

// read returns the valid loads of a run.
func read(dir string) (loads []load, err error) {
	var run lab.Run
	if err := readJSON(filepath.Join(dir, "run.json"), &run); err != nil {
		return nil, err
	}
	for _, t := range run.Trials {
		if !t.Valid {
			continue
		}
		var report struct {
			Stalled *struct {
				At time.Duration `json:"at_ns"`
			} `json:"stalled"`
		}
		if err := readJSON(filepath.Join(dir, "trials", fmt.Sprintf("%03d", t.Number), "link.json"), &report); err != nil {
			return nil, err
		}
		l := load{-1, lab.Values(t.Measurements)}
		if report.Stalled != nil {
			l.stalled = report.Stalled.At.Seconds() * 1e3
		}
		loads = append(loads, l)
	}
	return loads, nil
}

func readJSON(file string, into any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
