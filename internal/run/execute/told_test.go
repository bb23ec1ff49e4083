package execute

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/replay"
)

// told gives a session what pages post, each with its arrival, and returns what is kept of it.
func told(local bool, posts ...replay.Annotation) ([]lab.PageMark, []lab.Annotation) {
	a := &armed{}
	a.page.local, a.notes.local = local, local
	for _, p := range posts {
		a.annotate(p)
	}
	said := a.Told()
	return said.Marks, said.Annotations
}

func post1(name string, at lab.Time, body string) replay.Annotation {
	return replay.Annotation{Name: name, Time: at, Body: []byte(body)}
}

// TestTold: marks and annotations get the box's time, with the bounds that pings give.
func TestTold(t *testing.T) {
	const zero = lab.Time(50e9) // of the page's clock
	marks, notes := told(false,
		post1("page", zero+115e6, `{"doc":"a","n":1,"sent_ms":110,"heard":[],"list":[{"kind":"mark","name":"hero","page_ms":100},{"kind":"nonsense","page_ms":1},`+
			`{"kind":"shift","name":"unexpected","page_ms":50,"value":0.25},{"kind":"mark","name":"absurd","page_ms":-1}]}`),
		post1("annotations", zero+205e6, `{"doc":"a","n":1,"sent_ms":200,"heard":[],"list":[{"op":"set","text":"x\u0000\u202ey","colour":"red","page_ms":190}]}`),
		post1("page", zero+300e6, `{"doc":"a","n":2,"sent_ms":290,"heard":[[1,125]],"list":[]}`),
		post1("page", zero+300e6, `no JSON`),
		post1("annotations", zero+301e6, `{"doc":"b","n":1,"sent_ms":1,"list":[{"op":"draw","text":"x"},{"op":"mark"},{"op":"mark","text":"y","page_ms":1}]}`),
	)
	if len(marks) != 2 || marks[0].Name != "hero" || marks[1].Value != 0.25 {
		t.Fatalf("marks %+v", marks)
	}
	// Sent at 110 and there at 115: at most 5 ms later. Answered at 125: at most 10 ms earlier. One for the clock's
	// grain, then and at the mark.
	if low, high := marks[0].Earliest-zero, marks[0].Latest-zero; low != 88e6 || high != 107e6 {
		t.Errorf("the mark of 100 ms is in %d … %d ms, want 88 … 107", low/1e6, high/1e6)
	}
	if len(notes) != 2 || notes[0].Text != "x y" || notes[0].Colour != "" || notes[0].Source != "page" {
		t.Fatalf("annotations %+v", notes)
	}
	// No answer was heard by the annotations' own script: they were made before they came.
	if notes[0].Latest != zero+205e6 || notes[1].Latest != zero+301e6 {
		t.Errorf("annotations %+v, want their arrivals", notes)
	}
}

// TestWallClock: where the page runs on this machine, the real origin of its clock narrows the bounds, unless it
// contradicts the pings.
func TestWallClock(t *testing.T) {
	for _, tt := range []struct {
		local  bool
		origin float64 // ms after the true one
		within lab.Time
	}{{true, 0, 4200e3}, {false, 0, 2e9}, {true, 60e3, 2e9}} {
		zero := clock() - 5e9
		began := float64(zero-monotonicOf(0))/1e6 + tt.origin
		marks, _ := told(tt.local,
			post1("page", zero+1100e6, fmt.Sprintf(`{"doc":"a","origin_ms":%f,"n":1,"sent_ms":200,"list":[{"kind":"mark","name":"m","page_ms":150.5}]}`, began)),
			post1("page", zero+2100e6, `{"doc":"a","n":2,"sent_ms":2100,"heard":[[1,2000]],"list":[]}`))
		if len(marks) != 1 || marks[0].Latest == 0 {
			t.Fatalf("marks %+v", marks)
		}
		low, high := marks[0].Earliest, marks[0].Latest
		if high-low > tt.within || low > zero+150500e3 || high < zero+150500e3 || tt.within > 4200e3 && high-low < 800e6 {
			t.Errorf("%+v: the mark is in %d … %d ms, %d wide; it was at 150.5", tt, (low-zero)/1e6, (high-zero)/1e6, (high-low)/1e6)
		}
	}
}

// TestToldIsBounded: a page that floods the box makes it keep as much as it says.
func TestToldIsBounded(t *testing.T) {
	var posts []replay.Annotation
	mark := `{"kind":"mark","name":"` + strings.Repeat("x", 300) + `","page_ms":1}`
	note := `{"op":"mark","text":"` + strings.Repeat("y", 5000) + `","page_ms":1}`
	for i := range 3000 {
		if i == 1 {
			note = `{"op":"mark","text":"y","page_ms":1}`
		}
		posts = append(posts,
			post1("page", 1e9, fmt.Sprintf(`{"doc":"%d","n":1,"sent_ms":1,"list":[%s]}`, i, mark)),
			post1("annotations", 1e9, fmt.Sprintf(`{"doc":"%d","n":1,"sent_ms":1,"list":[%s,%s,%s,%s]}`, i, note, note, note, note)))
	}
	marks, notes := told(true, posts...)
	if len(marks) != mostPageMarks || len([]rune(marks[0].Name)) > mostMarkName {
		t.Errorf("%d marks of %d characters", len(marks), len(marks[0].Name))
	}
	if last := notes[len(notes)-1]; len(notes) != lab.MostAnnotations || len(notes[0].Text) > lab.MaxAnnotationText || last.Text != "2001 more notes of pages are left out" {
		t.Errorf("%d annotations of %d bytes, the last %+v", len(notes), len(notes[0].Text), last)
	}
}

// TestRowsOfFrames: notes of frames and workers are on rows of their own, two of one name apart.
func TestRowsOfFrames(t *testing.T) {
	note := `"n":1,"sent_ms":1,"list":[{"op":"begin","text":"x","page_ms":1},{"op":"mark","text":"y","group":"app","page_ms":1}]}`
	_, notes := told(true,
		post1("annotations", 1e9, `{"doc":"a",`+note), post1("annotations", 1e9, `{"doc":"b","where":"worker /w.js",`+note),
		post1("annotations", 1e9, `{"doc":"c","where":"worker /w.js",`+note), post1("annotations", 1e9, `{"doc":"b","where":"worker /w.js",`+note))
	var got []string
	for _, n := range notes {
		got = append(got, n.Group)
	}
	want := []string{"", "app", "worker /w.js", "app, worker /w.js", "worker /w.js (2)", "app, worker /w.js (2)", "worker /w.js", "app, worker /w.js"}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}

// FuzzTold: what a page posts is its own.
func FuzzTold(f *testing.F) {
	f.Add(`{"doc":"a","origin_ms":1,"n":1,"sent_ms":110,"heard":[[1,2]],"list":[{"kind":"mark","name":"hero","page_ms":100,"box":[1,2,3,4]}]}`)
	f.Add(`{"doc":"a","n":-1,"sent_ms":1e9,"heard":[[1e99,-2]],"list":[{"op":"set","text":"\u0000","page_ms":100}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		defer testlab.Input(t)()
		marks, notes := told(true, post1("page", 1, body), post1("annotations", 2, body), post1("page", 3, body))
		for _, m := range marks {
			if m.Latest < m.Earliest || len([]rune(m.Name)) > mostMarkName {
				t.Errorf("%q makes the mark %+v", body, m)
			}
		}
		for _, n := range notes {
			if err := n.Check(); err != nil {
				t.Errorf("%q makes the annotation %+v: %v", body, n, err)
			}
		}
	})
}
