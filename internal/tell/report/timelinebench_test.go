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
		const drawn = () => f.contentDocument.querySelector(".tl-row canvas[role=img][style]");
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
	program := testlab.NeedProgram(b, browser)
	took := make(chan [2]float64)
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, opener) // a browser that goes away hears nothing
	})
	mux.Handle("/timeline.html", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("/took", func(w http.ResponseWriter, r *http.Request) {
		var ms [2]float64
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
	defer func() { server.Close(); <-served }()
	args := []string{"--headless", "--no-sandbox", "--no-first-run", "--disable-gpu", "--user-data-dir=" + b.TempDir()}
	if browser != "chromium" {
		args = []string{"--headless", "--no-remote", "--profile", b.TempDir()}
	}
	cmd := exec.Command(program, append(args, "http://"+l.Addr().String()+"/")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its group: a browser has many processes
		_ = cmd.Wait()                                      // it was killed
	}()
	wait := func() [2]float64 {
		select {
		case ms := <-took:
			return ms
		case <-time.After(2 * time.Minute):
			b.Fatal("the browser opened no page in two minutes")
			return [2]float64{}
		}
	}
	first := wait()
	var sum [2]float64
	for b.Loop() {
		ms := wait()
		sum[0], sum[1] = sum[0]+ms[0], sum[1]+ms[1]
	}
	b.ReportMetric(first[1], "first-ms")
	b.ReportMetric(sum[0]/float64(b.N), "load-ms")
	b.ReportMetric(sum[1]/float64(b.N), "drawn-ms")
}
