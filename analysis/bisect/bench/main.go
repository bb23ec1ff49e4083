// Command bench bisects simulated regressions of known sizes at random places, with this
// package's search and with the binary search that takes each step for certain. It prints how often each is
// right and wrong and what it costs, and writes out/bench/bisect.json. The same seed prints the same tables.
//
//	go run ./analysis/bisect/bench [-bisects 200] [-revisions 64] [-effects 0,10,25,50] [-pairs 10,20] [-seed 1] [-out out/bench/bisect.json]
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"

	"eidetic/analysis/bisect"
	"eidetic/analysis/bisect/virtual"
	"eidetic/internal/rigs/benchtable"
)

func main() { benchtable.Exit("bench", run()) }

// tally counts bisects.
type tally struct {
	right, wrong, none, several, unsure int
	trials                              []int
}

// add counts one: what it named, 0 for no difference, against the truth.
func (t *tally) add(kind string, culprit, truth, pairs int) {
	t.trials = append(t.trials, 2*pairs)
	switch {
	case kind == bisect.None:
		t.none++
	case kind == bisect.Several:
		t.several++
	case kind == bisect.Unsure:
		t.unsure++
	case culprit == truth:
		t.right++
	default:
		t.wrong++
	}
}

// middle is the q-quantile of the trials.
func (t *tally) middle(q float64) int {
	sorted := slices.Sorted(slices.Values(t.trials))
	return sorted[int(q*float64(len(sorted)-1))]
}

func run() error {
	count := flag.Int("bisects", 200, "simulated for each size")
	revisions := flag.Int("revisions", 64, "from the first after good to bad")
	effects := flag.String("effects", "0,10,25,50", "sizes of the regression, in ms")
	fixed := flag.String("pairs", "10,20", "of each step of the binary search")
	seed := flag.Uint64("seed", 1, "of everything")
	out := flag.String("out", "out/bench/bisect.json", "file for the list of results")
	flag.Parse()
	if *count < 1 || *revisions < 1 {
		return fmt.Errorf("-bisects %d, -revisions %d: at least 1", *count, *revisions)
	}
	var sizes []int
	for text := range strings.SplitSeq(*fixed, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 {
			return fmt.Errorf("-pairs %s: %q is no number of at least 2", *fixed, text)
		}
		sizes = append(sizes, n)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "ms\tsearch\tright\twrong\tno difference\tseveral steps\tnot sure\ttrials: median\t90 %\t\n")
	var list []benchtable.Result
	for text := range strings.SplitSeq(*effects, ",") {
		size, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("-effects %s: %q is no number", *effects, text)
		}
		tallies, err := try(*count, *revisions, size, sizes, *seed)
		if err != nil {
			return err
		}
		for i := range tallies {
			t, name := &tallies[i], "eidetic"
			if i > 0 {
				name = fmt.Sprintf("binary, %d pairs", sizes[i-1])
			}
			share := func(n int) float64 { return 100 * float64(n) / float64(*count) }
			fmt.Fprintf(w, "%g\t%s\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f %%\t%d\t%d\t\n", size, name, share(t.right), share(t.wrong),
				share(t.none), share(t.several), share(t.unsure), t.middle(0.5), t.middle(0.9))
			if i > 0 {
				continue
			}
			peer := &tallies[len(tallies)-1]
			add := func(what, unit, better string, ours, theirs float64) {
				one := benchtable.Result{Name: fmt.Sprintf("bisect %g ms, %s", size, what), Value: ours, Unit: unit, Better: better}
				list = append(list, one.Against(fmt.Sprintf("binary search, %d pairs a step", sizes[len(sizes)-1]), theirs))
			}
			add("wrong culprit", "%", "lower", share(t.wrong), share(peer.wrong))
			add("right culprit", "%", "higher", share(t.right), share(peer.right))
			add("trials, median", "trials", "lower", float64(t.middle(0.5)), float64(peer.middle(0.5)))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return benchtable.Write(*out, list)
}

// try bisects on all processors; the result does not depend on their number.
func try(count, revisions int, size float64, fixed []int, seed uint64) ([]tally, error) {
	type one struct {
		truth   int
		ours    virtual.Outcome
		err     error
		named   []int
		binary  []int
		culprit int
	}
	all := make([]one, count)
	var wait sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for n := range all {
		limit <- struct{}{}
		wait.Go(func() {
			defer func() { <-limit }()
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			o := &all[n]
			o.truth = 1 + r.IntN(revisions)
			levels := virtual.One(revisions+1, o.truth, size)
			o.ours, o.err = virtual.Search(r, virtual.Machine(), levels, nil, bisect.Problem{})
			if o.err == nil && len(o.ours.Found.Steps) == 1 {
				o.culprit = o.ours.Found.Steps[0].Last
			}
			for _, pairs := range fixed {
				culprit, spent := virtual.Binary(r, virtual.Machine(), levels, pairs)
				o.named, o.binary = append(o.named, culprit), append(o.binary, spent)
			}
		})
	}
	wait.Wait()
	tallies := make([]tally, 1+len(fixed))
	for _, o := range all {
		if o.err != nil {
			return nil, o.err
		}
		truth := o.truth
		if size == 0 {
			truth = -1 // whoever is named is wrong
		}
		tallies[0].add(o.ours.Found.Kind, o.culprit, truth, o.ours.Pairs)
		for i := range fixed {
			kind := bisect.Culprit
			if o.named[i] == 0 {
				kind = bisect.None
			}
			tallies[1+i].add(kind, o.named[i], truth, o.binary[i])
		}
	}
	return tallies, nil
}
