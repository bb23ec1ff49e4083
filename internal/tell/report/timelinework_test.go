package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
	kept "eidetic/internal/tell/timeline"
)

// noted writes the annotations of a trial, and of its browser's trace what is told of it.
func noted(t testing.TB, dir string, trial *lab.Trial, notes []lab.Annotation, shown []trace.Shown) {
	t.Helper()
	folder := filepath.Join(dir, fmt.Sprintf("trials/%03d", trial.Number))
	var lines []byte
	for _, a := range notes {
		line, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	work, err := json.Marshal(trace.Kept{Shown: shown})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"annotations.jsonl": lines, kept.WorkFile: work} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	trial.Files["annotations"], trial.Files[kept.WorkRole] = "annotations.jsonl", kept.WorkFile
	trial.Trace = &lab.BrowserTrace{Browser: "Chromium", BoundMS: 0.001, Clock: "as it is"}
}

// TestTimelineWork: search, rows by name, a range by keys and by the pointer with what took its time, and an event with
// what it lies in, its call stack and the pictures of both arms.
func TestTimelineWork(t *testing.T) {
	run := reporttest.Compared(3, 1, 120)
	dir := t.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, trial := range run.Trials {
		slower := lab.Time(0)
		if trial.Arm == lab.Treatment {
			slower = 100e6
		}
		at := func(op, text string, ms lab.Time) lab.Annotation {
			now := trial.StartTime + ms*1e6
			return lab.Annotation{Op: op, Text: text, Group: "app", Source: "page", Earliest: now, Latest: now}
		}
		end := at(lab.AnnotateEnd, "read <b>", 300)
		end.Earliest, end.Latest = end.Earliest+slower, end.Latest+slower
		noted(t, dir, trial, []lab.Annotation{at(lab.AnnotateBegin, "start", 100), at(lab.AnnotateBegin, "read <b>", 150), end, at(lab.AnnotateEnd, "start", 500)},
			[]trace.Shown{{Process: "Renderer", Thread: "CrRendererMain", Main: true, Name: "FunctionCall", Group: trace.ScriptGroup,
				Calls: []string{"inner <b> https://a.test/app.js:7", "outer https://a.test/app.js:3"}, Start: trial.StartTime + 160e6, End: trial.StartTime + 200e6}})
	}
	if err := Write(dir, run); err != nil {
		t.Fatal(err)
	}
	b := browsers.New(t)
	if err := b.Open("file://" + filepath.Join(dir, TimelineName)); err != nil {
		t.Fatal(err)
	}
	found, err := reporttest.Eval[struct {
		Search, Picked, Around, Pictures    string
		Inside, Filtered, Dragged, Keyed    []string
		Shots                               int
		Hidden                              int
		Stack, Clicked, Cleared, None, Back string
	}](b, `(async () => {
		const $ = s => document.querySelector(s), texts = (s, from = document) => [...from.querySelectorAll(s)].map(e => e.textContent);
		const next = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
		const until = async f => { while (!f()) await next(); };
		const key = async (k, on = $("#timelines")) => { on.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true})); await next(); };
		const type = async (s, v) => { $(s).value = v; $(s).dispatchEvent(new Event("input")); await next(); };
		const rows = () => [...document.querySelectorAll("#taken tbody tr")].map(e => [...e.children].map(c => c.textContent).join("|"));
		const out = {};
		await type("#tl-search", "read <B>");
		await until(() => $("#tl-found").textContent === "2 found");
		out.search = $("#tl-found").textContent;
		await key("Enter", $("#tl-search"));
		out.picked = $("#picked h2").textContent + ", " + $("#picked .tl-at").textContent;
		out.around = texts("#picked ol li").join("; ");
		out.pictures = texts(".tl-films > figure > figcaption").join("; ");
		out.shots = document.querySelectorAll(".tl-shots img").length;
		$("#picked .tl-buttons button:last-child").click();
		out.inside = rows();
		await type("#tl-filter", "app, browser");
		out.hidden = document.querySelectorAll(".tl-row[hidden]").length;
		out.filtered = rows();
		await key("Escape");
		out.cleared = String($("#dock").hidden && $("#taken").hidden && $("#picked").hidden);
		await type("#tl-search", "inner <b>");
		await type("#tl-search", "FunctionCall");
		await until(() => $("#tl-found").textContent === "2 found");
		// A click on the stretch of the browser.
		const c = timelines.shown()[0], r = c.rows.find(o => o.track.kind === "browser");
		const pointer = (kind, on, ms, o) => { const box = on.getBoundingClientRect(); on.dispatchEvent(new PointerEvent(kind, {bubbles: true, pointerId: 1, button: 0, clientX: box.left + timelines.scale(box.width).x(ms), clientY: box.top + 8, ...o})); };
		await key("0");
		pointer("pointerdown", r.canvas, 180); pointer("pointerup", r.canvas, 180);
		out.clicked = $("#picked h2").textContent;
		out.stack = texts("#picked ol li").join("; ");
		await type("#tl-filter", "");
		pointer("pointerdown", c.axis, 200, {shiftKey: true}); pointer("pointermove", c.axis, 250, {shiftKey: true}); pointer("pointermove", c.axis, 300, {shiftKey: true}); pointer("pointerup", c.axis, 300, {shiftKey: true});
		await next();
		out.dragged = rows().filter(row => row.startsWith("app|"));
		await key("Escape"); await key("."); await key("["); for (let i = 0; i < 30; i++) await key("."); await key("]");
		out.keyed = rows().filter(row => row.startsWith("Steps|")).slice(0, 3);
		await type("#tl-filter", "nothing like it");
		out.none = String(document.querySelectorAll(".tl-row:not([hidden])").length);
		await key("ArrowDown"); await key(">");
		await type("#tl-filter", "");
		await key("ArrowDown"); await key(">"); await key(">");
		out.back = $("#picked h2").textContent;
		return out;
	})()`)
	if err != nil {
		t.Fatal(err)
	}
	if found.Search != "2 found" || found.Picked != "read <b>, app, control, trial 2" || found.Around != "start, 400.0 ms" {
		t.Errorf("search: %q, %q in %q", found.Search, found.Picked, found.Around)
	}
	if !strings.HasPrefix(found.Pictures, "Control, trial 2: 150.0 to 300.0 ms") || !strings.Contains(found.Pictures, "Treatment, trial 1: in its own, 150.0 to 400.0 ms") || found.Shots < 2 {
		t.Errorf("pictures: %q, %d of them", found.Pictures, found.Shots)
	}
	has := func(rows []string, want string) bool {
		for _, row := range rows {
			if row == want {
				return true
			}
		}
		t.Errorf("rows %q, want %q", rows, want)
		return false
	}
	has(found.Inside, "app|read <b>|1|150.0|150.0|1|150.0|150.0|0.0")
	has(found.Inside, "app|start|1|150.0|0.0|1|150.0|0.0|0.0")
	if has(found.Filtered, "app|read <b>|1|150.0|150.0|1|150.0|150.0|0.0"); len(found.Filtered) != 3 || found.Hidden < 4 {
		t.Errorf("with two rows: %q, %d hidden", found.Filtered, found.Hidden)
	}
	has(found.Dragged, "app|read <b>|1|100.0|100.0|1|100.0|100.0|0.0")
	if found.Cleared != "true" || found.Clicked != "FunctionCall" || found.Stack != "inner <b> https://a.test/app.js:7; outer https://a.test/app.js:3" {
		t.Errorf("a click: %q with %q; cleared %s", found.Clicked, found.Stack, found.Cleared)
	}
	if len(found.Keyed) == 0 || found.Back == "" || found.None != "4" { // the film and the axis of each arm
		t.Errorf("keys: %q, %q, %s rows", found.Keyed, found.Back, found.None)
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

// TestMillionEvents: a trial of a million notes and samples opens, has every row with its longest events, and says what
// is left out.
func TestMillionEvents(t *testing.T) {
	run := reporttest.Run(1, 1)
	trial := run.Trials[0]
	tl := &trace.Timeline{Trial: 1, Zero: trial.StartTime, Start: trial.StartTime, End: trial.StartTime + 30e9}
	for n, each := range []int{100_000, 400_000, 500_000, 7} {
		track := trace.Track{Kind: trace.Annotation, Name: fmt.Sprint("row ", n)}
		for i := range each {
			start := trial.StartTime + lab.Time(i)*30e9/lab.Time(each)
			track.Events = append(track.Events, trace.Event{Name: "n" + fmt.Sprint(i%100), Start: start, End: start + lab.Time(i%7)*1e3, Earliest: start, Latest: start})
		}
		tl.Tracks = append(tl.Tracks, track)
	}
	tl.Flows = []trace.Flow{{FromTrack: 3, From: 2, ToTrack: 3, To: 4}, {FromTrack: 2, From: 0, ToTrack: 3, To: 1}, {FromTrack: 2, From: 6, ToTrack: 3, To: 1}}
	files, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	d := timelineDataOf(files, trial, tl)
	sum := 0
	for _, track := range d.Tracks {
		sum += len(track.Events)
	}
	if sum > mostShownEvents || sum < mostShownEvents-10 || len(d.Tracks[3].Events) != 7 || len(d.Notes) != 3 || !strings.Contains(d.Notes[2], "of 500000 events are here") ||
		!strings.Contains(d.Notes[2], "--most 500000 and appliance export --format trace have all 500000") {
		t.Errorf("%d events, %d of the small row, notes %q", sum, len(d.Tracks[3].Events), d.Notes)
	}
	if last := d.Tracks[1].Events[len(d.Tracks[1].Events)-1][1]; last < 29e3 {
		t.Errorf("the last event that is left starts at %.0f ms of 30,000", last)
	}
	// The first of row 2 has no length and is left out, its seventh is among the longest.
	if len(d.Flows) != 2 || d.Flows[0] != [4]int{3, 2, 3, 4} {
		t.Fatalf("flows %v, want those whose ends are left", d.Flows)
	}
	if to := d.Tracks[2].Events[d.Flows[1][1]]; d.Texts[int(to[0])] != "n6" {
		t.Errorf("a flow leads from %q, want n6", d.Texts[int(to[0])])
	}
	if text, err := json.Marshal(d); err != nil || len(text) > maxTimelines {
		t.Errorf("it has %d bytes (%v), which the page has no room for", len(text), err)
	}
}
