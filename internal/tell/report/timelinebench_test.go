package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/analysis/trace"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
	kept "eidetic/internal/tell/timeline"
)

// heavy writes a run of one pair, whose control has so many annotations and, in about 5 MB, stretches of its browser's
// trace.
func heavy(b *testing.B) (dir string) {
	b.Helper()
	run := reporttest.Compared(3, 1, 120)
	dir = b.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		b.Fatal(err)
	}
	trial := run.Trials[0]
	var lines []byte
	for i := range lab.MostAnnotations {
		at := trial.StartTime + lab.Time(i)*2e5
		line, err := json.Marshal(lab.Annotation{Op: lab.AnnotateSet, Text: fmt.Sprintf("note %d of %s", i, strings.Repeat("many ", i%20)),
			Group: fmt.Sprint("group ", i%5), Colour: fmt.Sprintf("#%06x", i*1021%0xffffff), Source: "page", Earliest: at, Latest: at + 3e6})
		if err != nil {
			b.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	var all trace.Kept
	for i := range 4000 {
		at, url := trial.StartTime+lab.Time(i)*5e5, fmt.Sprintf("https://www.shop.test/js/%d.js?%s", i, strings.Repeat("long", 270))
		all.Shown = append(all.Shown, trace.Shown{Process: "Renderer", Thread: fmt.Sprint("thread ", i%8), Number: i % 8, Main: i%8 == 0,
			Name: fmt.Sprint("FunctionCall ", i), Group: trace.ScriptGroup, URL: url, Start: at, End: at + 3e6})
	}
	work, err := json.Marshal(all)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("annotations %d bytes, %s %d bytes", len(lines), kept.WorkFile, len(work))
	folder := filepath.Join(dir, fmt.Sprintf("trials/%03d", trial.Number))
	for name, content := range map[string][]byte{"annotations.jsonl": lines, kept.WorkFile: work} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	trial.Files["annotations"], trial.Files[kept.WorkRole] = "annotations.jsonl", kept.WorkFile
	trial.Trace = &lab.BrowserTrace{Browser: "Chromium", BoundMS: 0.001, Clock: "as it is"}
	if err := Write(dir, run); err != nil {
		b.Fatal(err)
	}
	return dir
}

// crowded writes a run of one trial with 100,000 annotations in 30 s: on five rows, of all lengths, with many names.
func crowded(b *testing.B) (dir string) {
	b.Helper()
	run := reporttest.Run(3, 1)
	dir = b.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		b.Fatal(err)
	}
	trial := run.Trials[0]
	trial.Events[len(trial.Events)-1].Latest = trial.StartTime + 31e9
	if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte("{}"), 0o644); err != nil { // which makes it a run's folder
		b.Fatal(err)
	}
	list := make([]lab.Annotation, 0, 1000)
	for i := range 100_000 {
		at := trial.StartTime + lab.Time(i)*3e5
		list = append(list, lab.Annotation{Op: lab.AnnotateSpan, Text: fmt.Sprintf("step %d of the work", i%997), Group: fmt.Sprint("writer ", i%5),
			Colour: fmt.Sprintf("#%06x", i*1021%0xffffff), Source: "fifo", Wall: trial.Wall, Earliest: at, Latest: at, Lasts: int64(1e5 + i*7919%4_000_000)})
		if len(list) < cap(list) {
			continue
		}
		if err := store.Annotate(dir, list...); err != nil {
			b.Fatal(err)
		}
		list = list[:0]
	}
	if err := Write(dir, run); err != nil {
		b.Fatal(err)
	}
	return dir
}

// zoomer opens the page in a frame and zooms in, moves and zooms out on every animation frame, and tells the mean and
// the longest time between two frames, in ms, and how many events the page has.
const zoomer = `<!doctype html><title>zoomer</title><link rel="icon" href="data:,"><body style="margin:0"><script>
(async () => {
	const f = document.createElement("iframe");
	f.style.cssText = "width:1200px;height:800px;border:0";
	f.src = "/timeline.html";
	document.body.append(f);
	await new Promise(done => f.addEventListener("load", done));
	const w = f.contentWindow, frame = () => new Promise(done => w.requestAnimationFrame(done));
	const key = k => f.contentDocument.querySelector("#timelines").dispatchEvent(new w.KeyboardEvent("keydown", {key: k}));
	key("0");
	const events = JSON.parse(f.contentDocument.querySelector("[id^=trial-]").textContent).tracks.reduce((n, t) => n + t.ev.length, 0);
	for (;;) {
		for (let i = 0; i < 5; i++) await frame();
		const begin = performance.now();
		let last = begin, longest = 0, n = 0;
		for (const k of [..."+".repeat(12), ...Array(12).fill("ArrowRight"), ..."-".repeat(12)]) {
			key(k);
			await frame();
			const now = performance.now();
			longest = Math.max(longest, now - last);
			last = now;
			n++;
		}
		if (!(await fetch("/took", {method: "POST", body: JSON.stringify([(last - begin) / n, longest, events])})).ok) return;
	}
})();
</script>`

// BenchmarkTimelineZoom zooms and moves in the timeline of a trial of 100,000 events in 30 s, in real browsers.
func BenchmarkTimelineZoom(b *testing.B) {
	dir := crowded(b)
	for _, browser := range []string{"chromium", "firefox-esr"} {
		b.Run(browser, func(b *testing.B) {
			wait := opened(b, dir, browser, zoomer)
			wait() // the first
			var sum, longest float64
			events := 0.0
			for b.Loop() {
				ms := wait()
				sum, longest, events = sum+ms[0], max(longest, ms[1]), ms[2]
			}
			b.ReportMetric(1e3*float64(b.N)/sum, "frames/s")
			b.ReportMetric(longest, "longest-ms")
			b.ReportMetric(events, "events")
		})
	}
}

// opener opens the page in a frame, again and again, and tells how long each took until the second animation frame
// after the load.
const opener = `<!doctype html><title>opener</title><link rel="icon" href="data:,"><body style="margin:0"><script>
(async () => {
	for (;;) {
		const f = document.createElement("iframe");
		f.style.cssText = "width:1200px;height:800px;border:0";
		const begin = performance.now();
		f.src = "/timeline.html";
		document.body.append(f);
		await new Promise(done => f.addEventListener("load", done));
		const loaded = performance.now();
		const drawn = () => f.contentDocument.querySelector(".tl-row canvas[role=img][width]");
		while (!drawn()) await new Promise(done => f.contentWindow.requestAnimationFrame(done));
		for (let i = 0; i < 2; i++) await new Promise(done => f.contentWindow.requestAnimationFrame(done));
		const end = performance.now();
		f.remove();
		if (!(await fetch("/took", {method: "POST", body: JSON.stringify([loaded - begin, end - begin])})).ok) return;
	}
})();
</script>`

// BenchmarkTimelinePage opens the page of timelines of a trial of 10,000 annotations and 5 MB of trace in real
// browsers.
func BenchmarkTimelinePage(b *testing.B) {
	dir := heavy(b)
	if page, err := os.ReadFile(filepath.Join(dir, TimelineName)); err != nil || !bytes.Contains(page, []byte("FunctionCall 3999")) {
		b.Fatalf("the page lacks the browser's trace (%v)", err)
	}
	if st, err := os.Stat(filepath.Join(dir, TimelineName)); err == nil {
		b.Logf("%s has %d bytes", TimelineName, st.Size())
	}
	for _, browser := range []string{"chromium", "firefox-esr"} {
		b.Run(browser, func(b *testing.B) { openTimelines(b, dir, browser) })
	}
}

func openTimelines(b *testing.B, dir, browser string) {
	wait := opened(b, dir, browser, opener)
	first := wait()
	var sum [3]float64
	for b.Loop() {
		ms := wait()
		sum[0], sum[1] = sum[0]+ms[0], sum[1]+ms[1]
	}
	b.ReportMetric(first[1], "first-ms")
	b.ReportMetric(sum[0]/float64(b.N), "load-ms")
	b.ReportMetric(sum[1]/float64(b.N), "drawn-ms")
}

// opened starts a browser on a page of ours, and returns what waits for the next numbers that it tells.
func opened(b *testing.B, dir, browser, page string) (wait func() [3]float64) {
	b.Helper()
	program := testlab.NeedProgram(b, browser)
	took := make(chan [3]float64)
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, page) // a browser that goes away hears nothing
	})
	mux.Handle("/timeline.html", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("/took", func(w http.ResponseWriter, r *http.Request) {
		var ms [3]float64
		if err := json.NewDecoder(io.LimitReader(r.Body, 1000)).Decode(&ms); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case took <- ms:
		case <-r.Context().Done():
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	b.Cleanup(func() { server.Close(); <-served })
	args := []string{"--headless", "--no-sandbox", "--no-first-run", "--disable-gpu", "--user-data-dir=" + b.TempDir()}
	if browser != "chromium" {
		args = []string{"--headless", "--no-remote", "--profile", b.TempDir()}
	}
	cmd := exec.Command(program, append(args, "http://"+l.Addr().String()+"/")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := testlab.Start(b, cmd); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its group: a browser has many processes
		_ = cmd.Wait()                                      // it was killed
	})
	return func() [3]float64 {
		select {
		case ms := <-took:
			return ms
		case <-time.After(2 * time.Minute):
			b.Fatal("the browser opened no page in two minutes")
			return [3]float64{}
		}
	}
}
