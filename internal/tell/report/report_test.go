package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
)

// browsers is the Chromium of this package's tests.
var browsers reporttest.Browsers

func TestMain(m *testing.M) { testlab.NoLeaks(m, browsers.End) }

// write makes a run's folder with its report and returns the report's text.
func write(t *testing.T, run *lab.Run, o reporttest.Options) (dir, text string) {
	t.Helper()
	dir = t.TempDir()
	if err := reporttest.Files(dir, run, o); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, run); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	return dir, string(b)
}

func TestReportInBrowser(t *testing.T) {
	program := testlab.NeedProgram(t, "vpxenc")
	dir, _ := write(t, reporttest.Run(7, 10), reporttest.Options{VPXEnc: program})
	b := browsers.New(t)
	page := "file://" + filepath.Join(dir, FileName)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1280} {
			if err := b.View(width, 900, scheme); err != nil {
				t.Fatal(err)
			}
			if err := b.Open(page); err != nil {
				t.Fatal(err)
			}
			got, err := reporttest.Eval[map[string]any](b, look)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"curves": "10", "inked": true, "wide": false, "dots": 50.0, "rows": 62.0, "miss": 1.0,
				"video": true, "heat": true, "strip": true, "big": 5.0, "unnamed": 0.0,
				"before": "before the start at 0", "end": "finished", "frame": true, "green": 0.0, "moments": true,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %d pixels wide (-want +got):\n%s", scheme, width, diff)
			}
		}
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
	// Chromium requests its own built-in pages when it starts.
	if got := b.Foreign("file://"+dir+"/", "about:", "chrome:", "data:image/svg+xml"); len(got) > 0 {
		t.Errorf("requests that leave the run's folder: %q", got)
	}
}

// look opens the last trial and describes what is visible.
const look = `(async () => {
	const until = (test) => new Promise((yes, no) => { const end = performance.now() + 60000; const ask = () => test() ? yes(true) : performance.now() > end ? yes(false) : requestAnimationFrame(ask); ask(); });
	const out = {};
	const canvas = document.querySelector("#chart canvas");
	const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height }).getContext("2d", { willReadFrequently: true });
	out.inked = await until(() => { copy.drawImage(canvas, 0, 0); return copy.getImageData(0, 0, canvas.width, canvas.height).data.some(v => v); });
	out.curves = document.querySelector("#chart").dataset.drawn;
	out.wide = document.documentElement.scrollWidth > innerWidth;
	out.dots = document.querySelectorAll(".dot").length;
	out.big = document.querySelectorAll(".card .big strong").length;
	const trial = document.querySelector("#trial-10");
	location.hash = "trial-10";
	await until(() => trial.open && trial.querySelectorAll(".log-table tbody tr td:first-child.r").length);
	out.rows = trial.querySelectorAll(".log-table tbody td:first-child.r").length;
	const chip = [...trial.querySelectorAll(".chips button")].find(b => b.value === "miss");
	chip.click();
	out.miss = trial.querySelectorAll(".log-table tbody td:first-child.r").length;
	const video = trial.querySelector("video");
	out.video = await until(() => video.readyState >= 1 && video.videoWidth === 320);
	out.heat = await until(() => trial.querySelector(".evidence img").naturalWidth === 640);
	out.strip = await until(() => [...document.querySelectorAll(".seen .film img")].every(i => i.naturalWidth === 240));
	out.unnamed = [...document.querySelectorAll("button, input, a, img")].filter(e => !(e.textContent.trim() || e.alt || e.ariaLabel || e.getAttribute("aria-label") || e.querySelector("img[alt]"))).length;
	const top = document.querySelector("#top"), film = top.querySelector(".films video"), scrub = top.querySelector(".controls input"), says = () => top.querySelector(".says").textContent;
	await until(() => film.readyState >= 2 && Number(scrub.max) > 0);
	out.end = says().split(",")[0];
	const key = k => top.querySelector(".films").dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));
	key("Home");
	await until(() => !film.seeking);
	out.before = says() + " at " + Math.floor(film.currentTime);
	const was = Number(scrub.value);
	key(".");
	out.frame = Math.abs(Number(scrub.value) - was - 1000 / 60) < 0.5;
	out.green = [...top.querySelectorAll(".strips li")].filter(li => Number(li.dataset.at) < 480).length; // the first change is never earlier
	out.moments = [...top.querySelectorAll(".strips em")].some(e => e.textContent.startsWith("First visual change"));
	history.replaceState(null, "", location.pathname);
	return out;
})()`

// Strings from a hostile page, archive or upload are shown as text.
func TestReportHostileStrings(t *testing.T) {
	const evil = `"><script>document.title='owned'</script><img src=x onerror="document.title='owned'">{{.}}</script><!--<script>` + "\u2028'`${1}"
	run := reporttest.Run(1, 2)
	run.Name, run.Page, run.Error = evil, "https://h/"+evil, evil
	run.Warnings = []string{evil}
	run.Environment.Kernel, run.Environment.Browser, run.Link.Name, run.Plan.Device = evil, evil, evil, evil
	run.Environment.Network.KernelSettings = map[string]string{evil: evil}
	run.Archive.Hosts = []string{evil}
	for _, t := range run.Trials {
		t.Arm, t.Invalid, t.Ended, t.FinalFrame = evil, []string{evil}, lab.End(evil), evil
		t.Events = append(t.Events, lab.Event{Name: evil, Detail: evil, Earliest: t.StartTime, Latest: t.StartTime})
		t.Spans = append(t.Spans, &lab.Span{Name: evil, Level: evil, Start: t.StartTime, End: t.StartTime + 1e9})
		t.Measurements[0].Method, t.Measurements[0].Unit = evil, evil
		t.Measurements = append(t.Measurements, lab.Measurement{Name: evil, Value: 3})
	}
	for i := range run.Summary {
		run.Summary[i].Arm, run.Summary[i].Warnings = evil, []string{evil}
	}
	run.Summary = append(run.Summary, lab.Summary{Metric: evil, Unit: evil, Arm: evil, N: 2, Median: 3})
	dir := t.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(
		lab.Served{
			Time:     run.Trials[0].StartTime,
			Method:   evil,
			URL:      evil,
			Protocol: evil,
			Stage:    lab.Stage(evil),
			Error:    evil,
			Differs:  []string{evil},
			RunnerUp: evil,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "trials/001/replay.jsonl"), append(line, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, run); err != nil {
		t.Fatal(err)
	}
	b := browsers.New(t)
	if err := b.Open("file://" + filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	title, err := reporttest.Eval[string](
		b,
		`(async () => { for (const d of document.querySelectorAll("details")) d.open = true; while (document.querySelectorAll(".log-table tbody").length < 2) await new Promise(requestAnimationFrame); return document.title; })()`,
	)
	if err != nil {
		t.Fatal(err)
	}
	if title == "owned" || !strings.Contains(title, "<script>") {
		t.Errorf("the title is %q", title)
	}
	if got, err := reporttest.Eval[int](b, `document.querySelectorAll("img[src=x], [onerror]").length`); err != nil || got != 0 {
		t.Errorf("%d injected elements (%v)", got, err)
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

// The page requests nothing outside the run's folder: every address in it is relative.
func TestReportLinksAreRelative(t *testing.T) {
	_, text := write(t, reporttest.Run(3, 3), reporttest.Options{})
	for _, m := range regexp.MustCompile(`(?:src|href|action|poster|data)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "#") && !strings.HasPrefix(m[1], "trials/") && !strings.HasPrefix(m[1], "timeline.html") && m[1] != "report.json" && m[1] != "run.json" {
			t.Errorf("link to %q", m[1])
		}
	}
	for _, bad := range []string{"@import", "url(http"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

func TestReportStates(t *testing.T) {
	empty := func(state, why string) *lab.Run {
		return &lab.Run{ID: "r", Page: "https://a.example/x?y=1", State: state, Error: why}
	}
	noneValid := reporttest.Run(1, 2)
	for _, tr := range noneValid.Trials {
		tr.Valid = false
	}
	noneValid.Summary = nil
	one := reporttest.Run(1, 1)
	one.Summary = reporttest.Summarise(one.Trials)
	bare := reporttest.Run(1, 1)
	bare.Trials[0].FrameTimes, bare.Trials[0].Events, bare.Trials[0].Spans = nil, nil, nil
	for _, c := range []struct {
		name, want string
		run        *lab.Run
	}{
		{"running", "still going on", empty("running", "")},
		{"failed", "This run failed: no Chromium.", empty("failed", "no Chromium")},
		{"interrupted", "was interrupted", empty("interrupted", "")},
		{"nothing valid", "No trial is valid", noneValid},
		{"one trial", "In the only valid trial.", one},
		{"three trials", "too few for a 95 % interval", reporttest.Run(1, 3)},
		{"ten trials", "95 % interval", reporttest.Run(1, 10)},
		{"without series", "www.shop.example", bare},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := Write(dir, c.run); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(dir, FileName))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(b, []byte(c.want)) {
				t.Errorf("the page does not say %q", c.want)
			}
			if bytes.Contains(b, []byte("ZgotmplZ")) || bytes.Contains(b, []byte("NaN")) {
				t.Error("the page contains a value that the template refused")
			}
		})
	}
}

// The report of a large run stays small and fast: 50 trials of 100 requests and 600
// frames, each with a different picture.
func TestReportBig(t *testing.T) {
	run := reporttest.Run(5, 50)
	for _, tr := range run.Trials {
		tr.FrameTimes, tr.LoadHistogram, tr.VisualProgress = nil, nil, nil
		for i := range 600 {
			tr.FrameTimes = append(tr.FrameTimes, float64(i)*1000/60)
			tr.LoadHistogram = append(tr.LoadHistogram, float64(i)/6)
			tr.VisualProgress = append(tr.VisualProgress, float64((i*7)%100))
		}
	}
	dir := t.TempDir()
	for _, tr := range run.Trials {
		sub := filepath.Join(dir, "trials", fmt.Sprintf("%03d", tr.Number))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		var lines bytes.Buffer
		for _, s := range reporttest.Requests(tr, 100) {
			if err := json.NewEncoder(&lines).Encode(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(sub, "replay.jsonl"), lines.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		tr.Files = map[string]string{"replay": "replay.jsonl"}
	}
	if err := Write(dir, run); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 4<<20 {
		t.Errorf("the report has %d bytes, more than 4 MiB", info.Size())
	}
	b := browsers.New(t)
	start := time.Now()
	if err := b.Open("file://" + filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	drawn, err := reporttest.Eval[string](b, `document.querySelector("#chart").dataset.drawn`)
	if err != nil || drawn != "50" {
		t.Errorf("%q curves drawn (%v)", drawn, err)
	}
	t.Logf("%d bytes, loaded and drawn in %v", info.Size(), time.Since(start).Round(time.Millisecond))
}
