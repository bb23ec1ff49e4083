package experiment

import (
	"slices"
	"testing"
)

// Each cell has as many trials of each arm in each block as in a run of its own, one after the other; the order of arms
// and cells differs from block to block, and is that of the seed.
// TestBrowsersTakeTurns: cells of one arm that take turns are in blocks that hold equally many trials of each, in an
// order that is no cell's after another's; without it each cell's trials of a block follow one another.
func TestBrowsersTakeTurns(t *testing.T) {
	for _, together := range []int{1, 3} {
		plan := ScheduleCells(3, 6, together, 6/together) // two pages for three users
		counts, runs := map[[2]int]int{}, 0
		for i, s := range plan {
			counts[[2]int{s.Block, s.Arm}]++
			if i > 0 && s.Arm != plan[i-1].Arm {
				runs++
			}
		}
		for at, n := range counts {
			if want := 6; n != want {
				t.Errorf("block %d has %d trials of arm %d; want %d", at[0], n, at[1], want)
			}
		}
		if turns := runs > 10; turns != (together > 1) {
			t.Errorf("with %d together the arm changes %d times in %d slots", together, runs, len(plan))
		}
	}
}

func TestScheduleCells(t *testing.T) {
	const trials, arms, cells = 11, 2, 6
	plan := ScheduleCells(3, trials, arms, cells)
	if len(plan) != trials*arms*cells {
		t.Fatalf("%d slots; want %d", len(plan), trials*arms*cells)
	}
	sizes := blockSizes(trials)
	count := map[Slot]int{}
	orders := map[int][]int{} // of the cells, by block
	for i, s := range plan {
		count[s]++
		cell := s.Arm / arms
		if i > 0 && s.Block < plan[i-1].Block {
			t.Fatalf("slot %d goes back to block %d", i, s.Block)
		}
		if order := orders[s.Block]; len(order) == 0 || order[len(order)-1] != cell {
			orders[s.Block] = append(order, cell)
		}
	}
	for s, n := range count {
		if n != sizes[s.Block-1] {
			t.Errorf("block %d has %d trials of arm %d; want %d", s.Block, n, s.Arm, sizes[s.Block-1])
		}
	}
	for block, order := range orders {
		if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, []int{0, 1, 2, 3, 4, 5}) {
			t.Errorf("block %d goes through the cells %v; want each once", block, order)
		}
	}
	if slices.Equal(orders[1], orders[2]) {
		t.Error("two blocks have the same order of cells")
	}
	if !slices.Equal(plan, ScheduleCells(3, trials, arms, cells)) || slices.Equal(plan, ScheduleCells(4, trials, arms, cells)) {
		t.Error("the order is not that of the seed")
	}
	if !slices.Equal(ScheduleCells(3, trials, arms, 1), Schedule(3, trials, arms)) {
		t.Error("one cell has not the order of a run of one page")
	}
}
