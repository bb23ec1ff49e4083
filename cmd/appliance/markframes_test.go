package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"image/color"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"eidetic/analysis/trace"
	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/experiment"
	"eidetic/internal/tell/timeline"
)

// The page of codes shows so many colours, one after the other: those that animation frames mark and annotate, those of
// long tasks, and those of elements that are the largest so far.
const (
	markedCodes  = 8
	taskCodes    = markedCodes + 4
	largestCodes = taskCodes + 4
)

// codeColour is the colour that shows a code.
func codeColour(i int) color.RGBA {
	return color.RGBA{uint8(20 + 40*(i%6)), uint8(20 + 40*(i/6)), 150, 255}
}

const pageOfCodes = `<!doctype html><title>codes</title><link rel="icon" href="data:,">
<body style="margin:0;background:#fff;font:10px sans-serif">page of codes
<script>
const colour = i => "rgb(" + (20 + 40 * (i % 6)) + "," + (20 + 40 * Math.floor(i / 6)) + ",150)";
const tell = i => { performance.mark("code " + i); if (window.lab) lab.annotate("code " + i, {group: "codes"}); };
const show = i => {
	tell(i);
	if (i < 12) {
		document.body.style.background = colour(i);
		for (const end = performance.now() + 150; i >= 8 && performance.now() < end;);
		return;
	}
	const e = document.createElement("div");
	e.id = "largest" + i;
	e.style.cssText = "position:fixed;inset:0;font-size:30px;line-height:36px;color:#fff;background:" + colour(i);
	e.textContent = "largest ".repeat(12 * 2 ** (i - 12));
	document.body.append(e);
};
const next = i => setTimeout(() => {
	if (i === 16) return window.lab && lab.done();
	if (i < 8) return requestAnimationFrame(() => { show(i); next(i + 1); });
	show(i);
	next(i + 1);
}, i === 16 ? 1000 : 150);
addEventListener("load", () => next(0));
</script>`

// TestMarksLandOnFrames: what a page marks, annotates, computes and paints in one animation frame is on the timeline
// where the captured frames show its colour, in Chromium and Firefox, and within its bounds where the browser's own
// trace has it.
func TestMarksLandOnFrames(t *testing.T) {
	needLab(t)
	testlab.NeedProgram(t, "firefox-esr")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && r.Referer() != "" { // as servers do that take a load from another origin for a forged one
			http.Error(w, "from "+r.Referer(), http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, pageOfCodes)
	}))
	defer site.Close()
	record := func(t *testing.T, lines string) (dir string, run *lab.Run) {
		out := t.TempDir()
		plan := filepath.Join(out, "plan.yaml")
		text := "page: " + site.URL + "/\nstill_s: 3\nlimit_s: 60\ntrials: 1\ntolerance_ms: 10000\ntreatment:\n  browser: firefox-esr\n" + lines
		if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := finishCmd(t, appliance(t, "run", "--plan", plan, "--out", out))
		dir, run = readRun(t, out)
		if len(run.Trials) < 2 {
			t.Fatalf("status %d, %d trials: %s%s", got.status, len(run.Trials), got.out, got.err)
		}
		return dir, run
	}
	t.Run("traced and coded", func(t *testing.T) {
		dir, run := record(t, "trace_all: true\nmeasure:\n  frame_codes: true\n  machine_hz: 100\n  guards: [processor_ms, script_ms]\n")
		for _, trial := range run.Trials {
			t.Run(fmt.Sprint(trial.Arm, " ", trial.Number), func(t *testing.T) {
				checkJoin(t, dir, trial, checkMarks(t, dir, trial, true))
				checkMachine(t, dir, trial)
				checkCounters(t, run, trial)
			})
		}
	})
	t.Run("plain", func(t *testing.T) {
		testlab.Long(t, "the same marks, without a trace to hold them against")
		dir, run := record(t, "measure:\n  page_marks: true\n")
		for _, trial := range run.Trials {
			t.Run(fmt.Sprint(trial.Arm, " ", trial.Number), func(t *testing.T) { checkMarks(t, dir, trial, false) })
		}
	})
}

// checkMachine: the timeline has what the browser's processes did, and each interval how much of it was within.
func checkMachine(t *testing.T, dir string, trial *lab.Trial) {
	t.Helper()
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	tl := timeline.NewReader(files).Of(trial)
	rows, load := 0, 0.0
	for _, track := range tl.Tracks {
		if track.Kind == trace.Machine && strings.HasPrefix(track.Name, "Processor: ") {
			rows++
		}
		if track.Kind == trace.Step && len(track.Events) > 0 {
			load = track.Events[0].RanMS
		}
	}
	ran := metric.ProcessorTime.In(trial)
	if all, scripts := metric.MainWork.In(trial), metric.ScriptWork.In(trial); scripts <= 0 || all < scripts {
		t.Errorf("trial %d: by its trace the page's thread worked %.1f ms, its scripts %.1f", trial.Number, all, scripts)
	}
	if trial.Sampled == nil || rows < 2 || load <= 0 || ran <= 0 || metric.MemoryPeak.In(trial) < 10 {
		t.Errorf("trial %d: sampled %+v, %d rows of processors, %.1f ms in the load, processor_ms %.1f, %.1f MB; want all of them\n%q", trial.Number, trial.Sampled, rows,
			load, ran, metric.MemoryPeak.In(trial), tl.Notes)
	}
}

// checkCounters: what was counted of the browser agrees with the time of its processes, and what this machine does not
// count, and what energy it does not tell, is named and no metric.
func checkCounters(t *testing.T, run *lab.Run, trial *lab.Trial) {
	t.Helper()
	said := run.Environment.Counters
	if strings.HasPrefix(said, "none") {
		testlab.Weaker(t, "nothing is counted: "+said)
		return
	}
	ran, clock, faults := metric.ProcessorTime.In(trial), metric.TaskClock.In(trial), metric.PageFaults.In(trial)
	if clock < 0.9*ran || faults < 100 || !strings.Contains(said, "task clock") {
		t.Errorf("trial %d: task clock %.1f ms, processor_ms %.1f, %.0f page faults; counted: %q", trial.Number, clock, ran, faults, said)
	}
	for id, there := range map[metric.ID]bool{
		metric.Instructions: !strings.Contains(said, "no cycles, instructions"), metric.Energy: !strings.HasPrefix(run.Environment.Energy, "none: "),
	} {
		if _, ok := trial.Value(id.String()); ok != there {
			t.Errorf("trial %d: %s measured: %v; counted: %q, energy: %q", trial.Number, id, ok, said, run.Environment.Energy)
		}
	}
}

// landing is how an event of the timeline lies to the frames: the first that shows its colour, and the one before it.
type landing struct {
	code           int
	early, late    float64 // of the event, in ms
	before, showed float64 // of the frames
}

func (l landing) String() string {
	return fmt.Sprintf("code %d at %.1f to %.1f ms, not yet shown at %.1f, shown at %.1f", l.code, l.early, l.late, l.before, l.showed)
}

// isNear says whether the event is within two frames before the picture's change and one after it, as far as both are
// known: a browser may paint in one frame what it composes in the next. One that had to wait for a processor shows
// later what it has done.
func (l landing) isNear() bool { return l.late >= l.before-2*refresh && l.early <= l.showed+refresh }

const refresh = 1000.0 / 60

func checkMarks(t *testing.T, dir string, trial *lab.Trial, coded bool) *trace.Timeline {
	r, err := reel.Open(filepath.Join(dir, "trials", store.TrialName(trial.Number), experiment.ReelFile))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	shown := firstShown(t, r, trial)
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	tl := timeline.NewReader(files).Of(trial)
	ms := func(at lab.Time) float64 { return float64(at-tl.Zero) / 1e6 }
	all, told, made := map[string][]landing{}, map[string]int{}, map[int]lab.Time{}
	for _, track := range tl.Tracks {
		for _, e := range track.Events {
			code, ok := codeOf(track, e, made)
			if ok {
				told[track.Name]++
			}
			if at := made[code]; ok && track.Name == "Largest paint" && (at == 0 || e.Start < at-4e6) { // Chromium tells paints in steps of 4 ms
				t.Errorf("%s is painted at %.1f ms, and its element was made at %.1f ms", e.Name, ms(e.Start), ms(at))
			}
			if !ok || shown[code] < 1 { // a picture that the next one overtook is on no frame
				continue
			}
			last := r.Info(shown[code] - 1)
			l := landing{code, ms(e.Earliest), ms(e.Latest), ms(last.Time.Add(-last.Uncertainty)), ms(r.Info(shown[code]).Time)}
			if track.Name == "Long tasks" { // what a task changes is shown when it is over
				lasts := float64(e.End-e.Start) / 1e6
				l.early, l.late = l.early+lasts, l.late+lasts
			}
			all[track.Name] = append(all[track.Name], l)
			if frame, ok := factOf(e, "frame"); ok && track.Name == "Marks" {
				if n, err := strconv.Atoi(frame); err != nil || n < shown[code]-1 || n > shown[code]+1 {
					t.Errorf("%s is placed on frame %s, and frame %d is the first that shows it", e.Name, frame, shown[code])
				}
			} else if coded && track.Name == "Marks" {
				t.Errorf("%s has no frame, and pages draw codes", e.Name)
			}
		}
	}
	t.Logf("%q", tl.Notes)
	want := map[string]int{
		"Marks": markedCodes, "codes": markedCodes, "Long tasks": taskCodes - markedCodes, "Largest paint": largestCodes - taskCodes,
	}
	if trial.Arm == lab.Treatment {
		// Firefox tells of no long tasks and of no second largest element.
		want["Long tasks"], want["Largest paint"] = 0, 1
	}
	for name, n := range want {
		near := 0
		for _, l := range all[name] {
			t.Logf("%s: %v", name, l)
			if l.isNear() {
				near++
			}
			if name != "Largest paint" && l.early > l.showed {
				t.Errorf("%s: %v: before it was made", name, l)
			}
		}
		// The clocks are apart by the same all the time: one that is near, and none that is late, say that they are
		// joined well. Where there is but one, the browser may have waited for a processor then: it is between its
		// making and its picture all the same.
		if near == 0 && n > 1 || told[name] < min(n, 1) {
			t.Errorf("%s: %d of %d are near the picture that shows them, and %d are on the timeline", name, near, n, told[name])
		}
		if n == 1 && len(all[name]) == 1 && all[name][0].early > all[name][0].showed+refresh {
			t.Errorf("%s: %v: after it was seen", name, all[name][0])
		}
	}
	return tl
}

// checkJoin holds the marks of a traced trial against the browser's own trace, whose clock is the box's.
func checkJoin(t *testing.T, dir string, trial *lab.Trial, tl *trace.Timeline) {
	f, err := os.Open(filepath.Join(dir, "trials", store.TrialName(trial.Number), experiment.TraceFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var own ownTrace
	if err := json.NewDecoder(unpacked).Decode(&own); err != nil {
		t.Fatal(err)
	}
	stamps := own.marks()
	joined := 0
	for _, track := range tl.Tracks {
		for _, e := range track.Events {
			if at, ok := stamps[e.Name]; ok && track.Name == "Marks" {
				joined++
				t.Logf("join %s: %.2f ms after the earliest, %.2f ms before the latest", e.Name, float64(at-e.Earliest)/1e6, float64(e.Latest-at)/1e6)
				if at < e.Earliest || at > e.Latest {
					t.Errorf("%s: %v to %v, and the browser's trace has it at %v", e.Name, e.Earliest, e.Latest, at)
				}
			}
		}
	}
	if joined < markedCodes {
		t.Errorf("%d marks are on the timeline and in the browser's trace; want %d: %v", joined, markedCodes, stamps)
	}
}

// ownTrace is what is read here of a browser's own trace: Chromium's Trace Event Format, or a profile of Firefox's.
type ownTrace struct {
	TraceEvents []struct {
		Name string
		TS   float64 // µs
	}
	Meta struct {
		Began float64 `json:"startTimeAsClockMonotonicNanosecondsSinceBoot"`
	}
	Threads []struct {
		Markers struct {
			Schema map[string]int
			Data   [][]json.RawMessage
		}
	}
	Processes []ownTrace
}

// marks are the instants at which the browser says that pages marked, by the marks' names.
func (o *ownTrace) marks() map[string]lab.Time {
	found := map[string]lab.Time{}
	for _, e := range o.TraceEvents {
		if strings.HasPrefix(e.Name, "code ") {
			found[e.Name] = lab.Time(e.TS * 1e3)
		}
	}
	for _, thread := range o.Threads {
		for _, row := range thread.Markers.Data {
			var ms float64
			var mark struct{ Name string }
			if len(row) <= max(thread.Markers.Schema["data"], thread.Markers.Schema["startTime"]) {
				continue // trailing columns are left out
			}
			if json.Unmarshal(row[thread.Markers.Schema["data"]], &mark) == nil && strings.HasPrefix(mark.Name, "code ") &&
				json.Unmarshal(row[thread.Markers.Schema["startTime"]], &ms) == nil {
				found[mark.Name] = lab.Time(o.Meta.Began + ms*1e6)
			}
		}
	}
	for i := range o.Processes {
		maps.Copy(found, o.Processes[i].marks())
	}
	return found
}

// codeOf is the code of a mark, an annotation or an element by its name, and of a long task by the mark that was made
// in it.
func codeOf(track trace.Track, e trace.Event, made map[int]lab.Time) (code int, ok bool) {
	from, to, text := 0, markedCodes, ""
	switch track.Name {
	case "Marks", "codes":
		text, ok = strings.CutPrefix(e.Name, "code ")
	case "Largest paint":
		from, to = taskCodes, largestCodes
		text, ok = strings.CutPrefix(e.Name, "div#largest")
	case "Long tasks":
		for i := markedCodes; i < taskCodes; i++ {
			if at := made[i]; e.Start <= at+2e6 && at < e.End {
				return i, true
			}
		}
	}
	code, err := strconv.Atoi(text)
	if track.Name == "Marks" && ok && err == nil {
		made[code] = e.Start
	}
	return code, ok && err == nil && code >= from && code < to
}

func factOf(e trace.Event, name string) (value string, ok bool) {
	i := slices.IndexFunc(e.Facts, func(f trace.Fact) bool { return f.Name == name })
	if i < 0 {
		return "", false
	}
	return e.Facts[i].Value, true
}

// firstShown is the first frame that shows each colour, −1 where none does.
func firstShown(t *testing.T, r *reel.Reader, trial *lab.Trial) []int {
	t.Helper()
	access, err := visual.NewAccess(r.Format())
	if err != nil {
		t.Fatal(err)
	}
	first := slices.Repeat([]int{-1}, largestCodes)
	var pixel [1]uint32
	for i := trial.StartFrame; i < r.Len(); i++ {
		pix, err := access.Read(r, i)
		if err != nil {
			t.Fatal(err)
		}
		access.Row(pixel[:], pix, trial.ContentY+trial.ContentH/2, trial.ContentX+trial.ContentW-2)
		for c := range first {
			if first[c] < 0 && visual.IsNear(access.RGB(pixel[0]), codeColour(c)) {
				first[c] = i
			}
		}
	}
	return first
}
