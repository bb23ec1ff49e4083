package lines_test

import (
	"math/rand/v2"
	"testing"

	"eidetic/analysis/lines"
)

// TestTable holds the table to a map, over several fillings.
func TestTable(t *testing.T) {
	var table lines.Table
	if got := table.At(7); got != lines.Twice {
		t.Errorf("an empty table has 7 at %d", got)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		want := map[uint64]int{}
		n := 1 + r.IntN(300)
		table.Reset(n)
		for at := range n {
			sum := r.Uint64() >> (56 * (round % 2)) // every other round with many equal ones
			if _, twice := want[sum]; twice {
				at = lines.Twice
			}
			want[sum] = at
			table.Add(sum, at)
		}
		for sum := range uint64(256) {
			at, there := want[sum]
			if !there {
				at = lines.Twice
			}
			if got := table.At(sum); got != at {
				t.Fatalf("round %d: %d stands at %d, want %d", round, sum, got, at)
			}
		}
		for sum, at := range want {
			if got := table.At(sum); got != at {
				t.Fatalf("round %d: %d stands at %d, want %d", round, sum, got, at)
			}
		}
	}
}
