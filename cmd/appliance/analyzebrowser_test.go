package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/analysis/framecode"
	"eidetic/internal/testlab"
	"eidetic/internal/testlab/xtest"
)

// movingPages move by themselves when their first code has been drawn, and note in the frame codes where
// they are: /scroll a long page, with busy loops of known lengths; /pan an image map in both directions;
// /zoom the same map about the middle of the view. moved is called when a page has come to its end.
func movingPages(moved func()) http.Handler {
	var text, boxes strings.Builder
	for i := range 400 {
		fmt.Fprintf(&text, "<p style='margin:%dpx'>paragraph %d: %s</p>", 3+i%7, i*7919%1000, strings.Repeat("words of many lengths ", 2+i*31%9))
		fmt.Fprintf(&boxes, "<i style='left:%dpx;top:%dpx;width:%dpx;height:%dpx;background:hsl(%d 60%% 50%%)'></i>", i*7919%3000, i*104729%2400,
			8+i*31%60, 8+i*17%40, i*47%360)
	}
	const move = `let n = 0;
const busy = ms => { const t = performance.now(); while (performance.now() - t < ms); };
const step = () => { n++; if (n > 60 && n < 330) go(n); if (n === 345) fetch('/moved'); requestAnimationFrame(step); };
requestAnimationFrame(step);`
	const plane = `<style>html,body{margin:0;overflow:hidden}::-webkit-scrollbar{display:none}#map{position:relative;width:3000px;height:2400px;background:#fff}
i{position:absolute}</style><div id=map>`
	pages := map[string]string{
		"/scroll": "<style>html{scroll-behavior:auto;scrollbar-width:none}::-webkit-scrollbar{display:none}</style>" + text.String() + `<script>
const loops = {120: 30, 180: 50, 240: 100, 300: 200};
const go = n => { scrollBy(0, 5 + n % 7); if (loops[n]) busy(loops[n]); };` + move + "</script>",
		"/pan": plane + boxes.String() + `</div><script>
window.eideticBits = () => Math.round(scrollX) * 4096 + Math.round(scrollY);
const go = n => scrollBy(n < 200 ? 3 + n % 5 : -2, n < 200 ? 2 + n % 3 : 5);` + move + "</script>",
		"/zoom": plane + boxes.String() + `</div><script>
let scale = 1;
const map = document.getElementById('map');
map.style.transformOrigin = innerWidth / 2 + 'px ' + innerHeight / 2 + 'px';
window.eideticBits = () => Math.round(scale * 1e6);
const go = n => { scale *= n < 200 ? 1.004 : 0.997; map.style.transform = 'scale(' + scale + ')'; };` + move + "</script>",
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			moved()
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><meta charset=utf-8><body>"+pages[r.URL.Path]+"<script>"+framecode.Script+"</script>")
	})
}

// filmed films a page in a browser on a virtual screen until it has moved, and measures it. The strip of the
// codes is left out.
func filmed(t *testing.T, program, page string, flags ...string) (got analysed, columns map[string][]float64) {
	t.Helper()
	ctx, moved := context.WithCancel(t.Context())
	defer moved()
	server := httptest.NewServer(movingPages(moved))
	defer server.Close()
	display := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "800x600x24", "-nocursor").Display
	t.Setenv("XAUTHORITY", xtest.File(t, display))
	xtest.Browser(t, display, program, server.URL+page)
	file := filepath.Join(testlab.TempDir(t), "film.reel")
	var said bytes.Buffer
	status := run(ctx, []string{"capture", "--source", "x11:" + display, "--out", file, "--duration", testlab.Hang.String()},
		&streams{strings.NewReader(""), &said, &said})
	if ctx.Err() == nil {
		t.Fatalf("capture: status %d, and the page has not moved: %s", status, said.String())
	}
	args := append([]string{"analyze", file, "--json", "--start", "0"}, flags...)
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

// agree compares what was measured between frames that both show a whole code with what the page says of
// them. Where code and page are drawn in two passes a frame may show one before the other, so that a frame
// agrees, too, if it does together with the one before or after it.
func agree(t *testing.T, columns map[string][]float64, moves func(before, now float64) bool, off func(from, to int, before, now float64) bool) {
	t.Helper()
	bits, counter := columns["code_bits"], columns["code_counter"]
	compared, moved, wrong := 0, 0, 0
	for i := 1; i < len(bits); i++ {
		if counter[i] == 0 || counter[i-1] == 0 {
			continue
		}
		compared++
		if moves(bits[i-1], bits[i]) {
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
	if moved < 40 || 100*wrong > 3*moved {
		t.Errorf("of %d frames %d moved, and in %d the movement is not the page's; want at most 3 %%", compared, moved, wrong)
	}
}

func sum(values []float64, from, to int) (s float64) {
	for _, v := range values[from : to+1] {
		s += v
	}
	return s
}

// TestAnalyzeBrowser: a long page scrolls in Chromium and in Firefox on a virtual screen. The displacement
// that is measured from pixels is that of the page's own scrollY, which the frame codes carry, and each of
// its janks is found, with its length.
func TestAnalyzeBrowser(t *testing.T) {
	for _, names := range [][]string{{"chromium", "chromium-browser", "google-chrome"}, {"firefox-esr", "firefox"}} {
		t.Run(names[0], func(t *testing.T) {
			got, columns := filmed(t, testlab.NeedProgram(t, names...), "/scroll", "--content", "800x580+0+20",
				"--metrics", "rate,motion,codes,tearing")
			agree(t, columns, func(before, now float64) bool { return now != before }, func(from, to int, before, now float64) bool {
				return math.Abs(sum(columns["dy"], from, to)-(before-now)) > 1
			})
			checkJanks(t, got, columns)
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

// TestAnalyzeBrowserPan: an image map is panned in both directions at once.
func TestAnalyzeBrowserPan(t *testing.T) {
	_, columns := filmed(t, testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome"), "/pan",
		"--content", "400x280+200+160", "--metrics", "motion,codes")
	x := func(v float64) float64 { return math.Floor(v / 4096) }
	agree(t, columns, func(before, now float64) bool { return now != before }, func(from, to int, before, now float64) bool {
		return math.Abs(sum(columns["dx"], from, to)-(x(before)-x(now))) > 1 ||
			math.Abs(sum(columns["dy"], from, to)-(math.Mod(before, 4096)-math.Mod(now, 4096))) > 1
	})
}

// TestAnalyzeBrowserZoom: an image map is zoomed, in and out again.
func TestAnalyzeBrowserZoom(t *testing.T) {
	_, columns := filmed(t, testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome"), "/zoom",
		"--content", "400x280+200+160", "--metrics", "motion,codes", "--zoom")
	agree(t, columns, func(before, now float64) bool { return now != before }, func(from, to int, before, now float64) bool {
		scale := 1.0
		for _, s := range columns["scale"][from : to+1] {
			scale *= s
		}
		return math.Abs(scale-now/before) > 0.002 // a pixel at the edge of the view
	})
}
