// Command bench simulates runs whose true difference is known, and measures how a plan with
// looks fares beside one without: how often equal arms are called different or a verdict is
// wrong, how often it is known, and after how many pairs the run ends. It prints a table and
// writes out/bench/looks.json. The same seed prints the same table.
//
//	go run ./internal/tell/verdict/bench -tests 2000 [-pairs 40] [-looks 4] [-shifts 0,20] [-seed 1]
//	go run ./internal/tell/verdict/bench [-runs 2000] [-pairs 40] [-looks 4] [-shifts 0,20] [-margins 0,3] [-rule looks]
//	    [-seed 1] [-out FILE]
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"eidetic/analysis/stats"
	"eidetic/analysis/stats/simulate"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/benchtable"
	"eidetic/internal/tell/verdict"
)

func main() { benchtable.Exit("bench", run()) }

// primary is alone, so that it has the whole level, which is the hardest case.
const primary = metric.SpeedIndex

// rule is a way of looking at a run while it goes on.
type rule struct {
	name, short string
	looks       int
	// naive looks as often, each time at the whole level, as tools do that repeat a test until it is significant.
	naive bool
}

func rules(looks int) []rule {
	return []rule{
		{"one look", "one", 0, false}, {fmt.Sprintf("%d looks", looks), "looks", looks, false},
		{fmt.Sprintf("%d naive looks", looks), "naive", looks, true},
	}
}

func run() error {
	out := flag.String("out", "out/bench/looks.json", "file for the list of results")
	runs := flag.Int("runs", 2000, "simulated for each line")
	pairs := flag.Int("pairs", 40, "that a run has at most")
	looks := flag.Int("looks", 4, "of the plan with looks")
	seed := flag.Uint64("seed", 1, "of everything")
	shifts := flag.String("shifts", "0,20,40,60,90", "true differences, in ms, of loads of 1.5 s")
	margins := flag.String("margins", "0,3", "of the plan, in percent")
	only := flag.String("rule", "", "only this rule: one, looks or naive")
	tests := flag.Int("tests", 0, "instead: so many runs for each line, judged by the test's p-values alone, which takes little time")
	flag.Parse()
	if *runs < 1 || *looks < 2 || *looks > 10 || *pairs < 5**looks {
		return fmt.Errorf("%d runs of %d pairs with %d looks: at least one run, 2 … 10 looks, and 5 pairs for each", *runs, *pairs, *looks)
	}
	var differences []float64
	for text := range strings.SplitSeq(*shifts, ",") {
		shift, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("-shifts: %w", err)
		}
		differences = append(differences, shift)
	}
	if *tests > 0 {
		return byTests(lab.Plan{Trials: *pairs, Looks: *looks}, *tests, differences, *seed)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "margin\ttrue shift\trule\tslower or faster\tequivalent\tnot known\twrong\tmean pairs\tpairs saved\t\n")
	var results []benchtable.Result
	for text := range strings.SplitSeq(*margins, ",") {
		margin, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("-margins: %w", err)
		}
		for _, shift := range differences {
			for _, r := range rules(*looks) {
				if r.naive && margin > 0 || *only != "" && *only != r.short {
					continue
				}
				plan := lab.Plan{Trials: *pairs, Looks: r.looks, Margin: margin, Treatment: &lab.Arm{}, Primary: primary.String()}
				c, err := simulateAll(plan, r.naive, *runs, shift, *seed)
				if err != nil {
					return err
				}
				n := float64(*runs)
				wrong := c.wrong(shift, margin)
				mean := float64(c.pairs) / n
				fmt.Fprintf(w, "%g %%\t%g ms\t%s\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f\t%.0f %%\t\n", margin, shift, r.name,
					100*float64(c.different)/n, 100*float64(c.equivalent)/n, 100*float64(c.open)/n, 100*wrong/n, mean, 100*(1-mean/float64(*pairs)))
				name := fmt.Sprintf("margin %g %%, shift %g ms, %s", margin, shift, r.name)
				results = append(results, benchtable.Less(name+": wrong verdicts", 100*wrong/n, "%"),
					benchtable.Less(name+": pairs", mean, "pairs"))
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d runs a line; the binomial 95 %% band of 5 %% is ±%.1f %%\n", *runs, 196*math.Sqrt(0.05*0.95/float64(*runs)))
	return benchtable.Write(*out, results)
}

// byTests counts the runs in which the test's p-value is at most the level of a look, and the pairs
// until then. A verdict's p-value is that of the test, or larger: no more runs have a verdict.
func byTests(plan lab.Plan, runs int, shifts []float64, seed uint64) error {
	after := plan.LooksAfter()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "true shift\trule\tfound\tmean pairs\tpairs saved\t\n")
	for _, shift := range shifts {
		for _, c := range []struct {
			name   string
			levels []float64
		}{
			{"one look", append(make([]float64, len(after)-1), verdict.Level)},
			{fmt.Sprintf("%d looks", len(after)), verdict.Levels(after)},
			{fmt.Sprintf("%d naive looks", len(after)), slices.Repeat([]float64{verdict.Level}, len(after))},
		} {
			found, pairs := make([]bool, runs), make([]int, runs)
			var group errgroup.Group
			group.SetLimit(runtime.NumCPU())
			for i := range runs {
				group.Go(func() (err error) {
					rng := rand.New(rand.NewPCG(seed, uint64(i)))
					found[i], pairs[i], err = tested(simulate.Usual().Experiment(rng, plan.Trials, shift), after, c.levels)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				return err
			}
			alarms, all := 0, 0
			for i, is := range found {
				if all += pairs[i]; is {
					alarms++
				}
			}
			mean := float64(all) / float64(runs)
			fmt.Fprintf(w, "%g ms\t%s\t%.2f %%\t%.1f\t%.0f %%\t\n", shift, c.name, 100*float64(alarms)/float64(runs), mean,
				100*(1-mean/float64(plan.Trials)))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d runs a line; the binomial 95 %% band of 5 %% is ±%.2f %%\n", runs, 196*math.Sqrt(0.05*0.95/float64(runs)))
	return nil
}

// tested looks at whole blocks, as the experiment does, and returns after how many pairs it ends.
func tested(blocks []stats.Block, after []int, levels []float64) (found bool, pairs int, err error) {
	looked := 0
	for i, b := range blocks {
		pairs += len(b.Control)
		at := -1
		for looked < len(after) && pairs >= after[looked] {
			at = looked
			looked++
		}
		if at < 0 || levels[at] == 0 {
			continue
		}
		test, err := stats.AlignedRank(blocks[:i+1], 9999, 1)
		if err != nil || test.P <= levels[at] {
			return err == nil, pairs, err
		}
	}
	return false, pairs, nil
}

// count is what became of simulated runs.
type count struct{ slower, faster, different, equivalent, open, pairs int }

// wrong counts the verdicts that are false of the true shift: the machine's loads take 1.5 s.
func (c count) wrong(shift, margin float64) float64 {
	least := margin / 100 * simulate.Usual().Load
	if shift <= least { // no shift beyond the margin
		if margin == 0 && shift == 0 || margin > 0 {
			return float64(c.different)
		}
	}
	return float64(c.faster + c.equivalent)
}

// simulateAll simulates runs of a plan on all processors.
func simulateAll(plan lab.Plan, naive bool, runs int, shift float64, seed uint64) (total count, err error) {
	counts := make([]count, runs)
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for i := range runs {
		group.Go(func() error {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			counts[i] = one(plan, simulate.Usual().Experiment(rng, plan.Trials, shift), naive)
			return nil
		})
	}
	err = group.Wait()
	for _, c := range counts {
		total.slower, total.faster, total.different = total.slower+c.slower, total.faster+c.faster, total.different+c.different
		total.equivalent, total.open, total.pairs = total.equivalent+c.equivalent, total.open+c.open, total.pairs+c.pairs
	}
	return total, err
}

// one carries out a run: it looks at whole blocks, as internal/run/experiment does.
func one(plan lab.Plan, blocks []stats.Block, naive bool) count {
	run := &lab.Run{Plan: plan}
	after, looked, pairs := plan.LooksAfter(), 0, 0
	for i, b := range blocks {
		for n := range b.Control {
			run.Trials = append(run.Trials, trial(run, i+1, lab.Control, b.Control[n]), trial(run, i+1, lab.Treatment, b.Treatment[n]))
		}
		pairs += len(b.Control)
		at := -1
		for looked < len(after)-1 && pairs >= after[looked] {
			at = looked
			looked++
		}
		if at < 0 || i+1 == len(blocks) {
			continue
		}
		if naive {
			if c := verdict.Of(run, 1); c.Verdict == lab.Slower || c.Verdict == lab.Faster {
				break
			}
		} else if verdict.Look(run, at, 1) {
			break
		}
	}
	got := count{pairs: len(run.Trials) / 2}
	switch verdict.Of(run, 1).Verdict {
	case lab.Slower:
		got.slower, got.different = 1, 1
	case lab.Faster:
		got.faster, got.different = 1, 1
	case lab.Equivalent:
		got.equivalent = 1
	default:
		got.open = 1
	}
	return got
}

func trial(run *lab.Run, block int, arm string, v float64) *lab.Trial {
	return &lab.Trial{Number: len(run.Trials) + 1, Arm: arm, Block: block, Valid: true,
		Measurements: []lab.Measurement{primary.Measure(v, nil)}}
}
