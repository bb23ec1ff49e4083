package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

const page = "https://shop.test/"

// change is what the treatment of a simulated experiment has.
type change struct {
	script, style, decode, slower, later, new, bytes float64
	slowURL                                          string
	contended                                        float64 // how much longer than its processor time a page's thread is at its work; 0 is 1
}

// simulated is a trial of a page: a document, a style sheet after it, a script and a picture after the style sheet, a
// font that is preloaded; the machine is noisy, and drifts.
func simulated(r *rand.Rand, arm string, block int, c change) Observed {
	noise := func(v float64) float64 { return v * math.Exp(0.05*r.NormFloat64()+0.1*math.Sin(float64(block))) }
	const zero = 1000 * second
	o := Observed{Arm: arm, Block: block, Page: page, Zero: zero}
	work := func(main bool, thread string, g Group, url string, ms float64) {
		o.Work = append(o.Work, Work{"Renderer", thread, main, g, url, ms, ms * max(c.contended, 1)})
	}
	script, style := noise(40)+c.script, noise(5)+c.style
	work(true, "CrRendererMain", ScriptGroup, page+"app.js", script)
	work(true, "CrRendererMain", ScriptGroup, "https://ads.test/tag.js", noise(12))
	work(true, "CrRendererMain", StyleGroup, page+"app.js", style)
	work(true, "CrRendererMain", StyleGroup, "", noise(30))
	work(true, "CrRendererMain", ParseGroup, page, noise(9))
	work(true, "CrRendererMain", OtherGroup, "", noise(25))
	work(false, "CompositorTileWorker", PaintGroup, page+"hero.jpg", noise(20)+c.decode)
	work(false, "CompositorTileWorker", PaintGroup, "", noise(35))
	end := 0.0
	get := func(name string, start, wait, receive float64) (first, done float64) {
		if name == c.slowURL {
			wait += c.slower
		}
		first, done = start+wait, start+wait+receive
		o.Served = append(o.Served, lab.Served{Time: zero.Add(msOf(start)), Method: "GET", URL: page + name, Stage: lab.StageExact, Status: 200,
			Bytes: int64(1000*len(name) + int(c.bytes)), FirstByte: msOf(wait), Duration: msOf(wait + receive)})
		end = max(end, done)
		return first, done
	}
	first, _ := get("", noise(3), noise(60), noise(8))
	_, css := get("a.css", first+noise(4), noise(20), noise(5))
	get("font.woff2", first+noise(5)+c.later, noise(20), noise(9))
	_, js := get("app.js", css+noise(3), noise(20), noise(5))
	get("hero.jpg", css+noise(4), noise(20), noise(40))
	get("api", js+(script+style)*max(c.contended, 1)+noise(2), noise(30), noise(3))
	if c.new > 0 {
		get("new.js", css, c.new, 1)
	}
	o.WindowMS = end + noise(20) + c.script + c.style + c.decode
	return o
}

func msOf(v float64) time.Duration { return time.Duration(v * 1e6) }

func experimentOf(seed uint64, pairs int, c change) []Observed {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []Observed
	for i := range pairs {
		all = append(all, simulated(r, lab.Control, i/5, change{contended: c.contended}), simulated(r, lab.Treatment, i/5, c))
	}
	return all
}

func shortOf(c lab.Cause) string {
	return strings.Trim(fmt.Sprintf("%s %s %s", c.Kind, c.Group, c.What), " ")
}

// TestCauses: the first row names what the treatment has more of, and not what follows from it; equal arms name
// nothing.
func TestCauses(t *testing.T) {
	experiments := testlab.Repeat(2, 10)
	for _, c := range []struct {
		change
		first string
	}{
		{change{script: 30}, "thread run scripts /app.js"},
		{change{style: 15}, "thread style and layout /app.js"},
		{change{decode: 25}, "thread paint and composite /hero.jpg"},
		{change{slower: 60, slowURL: "a.css"}, "wait  GET /a.css"},
		{change{slower: 60, slowURL: ""}, "wait  GET /"},
		{change{later: 80}, "start  GET /font.woff2"},
		{change{new: 50}, "count  GET /new.js"},
		{change{style: 40, contended: 3}, "thread style and layout /app.js"},
		{change{script: -20, contended: 3}, "thread run scripts /app.js"},
		{change{script: -20}, "thread run scripts /app.js"},
	} {
		right := 0
		var said []string
		for seed := range uint64(experiments) {
			got := Causes(experimentOf(seed, 10, c.change), seed)
			if len(got.Rows) > 0 && got.Rows[0].Named && shortOf(got.Rows[0]) == c.first {
				right++
				if low, high := got.Rows[0].Low, got.Rows[0].High; !(low <= high) || low <= 0 && high >= 0 {
					t.Errorf("%s: the interval %v … %v of a named row", c.first, low, high)
				}
			} else if len(got.Rows) > 0 {
				said = append(said, fmt.Sprintf("%t %s %+.1f", got.Rows[0].Named, shortOf(got.Rows[0]), got.Rows[0].Shift))
			}
		}
		if right*10 < experiments*9 {
			t.Errorf("%s: named first in %d of %d experiments; others: %q", c.first, right, experiments, said)
		}
	}
	alarms := 0
	equal := testlab.Repeat(20, 60)
	for seed := range uint64(equal) {
		if got := Causes(experimentOf(1000+seed, 10, change{}), seed); len(got.Rows) > 0 && got.Rows[0].Named {
			alarms++
		}
	}
	if alarms > equal/10 { // 3 are expected at most
		t.Errorf("%d of %d A/A experiments name a cause", alarms, equal)
	}
}

// TestCausesBytes: an answer that is larger is named though it takes no longer.
func TestCausesBytes(t *testing.T) {
	got := Causes(experimentOf(1, 10, change{bytes: 1}), 1)
	if len(got.Rows) == 0 || got.Rows[0].Kind != lab.CauseBytes || !got.Rows[0].Named || got.Rows[0].Shift != 1 {
		t.Errorf("the first row is %+v, want one of bytes", got.Rows[0])
	}
}

// TestFewCauses: what cannot be told is said.
func TestFewCauses(t *testing.T) {
	for pairs, says := range map[int]string{0: "0 pairs", 1: "1 pairs", 3: "too few for"} {
		got := Causes(experimentOf(1, pairs, change{script: 500}), 1)
		if text := strings.Join(got.Notes, "; "); !strings.Contains(text, says) {
			t.Errorf("%d pairs: notes %q, want one that says %q", pairs, text, says)
		}
		for _, r := range got.Rows {
			if r.Named {
				t.Errorf("%d pairs name %+v", pairs, r)
			}
		}
	}
}

// TestRelative: arms of two origins have the same rows.
func TestRelative(t *testing.T) {
	for _, c := range [][3]string{
		{"https://a.test/x.js?v=1", "https://a.test/page", "/x.js?v=1"}, {"https://a.test", "https://a.test/", "/"}, {"https://b.test/x.js", "https://a.test/", "https://b.test/x.js"},
		{"blob:https://a.test/1", "https://a.test/", "blob:https://a.test/1"}, {"", "https://a.test/", ""}, {"%zz", "https://a.test/", "%zz"},
	} {
		if got := relative(c[0], c[1]); got != c[2] {
			t.Errorf("relative(%q, %q) = %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// TestManyRows: hostile logs cost bounded time and memory, and what was left out is said.
func TestManyRows(t *testing.T) {
	all := experimentOf(1, 2, change{})
	for i := range all {
		for n := range 2 * mostRequestKeys {
			all[i].Served = append(all[i].Served, lab.Served{Time: all[i].Zero.Add(time.Duration(n+i) * time.Millisecond), Method: "GET", URL: fmt.Sprint(page, n), Duration: time.Duration(i+n) * time.Second})
			all[i].Work = append(all[i].Work, Work{"p", "t", true, ScriptGroup, fmt.Sprint("u", n), float64(i + 1), 0})
		}
	}
	got := Causes(all, 1)
	if got.Tested > mostRows || len(got.Rows) > mostCauses || len(got.Notes) < 2 {
		t.Errorf("%d rows tested, %d kept, notes %q", got.Tested, len(got.Rows), got.Notes)
	}
}
