// Command bench compares arms of simulated experiments with our rule and with the rules
// of other tools, on the same values: how often the printed interval contains the
// true shift, how often equal arms are called different, and how often a shift is found. It
// prints tables and writes out/bench/stats.json. The same seed prints the same tables.
//
//	go run ./analysis/stats/bench [-pairs 6,10,20,50] [-experiments 4000] [-seed 1] [-spread 45] [-peers=false] [-out out/bench/stats.json]
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"

	"eidetic/analysis/stats"
	"eidetic/analysis/stats/peers"
	"eidetic/analysis/stats/simulate"
	"eidetic/internal/rigs/benchtable"
)

func main() { benchtable.Exit("bench", run()) }

func run() error {
	out := flag.String("out", "out/bench/stats.json", "file for the list of results")
	sizes := flag.String("pairs", "6,10,20,50", "of trials in an experiment, a table's rows for each")
	experiments := flag.Int("experiments", 4000, "simulated for each line, and as many without a shift")
	seed := flag.Uint64("seed", 1, "of everything")
	spread := flag.Float64("spread", simulate.Usual().Spread, "standard deviation of a load, in ms")
	shift := flag.Float64("shift", 20, "true difference, in ms")
	others := flag.Bool("peers", true, "try the rules of other tools as well")
	flag.Parse()
	if *experiments < 1 || !(*spread > 0) {
		return fmt.Errorf("%d experiments, a spread of %v ms: both must be positive", *experiments, *spread)
	}
	var lines []line
	for size := range strings.SplitSeq(*sizes, ",") {
		pairs, err := strconv.Atoi(size)
		if err != nil || pairs < 2 {
			return fmt.Errorf("-pairs %s: %q is no number of at least 2", *sizes, size)
		}
		for _, c := range cases() {
			machine := simulate.Usual()
			machine.Spread = *spread
			c.change(&machine)
			lines = append(lines, line{pairs: pairs, machine: c.name, tally: try(machine, pairs, *experiments, *shift, *seed, *others)})
		}
	}
	if err := table(lines, *shift); err != nil {
		return err
	}
	return write(*out, lines, *shift)
}

type scenario struct {
	name   string
	change func(*simulate.Machine)
}

func cases() []scenario {
	return []scenario{
		{"steady", func(*simulate.Machine) {}},
		{"400 ms of drift", func(m *simulate.Machine) { m.Drift = 400 }},
		{"drift, 15 % invalid", func(m *simulate.Machine) { m.Drift, m.Invalid = 400, 0.15 }},
		{"steady, any phase", func(m *simulate.Machine) { m.Moving = true }},
	}
}

// line is the result for one number of pairs on one machine.
type line struct {
	pairs   int
	machine string
	tally
}

// ours and before are the first two rules of a tally: this comparison, and the one
// that it replaced, which took the same test on values as they are and asked the
// interval of the signed-rank test as well.
const (
	ours   = "Eidetic"
	before = "Eidetic before: pairs' interval"
)

func names() (all []string) {
	all = []string{ours, before}
	for _, rule := range peers.All() {
		all = append(all, rule.Name)
	}
	return all
}

// tally counts experiments.
type tally struct {
	done            int // with and without a shift each
	width, attained float64
	covered         []int // for each rule; −1 where it has no interval
	found, alarms   []int
}

// try simulates experiments on all processors; the result does not depend on their number.
func try(machine simulate.Machine, pairs, experiments int, shift float64, seed uint64, others bool) tally {
	parts := make([]tally, experiments)
	var wait sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for n := range parts {
		limit <- struct{}{}
		wait.Go(func() {
			defer func() { <-limit }()
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			parts[n] = one(machine, pairs, shift, r, others)
		})
	}
	wait.Wait()
	sum := parts[0]
	for _, p := range parts[1:] {
		sum.done += p.done
		sum.width += p.width
		sum.attained += p.attained
		for i := range sum.covered {
			sum.covered[i] += p.covered[i]
			sum.found[i] += p.found[i]
			sum.alarms[i] += p.alarms[i]
		}
	}
	return sum
}

// one simulates an experiment with a shift and one without.
func one(machine simulate.Machine, pairs int, shift float64, r *rand.Rand, others bool) tally {
	rules := peers.All()
	t := tally{covered: make([]int, 2+len(rules)), found: make([]int, 2+len(rules)), alarms: make([]int, 2+len(rules))}
	for _, more := range []float64{shift, 0} {
		blocks, dice := machine.Experiment(r, pairs, more), r.Uint64()
		c, err := stats.Compare(blocks, stats.Plan{Seed: dice, Step: simulate.Frame})
		if err != nil { // too few pairs were valid
			return tally{covered: make([]int, 2+len(rules)), found: make([]int, 2+len(rules)), alarms: make([]int, 2+len(rules))}
		}
		control, treatment := paired(blocks)
		says := []bool{c.Test.P <= 0.05, false}
		bounds := [][2]float64{{c.Shift.Low, c.Shift.High}, {math.NaN(), math.NaN()}}
		for _, rule := range rules {
			says = append(says, others && rule.Differs(control, treatment))
			at := [2]float64{math.NaN(), math.NaN()}
			if others && rule.Interval != nil {
				at[0], at[1] = rule.Interval(control, treatment)
			}
			bounds = append(bounds, at)
			if rule.Name == "Wilcoxon signed rank" {
				test, _ := stats.AlignedRank(blocks, 999, dice)
				low, high := rule.Interval(stats.Dither(control, simulate.Frame, dice), stats.Dither(treatment, simulate.Frame, dice+1))
				says[1], bounds[1] = test.P <= 0.05 && (low > 0 || high < 0), [2]float64{low, high}
			}
		}
		for i := range says {
			switch {
			case says[i] && more != 0:
				t.found[i]++
			case says[i]:
				t.alarms[i]++
			}
			if more != 0 && bounds[i][0] <= more && more <= bounds[i][1] {
				t.covered[i]++
			}
		}
		if more != 0 {
			t.width, t.attained = c.Shift.High-c.Shift.Low, c.Shift.Confidence
		}
	}
	t.done = 1
	return t
}

// paired returns the n-th trials of both arms in each block, as many as both arms have.
func paired(blocks []stats.Block) (control, treatment []float64) {
	for _, b := range blocks {
		n := min(len(b.Control), len(b.Treatment))
		control, treatment = append(control, b.Control[:n]...), append(treatment, b.Treatment[:n]...)
	}
	return control, treatment
}

func (l line) percent(count int) float64 { return 100 * float64(count) / float64(l.done) }

func table(lines []line, shift float64) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "Intervals that hold %g ms, %%\npairs\tmachine\tattained\tour width, ms\t", shift)
	all := names()
	for i, name := range all {
		if hasInterval(i) {
			fmt.Fprintf(w, "%s\t", name)
		}
	}
	fmt.Fprintln(w)
	for _, l := range lines {
		fmt.Fprintf(w, "%d\t%s\t%.1f\t%.0f\t", l.pairs, l.machine, 100*l.attained/float64(l.done), l.width/float64(l.done))
		for i := range all {
			if hasInterval(i) {
				fmt.Fprintf(w, "%.1f\t", l.percent(l.covered[i]))
			}
		}
		fmt.Fprintln(w)
	}
	for _, part := range []struct {
		title string
		of    func(line) []int
	}{
		{"Equal arms told apart, %", func(l line) []int { return l.alarms }},
		{fmt.Sprintf("%g ms found, %%", shift), func(l line) []int { return l.found }},
	} {
		fmt.Fprintf(w, "\n%s\npairs\tmachine\t", part.title)
		for _, name := range all {
			fmt.Fprintf(w, "%s\t", name)
		}
		fmt.Fprintln(w)
		for _, l := range lines {
			fmt.Fprintf(w, "%d\t%s\t", l.pairs, l.machine)
			for _, count := range part.of(l) {
				fmt.Fprintf(w, "%.1f\t", l.percent(count))
			}
			fmt.Fprintln(w)
		}
	}
	return w.Flush()
}

// hasInterval reports whether the rule at this index of names prints an interval.
func hasInterval(i int) bool { return i < 2 || peers.All()[i-2].Interval != nil }

// write writes our numbers, beside those of the rule that this comparison replaced.
func write(file string, lines []line, shift float64) error {
	var list []benchtable.Result
	for _, l := range lines {
		for _, v := range []struct {
			name, better string
			counts       []int
		}{
			{fmt.Sprintf("intervals that hold %g ms", shift), "higher", l.covered},
			{"equal arms told apart", "lower", l.alarms},
			{fmt.Sprintf("%g ms found", shift), "higher", l.found},
		} {
			one := benchtable.Result{Name: fmt.Sprintf("%s, %d pairs, %s", v.name, l.pairs, l.machine), Value: l.percent(v.counts[0]), Unit: "%",
				Better: v.better}
			list = append(list, one.Against(before, l.percent(v.counts[1])))
		}
	}
	return benchtable.Write(file, list)
}
