package verdict

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"eidetic/analysis/stats"
	"eidetic/analysis/stats/simulate"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// simulatedMany makes a run of so many pages, whose loads and noise differ, and of which the treatment takes
// late[page] percent longer; pages beyond have no difference.
func simulatedMany(r *rand.Rand, pages, pairs int, plan lab.Plan, late ...float64) *lab.Run {
	plan.Trials, plan.Treatment, plan.Primary = pairs, &lab.Arm{Link: "3g"}, "speed_index_ms"
	run := &lab.Run{Plan: plan}
	for n := range pages {
		run.Plan.Pages = append(run.Plan.Pages, lab.PlanPage{Name: fmt.Sprintf("p%d", n), Page: "https://a.test/"})
	}
	for n, c := range run.Plan.Cells() {
		machine := simulate.Usual()
		machine.Load, machine.Spread = 500*float64(1+n), 15*float64(1+n)
		shift := 0.0
		if n < len(late) {
			shift = late[n] / 100 * machine.Load
		}
		for i, b := range machine.Experiment(r, pairs, shift) {
			add := func(arm string, values []float64) {
				for _, v := range values {
					low := v - simulate.Frame
					run.Trials = append(run.Trials, &lab.Trial{
						Number: len(run.Trials) + 1, Cell: c.Name, Arm: arm, Block: i + 1, Valid: true,
						Measurements: []lab.Measurement{{Name: "speed_index_ms", Unit: "ms", Value: v, Low: &low, High: &v}, {Name: "other_ms", Unit: "ms", Value: r.Float64()}},
					})
				}
			}
			add(lab.Control, b.Control)
			add(lab.Treatment, b.Treatment)
		}
	}
	return run
}

// The verdicts of many pages, by how much later each is.
func TestMany(t *testing.T) {
	for _, c := range []struct {
		name, verdict, headline, detail string
		pairs                           int
		late                            []float64
		margin                          float64
	}{
		{"all slower", lab.Slower, "Treatment (link 3g) is slower over all 4 pages", "SpeedIndex +", 10, []float64{30, 30, 30, 30}, 0},
		{"one slower", lab.Slower, "Treatment (link 3g) is slower for p2", "over all 4 pages together SpeedIndex", 12, []float64{0, 0, 30}, 0},
		{"one each", lab.Mixed, "is slower for p0 and faster for p3", "slower: p0; faster: p3", 12, []float64{30, 0, 0, -30}, 0},
		{"none", lab.NoChange, "No difference between treatment and control was found", "% or more would have been detected with 80 % probability", 10, nil, 0},
		{"few, slower together", lab.Slower, "is slower over all 4 pages", "not judged one by one", 3, []float64{40, 40, 40, 40}, 0},
		{"equivalent", lab.Equivalent, "is equivalent to the control within 20 %", "SpeedIndex", 12, nil, 20},
		{"not known", lab.Unknown, "Whether the treatment differs by more than 0.01 % is not known", "of each", 12, nil, 0.01},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 8))
			run := simulatedMany(r, 4, c.pairs, lab.Plan{Margin: c.margin}, c.late...)
			got, each := Many(run, 1)
			if got.Verdict != c.verdict || !strings.Contains(got.Headline, c.headline) || !strings.Contains(got.Detail, c.detail) || len(each) != 4 {
				t.Errorf("%s: %q, %q, %d cells", got.Verdict, got.Headline, got.Detail, len(each))
			}
			if other := Of(run, 1); other.Headline != got.Headline {
				t.Errorf("Of() says %q, Many() %q", other.Headline, got.Headline)
			}
			for i, e := range each {
				if late := i < len(c.late) && c.late[i] != 0; c.pairs >= Least && c.margin == 0 && late != (e.Verdict != lab.NoChange) {
					t.Errorf("p%d is %s: %s", i, e.Verdict, e.Detail)
				}
			}
			if got.Pairs != 4*c.pairs || got.Effects[0].Unit != "%" || got.Effects[0].Control != 100 {
				t.Errorf("together: %+v", got)
			}
		})
	}
	one := simulatedMany(rand.New(rand.NewPCG(1, 1)), 2, 6, lab.Plan{})
	for _, trial := range one.Trials {
		trial.Arm = lab.Control
	}
	if got, each := Many(one, 1); got != nil || each != nil {
		t.Error("a run with one arm was compared")
	}
}

// The corrections are those of stats, over all cells: weighted Holm over the guards, Benjamini and Hochberg over the
// rest.
func TestManyCorrections(t *testing.T) {
	run := simulatedMany(rand.New(rand.NewPCG(5, 5)), 3, 8, lab.Plan{}, 3, 1)
	together, each := Many(run, 1)
	p, weights, others := []float64{together.Effects[0].P}, []float64{0.5}, []float64{}
	for _, c := range each {
		p, weights, others = append(p, c.Effects[0].P), append(weights, 0.5/3), append(others, c.Effects[1].P)
	}
	guards, rest := stats.WeightedHolm(p, weights), stats.BenjaminiHochberg(others)
	if together.Effects[0].Adjusted != guards[0] {
		t.Errorf("together p = %v is adjusted to %v; want %v", p[0], together.Effects[0].Adjusted, guards[0])
	}
	for i, c := range each {
		if c.Effects[0].Adjusted != guards[1+i] || c.Effects[1].Adjusted != rest[i] || c.Effects[1].Guard {
			t.Errorf("cell %d: %v and %v; want %v and %v", i, c.Effects[0].Adjusted, c.Effects[1].Adjusted, guards[1+i], rest[i])
		}
	}
}

// A cell without valid trials leaves the verdict open, unless another is slower.
func TestManyWithACellThatFailed(t *testing.T) {
	for _, c := range []struct {
		late []float64
		want string
	}{{nil, lab.Unknown}, {[]float64{30}, lab.Slower}} {
		run := simulatedMany(rand.New(rand.NewPCG(2, 4)), 3, 10, lab.Plan{}, c.late...)
		for _, trial := range run.Trials {
			if trial.Cell == "p2" {
				trial.Valid = false
			}
		}
		got, each := Many(run, 1)
		if got.Verdict != c.want || each[2].Verdict != lab.Unknown || !strings.Contains(got.Detail, "not known: p2") || got.LeftOut != 20 {
			t.Errorf("late by %v: %s, %q; the cell is %s", c.late, got.Verdict, got.Detail, each[2].Verdict)
		}
	}
}

// TestManyKeepsItsLevel: of simulated runs whose arms are equal on all of four pages, at most 5 % find a difference
// anywhere, looking once or three times; of those with one page that is 6 % slower, most find that page and no other.
func TestManyKeepsItsLevel(t *testing.T) {
	testlab.Long(t, "thousands of simulated runs")
	const runs = 30
	r := rand.New(rand.NewPCG(7, 7))
	alarms, looking, found, wrong := 0, 0, 0, 0
	differs := func(c *lab.Comparison) bool {
		return c.Verdict == lab.Slower || c.Verdict == lab.Faster || c.Verdict == lab.Mixed
	}
	for range runs {
		if c, _ := Many(simulatedMany(r, 4, 10, lab.Plan{}), 1); differs(c) {
			alarms++
		}
		if c := lookedAt(simulatedMany(r, 4, 15, lab.Plan{Looks: 3})); differs(c) {
			looking++
		}
		c, each := Many(simulatedMany(r, 4, 15, lab.Plan{}, 0, 8), 1)
		if each[1].Verdict == lab.Slower && differs(c) {
			found++
		}
		if differs(each[0]) || differs(each[2]) || differs(each[3]) {
			wrong++
		}
	}
	// 5 % of 30, and 3.3 standard deviations.
	if most := 5; alarms > most || looking > most || wrong > most {
		t.Errorf("of %d runs each: %d alarms, %d with looks, %d of other pages", runs, alarms, looking, wrong)
	}
	if found < runs/2 {
		t.Errorf("a page that is 8 %% slower was found in %d of %d runs", found, runs)
	}
	t.Logf("of %d: %d alarms, %d with looks, %d found, %d wrong ones", runs, alarms, looking, found, wrong)
}

// lookedAt looks at a run of many as its plan says: after whole blocks of all cells.
func lookedAt(all *lab.Run) *lab.Comparison {
	after := all.Plan.LooksAfter()
	r := *all
	for at := range after[:len(after)-1] {
		r.Trials = nil
		for _, t := range all.Trials {
			if t.Block <= at+1 { // of 5 pairs each
				r.Trials = append(r.Trials, t)
			}
		}
		if Look(&r, at, 1) {
			return Of(&r, 1)
		}
	}
	r.Trials = all.Trials
	return Of(&r, 1)
}
