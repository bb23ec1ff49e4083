package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"eidetic/analysis/framecode"
	"eidetic/analysis/measure"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

// movingPages note in the frame codes where they are. /scroll, a long page, moves by itself, with busy loops of known
// lengths. The others move by what the mouse does, after they have called ready: /wheel is the same long page; /pan an
// image map that is dragged; /zoom that map, which the wheel zooms about the middle of the view. All three answer the
// mouse themselves: what a browser scrolls by itself, beside the page's thread, its scrollY lags behind. moved is
// called when a page has come to its end.
func movingPages(ready, moved func()) http.Handler {
	var text strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		fmt.Fprintf(&text, "<p style='margin:%dpx'>", 3+i%7)
		for range 12 + i*31%60 { // no two lines are alike
			fmt.Fprintf(&text, "%s ", strconv.FormatUint(r.Uint64()>>(r.IntN(40)+8), 36))
		}
		text.WriteString("</p>")
	}
	const move = `let n = 0;
const busy = ms => { const t = performance.now(); while (performance.now() - t < ms); };
const step = () => { n++; if (n > 60 && n < 330) go(n); if (n === 345) fetch('/moved'); requestAnimationFrame(step); };
requestAnimationFrame(step);`
	// Half a second after the last input, the page is at its end.
	const input = `let last, shown = 0;
const act = f => e => { e.preventDefault(); f(e); clearTimeout(last); last = setTimeout(() => fetch('/moved'), 700); };
const start = () => { if (++shown === 30) fetch('/ready'); else requestAnimationFrame(start); };
requestAnimationFrame(start);`
	const style = "<style>html{scroll-behavior:auto;scrollbar-width:none}::-webkit-scrollbar{display:none}</style>"
	// A picture, whose parts a browser does not move to whole pixels one by one when it is scaled.
	const plane = `<style>html,body{margin:0;overflow:hidden;user-select:none}#map{display:block}</style><canvas id=map width=2400 height=1800></canvas><script>
const map = document.getElementById('map'), pen = map.getContext('2d');
pen.fillStyle = '#fff';
pen.fillRect(0, 0, 2400, 1800);
for (let i = 0; i < 6000; i++) {
	pen.fillStyle = 'hsl(' + i * 47 % 360 + ' 60% ' + (30 + i * 13 % 50) + '%)';
	pen.fillRect(i * 7919 % 2400, i * 104729 % 1800, 8 + i * 31 % 50, 8 + i * 17 % 36);
}</script>`
	pages := map[string]string{
		"/scroll": style + text.String() + `<script>
const loops = {120: 30, 180: 50, 240: 100, 300: 200};
const go = n => { scrollBy(0, 5 + n % 7); if (loops[n]) busy(loops[n]); };` + move + "</script>",
		"/wheel": style + text.String() + "<script>" + input + `
addEventListener('wheel', act(e => scrollBy(0, e.deltaY > 0 ? 45 : -35)), {passive: false});</script>`,
		"/pan": plane + `<script>` + input + `
window.eideticBits = () => Math.round(scrollX) * 4096 + Math.round(scrollY);
scrollTo(500, 500);
let from = null;
addEventListener('pointerdown', act(e => { from = [e.clientX + scrollX, e.clientY + scrollY]; }));
addEventListener('pointermove', act(e => { if (from) scrollTo(from[0] - e.clientX, from[1] - e.clientY); }));
addEventListener('pointerup', act(() => { from = null; }));</script>`,
		"/zoom": plane + `<script>` + input + `
let scale = 1;
map.style.transformOrigin = innerWidth / 2 + 'px ' + innerHeight / 2 + 'px';
window.eideticBits = () => Math.round(scale * 1e6);
addEventListener('wheel', act(e => { scale *= e.deltaY > 0 ? 1.02 : 0.97; map.style.transform = 'scale(' + scale + ')'; }), {passive: false});</script>`,
	}
	// A second of green, one of a page, one of a window on it, and one of red.
	pages["/ends"] = `<style>html,body{margin:0;height:100%}div{position:fixed;left:200px;top:100px;width:300px;height:200px}</style><script>
const show = (ms, f) => setTimeout(() => requestAnimationFrame(f), ms);
document.body.style.background = '#00ff00';
show(1000, () => { document.body.style.background = '#cde'; });
show(2000, () => { document.body.appendChild(document.createElement('div')).style.background = '#246'; });
show(3000, () => { document.body.replaceChildren(); document.body.style.background = '#ff0000'; });
show(4000, () => fetch('/moved'));</script>`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ends" { // without the strip of codes, which would be on the green page
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><meta charset=utf-8><body>"+pages["/ends"])
			return
		}
		switch r.URL.Path {
		case "/ready":
			ready()
		case "/moved":
			moved()
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><meta charset=utf-8><body>"+pages[r.URL.Path]+"<script>"+framecode.Script+"</script>")
	})
}

// filmed films a page in a browser on a virtual screen until it has moved, by steps of the mouse if there are any, and
// measures it. The strip of the codes is left out.
func filmed(t *testing.T, program, page, steps string, flags ...string) (got analysed, columns map[string][]float64) {
	t.Helper()
	args := append([]string{"analyze", filmOf(t, program, page, steps), "--json", "--start", "0"}, flags...)
	status, text, errs := invoke(t, args...)
	if status != exitGood {
		t.Fatalf("analyze: status %d: %s", status, errs)
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	columns = map[string][]float64{}
	for _, c := range got.More.Columns {
		columns[c.Name] = c.Values
	}
	if len(columns["code_bits"]) == 0 {
		t.Fatalf("no codes: %s", strings.Join(got.Warnings, "; "))
	}
	return got, columns
}

// filmOf makes that film.
func filmOf(t *testing.T, program, page, steps string) (file string) {
	t.Helper()
	ctx, moved := context.WithCancel(t.Context())
	defer moved()
	var controls sync.WaitGroup
	defer controls.Wait()
	var display string
	var once sync.Once
	server := httptest.NewServer(movingPages(func() {
		once.Do(func() {
			controls.Go(func() {
				var said bytes.Buffer
				if status := run(t.Context(), []string{"control", "--device", "x11:" + display, steps},
					&streams{strings.NewReader(""), &said, &said}); status != exitGood {
					t.Errorf("control: status %d: %s", status, said.String())
					moved()
				}
			})
		})
	}, moved))
	defer server.Close()
	display = xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "800x600x24", "-nocursor").Display
	t.Setenv("XAUTHORITY", xtest.File(t, display))
	xtest.Browser(t, display, program, server.URL+page)
	file = filepath.Join(testlab.TempDir(t), "film.reel")
	var said bytes.Buffer
	status := run(ctx, []string{"capture", "--source", "x11:" + display, "--out", file, "--duration", testlab.Hang.String()},
		&streams{strings.NewReader(""), &said, &said})
	if ctx.Err() == nil {
		t.Fatalf("capture: status %d, and the page has not moved: %s", status, said.String())
	}
	return file
}

// TestAnalyzeBrowserEnds: in a browser, Eideticker's green page begins a load and its red page ends it. What opened last
// before the red page is found as a window, counted from the picture before it.
func TestAnalyzeBrowserEnds(t *testing.T) {
	testlab.EachBrowser(t, func(t *testing.T, program string) {
		file := filmOf(t, program, "/ends", "")
		analyse := func(more ...string) (got analysed) {
			status, text, errs := invoke(t, append([]string{"analyze", file, "--json"}, more...)...)
			if err := json.Unmarshal([]byte(text), &got); err != nil || status != exitGood {
				t.Fatalf("analyze: status %d, %v: %s", status, err, errs)
			}
			return got
		}
		got := analyse()
		if !strings.Contains(strings.Join(got.Warnings, " "), "the red page ends the load") {
			t.Errorf("warnings %q; want that the red page ends the load", got.Warnings)
		}
		last := slices.IndexFunc(got.Measurements, func(m lab.Measurement) bool { return m.Name == metric.LastChange.String() })
		if last < 0 || len(got.Measurements[last].Frames) == 0 {
			t.Fatalf("measurements %+v; want one of the last change, with its frame", got.Measurements)
		}
		opened := got.Measurements[last].Frames
		got = analyse("--metrics", "window", "--start", strconv.Itoa(opened[len(opened)-1]-1))
		at := slices.IndexFunc(got.More.Numbers, func(n measure.Number) bool { return n.Name == metric.WindowPixels.String() })
		if at < 0 || got.More.Numbers[at].Value != 300*200 {
			t.Errorf("window: %+v; want one of 300 × 200", got.More.Numbers)
		}
	})
}

// agree compares what was measured between frames that both show a whole code with what the page says of
// them. Where code and page are drawn in two passes a frame may show one before the other, so that a frame
// agrees, too, if it does together with the one before or after it. Where a busy machine showed so few frames that
// the page was far away in the next, nothing of the first is left in view to be recognised.
func agree(t *testing.T, columns map[string][]float64, far func(before, now float64) bool, off func(from, to int, before, now float64) bool) {
	t.Helper()
	bits, counter := columns["code_bits"], columns["code_counter"]
	compared, moved, wrong := 0, 0, 0
	for i := 1; i < len(bits); i++ {
		if counter[i] == 0 || counter[i-1] == 0 {
			continue
		}
		if far(bits[i-1], bits[i]) || i > 1 && far(bits[i-2], bits[i-1]) || i+1 < len(bits) && far(bits[i], bits[i+1]) {
			continue
		}
		compared++
		if bits[i] != bits[i-1] {
			moved++
		}
		if !off(i, i, bits[i-1], bits[i]) || i > 1 && counter[i-2] > 0 && !off(i-1, i, bits[i-2], bits[i]) ||
			i+1 < len(bits) && counter[i+1] > 0 && !off(i, i+1, bits[i-1], bits[i+1]) {
			continue
		}
		if wrong++; wrong < 10 {
			t.Logf("frame %d: from %v to %v, measured %v, %v, %v", i, bits[i-1], bits[i], columns["dx"][i], columns["dy"][i], columns["scale"][i])
		}
	}
	t.Logf("%d frames compared, %d of them moved, %d differ", compared, moved, wrong)
	if moved < 5 || 100*wrong > 3*moved+100 {
		t.Errorf("of %d frames %d moved, and in %d the movement is not the page's; want at most one and 3 %%", compared, moved, wrong)
	}
}

func sum(values []float64, from, to int) (s float64) {
	for _, v := range values[from : to+1] {
		s += v
	}
	return s
}

// TestAnalyzeBrowser: a long page scrolls by itself and by the wheel. The displacement that is measured from pixels
// is that of the page's own scrollY, which the frame codes carry, and each jank of the first is found, with its length.
func TestAnalyzeBrowser(t *testing.T) {
	for page, steps := range map[string]string{"scroll": "", "wheel": "scroll 40 at 50%,50% over 2s; scroll -20 at 50%,50% over 1s"} {
		t.Run(page, func(t *testing.T) {
			testlab.EachBrowser(t, func(t *testing.T, program string) {
				got, columns := filmed(t, program, "/"+page, steps, "--content", "800x580+0+20", "--metrics", "rate,motion,codes,tearing")
				agree(t, columns, func(before, now float64) bool { return math.Abs(now-before) > 200 },
					func(from, to int, before, now float64) bool {
						return math.Abs(sum(columns["dy"], from, to)-(before-now)) > 1
					})
				if steps == "" {
					checkJanks(t, got, columns)
				}
			})
		})
	}
}

// checkJanks looks for the four busy loops in the animation frames that had them. The page's clock jumps by
// the loop's length or more, and the picture stands meanwhile. By how much both differ is a matter of how
// busy the machine is; films whose stalls are known to the frame are in analysis/cadence.
func checkJanks(t *testing.T, got analysed, columns map[string][]float64) {
	t.Helper()
	counter, page, at := columns["code_counter"], columns["code_page_ms"], got.Times
	for n, length := range map[float64]float64{120: 30, 180: 50, 240: 100, 300: 200} {
		jump, stood, frame, last := 0.0, 0.0, -1, -1
		for i := range page {
			if counter[i] == 0 || last >= 0 && counter[i] == counter[last] {
				continue
			}
			if last >= 0 && math.Abs(counter[i]-n) <= 4 && page[i]-page[last] > jump {
				jump, stood, frame = page[i]-page[last], at[i]-at[last], i
			}
			last = i
		}
		t.Logf("%v ms: the page's clock jumps by %.1f ms, the picture stands for %.1f ms until frame %d", length, jump, stood, frame)
		if jump < length-1 {
			t.Errorf("no jank of %v ms was found near animation frame %v; the largest has %.1f ms", length, n, jump)
		}
	}
	if n := len(got.More.Stalls); n < 2 {
		t.Errorf("%d stalls, want the longer two at least: %+v", n, got.More.Stalls)
	}
}

// TestAnalyzeBrowserPan: an image map is dragged in both directions at once.
func TestAnalyzeBrowserPan(t *testing.T) {
	testlab.Long(t, "the same analysis as TestAnalyzeBrowser's, of another motion")
	testlab.EachBrowser(t, func(t *testing.T, program string) {
		_, columns := filmed(t, program, "/pan", "drag 700,500 to 100,80 over 3s rate 60; drag 150,120 to 560,490 over 2s rate 60",
			"--content", "400x280+200+160", "--metrics", "motion,codes")
		x := func(v float64) float64 { return math.Floor(v / 4096) }
		y := func(v float64) float64 { return math.Mod(v, 4096) }
		far := func(before, now float64) bool {
			return math.Abs(x(now)-x(before)) > 120 || math.Abs(y(now)-y(before)) > 90
		}
		agree(t, columns, far, func(from, to int, before, now float64) bool {
			return math.Abs(sum(columns["dx"], from, to)-(x(before)-x(now))) > 1 ||
				math.Abs(sum(columns["dy"], from, to)-(y(before)-y(now))) > 1
		})
	})
}

// TestAnalyzeBrowserZoom: an image map is zoomed by the wheel, in and out again.
func TestAnalyzeBrowserZoom(t *testing.T) {
	testlab.Long(t, "the same analysis as TestAnalyzeBrowser's, of another motion")
	testlab.EachBrowser(t, func(t *testing.T, program string) {
		_, columns := filmed(t, program, "/zoom", "scroll 30 at 400,300 over 2s; scroll -15 at 400,300 over 1s",
			"--content", "400x280+200+160", "--metrics", "motion,codes", "--zoom")
		far := func(before, now float64) bool { return now/before > 1.25 || before/now > 1.25 }
		agree(t, columns, far, func(from, to int, before, now float64) bool {
			scale := 1.0
			for _, s := range columns["scale"][from : to+1] {
				scale *= s
			}
			return math.Abs(scale-now/before) > 0.005 // a pixel at the edge of the view, 200 from its middle
		})
	})
}
