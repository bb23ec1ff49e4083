// Command bench looks for change points in series whose steps are known, and in flat ones, with this package and with
// Apache Otava's method. It prints precision, recall and false alarms, and writes out/bench/change.json. The
// same seed prints the same table.
//
//	go run ./analysis/change/bench [-series 50] [-flat 1000] [-step 2] [-least 20] [-within 5] [-level 0.025] [-seed 1]
//	    [-out out/bench/change.json]
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"text/tabwriter"

	"eidetic/analysis/change"
	"eidetic/analysis/change/known"
	"eidetic/internal/rigs/benchtable"
)

func main() { benchtable.Exit("bench", run()) }

func run() error {
	count := flag.Int("series", 50, "with steps")
	flat := flag.Int("flat", 1000, "series without a step")
	step := flag.Float64("step", 2, "size of a step, in standard deviations")
	least := flag.Int("least", 20, "values of each level")
	within := flag.Int("within", 5, "how far a point may be from the step that it stands for")
	level := flag.Float64("level", change.SeriesLevel, "of our change points")
	seed := flag.Uint64("seed", 1, "of everything")
	out := flag.String("out", "out/bench/change.json", "file for the list of results")
	flag.Parse()
	if *count < 1 || *flat < 1 || !(*step > 0) || *least < 1 || *least > 30 {
		return fmt.Errorf("-series %d, -flat %d, -step %v, -least %d: they must be positive, the last at most 30", *count, *flat, *step, *least)
	}
	finders := []struct {
		name string
		find func([]float64, uint64) ([]int, error)
	}{
		{"Eidetic", func(values []float64, seed uint64) (out []int, err error) {
			points, err := change.Points(values, change.Options{Level: *level, Seed: seed})
			for _, p := range points {
				out = append(out, p.Index)
			}
			return out, err
		}},
		{"Otava (Hunter)", func(values []float64, _ uint64) ([]int, error) { return otava(values), nil }},
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "noise\tmethod\tsteps\tpoints\tprecision\trecall\tflat series with a point\t\n")
	var list []benchtable.Result
	for _, noise := range []known.Noise{known.Normal, known.Heavy} {
		var scores []score
		for _, f := range finders {
			s, err := try(f.find, noise, *count, *flat, *step, *least, *within, *seed)
			if err != nil {
				return err
			}
			scores = append(scores, s)
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.3f\t%.3f\t%.1f %%\t\n", noise, f.name, s.Steps, s.Points, s.Precision(), s.Recall(), s.alarms)
		}
		add := func(name, unit, better string, goal, ours, theirs float64) {
			name = fmt.Sprintf("%s, steps of %g SD, %s noise", name, *step, noise)
			one := benchtable.Result{Name: name, Value: ours, Unit: unit, Better: better}
			list = append(list, one.Against(finders[1].name, theirs).Aim(goal))
		}
		add("precision", "", "higher", 0.95, scores[0].Precision(), scores[1].Precision())
		add("recall", "", "higher", 0.95, scores[0].Recall(), scores[1].Recall())
		add("flat series with a point", "%", "lower", 3, scores[0].alarms, scores[1].alarms)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return benchtable.Write(*out, list)
}

// score adds the false alarms.
type score struct {
	known.Score
	alarms float64 // per cent of the flat series
}

// try asks a method about all series, on all processors; the result does not depend on their number.
func try(
	find func([]float64, uint64) ([]int, error), noise known.Noise, count, flat int, step float64, least, within int, seed uint64,
) (score, error) {
	scores, errs := make([]known.Score, count+flat), make([]error, count+flat)
	var wait sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for n := range scores {
		limit <- struct{}{}
		wait.Go(func() {
			defer func() { <-limit }()
			size := step
			if n >= count {
				size = 0
			}
			s := known.New(seed, uint64(n), noise, size, least)
			points, err := find(s.Values, uint64(n))
			scores[n], errs[n] = s.Judge(points, within), err
		})
	}
	wait.Wait()
	var out score
	for n, s := range scores {
		switch {
		case errs[n] != nil:
			return out, errs[n]
		case n < count:
			out.Add(s)
		case s.Points > 0:
			out.alarms += 100 / float64(flat)
		}
	}
	return out, nil
}
