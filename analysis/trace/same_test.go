package trace

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
)

// TestRequestsAreJoined: a build's new file names are the same requests, and what only one arm asks for has no times to
// compare.
func TestRequestsAreJoined(t *testing.T) {
	of := func(arm string, block int, urls ...string) Observed {
		o := Observed{Arm: arm, Block: block, Page: "https://shop.test/"}
		for i, url := range urls {
			o.Served = append(o.Served, lab.Served{Time: lab.Time(i * 1e8), Method: "GET", URL: url, Bytes: int64(1000 + i),
				FirstByte: time.Duration(20+block) * time.Millisecond, Duration: time.Duration(50+block) * time.Millisecond})
		}
		return o
	}
	var trials []Observed
	for block := range 4 {
		trials = append(trials,
			of(lab.Control, block, "https://shop.test/", "https://shop.test/js/app.3f9a1c.js", "https://cdn.test/one.css", "https://cdn.test/lone.png"),
			of(lab.Treatment, block, "https://shop.test/", "https://shop.test/js/app.77bc02.js", "https://cdn.test/two.css", "https://ads.test/a.png",
				"https://ads.test/b.png"))
	}
	tab := &table{trials: trials, rows: map[rowKey]*row{}}
	tab.requests()
	got := map[string]string{}
	for k := range tab.rows {
		got[k.what] += k.kind + " "
	}
	for what, kinds := range got {
		got[what] = strings.Join(slices.Sorted(slices.Values(strings.Fields(kinds))), " ")
	}
	timed, lone := strings.Join(slices.Sorted(slices.Values([]string{lab.CauseBytes, lab.CauseCount, lab.CauseStart, lab.CauseWait})), " "), lab.CauseCount
	want := map[string]string{
		"GET /": timed, "GET /js/app.3f9a1c.js, in the treatment /js/app.77bc02.js": timed,
		"GET https://cdn.test/one.css, in the treatment https://cdn.test/two.css": timed,
		"GET https://cdn.test/lone.png":                                           lone, "GET https://ads.test/a.png": lone, "GET https://ads.test/b.png": lone, sameSize: lab.CauseReceive,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows of requests (-want +got):\n%s", diff)
	}
}

func TestPattern(t *testing.T) {
	for a, b := range map[string]string{
		"GET /js/app.3f9a1c.js":        "GET /js/app.77bc02.js",
		"GET https://c.test/v12/x?b=1": "GET https://c.test/v13/x?b=2",
	} {
		if pattern(a) != pattern(b) {
			t.Errorf("pattern(%q) = %q, pattern(%q) = %q; want the same", a, pattern(a), b, pattern(b))
		}
	}
	for a, b := range map[string]string{"GET /a.js": "GET /b.js", "GET /a": "POST /a", "GET https://c.test/a": "GET https://d.test/a"} {
		if pattern(a) == pattern(b) {
			t.Errorf("pattern(%q) = pattern(%q) = %q; want two", a, b, pattern(a))
		}
	}
}
