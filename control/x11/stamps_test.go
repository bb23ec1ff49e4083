package x11

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"eidetic/control/controltest"
	"eidetic/control/gesture"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

// stampPage notes each motion of the pointer with the time that the browser gives it, also of
// those motions that the browser has put together. Before that it asks our clock: the answer was
// made between two looks at its own, so that the offset lies in an interval, which gets smaller
// with every question.
const stampPage = `<!doctype html><meta charset=utf-8><body style="margin:0;height:100vh;user-select:none"><script>
let seen = [];
addEventListener('pointermove', e => {
	const all = e.getCoalescedEvents ? e.getCoalescedEvents() : [];
	for (const one of all.length ? all : [e]) seen.push({x: one.screenX, at: one.timeStamp});
});
addEventListener('pointerup', () => setTimeout(() => {
	fetch('/seen', {method: 'POST', body: JSON.stringify(seen)});
	seen = [];
}, 200));
(async () => {
	let low = -Infinity, high = Infinity, grain = 1e9;
	for (let i = 0; i < 200; i++) {
		const before = performance.now(), said = +await (await fetch('/clock', {cache: 'no-store'})).text() / 1e6, after = performance.now();
		low = Math.max(low, said - after);
		high = Math.min(high, said - before);
	}
	for (let i = 0, last = performance.now(); i < 100;) {
		const now = performance.now();
		if (now > last) grain = Math.min(grain, now - last), last = now, i++;
	}
	fetch('/ready', {method: 'POST', body: JSON.stringify({low, high, grain})});
})();
</script>`

// offset is what is to be added to the page's clock, in ms, and how coarse that is.
type offset struct{ Low, High, Grain float64 }

// stamp is a motion as the page saw it, in ms of its clock.
type stamp struct {
	X  int
	At float64
}

// stampServer serves the page.
func stampServer(t *testing.T) (url string, ready chan offset, seen chan []stamp) {
	ready, seen = make(chan offset, 1), make(chan []stamp, 1)
	read := func(r *http.Request, v any) bool {
		err := json.NewDecoder(r.Body).Decode(v)
		if err != nil {
			t.Error(err)
		}
		return err == nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, stampPage)
		case "/clock":
			fmt.Fprint(w, int64(lab.Monotonic()))
		case "/ready":
			var o offset
			if read(r, &o) {
				ready <- o
			}
		case "/seen":
			var s []stamp
			if read(r, &s) {
				seen <- s
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, ready, seen
}

// TestTimingInBrowsers: a page's own times of the events of drags of 1000 events a second lie in
// the intervals that were logged for them.
func TestTimingInBrowsers(t *testing.T) {
	const from, way = 100, 600 // pixels; one a millisecond
	testlab.EachBrowser(t, func(t *testing.T, program string) {
		d := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "800x600x24").Display
		url, ready, seen := stampServer(t)
		xtest.Browser(t, d, program, url)
		ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
		defer cancel()
		o := next(ctx, t, ready)
		if o.High+o.Grain < o.Low { // its times are rounded down to the grain
			t.Fatalf("the page's clock does not run like ours: it is at least %v ms and at most %v ms behind, by grains of %v ms", o.Low, o.High, o.Grain)
		}
		// X servers stamp events in whole milliseconds.
		timing := controltest.Timing{Precision: milliseconds(max(o.High-o.Low, 0)/2 + o.Grain + 1)}
		doer := &gesture.Doer{Controller: open(t, d), Clock: lab.Monotonic, Find: place}
		var late []time.Duration
		sent, told := 0, 0
		for all := controltest.Events(t, way); sent < all; {
			ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
			step := lab.Step{Drag: fmt.Sprintf("%d,300 to %d,300", from, from+way), Over: way, Rate: 1000, Late: 1000}
			log, err := doer.Do(ctx, step)
			if err != nil {
				t.Fatal(err)
			}
			at := map[int]float64{}
			for _, s := range next(ctx, t, seen) {
				at[s.X] = s.At
			}
			cancel()
			for i, e := range log.Events[1 : way+1] {
				sent++
				late = append(late, e.Late())
				if ms, ok := at[from+1+i]; ok {
					told++
					timing.Add(e.Earliest, e.Latest, lab.Time(milliseconds(ms+(o.Low+o.High)/2)))
				}
			}
		}
		slices.Sort(late)
		t.Logf("%d events sent, %d told by the page; clocks to %v; lateness: median %v, p99 %v, worst %v", sent, told,
			timing.Precision, late[len(late)/2], late[len(late)*99/100], late[len(late)-1])
		if told < sent/2 {
			t.Errorf("the page has told of %d of %d events; want most", told, sent)
		}
		timing.Check(t)
	})
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func next[T any](ctx context.Context, t *testing.T, from chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-ctx.Done():
		t.Fatal("the page has said nothing")
	}
	return v
}
