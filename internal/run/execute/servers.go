package execute

import (
	"cmp"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
)

const (
	// mostServerRows is how many answers are told of, besides the first.
	mostServerRows = 5
	serversLevel   = 0.05
	// leastWait, in ms, is how much shorter or longer an answer may take without counting.
	leastWait = 1
)

// servers says of the answers that both arms ask for whether one server is slower, over several recordings of each: the
// first answer, which is the document, and those that differ, the largest first. The recordings were made in an order
// that was drawn by lot, so exchanging their arms is what could have been drawn.
func servers(all []*cellArm) (rows []lab.ServerRow) {
	for i := 0; i+1 < len(all); i++ {
		control, treatment := all[i], all[i+1]
		if control.cell == treatment.cell && len(control.more) > 0 && len(control.more) == len(treatment.more) {
			rows = append(rows, serversOf(control, treatment)...)
		}
	}
	return rows
}

func serversOf(control, treatment *cellArm) []lab.ServerRow {
	a, b := waits(control), waits(treatment)
	var rows []lab.ServerRow
	var every [][]float64
	for _, key := range a.order {
		block := stats.Block{Control: a.of[key], Treatment: b.of[key]}
		n := len(control.takes())
		if len(block.Control) != n || len(block.Treatment) != n {
			continue // not in each of the recordings
		}
		found, err := stats.Compare([]stats.Block{block}, stats.Plan{Seed: 1})
		if err != nil {
			continue
		}
		name := key.name
		if control.of.Name != "" {
			name = control.of.Name + ": " + name
		}
		s := found.Shift
		every = append(every, slices.Concat(block.Control, block.Treatment))
		rows = append(rows, lab.ServerRow{
			Name: name, Recordings: n, Control: found.Control, Treatment: found.Treatment,
			Shift: lab.Range{Value: s.Value, Low: s.Low, High: s.High, Confidence: s.Confidence},
		})
	}
	for i, adjusted := range stats.MaxT(every, len(control.takes()), leastWait, 1) {
		rows[i].P, rows[i].Differs = adjusted, adjusted <= serversLevel
	}
	if len(rows) < 2 {
		return rows
	}
	differ := slices.DeleteFunc(slices.Clone(rows[1:]), func(r lab.ServerRow) bool { return !r.Differs })
	slices.SortStableFunc(differ, func(a, b lab.ServerRow) int {
		return cmp.Compare(max(b.Shift.Value, -b.Shift.Value), max(a.Shift.Value, -a.Shift.Value))
	})
	return append(rows[:1:1], differ[:min(len(differ), mostServerRows)]...)
}

// answerKey names an answer of a page: the nth to one request.
type answerKey struct {
	method, name string
	nth          int
}

// answerWaits are, in ms, how long servers took until the first byte of each answer, in each recording that has it.
type answerWaits struct {
	order []answerKey
	of    map[answerKey][]float64
}

func waits(one *cellArm) answerWaits {
	w := answerWaits{of: map[answerKey][]float64{}}
	for _, recorded := range one.takes() {
		asked := map[answerKey]int{}
		for _, e := range inOrder(recorded) {
			if e.IsPending() {
				continue
			}
			key := answerKey{method: e.Method, name: withoutServer(e.URL, one.arm.Page)}
			n := asked[key]
			asked[key]++
			key.nth = n
			if w.of[key] == nil {
				w.order = append(w.order, key)
			}
			w.of[key] = append(w.of[key], e.FirstByte.Seconds()*1e3)
		}
	}
	return w
}
