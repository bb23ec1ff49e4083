// Command pages loads the sample page in Chromium over several links, each
// emulated once packet by packet and once connection by connection, and
// compares how much the visual metrics of equal trials differ. It prints a table
// and writes out/bench/pages.json. It takes a quarter of an hour.
//
//	go run ./netlab/link/bench/pages [-trials 10] [-links cable,lte,3g] [-out out/bench/pages.json]
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

// result is one line of the benchmark's list.
type result struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Better string  `json:"better"`
	Peer   string  `json:"peer"`
	PeerV  float64 `json:"peer_value"`
	Ratio  float64 `json:"ratio,omitempty"`
}

// metrics are those whose spread is compared.
var metrics = []string{"first_visual_change_ms", "speed_index_ms", "last_visual_change_ms"}

// loads is what one link's trials measured, by metric; the invalid ones are left out.
type loads struct {
	values map[string][]float64
	valid  int
}

func run(ctx context.Context) error {
	trials := flag.Int("trials", 10, "loads over each link by each back end")
	links := flag.String("links", "cable,lte,3g", "links, fastest first")
	out := flag.String("out", "out/bench/pages.json", "file for the list of results")
	flag.Parse()
	dir, err := os.MkdirTemp("", "link-pages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := bench{dir: dir, appliance: filepath.Join(dir, "appliance"), trials: *trials}
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", b.appliance, "./cmd/appliance").CombinedOutput(); err != nil {
		return fmt.Errorf("build the appliance: %w: %s", err, text)
	}
	if err := b.record(ctx); err != nil {
		return err
	}
	var results []result
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "link\tmetric\tpacket: mean\tspread\tvalid\tconn: mean\tspread\tvalid\t")
	var means []float64
	for _, name := range strings.Split(*links, ",") {
		packet, err := b.load(ctx, name, "packet")
		if err != nil {
			return err
		}
		conn, err := b.load(ctx, name, "conn")
		if err != nil {
			return err
		}
		for _, metric := range metrics {
			mean, spread := describe(packet.values[metric])
			peerMean, peerSpread := describe(conn.values[metric])
			fmt.Fprintf(table, "%s\t%s\t%.0f\t%.1f\t%d\t%.0f\t%.1f\t%d\t\n", name, metric, mean, spread, packet.valid, peerMean, peerSpread, conn.valid)
			if metric == "speed_index_ms" {
				means = append(means, mean)
			}
			results = append(results,
				result{Name: name + " " + metric + ": standard deviation", Value: spread, Unit: "ms", Better: "lower", Peer: "conn", PeerV: peerSpread, Ratio: ratio(peerSpread, spread)},
				result{Name: name + " " + metric + ": mean", Value: mean, Unit: "ms", Better: "lower", Peer: "conn", PeerV: peerMean})
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if !slices.IsSortedFunc(means, cmp.Compare[float64]) {
		fmt.Println("the means of SpeedIndex are not in the order of the links")
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

type bench struct {
	dir, appliance, archive string
	trials                  int
}

// record has the demo record the sample page once, for all the loads.
func (b *bench) record(ctx context.Context) error {
	dir, err := b.demo(ctx, "record", 1, "--link", "native")
	b.archive = filepath.Join(dir, "archive.wacz")
	if _, statErr := os.Stat(b.archive); statErr != nil {
		return fmt.Errorf("record the sample page: %w", errors.Join(err, statErr))
	}
	return nil // whether that one load was valid does not matter
}

// load measures the trials of one link.
func (b *bench) load(ctx context.Context, link, backend string) (l loads, err error) {
	dir, demoErr := b.demo(ctx, link+"-"+backend, b.trials, "--link", link, "--backend", backend, "--archive", b.archive)
	content, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return l, errors.Join(demoErr, err)
	}
	var run struct {
		Trials []struct {
			Valid   bool               `json:"valid"`
			Metrics map[string]float64 `json:"metrics"`
			Misses  int                `json:"misses"`
		} `json:"trials"`
	}
	if err := json.Unmarshal(content, &run); err != nil {
		return l, fmt.Errorf("read the run: %w", err)
	}
	l.values = map[string][]float64{}
	for _, t := range run.Trials {
		if !t.Valid {
			continue
		}
		l.valid++
		for _, m := range metrics {
			v, ok := t.Metrics[m]
			if !ok {
				return l, fmt.Errorf("the run has no metric %s", m)
			}
			l.values[m] = append(l.values[m], v)
		}
	}
	if l.valid < 2 {
		return l, fmt.Errorf("%s by %s: only %d of %d trials are valid; is the machine busy?", link, backend, l.valid, len(run.Trials))
	}
	return l, nil
}

// demo runs it and returns the folder of its run.
func (b *bench) demo(ctx context.Context, name string, trials int, args ...string) (string, error) {
	out := filepath.Join(b.dir, name)
	cmd := exec.CommandContext(ctx, b.appliance, append([]string{"demo", "--no-serve", "--trials", fmt.Sprint(trials), "--out", out}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	text, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", name, err, text)
	}
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	dir, linkErr := filepath.EvalSymlinks(filepath.Join(out, "latest"))
	return dir, errors.Join(err, linkErr)
}

// describe returns mean and standard deviation.
func describe(list []float64) (mean, deviation float64) {
	for _, v := range list {
		mean += v / float64(len(list))
	}
	for _, v := range list {
		deviation += (v - mean) * (v - mean) / float64(len(list)-1)
	}
	return mean, math.Sqrt(deviation)
}

func ratio(theirs, ours float64) float64 {
	if ours == 0 {
		return 0
	}
	return theirs / ours
}
