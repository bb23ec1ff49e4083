package streamline

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// article are the byte sequences of "Using Streamline annotations with Fennec", as its commands write them.
var article = []struct { // constant
	name, bytes string
	want        []lab.Annotation
}{
	{`echo -e 'Hello, Streamline.\0'`, "Hello, Streamline.\x00\n", []lab.Annotation{{Op: "set", Text: "Hello, Streamline."}}},
	{"the first C program", "Hello, Streamline.\x00", []lab.Annotation{{Op: "set", Text: "Hello, Streamline."}}},
	{"the second C program", "\x1b\x80\x00\x00Hello, Streamline.\x00", []lab.Annotation{{Op: "set", Text: "Hello, Streamline.", Colour: "#800000"}}},
	{"an end", "\x00", []lab.Annotation{{Op: "set"}}},
	{"one after the other", "a\x00\nb\x00\x00\n\x1b\x00\x1b\xffc\x00", []lab.Annotation{
		{Op: "set", Text: "a"}, {Op: "set", Text: "b"}, {Op: "set"}, {Op: "set", Text: "c", Colour: "#001bff"},
	}},
}

func TestArticle(t *testing.T) {
	for _, tt := range article {
		for piece := 1; piece <= len(tt.bytes); piece++ {
			var p Parser
			var got []lab.Annotation
			for b := tt.bytes; len(b) > 0; b = b[min(piece, len(b)):] {
				p.Feed([]byte(b[:min(piece, len(b))]), 0, func(n Note) { got = append(got, n.Annotation) })
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s, in pieces of %d (-want +got):\n%s", tt.name, piece, diff)
			}
		}
	}
}

// TestTimes: an annotation was made when its first byte came, and has ended when its NUL came.
func TestTimes(t *testing.T) {
	var p Parser
	var got []lab.Annotation
	emit := func(n Note) { got = append(got, n.Annotation) }
	p.Feed([]byte("\x1b\x01"), 10, emit)
	p.Feed([]byte("\x02\x03slow"), 20, emit)
	p.Feed([]byte("\x00"), 30, emit)
	want := []lab.Annotation{{Op: "set", Text: "slow", Colour: "#010203", Earliest: 10, Latest: 30}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func FuzzFeed(f *testing.F) {
	for _, tt := range article {
		f.Add([]byte(tt.bytes))
	}
	f.Add([]byte("\x1b\x01no" + head("begin", "row", "7", "#800000", "3", "text") + "plain\x00" + headMark + "mark\x1fcut" + headMark + "\x1f\x00"))
	f.Add([]byte("\x1b\x00\x00\x00" + strings.Repeat("long \xff", 9000) + "\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		collect := func(piece int) (list []Note) {
			var p Parser
			for rest := b; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
				p.Feed(rest[:min(piece, len(rest))], 1, func(n Note) {
					if n.Err != nil {
						n.Err = errors.New(n.Err.Error())
					}
					list = append(list, n)
				})
			}
			return list
		}
		whole := collect(max(len(b), 1))
		for _, a := range whole {
			if err := a.Check(); a.Err == nil && err != nil {
				t.Errorf("Feed(%q) made %+v: %v", b, a, err)
			}
		}
		if diff := cmp.Diff(whole, collect(3), cmp.Transformer("text", func(e error) string { return fmt.Sprint(e) })); diff != "" {
			t.Errorf("in pieces of 3 (-whole +pieces):\n%s", diff)
		}
	})
}

// head is a note as annotate.h writes it.
func head(fields ...string) string { return headMark + strings.Join(fields, "\x1f") + "\x00" }

// TestHeads: a note with a head is whole between the pieces of a plain one, whatever piece it comes after; what is none
// is named, and the notes after it are read.
func TestHeads(t *testing.T) {
	plain, b := "\x1b\x80\x01\x00from A\x00", head("begin", "B 7", "40", "#00ff00", "2", "from \x1fB")
	for cut := range len(plain) {
		var p Parser
		var got []Note
		for _, piece := range []string{plain[:cut], b, plain[cut:]} {
			p.Feed([]byte(piece), 50, func(n Note) { got = append(got, n) })
		}
		wantB := Note{Annotation: lab.Annotation{Op: "begin", Group: "B 7", Colour: "#00ff00", Text: "from B", Earliest: 50, Latest: 50}, Stamp: 40, Lost: 2}
		wantA := Note{Annotation: lab.Annotation{Op: "set", Colour: "#800100", Text: "from A", Earliest: 50, Latest: 50}}
		if diff := cmp.Diff([]Note{wantB, wantA}, got); diff != "" {
			t.Errorf("cut at %d (-want +got):\n%s", cut, diff)
		}
	}
	for bytes, says := range map[string]string{
		head("draw", "", "", "", "", "x"):                       "op \"draw\"",
		head("begin", "", "", "", "", ""):                       "needs one",
		head("mark", "", "soon", "", "", "x"):                   "CLOCK_MONOTONIC",
		head("mark", "", "", "", "-1", "x"):                     "a number of notes",
		head("mark", "x"):                                       "2 of 6 fields",
		headMark + "mark\x1fcut":                                "without a NUL",
		head("mark", strings.Repeat("x", mostHead), "", "", ""): "more than 8192 bytes",
	} {
		var p Parser
		var got []Note
		p.Feed([]byte(bytes+head("mark", "", "", "", "", "after")), 1, func(n Note) { got = append(got, n) })
		if len(got) != 2 || got[0].Err == nil || !strings.Contains(got[0].Err.Error(), says) || got[1].Text != "after" {
			t.Errorf("%.60q made %+v, want an error that says %q, and the note after it", bytes, got, says)
		}
	}
}
