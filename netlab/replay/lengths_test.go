package replay

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestTrueLength: a length that is the body's stays as it is written, another one is replaced, and what states none is none.
func TestTrueLength(t *testing.T) {
	for values, want := range map[string]string{"4": "4", "4, 4": "4, 4", "4|4": "4|4", "0004": "0004", "abc": "abc", "-5": "-5", "99": "4", "4, 5": "4", "": ""} {
		e := &lab.Exchange{Method: "GET", Status: 200}
		e.Response.Body = []byte("text")
		for v := range strings.SplitSeq(values, "|") {
			if v != "" {
				e.Response.Header = append(e.Response.Header, lab.HeaderField{Name: "Content-Length", Value: v})
			}
		}
		var got []string
		for _, f := range trueLength(e) {
			got = append(got, f.Value)
		}
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("the length %q became %q, want %q", values, text, want)
		}
	}
}

// TestReasonOfNone: a status line without a reason has none in a replay either, and HTTP/2 has the usual one.
func TestReasonOfNone(t *testing.T) {
	for protocol, want := range map[string]string{"http/1.1": " ", "http/1.0": " ", "h2": ""} {
		if got := reasonOf(&lab.Exchange{Protocol: protocol}); got != want {
			t.Errorf("%s: %q, want %q", protocol, got, want)
		}
	}
	if got := reasonOf(&lab.Exchange{Protocol: "http/1.1", Reason: "Fine"}); got != "Fine" {
		t.Errorf("a reason became %q", got)
	}
}
