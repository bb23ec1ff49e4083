package match

import (
	"net/http"
	"testing"

	"eidetic/internal/lab"
)

// TestAddressesThatNoStandardAllows: each is recorded and asked for as browsers and other clients write it.
func TestAddressesThatNoStandardAllows(t *testing.T) {
	for _, c := range []struct {
		recorded, asked string
		want            lab.Stage
	}{
		{"https://h.test/70%", "https://h.test/70%", lab.StageExact},
		{"https://h.test/a%zz/b?c=%", "https://h.test/a%zz/b?c=%", lab.StageExact},
		{"https://h.test/Stra\u00dfe 1?q=\u00e9", "https://h.test/Stra%C3%9Fe%201?q=%C3%A9", lab.StageExact},
		{"https://h.test/a|b", "https://h.test/a%7Cb", lab.StageNormalised},
		{"https://H.test:443/x", "https://h.test/x", lab.StageNormalised},
		{"https://h.test/a%2Fb", "https://h.test/a/b", lab.StageMiss},
		{"https://h.test/50%25", "https://h.test/5", lab.StageMiss},
		{"//", "https://h.test/", lab.StageMiss},
	} {
		x := NewIndex(&Ignored{})
		x.Add(NewEntry(&lab.Exchange{Method: "GET", URL: c.recorded, Status: 200}, ""))
		got := x.Find(Normal, NewClient(), NewRequest("GET", c.asked, http.Header{}, nil), http.Header{})
		if got.Stage != c.want {
			t.Errorf("%s, recorded as %s: stage %s, want %s (%v)", c.asked, c.recorded, got.Stage, c.want, got.Differs)
		}
	}
}
