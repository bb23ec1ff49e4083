package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"eidetic/internal/fleet/metrology"
	"eidetic/internal/fleet/metrology/simulate"
	"eidetic/internal/rigs/benchtable"
)

// updates simulates what an update of a fleet looks at: one reading after it against those before, and a second one
// where the first is outside.
func (b *bench) updates() error {
	fmt.Fprint(b.table, "a reading after an update\treadings before\tfirst outside\tboth outside: it stops\t\n")
	for _, before := range []int{5, 15, 40} {
		for _, box := range simulate.Steady() {
			first, both := b.stops(box, before, 1)
			b.update("steady, noise "+box.Name, before, first, both)
		}
	}
	for _, slower := range []float64{3, 5, 10, 30} {
		for _, noise := range []float64{1, 2} {
			for _, before := range []int{5, 15, 40} {
				first, both := b.stops(simulate.OfNoise(noise/100), before, 1+slower/100)
				b.update(fmt.Sprintf("%g %% slower, spread %g %%", slower, noise), before, first, both)
			}
		}
	}
	return b.flush()
}

func (b *bench) update(name string, before, first, both int) {
	n := float64(b.boxes) / 100
	fmt.Fprintf(b.table, "%s\t%d\t%.2f %%\t%.2f %%\t\n", name, before, float64(first)/n, float64(both)/n)
	result := benchtable.More
	if strings.HasPrefix(name, "steady") {
		result = benchtable.Less
	}
	b.results = append(b.results, result(fmt.Sprintf("update: %s, %d readings before: it stops", name, before), float64(both)/n, "%"))
}

// stops counts boxes whose first reading is outside, and those whose second one is as well.
func (b *bench) stops(box simulate.Box, before int, level float64) (first, both int) {
	const low = 1 << 32 // one sum holds both counts
	sum := b.count(func(r *rand.Rand, boxes int) (n int) {
		for range boxes {
			all := box.Readings(r, before+2, simulate.Change{At: before, Level: level})
			outside, err := metrology.Against(all[:before], all[before])
			if err != nil || len(outside) == 0 { // an error stops the update as well, and is not what is counted here
				continue
			}
			n++
			again, err := metrology.Against(all[:before], all[before+1])
			if err == nil && len(metrology.Both(outside, again)) > 0 {
				n += low
			}
		}
		return n
	})
	return sum % low, sum / low
}
