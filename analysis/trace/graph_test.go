package trace

import (
	"fmt"
	"math"
	"testing"

	"eidetic/internal/lab"
)

// stepsOf is a timeline of nested steps: name, depth, start and end in ms.
func stepsOf(events ...[4]any) *Timeline {
	track := Track{Kind: Step, Name: "Steps", Nested: true}
	for _, e := range events {
		track.Events = append(track.Events, Event{
			Name: e[0].(string), Depth: e[1].(int), Start: lab.Time(e[2].(int)) * 1e6, End: lab.Time(e[3].(int)) * 1e6,
		})
	}
	return &Timeline{Tracks: []Track{track, {Kind: Request, Name: "Requests", Events: []Event{{Name: "GET /", End: 5e6}}}}}
}

func TestGraph(t *testing.T) {
	var g Graph
	g.Add(stepsOf([4]any{"buy", 0, 0, 100}, [4]any{"search", 1, 10, 30}, [4]any{"search", 1, 40, 60}, [4]any{"pay", 1, 70, 90}), 1)
	g.Add(stepsOf([4]any{"buy", 0, 0, 200}, [4]any{"pay", 1, 20, 180}, [4]any{"search", 2, 30, 40}), 2)
	rows, left := Beside(&g, nil, 99)
	if len(rows) != 1 || left != 0 {
		t.Fatalf("%d rows, %d left", len(rows), left)
	}
	got := ""
	each(rows, func(r *GraphRow) {
		got += fmt.Sprintf("%d %s: %g in all, %g by itself, %g times; ", r.Depth, r.Name, r.Control.Total, r.Control.Self, r.Control.Count)
	})
	want := "0 buy: 150 in all, 40 by itself, 1 times; 1 search: 20 in all, 20 by itself, 1 times; " +
		"1 pay: 90 in all, 85 by itself, 1 times; 2 search: 5 in all, 5 by itself, 0.5 times; "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Of two arms the step that takes longer is told by an interval, and the one that does not is not.
func TestGraphsBeside(t *testing.T) {
	var control, treatment Graph
	for block := range 12 {
		jitter := block % 3
		control.Add(stepsOf([4]any{"search", 0, 0, 50 + jitter}, [4]any{"pay", 0, 60, 100 + jitter}), block)
		treatment.Add(stepsOf([4]any{"search", 0, 0, 50 + (block+1)%3}, [4]any{"pay", 0, 60, 130 + jitter}, [4]any{"extra", 0, 140, 150}), block)
	}
	rows, _ := Beside(&control, &treatment, 99)
	by := map[string]*GraphRow{}
	each(rows, func(r *GraphRow) { by[r.Name] = r })
	if d := by["pay"].Difference; d == nil || math.Abs(d.Value-30) > 0.5 || d.Low < 25 {
		t.Errorf("pay differs by %+v, want 30 ms", d)
	}
	if d := by["search"].Difference; d == nil || d.Low > 0 || d.High < 0 {
		t.Errorf("search differs by %+v, want an interval with 0", d)
	}
	if r := by["extra"]; r.Control != nil || r.Treatment == nil || r.Difference != nil {
		t.Errorf("what the control lacks = %+v; want a row of the treatment without a difference", r)
	}
}

// A page that annotates without end costs a bounded graph and few rows, also where all take as long as each other.
func TestGraphIsBounded(t *testing.T) {
	for _, lengths := range []int{7, 1} {
		tl := &Timeline{}
		for group := range 2 {
			track := Track{Kind: Annotation, Name: fmt.Sprint("group ", group)}
			for i := range mostNodes {
				track.Events = append(track.Events, Event{Name: fmt.Sprint(i), Start: lab.Time(i) * 1e6, End: lab.Time(i+1+i%lengths) * 1e6})
			}
			tl.Tracks = append(tl.Tracks, track)
		}
		var g Graph
		g.Add(tl, 1)
		rows, left := Beside(&g, nil, 40)
		shown := 0
		each(rows, func(*GraphRow) { shown++ })
		if g.Left != mostNodes+1 || shown != 40 || left != mostNodes-40 {
			t.Errorf("%d lengths: %d intervals left out, %d rows shown, %d not; want %d, 40, %d", lengths, g.Left, shown, left, mostNodes+1, mostNodes-40)
		}
	}
}

// Arms that load different pages have one row for the load, not one each that the other arm lacks.
func TestGraphsOfTwoPages(t *testing.T) {
	var control, treatment Graph
	for block := range 8 {
		for _, one := range []struct {
			g    *Graph
			page string
			ms   int
		}{{&control, "https://a.test/old", 2600}, {&treatment, "https://b.test/new", 2650}} {
			tl := stepsOf([4]any{"load " + one.page, 0, 0, one.ms + block%3})
			tl.Page = one.page
			one.g.Add(tl, block)
		}
	}
	rows, _ := Beside(&control, &treatment, 99)
	if len(rows) != 1 || rows[0].Difference == nil || math.Abs(rows[0].Difference.Value-50) > 1 {
		t.Fatalf("rows of loads of two pages = %+v; want one that differs by 50 ms", rows)
	}
}
