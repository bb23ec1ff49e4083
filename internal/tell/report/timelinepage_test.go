package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// annotated writes a run of pairs whose trials have annotations of a text.
func annotated(t *testing.T, text string, each int) string {
	t.Helper()
	run := reporttest.Compared(3, 1, 120)
	dir := t.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, trial := range run.Trials {
		var lines []byte
		for i := range each {
			at := trial.StartTime + lab.Time(i)*1e5
			a := lab.Annotation{Op: lab.AnnotateSet, Text: fmt.Sprint(i, " ", text), Group: text[:min(len(text), 60)] + fmt.Sprint(i%5), Colour: "#80ff00",
				Source: "page", Earliest: at, Latest: at + 3e6}
			line, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(append(lines, line...), '\n')
		}
		name := fmt.Sprintf("trials/%03d/annotations.jsonl", trial.Number)
		if err := os.WriteFile(filepath.Join(dir, name), lines, 0o644); err != nil {
			t.Fatal(err)
		}
		trial.Files["annotations"] = "annotations.jsonl"
	}
	if err := Write(dir, run); err != nil {
		t.Fatal(err)
	}
	return "file://" + filepath.Join(dir, TimelineName)
}

// TestTimelinePage: both arms are shown on one axis; keys zoom, move and step through pictures, and every track has a
// table.
func TestTimelinePage(t *testing.T) {
	b := browsers.New(t)
	if err := b.Open(annotated(t, "note", 20)); err != nil {
		t.Fatal(err)
	}
	found, err := reporttest.Eval[struct {
		Arms                  []string
		Rows, Tables, Filled  int
		Step, Other           string
		Axis, Zoomed, Back    string
		Folded, Images, Inked int
	}](b, `(async () => {
		const next = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
		const key = async k => { document.querySelector("#timelines").dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true})); await next(); };
		const axis = () => document.querySelector(".tl canvas").toDataURL();
		await next();
		const out = {arms: [...document.querySelectorAll(".tl h2")].map(e => e.textContent), rows: document.querySelectorAll(".tl-row canvas").length,
			tables: document.querySelectorAll("#tables details").length, images: document.querySelectorAll(".tl-film img:not([hidden])").length};
		const before = axis(), canvas = document.querySelectorAll(".tl-row canvas")[1], dots = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		out.inked = dots.filter((v, i) => i % 4 === 3 && v > 0).length;
		out.axis = String(before.length > 200);
		await key("+");
		out.zoomed = String(axis() !== before);
		await key("0"); await key("."); out.step = document.querySelector("#at").textContent;
		await key("."); out.other = document.querySelector("#at").textContent;
		await key("f"); out.folded = document.querySelectorAll(".tl-row button[aria-expanded=false]").length;
		for (const d of document.querySelectorAll("#tables details")) d.open = true;
		await next();
		out.filled = document.querySelectorAll("#tables tbody tr").length;
		return out;
	})()`)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Arms) != 2 || !strings.Contains(found.Arms[0], "Control") || !strings.Contains(found.Arms[1], "Treatment") {
		t.Errorf("arms %q, want the control above the treatment", found.Arms)
	}
	if found.Tables < 10 || found.Rows != found.Tables+2 || found.Filled < 100 || found.Images < 4 || found.Inked < 100 {
		t.Errorf("rows, tables, pictures: %+v", found)
	}
	if found.Zoomed != "true" || found.Axis != "true" || !strings.Contains(found.Step, "frame ") || found.Step == found.Other || found.Folded != found.Tables {
		t.Errorf("keys: %+v", found)
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
	if got := b.Foreign("file://"); len(got) > 0 {
		t.Errorf("the page asked for %q", got)
	}
}

// TestTimelinePageHostile: what hostile text there is stays text.
func TestTimelinePageHostile(t *testing.T) {
	b := browsers.New(t)
	if err := b.Open(annotated(t, `</script><img src=x onerror="document.title='owned'">{{.}}<!--<script>`+"\u2028'`${1}", 30)); err != nil {
		t.Fatal(err)
	}
	found, err := reporttest.Eval[string](b, `(async () => {
		for (const d of document.querySelectorAll("#tables details")) d.open = true;
		await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
		return document.title + " " + document.querySelectorAll("img[src=x]").length + " " + document.querySelectorAll("#tables tbody tr").length;
	})()`)
	var title string
	var injected, rows int
	if _, scanErr := fmt.Sscanf(strings.ReplaceAll(found, "Timelines of links", "T"), "%s %d %d", &title, &injected, &rows); err != nil || scanErr != nil ||
		title != "T" || injected != 0 || rows < 80 {
		t.Errorf("the page says %q, %v, %v", found, err, scanErr)
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

// TestManyAnnotations: a page with 10,000 annotations a trial is drawn, and the rows of a table come a few at a time.
func TestManyAnnotations(t *testing.T) {
	b := browsers.New(t)
	if err := b.Open(annotated(t, strings.Repeat("long ", 60), lab.MostAnnotations)); err != nil {
		t.Fatal(err)
	}
	found, err := reporttest.Eval[struct {
		Drawn, Opened float64
		Rows          int
		Cut           int
	}](b, `(async () => {
		const next = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
		await next();
		const begin = performance.now();
		for (let i = 0; i < 5; i++) { document.querySelector("#timelines").dispatchEvent(new KeyboardEvent("keydown", {key: "+"})); await next(); }
		const drawn = (performance.now() - begin) / 5;
		for (const d of document.querySelectorAll("#tables details")) d.open = true;
		await next();
		const long = [...document.querySelectorAll("#tables tbody th")].filter(e => e.textContent.endsWith("…"));
		return {drawn: drawn, opened: performance.getEntriesByType("navigation")[0].loadEventEnd, rows: document.querySelectorAll("#tables tbody tr").length, cut: long.length};
	})()`)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("opened in %.0f ms, each zoom drawn in %.0f ms", found.Opened, found.Drawn)
	if found.Rows > 12000 || found.Cut < 1000 {
		t.Errorf("the tables have %d rows, %d of them cut", found.Rows, found.Cut)
	}
}

// TestRunGraph: what both arms spend their time in is drawn and tabulated, and hostile names stay text.
func TestRunGraph(t *testing.T) {
	b := browsers.New(t)
	run := reporttest.Compared(5, 12, 120)
	for _, trial := range run.Trials {
		end := trial.StartTime + 900e6
		if trial.Arm == lab.Treatment {
			end += 120e6
		}
		trial.Spans = []*lab.Span{{Name: "buy", Start: trial.StartTime, End: end, Children: []*lab.Span{
			{Name: "</text><script>document.title='owned'</script>", Start: trial.StartTime, End: trial.StartTime + 400e6},
			{Name: "pay", Start: trial.StartTime + 450e6, End: end},
		}}}
	}
	dir := t.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, run); err != nil {
		t.Fatal(err)
	}
	if err := b.Open("file://" + filepath.Join(dir, TimelineName)); err != nil {
		t.Fatal(err)
	}
	found, err := reporttest.Eval[struct {
		Title  string
		Bars   []int
		Slower []string
		Rows   []string
		Wide   bool
	}](b, `({
		title: document.title,
		bars: [...document.querySelectorAll(".run-graph figure")].map(f => f.querySelectorAll("svg svg").length),
		slower: [...document.querySelectorAll(".run-graph svg svg:has(rect.slower) text")].map(e => e.textContent),
		rows: [...document.querySelectorAll(".run-graph tbody tr")].map(e => [...e.children].map(c => c.textContent).join("|")),
		wide: document.documentElement.scrollWidth > innerWidth,
	})`)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(found.Title, "owned") || !slices.Equal(found.Bars, []int{3, 3}) || !slices.Equal(found.Slower, []string{"buy", "pay"}) ||
		len(found.Rows) != 3 || found.Wide {
		t.Errorf("%+v", found)
	}
	if want := "pay|450.0|450.0|1|570.0|570.0|1|+120.0 (+120.0 … +120.0)"; !slices.Contains(found.Rows, want) {
		t.Errorf("rows %q, want %q", found.Rows, want)
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}
