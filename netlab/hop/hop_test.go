package hop

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

func fields(text string) (out []lab.HeaderField) {
	for line := range strings.SplitSeq(text, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			out = append(out, lab.HeaderField{Name: name, Value: value})
		}
	}
	return out
}

func TestSameFields(t *testing.T) {
	h := http.Header{"A": {"1", "2"}, "B": {"3"}}
	for text, want := range map[string]bool{
		"a: 1\nB: 3\nA: 2":            true,
		"a: 1\nB: 3\nA: 2\nhost: x.y": true, // net/http keeps Host elsewhere
		"a: 1\nB: 3":                  false,
		"a: 1\nB: 4\nA: 2":            false,
	} {
		if got := SameFields(fields(text), h); got != want {
			t.Errorf("SameFields(%q, %v) = %v, want %v", text, h, got, want)
		}
	}
}

func TestContextWithoutFacts(t *testing.T) {
	ctx := t.Context()
	if got := ConnOf(ctx); got != (Conn{}) {
		t.Errorf("ConnOf of an empty context = %+v, want the zero Conn", got)
	}
	if got := HeadersOf(ctx); got != nil {
		t.Errorf("HeadersOf of an empty context = %+v, want nil", got)
	}
	if got, ok := Fields(ctx); ok {
		t.Errorf("Fields of an empty context = %v, true; want false", got)
	}
	want := Conn{Client: netip.MustParseAddr("192.0.2.1"), Protocol: "h2"}
	if got := ConnOf(WithConn(ctx, want)); got != want {
		t.Errorf("ConnOf(WithConn(c)) = %+v, want %+v", got, want)
	}
}
