package streamline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
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
				p.Feed([]byte(b[:min(piece, len(b))]), 0, func(a lab.Annotation) { got = append(got, a) })
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
	emit := func(a lab.Annotation) { got = append(got, a) }
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
	f.Add([]byte("\x1b\x00\x00\x00" + strings.Repeat("long \xff", 9000) + "\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		collect := func(piece int) (list []lab.Annotation) {
			var p Parser
			for rest := b; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
				p.Feed(rest[:min(piece, len(rest))], 1, func(a lab.Annotation) { list = append(list, a) })
			}
			return list
		}
		whole := collect(max(len(b), 1))
		for _, a := range whole {
			if err := a.Check(); err != nil {
				t.Errorf("Feed(%q) made %+v: %v", b, a, err)
			}
		}
		if diff := cmp.Diff(whole, collect(3)); diff != "" {
			t.Errorf("in pieces of 3 (-whole +pieces):\n%s", diff)
		}
	})
}
