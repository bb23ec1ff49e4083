package measure

import (
	"testing"

	"eidetic/netlab/link"
	"eidetic/netlab/nstest"
)

func TestMeasure(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	p, err := link.Parse("rtt=40ms,down=8mbit,up=4mbit")
	if err != nil {
		t.Fatal(err)
	}
	// The benchmark has exact numbers. A busy machine reads late, and then much at
	// once; when it stalls for seconds of the three that are measured, the result
	// says nothing about the link, so the test measures again.
	const tries = 3
	var down []float64
	for range tries {
		r, err := Measure(t.Context(), p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			t.Logf("%-40s %8.3f %8.3f %s", row.Name, row.Configured, row.Achieved, row.Unit)
		}
		t.Log(r.Why, r.Report.Slips, r.Report.Down.Errors.Quantile(.99), r.Report.Thread)
		if len(r.Rows) != 8 || r.Rows[0].Achieved < 40 {
			t.Fatalf("rows %+v, want 8, the first of at least 40 ms", r.Rows)
		}
		goodput := r.Rows[6].Achieved
		if goodput >= 5 && goodput <= 10 {
			return
		}
		down = append(down, goodput)
	}
	t.Errorf("goodput down is %v Mbit/s, want 5 to 10", down)
}
