// Command pages loads the sample page in Chromium over several links, alternately with
// the packet and the conn back end, and compares how much the visual metrics of equal
// trials differ. It prints a table and writes out/bench/pages.json. It takes a quarter
// of an hour.
//
//	go run ./netlab/link/bench/pages [-trials 10] [-rounds 2] [-links cable,lte,3g] [-out out/bench/pages.json]
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/benchtable"
)

func main() { benchtable.Main("pages", run) }

// metrics are those whose spread is compared.
var metrics = [...]metric.ID{metric.FirstChange, metric.SpeedIndex, metric.LastChange}

// loads is what one link's valid trials measured, by metric and round.
type loads struct {
	values map[metric.ID][][]float64 // of each metric, by round
}

// valid returns the number of loads.
func (l loads) valid() (n int) {
	for _, round := range l.values[metrics[0]] {
		n += len(round)
	}
	return n
}

func run(ctx context.Context) error {
	trials := flag.Int("trials", 10, "loads over each link by each back end")
	rounds := flag.Int("rounds", 2, "rounds that the loads are spread over: packets and connections take turns, since a machine changes")
	links := flag.String("links", "cable,lte,3g", "links, fastest first")
	out := flag.String("out", "out/bench/pages.json", "file for the list of results")
	flag.Parse()
	if *rounds < 1 || *trials < 2**rounds {
		return errors.New("-trials must be at least twice -rounds: a spread needs two loads")
	}
	dir, err := os.MkdirTemp("", "link-pages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := bench{dir: dir, appliance: filepath.Join(dir, "appliance"), trials: *trials, rounds: *rounds}
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", b.appliance, "./cmd/appliance").CombinedOutput(); err != nil {
		return fmt.Errorf("build the appliance: %w: %s", err, text)
	}
	if err := b.record(ctx); err != nil {
		return err
	}
	var results []benchtable.Result
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "link\tmetric\tpacket: mean\tspread\tvalid\tconn: mean\tspread\tvalid\tp\t")
	var means []float64
	for _, name := range strings.Split(*links, ",") {
		var packet, conn loads
		for round := range b.rounds {
			if err := b.load(ctx, name, "packet", round, &packet); err != nil {
				return err
			}
			if err := b.load(ctx, name, "conn", round, &conn); err != nil {
				return err
			}
		}
		if packet.valid() < 3 || conn.valid() < 3 {
			return fmt.Errorf(
				"over %s %d loads by packets and %d by connections are valid, want at least 3 of each: is the machine busy?",
				name,
				packet.valid(),
				conn.valid(),
			)
		}
		for _, m := range metrics {
			mean, spread := describe(packet.values[m])
			peerMean, peerSpread := describe(conn.values[m])
			p := sameSpread(packet.values[m], conn.values[m])
			fmt.Fprintf(table, "%s\t%s\t%.0f\t%.1f\t%d\t%.0f\t%.1f\t%d\t%.2f\t\n", name, m, mean, spread, packet.valid(),
				peerMean, peerSpread, conn.valid(), p)
			if m == metric.SpeedIndex {
				means = append(means, mean)
			}
			deviation := benchtable.Less(name+" "+m.String()+": standard deviation", spread, "ms").Against("conn", peerSpread)
			deviation.P = &p
			results = append(results,
				deviation, benchtable.Less(name+" "+m.String()+": mean", mean, "ms").Against("conn", peerMean))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if !slices.IsSortedFunc(means, cmp.Compare[float64]) {
		fmt.Println("the means of SpeedIndex are not in the order of the links")
	}
	return benchtable.Write(*out, results)
}

type bench struct {
	dir, appliance, archive string
	trials, rounds          int
}

// record records the sample page once with the demo, for all loads.
func (b *bench) record(ctx context.Context) error {
	dir, err := b.demo(ctx, "record", 1, "--link", "native")
	b.archive = filepath.Join(dir, "archive.wacz")
	if _, statErr := os.Stat(b.archive); statErr != nil {
		return fmt.Errorf("record the sample page: %w", errors.Join(err, statErr))
	}
	return nil // whether that one load was valid does not matter
}

// load adds one round of trials of one link.
func (b *bench) load(ctx context.Context, link, backend string, round int, l *loads) error {
	trials := (b.trials + b.rounds - 1 - round) / b.rounds
	dir, demoErr := b.demo(ctx, fmt.Sprintf("%s-%s-%d", link, backend, round), trials, "--link", link, "--backend",
		backend, "--archive", b.archive)
	content, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return errors.Join(demoErr, err)
	}
	var run lab.Run
	if err := json.Unmarshal(content, &run); err != nil {
		return fmt.Errorf("read the run: %w", err)
	}
	if l.values == nil {
		l.values = map[metric.ID][][]float64{}
	}
	for _, m := range metrics {
		var values []float64
		for _, t := range run.Trials {
			if !t.Valid {
				continue
			}
			v, ok := t.Value(m.String())
			if !ok {
				return fmt.Errorf("the run has no metric %s", m)
			}
			values = append(values, v)
		}
		if len(values) >= 2 { // one alone has no spread within its round
			l.values[m] = append(l.values[m], values)
		}
	}
	return nil
}

// demo runs the demo and returns the folder of its run.
func (b *bench) demo(ctx context.Context, name string, trials int, args ...string) (string, error) {
	out := filepath.Join(b.dir, name)
	cmd := exec.CommandContext(ctx, b.appliance, append([]string{"demo", "--no-serve", "--trials", fmt.Sprint(trials),
		"--out", out}, args...)...)
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

// describe returns the mean, and the standard deviation within rounds.
func describe(rounds [][]float64) (mean, deviation float64) {
	n := 0
	for _, list := range rounds {
		n += len(list)
		sum := 0.0
		for _, v := range list {
			sum += v
		}
		mean += sum
		for _, v := range list {
			deviation += (v - sum/float64(len(list))) * (v - sum/float64(len(list)))
		}
	}
	return mean / float64(n), math.Sqrt(deviation / float64(n-len(rounds)))
}

// sameSpread returns how often, when the members of two lists are exchanged at random,
// the lists' mean absolute distances from their rounds' medians differ by as much as
// these do (Brown and Forsythe, 1974, as a permutation test). A small value means that
// the spreads are not the same.
func sameSpread(a, b [][]float64) float64 {
	var far []float64
	n := 0
	for i, rounds := range [][][]float64{a, b} {
		for _, list := range rounds {
			sorted := slices.Sorted(slices.Values(list))
			middle := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
			for _, v := range list {
				far = append(far, math.Abs(v-middle))
			}
			if i == 0 {
				n += len(list)
			}
		}
	}
	difference := func() (d float64) {
		for i, v := range far {
			if i < n {
				d += v / float64(n)
			} else {
				d -= v / float64(len(far)-n)
			}
		}
		return math.Abs(d)
	}
	seen, times, random := difference(), 1, rand.New(rand.NewPCG(1, 1))
	const draws = 9999
	for range draws {
		random.Shuffle(len(far), func(i, j int) { far[i], far[j] = far[j], far[i] })
		if difference() >= seen-1e-9 {
			times++
		}
	}
	return float64(times) / (draws + 1)
}
