// Command bench measures by simulation how well the health of boxes is judged: how often a steady box is called
// drifting, how soon a box that became slower is, and how often the interval of a comparison across two boxes has the
// truth in it. It prints tables and writes out/bench/health.json. The same seed prints the same numbers.
//
//	go run ./internal/fleet/metrology/bench [-boxes 4000] [-readings 100] [-seed 1] [-out FILE]
//	go run ./internal/fleet/metrology/bench -derive [-boxes 4000]
//
// With -derive it prints how the two parameters that are not given by what is asked for were found: the false calls for
// each.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"eidetic/internal/fleet/metrology"
	"eidetic/internal/fleet/metrology/simulate"
	"eidetic/internal/rigs/benchtable"
)

func main() { benchtable.Exit("bench", run()) }

type bench struct {
	boxes, readings int
	seed            uint64
	table           *tabwriter.Writer
	results         []benchtable.Result
}

func run() error {
	b := bench{table: tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)}
	out := flag.String("out", "out/bench/health.json", "file for the list of results")
	flag.IntVar(&b.boxes, "boxes", 4000, "simulated for each line")
	flag.IntVar(&b.readings, "readings", 100, "of each steady box, after its baseline")
	flag.Uint64Var(&b.seed, "seed", 1, "of everything")
	derive := flag.Bool("derive", false, "print the false calls for other thresholds and allowances instead")
	flag.Parse()
	if b.boxes < 100 || b.readings < 1 {
		return fmt.Errorf("%d boxes, %d readings: at least 100 and 1", b.boxes, b.readings)
	}
	if *derive {
		return b.derive()
	}
	for _, part := range []func() error{b.steady, b.slower, b.others, b.updates, b.crossings} {
		if err := part(); err != nil {
			return err
		}
	}
	return benchtable.Write(*out, b.results)
}

// parts divides boxes among the processors, each part with a seed of its own, so that the numbers do not depend on the
// machine.
const parts = 16

// count adds up what the parts of some boxes find.
func (b *bench) count(of func(r *rand.Rand, boxes int) int) int {
	found := make([]int, parts)
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range found {
		g.Go(func() error {
			found[i] = of(rand.New(rand.NewPCG(b.seed, uint64(i))), (i+1)*b.boxes/parts-i*b.boxes/parts)
			return nil
		})
	}
	_ = g.Wait() // no part returns an error
	sum := 0
	for _, n := range found {
		sum += n
	}
	return sum
}

func (b *bench) steady() error {
	fmt.Fprintf(b.table, "steady boxes, %d readings each\tof\tcalled\tshare\t95 %% interval\t\n", b.readings)
	for _, box := range simulate.Steady() {
		n := b.count(func(r *rand.Rand, boxes int) int { return simulate.False(metrology.Usual(), box, boxes, b.readings, r) })
		rate := simulate.RateOf(n, b.boxes)
		fmt.Fprintf(b.table, "%s\t%d\t%d\t%.2f %%\t%.2f … %.2f %%\t\n", box.Name, b.boxes, n, 100*rate.Share, 100*rate.Low, 100*rate.High)
		result := benchtable.Less("steady boxes called, noise "+box.Name, 100*rate.Share, "%")
		low, high, goal := 100*rate.Low, 100*rate.High, 0.5
		result.Low, result.High, result.Goal = &low, &high, &goal
		b.results = append(b.results, result)
	}
	return b.flush()
}

// goalRuns are the reference runs within which a box that became 5 % slower is to be called.
const goalRuns = 10

func (b *bench) slower() error {
	fmt.Fprintf(b.table, "boxes that become slower\tspread of a reading\tafter\twithin %d\tmedian of readings\t\n", goalRuns)
	for _, slower := range []float64{2, 5} {
		for _, noise := range []float64{0.5, 1, 1.5, 2, 3} {
			for _, after := range []int{15, 40} {
				b.change(fmt.Sprintf("%g %%\t%g %%\t%d", slower, noise, after), fmt.Sprintf("%g %% slower, spread %g %%, after %d readings", slower, noise, after),
					simulate.OfNoise(noise/100), simulate.Change{At: after, Level: 1 + slower/100})
			}
		}
	}
	return b.flush()
}

func (b *bench) others() error {
	fmt.Fprintf(b.table, "other changes\tspread of a reading\tafter\twithin %d\tmedian of readings\t\n", goalRuns)
	for _, c := range []struct {
		name   string
		change simulate.Change
	}{
		{"5 % faster", simulate.Change{At: 40, Level: 0.95}}, {"trials spread twice as much", simulate.Change{At: 40, Spread: 2}},
		{"30 % of trials thrown away instead of 5", simulate.Change{At: 40, Thrown: 0.3}},
		{"60 % of trials thrown away instead of 5", simulate.Change{At: 40, Thrown: 0.6}},
	} {
		b.change(c.name+"\t1 %\t40", c.name, simulate.OfNoise(0.01), c.change)
	}
	return b.flush()
}

// change simulates boxes that change.
func (b *bench) change(line, name string, box simulate.Box, change simulate.Change) {
	const within = 60
	delays := make([][]int, parts)
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range delays {
		g.Go(func() error {
			r := rand.New(rand.NewPCG(b.seed, uint64(i)))
			delays[i] = simulate.Delays(metrology.Usual(), box, b.boxes/4/parts+1, within, change, r)
			return nil
		})
	}
	_ = g.Wait() // no part returns an error
	all := slices.Sorted(slices.Values(slices.Concat(delays...)))
	soon := 0
	for _, d := range all {
		if d <= goalRuns {
			soon++
		}
	}
	median := fmt.Sprint(all[len(all)/2])
	if all[len(all)/2] == math.MaxInt {
		median = fmt.Sprintf("over %d", within)
	}
	share := 100 * float64(soon) / float64(len(all))
	fmt.Fprintf(b.table, "%s\t%.1f %%\t%s\t\n", line, share, median)
	b.results = append(b.results, benchtable.More(fmt.Sprintf("%s: called within %d", name, goalRuns), share, "%"))
}

func (b *bench) crossings() error {
	fmt.Fprint(b.table, "comparisons across boxes\treference runs\tinterval has the truth\tequal pages called different\twidth\tratio taken for certain\t\n")
	for _, c := range []struct {
		name string
		box  simulate.Box
		runs int
	}{
		{"1 % spread", simulate.OfNoise(0.01), 5}, {"1 % spread", simulate.OfNoise(0.01), 20}, {"2 % spread", simulate.OfNoise(0.02), 10},
		{"boxes that wander", simulate.Box{Trials: 8, Within: 0.02, Between: 0.015, Correlation: 0.3, Tails: 5}, 10},
		{"trials alone", simulate.Box{Trials: 8, Within: 0.03, Tails: 5}, 10},
	} {
		cross := simulate.Crossing{A: c.box, B: c.box, Runs: c.runs, Trials: 12, Factor: 1.12, Slowed: 1}
		got, err := cross.Try(b.boxes/2, rand.New(rand.NewPCG(b.seed, 1)))
		if err != nil {
			return err
		}
		cross.Ignored = true
		ignored, err := cross.Try(b.boxes/2, rand.New(rand.NewPCG(b.seed, 1)))
		if err != nil {
			return err
		}
		n := float64(got.Tried) / 100
		fmt.Fprintf(b.table, "%s\t%d\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f %%\t\n", c.name, c.runs, float64(got.Covered)/n, float64(got.Different)/n, got.Width,
			float64(ignored.Covered)/n)
		b.results = append(b.results, benchtable.More(fmt.Sprintf("across boxes, %s, %d reference runs: interval has the truth", c.name, c.runs),
			float64(got.Covered)/n, "%"))
	}
	return b.flush()
}

// derive prints the false calls for thresholds and allowances.
func (b *bench) derive() error {
	fmt.Fprint(b.table, "standard errors\tthreshold\t")
	for _, box := range simulate.Steady() {
		fmt.Fprint(b.table, box.Name, "\t")
	}
	fmt.Fprint(b.table, "5 % slower, spread 1.5 %\t\n")
	for _, errs := range []float64{2, 2.5, 3} {
		for _, threshold := range []float64{9, 10, 11, 12} {
			l := metrology.Usual()
			l.BaselineErrors, l.Threshold = errs, threshold
			fmt.Fprintf(b.table, "%g\t%g\t", errs, threshold)
			for _, box := range simulate.Steady() {
				n := b.count(func(r *rand.Rand, boxes int) int { return simulate.False(l, box, boxes, b.readings, r) })
				fmt.Fprintf(b.table, "%.2f %%\t", 100*float64(n)/float64(b.boxes))
			}
			soon := b.count(func(r *rand.Rand, boxes int) (soon int) {
				for _, d := range simulate.Delays(l, simulate.OfNoise(0.015), boxes, goalRuns, simulate.Change{At: 15, Level: 1.05}, r) {
					if d <= goalRuns {
						soon++
					}
				}
				return soon
			})
			fmt.Fprintf(b.table, "%.1f %%\t\n", 100*float64(soon)/float64(b.boxes))
		}
	}
	return b.flush()
}

func (b *bench) flush() error {
	fmt.Fprintln(b.table)
	return b.table.Flush()
}
