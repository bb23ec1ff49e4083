package panel

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"image"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"eidetic/analysis/filmtest"
	"eidetic/capture/reel"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/report/reporttest"
)

// The start of an application, of the kind that the Eideticker article shows: a transition, a page that fills, and late
// a small animation. All of it is known by construction.
const (
	startW, startH = 640, 400
	startFrames    = 240
	opens          = 60  // the frame in which the whole picture changes
	fills          = 75  // to 95: a line of the page in each
	animates       = 180 // to 189: a box of 24 × 24 pixels
	spinnerX       = 500
	spinnerY       = 300
)

func start() *filmtest.Film {
	page := filmtest.NewPage(startW, startH, 11)
	scene := func(pix []byte, n int) {
		filmtest.Fill(pix, startW, image.Rect(0, 0, startW, startH), 30, 30, 46)
		if n >= opens {
			filmtest.Fill(pix, startW, image.Rect(0, 0, startW, startH), 250, 250, 255)
		}
		if rows := min(max(n-fills+1, 0), 20) * startH / 20; rows > 0 {
			top := make([]byte, 4*startW*startH)
			page.Show(top, startW, startH, 0, 0)
			copy(pix, top[:4*startW*rows])
		}
		if k := n - animates; k >= 0 {
			filmtest.Fill(pix, startW, image.Rect(spinnerX, spinnerY, spinnerX+24, spinnerY+24), 200, uint8(20*min(k, 9)), 40)
		}
	}
	return filmtest.New(startW, startH, 60, scene, filmtest.Beat(startFrames, 60, 60, 0))
}

// filmed keeps a run with one trial that has the reel of a film.
func filmed(t testing.TB, st *store.Store, f *filmtest.Film, content image.Rectangle) *lab.Run {
	t.Helper()
	run := reporttest.Run(2, 1)
	trial := run.Trials[0]
	first := min(50, f.Len()-1)
	trial.Files["reel"], trial.StartFrame, trial.StartTime = "screen.reel", first, f.Info(first).Time
	trial.ContentX, trial.ContentY, trial.ContentW, trial.ContentH = content.Min.X, content.Min.Y, content.Dx(), content.Dy()
	trial.VisualProgress = nil
	for i := first; i < f.Len(); i++ {
		trial.VisualProgress = append(trial.VisualProgress, float64(min(max(i-fills+1, 0)*5, 100)))
	}
	trial.LoadHistogram, trial.FrameTimes = nil, nil
	folder, err := store.Create(st.Root(), run)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	writeReel(t, folder.Path(), 1, f)
	if err := report.Write(folder.Path(), run); err != nil {
		t.Fatal(err)
	}
	if err := folder.Save(run); err != nil {
		t.Fatal(err)
	}
	return run
}

// writeReel keeps a film as the reel of a trial.
func writeReel(t testing.TB, run string, trial int, f *filmtest.Film) {
	t.Helper()
	dir := filepath.Join(run, "trials", store.TrialName(trial))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := reel.Create(filepath.Join(dir, "screen.reel"), reel.Header{Format: f.Format(), Source: "generated"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Len() {
		frame := lab.Frame{FrameInfo: f.Info(i)}
		if frame.Pix, err = f.Pixels(i); err == nil {
			err = w.WriteFrame(frame)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// onTrialPage is what a person does on the page. Its answer is in one line for each thing that is looked at.
const onTrialPage = until + `
	const $ = id => document.getElementById(id), says = [];
	const text = () => $("curve").getAttribute("aria-valuetext");
	const shows = i => until(() => $("picture").dataset.frame === String(i));
	const key = async (k, shift, i) => { $("curve").dispatchEvent(new KeyboardEvent("keydown", { key: k, shiftKey: shift, bubbles: true, cancelable: true })); return shows(i); };
	// lossless says whether the canvas has each pixel of the PNG of its frame.
	const lossless = async () => {
		const bitmap = await createImageBitmap(await (await fetch($("png").href)).blob(), { colorSpaceConversion: "none" });
		const other = Object.assign(document.createElement("canvas"), { width: bitmap.width, height: bitmap.height }).getContext("2d");
		other.drawImage(bitmap, 0, 0);
		const want = other.getImageData(0, 0, bitmap.width, bitmap.height).data, got = $("picture").getContext("2d").getImageData(0, 0, bitmap.width, bitmap.height).data;
		return want.length === got.length && want.every((v, i) => v === got[i]);
	};
	const marked = (x, y) => [...$("marks").getContext("2d").getImageData(x, y, 1, 1).data].join();
	await until(() => !$("all").hidden && $("picture").dataset.frame);
	says.push("first " + text(), "lossless " + await lossless());
	await key("ArrowRight", false, 61); await key("ArrowRight", true, 71); await key("PageDown", false, 75); await key("ArrowLeft", false, 74); await key("ArrowLeft", true, 64);
	says.push("keys " + text(), "lossless " + await lossless());
	await key("Home", false, 0);
	says.push("home lossless " + await lossless());
	await key("End", false, 239); await key("PageUp", false, 189);
	says.push("late " + text(), "lossless " + await lossless());
	await until(() => marked(512, 300) === "255,0,200,255" && marked(512, 323) === "255,0,200,255");
	says.push("outline " + [marked(512, 300), marked(512, 312), marked(490, 312)].join(" "));
	// The pointer: at the place of frame 60 in the curve.
	const box = $("curve").getBoundingClientRect(), x = i => box.left + 52 + (i + 0.5) * (box.width - 92) / 240;
	$("curve").dispatchEvent(new PointerEvent("pointermove", { clientX: x(60), clientY: box.top + 50, bubbles: true }));
	await shows(60);
	says.push("pointer " + text() + " " + new URLSearchParams(location.search).get("frame"), "lossless " + await lossless());
	$("curve").dispatchEvent(new PointerEvent("pointerleave"));
	await shows(189);
	// A region, by its numbers.
	const form = $("region").elements;
	[form.x.value, form.y.value, form.w.value, form.h.value] = [490, 290, 50, 50];
	form.h.dispatchEvent(new Event("change", { bubbles: true }));
	for (const kind of [...$("kind").options].map(o => o.value)) {
		$("kind").value = kind;
		$("kind").dispatchEvent(new Event("change"));
		says.push("yaml " + JSON.stringify($("text").textContent));
	}
	form.only.checked = true;
	form.only.dispatchEvent(new Event("change", { bubbles: true }));
	await until(() => text().includes("23.04 %"));
	says.push("alone " + text());
	$("zoom").value = "1";
	$("zoom").dispatchEvent(new Event("change"));
	says.push("zoom " + $("picture").getBoundingClientRect().width * devicePixelRatio, "address " + location.search, "sideways " + (document.documentElement.scrollWidth <= innerWidth));
	$("changes").open = true;
	says.push("table " + $("rows").childElementCount + " " + [...$("rows").lastChild.children].map(c => c.textContent).join(" "));
	const csv = await (await fetch($("csv").href)).text();
	says.push("csv " + csv.split("\r\n")[190]);
	return says.join("\n");`

const wantOfTrialPage = `first frame 60, 167 ms, 256000 pixels changed, 100.00 %, visual progress 0 %
lossless true
keys frame 64, 233 ms, nothing changed, visual progress 0 %
lossless true
home lossless true
late frame 189, 2317 ms, 576 pixels changed, 0.23 %, visual progress 100 %
lossless true
outline 255,0,200,255 0,0,0,0 0,0,0,0
pointer frame 60, 167 ms, 256000 pixels changed, 100.00 %, visual progress 0 % 189
lossless true
yaml "measure:\n  ignore: [\"490,250,50,50\"]\n"
yaml "measure:\n  regions:\n    - name: region\n      area: 490,250,50,50\n"
yaml "steps:\n  - wait: still 1s in 490,250,50,50\n"
yaml "steps:\n  - wait: still 1s\n    mask: [\"490,250,50,50\"]\n"
alone frame 189, 2317 ms, 576 pixels changed, 23.04 %, visual progress 100 %
zoom 640
address ?run=20261121-091400-demo&trial=1&frame=189&zoom=1&region=490%2C290%2C50%2C50&only=1
sideways true
table 14 189 2316.7 576 23.04 100
csv 189,2316.667,576,23.040000,100`

// plain writes numbers as the page's script does, without the thin spaces.
func plain(s string) string { return strings.ReplaceAll(s, "\u202f", "") }

func TestTrialInChromium(t *testing.T) {
	st := emptyStore(t)
	run := filmed(t, st, start(), image.Rect(0, 40, startW, startH))
	s := newServer(t, setup{Store: st, Version: "v1"})
	b := browsers.New(t)
	address := s.URL + "/trial?run=" + run.ID + "&trial=1"
	if err := b.Open(address); err != nil {
		t.Fatal(err)
	}
	got, err := reporttest.Eval[string](b, `(async () => {`+onTrialPage+`})()`)
	if err != nil || plain(got) != wantOfTrialPage {
		t.Errorf("the page says (%v)\n%s\nwant\n%s", err, plain(got), wantOfTrialPage)
	}
	planned(t, got)
	for _, look := range []struct {
		width  int64
		scheme string
	}{{390, "light"}, {1100, "dark"}, {1100, "light"}} {
		if err := b.View(look.width, 1500, look.scheme); err != nil {
			t.Fatal(err)
		}
		// A link holds frame, region and zoom.
		if err := b.Open(address + "&frame=185&region=490,290,60,60&zoom=fit"); err != nil {
			t.Fatal(err)
		}
		held, err := reporttest.Eval[string](b, `(async () => {`+until+`
			const $ = id => document.getElementById(id);
			await until(() => $("picture").dataset.frame === "185" && $("marks").getContext("2d").getImageData(512, 300, 1, 1).data[3]);
			const named = [...document.querySelectorAll("button, select, input, [role=slider], [tabindex='0']")].filter(e => e.checkVisibility() && !e.ariaLabel && !e.textContent.trim() && !e.labels?.length);
			return [$("curve").ariaValueNow, document.querySelector("#region [name=w]").value, $("report").getAttribute("href"), document.documentElement.scrollWidth <= innerWidth, named.length].join(" ");
		})()`)
		if want := "185 60 /runs/" + run.ID + "/report.html#trial-1 true 0"; err != nil || held != want {
			t.Errorf("%d pixels wide, %s: the link's page has %q (%v), want %q", look.width, look.scheme, held, err, want)
		}
	}
	picture(t, b, address+"&frame=185&region=490,290,60,60&zoom=fit", "frames", `await until(() => $("picture").dataset.frame === "185");`)
	// From the list of runs, and from the report.
	for from, script := range map[string]string{
		"/": `(async () => {` + until + `await until(() => document.querySelector(".run")); return [...document.querySelectorAll(".run a")].find(a => a.textContent === "frames").getAttribute("href"); })()`,
		"/runs/" + run.ID + "/report.html#trial-1": `(async () => {` + until + `await until(() => document.querySelector(".stepwise a")?.checkVisibility()); return document.querySelector(".stepwise a").getAttribute("href"); })()`,
	} {
		if err := b.Open(s.URL + from); err != nil {
			t.Fatal(err)
		}
		if got, err := reporttest.Eval[string](b, script); err != nil || !strings.HasPrefix(got, "/trial?run="+run.ID) {
			t.Errorf("%s links to %q (%v)", from, got, err)
		}
	}
	// Chromium says of the test's own looks at the canvas that they are slow.
	if got := slices.DeleteFunc(b.Problems(), func(s string) bool { return strings.Contains(s, "willReadFrequently") }); len(got) > 0 {
		t.Errorf("the pages complain: %q", got)
	}
	if got := b.Foreign(s.URL+"/", "about:", "chrome:", "data:", "blob:"); len(got) > 0 {
		t.Errorf("requests to others: %q", got)
	}
}

// planned checks that the lines for a plan are what a plan takes.
func planned(t *testing.T, says string) {
	t.Helper()
	for line := range strings.Lines(says) {
		quoted, ok := strings.CutPrefix(strings.TrimSpace(line), "yaml ")
		if !ok {
			continue
		}
		var text string
		if err := json.Unmarshal([]byte(quoted), &text); err != nil {
			t.Fatal(err)
		}
		inJSON, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var plan lab.Plan
		strict := json.NewDecoder(bytes.NewReader(inJSON))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&plan); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, step := range plan.Steps {
			if err := step.Check("steps[0]"); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		if plan.Measure != nil {
			for _, region := range append(plan.Measure.Ignore, areas(plan.Measure.Regions)...) {
				if _, err := lab.ParseRegion(region); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
}

func areas(regions []lab.MeasureRegion) (out []string) {
	for _, r := range regions {
		out = append(out, r.Area)
	}
	return out
}

// TestTrialInFirefox does the same there. A script that the test's server adds to the page sends what it saw.
func TestTrialInFirefox(t *testing.T) {
	testlab.Long(t, "second browser")
	program := testlab.NeedProgram(t, "firefox-esr", "firefox")
	st := emptyStore(t)
	run := filmed(t, st, start(), image.Rect(0, 40, startW, startH))
	p, err := newPanel(setup{Store: st, Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/probe.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprintf(w, `(async () => {%s})().catch(e => "failed: " + e).then(body => fetch("/probe", { method: "POST", body }));`, onTrialPage)
		case "/probe":
			body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			select {
			case answer <- string(body):
			default:
			}
		case "/trial":
			page := httptest.NewRecorder()
			p.ServeHTTP(page, r)
			for name, values := range page.Header() {
				w.Header()[name] = values
			}
			fmt.Fprint(w, strings.Replace(page.Body.String(), "</body>", `<script type="module" src="/probe.js"></script></body>`, 1))
		default:
			p.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	startFirefox(t, program, s.URL+"/trial?run="+run.ID+"&trial=1")
	select {
	case got := <-answer:
		if plain(got) != wantOfTrialPage {
			t.Errorf("the page says\n%s\nwant\n%s", plain(got), wantOfTrialPage)
		}
	case <-time.After(testlab.Hang):
		t.Fatal("Firefox says nothing")
	}
}

func TestTrialRefuses(t *testing.T) {
	st := emptyStore(t)
	run := filmed(t, st, filmtest.New(32, 16, 60, func(pix []byte, n int) { clear(pix) }, filmtest.States(0, 0)), image.Rect(0, 0, 32, 16))
	other := reporttest.Run(3, 1)
	other.ID = "20261121-101500-bare"
	addRun(t, st, other)
	p, err := newPanel(setup{Store: st, Token: lab.NewSecret(token), Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	of := "/api/v1/runs/" + run.ID + "/trials/"
	for path, want := range map[string]int{
		of + "1/frames": 200, of + "1/frames/1": 200, of + "1/frames/0/differences": 200, of + "1/frames.csv": 200, "/trial": 200,
		of + "2/frames": 404, of + "0/frames": 422, of + "x/frames/1": 404, of + "1/frames/2": 404, of + "1/frames/-1": 404, of + "1/frames/x": 404,
		of + "1/frames/1/differences": 409, of + "1/frames?region=1,2,3": 422, of + "1/frames?region=0,0,33,16": 422,
		of + "1/frames.csv?region=0,0,0,0": 422, of + "1/frames?region=-1,0,3,3": 422,
		"/api/v1/runs/" + other.ID + "/trials/1/frames": 409, "/api/v1/runs/nope/trials/1/frames": 404, "/api/v1/runs/..%2Fx/trials/1/frames.csv": 404,
	} {
		got := ask(t, s, http.MethodGet, path, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
		if got.StatusCode != want {
			t.Errorf("GET %s = %d, %.200s; want %d", path, got.StatusCode, got.text, want)
		}
		if path == "/trial" {
			continue
		}
		if got := ask(t, s, http.MethodGet, path, nil); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s without a token = %d; want 401", path, got.StatusCode)
		}
	}
	// From elsewhere a piece comes compressed, and is the same.
	var bodies [2]string
	for i, encoding := range []string{"gzip", "identity"} {
		r := httptest.NewRequest(http.MethodGet, of+"1/frames/0/differences", nil)
		r.Host = "localhost"
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		var body io.Reader = w.Body
		if encoding == "gzip" {
			z, err := gzip.NewReader(w.Body)
			if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
				t.Fatalf("a piece from elsewhere = %d, %v, not compressed (%v)", w.Code, w.Header(), err)
			}
			body = z
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		bodies[i] = string(text)
	}
	if bodies[0] != bodies[1] || len(bodies[0]) < 16 {
		t.Errorf("a piece of %d bytes compressed, %d plain; want the same", len(bodies[0]), len(bodies[1]))
	}
}

// Films of 1920 × 1080 that are stepped through in benchmarks: in the first a part of the screen changes, in the second
// all of it.
const stepsW, stepsH, stepsFrames = 1920, 1080, 121

func stepsFilms() map[string]*filmtest.Film {
	page := filmtest.NewPage(stepsW, 4000, 1)
	films := map[string]*filmtest.Film{}
	for name, scene := range map[string]filmtest.Scene{
		"load": func(pix []byte, n int) {
			filmtest.Fill(pix, stepsW, image.Rect(0, 0, stepsW, stepsH), 255, 255, 255)
			copy(pix[:4*stepsW*(stepsH*n/stepsFrames)], page.Pix)
		},
		"scroll": func(pix []byte, n int) { page.Show(pix, stepsW, stepsH, 0, 8*n) },
	} {
		films[name] = filmtest.New(stepsW, stepsH, 60, scene, filmtest.Beat(stepsFrames, 60, 60, 0))
	}
	return films
}

// stepThrough measures steps in Chromium: each key is answered before the next is pressed, and each frame is painted.
// pressed is the element that takes keys, and shown the one whose data attribute says what is shown.
func stepThrough(b *testing.B, st *store.Store, path, pressed, shown, attribute string) {
	p, err := newPanel(setup{Store: st, Version: "v1"})
	if err != nil {
		b.Fatal(err)
	}
	s := httptest.NewServer(p)
	defer s.Close()
	browser := browsers.New(b)
	const n = 100
	script := fmt.Sprintf(`(async () => {`+until+`
		const pressed = document.getElementById(%q), view = document.getElementById(%q), at = () => view.dataset[%q];
		await until(at);
		const first = Number(at());
		const step = i => new Promise(yes => {
			new MutationObserver((_, o) => { if (at() === String(i)) { o.disconnect(); requestAnimationFrame(yes); } }).observe(view, { attributes: true });
			pressed.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true }));
		});
		const began = performance.now();
		for (let i = 1; i <= %d; i++) await step(first + i);
		return performance.now() - began;
	})()`, pressed, shown, attribute, n)
	var took float64
	steps := 0
	for b.Loop() {
		if err := browser.Open(s.URL + path); err != nil {
			b.Fatal(err)
		}
		ms, err := reporttest.Eval[float64](browser, script)
		if err != nil {
			b.Fatal(err)
		}
		took, steps = took+ms, steps+n
	}
	b.ReportMetric(float64(steps)/took*1e3, "steps/s")
}

// BenchmarkTrialSteps steps through the film of a trial.
func BenchmarkTrialSteps(b *testing.B) {
	for name, film := range stepsFilms() {
		b.Run(name, func(b *testing.B) {
			st, err := store.Open(b.Context(), b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer st.Close()
			run := filmed(b, st, film, image.Rect(0, 0, stepsW, stepsH))
			stepThrough(b, st, "/trial?run="+run.ID+"&trial=1&frame=0&zoom=fit", "curve", "picture", "frame")
		})
	}
}
