package export

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/analysis/trace"
	"eidetic/analysis/trace/tracetest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
)

// stored is a run in a folder, as a source of documents.
func stored(t *testing.T, run *lab.Run) *Source {
	t.Helper()
	dir := t.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	return &Source{Run: run, Files: files}
}

// TestTimelines: every run can be written in the formats of timelines, hostile text too, and be read again.
func TestTimelines(t *testing.T) {
	for name, run := range map[string]*lab.Run{
		"two arms": reporttest.Compared(3, 2, 120), "failed": runs()["failed"], "hostile": poison(reporttest.Run(6, 3)),
	} {
		s := stored(t, run)
		n, err := tracetest.CheckChrome(strings.NewReader(written(t, "trace", s)))
		if err != nil || len(run.Trials) > 0 && n < 50*len(run.Trials) {
			t.Errorf("%s: the trace has %d events, %v", name, n, err)
		}
		var har struct {
			Log struct {
				Pages []struct {
					ID      string
					Timings struct{ OnContentLoad, OnLoad any } `json:"pageTimings"`
				}
				Entries []struct {
					Pageref string
					Started time.Time `json:"startedDateTime"`
					Time    float64
					Request struct{ URL string }
					Timings struct{ Blocked, Send, Wait, Receive float64 }
					Own     struct{ Matched string } `json:"_eidetic"`
				}
			}
		}
		if err := json.Unmarshal([]byte(written(t, "har", s)), &har); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(har.Log.Pages) != len(run.Trials) || len(run.Trials) > 0 && len(har.Log.Entries) < 50*len(run.Trials) {
			t.Errorf("%s: the HAR has %d pages and %d entries for %d trials", name, len(har.Log.Pages), len(har.Log.Entries), len(run.Trials))
		}
		for _, p := range har.Log.Pages { // readers of HAR refuse null
			content, isNumber := p.Timings.OnContentLoad.(float64)
			load, isToo := p.Timings.OnLoad.(float64)
			if !isNumber || !isToo || content < -1 || load < -1 {
				t.Errorf("%s: the times of page %s are %+v; want numbers from −1", name, p.ID, p.Timings)
			}
		}
		for _, e := range har.Log.Entries {
			sum := e.Timings.Send + e.Timings.Wait + e.Timings.Receive
			if e.Time-sum > 0.001 || sum-e.Time > 0.001 || e.Own.Matched == "" || e.Request.URL == "" || e.Started.IsZero() {
				t.Fatalf("%s: an entry's times do not add up, or it lacks a field: %+v", name, e)
			}
		}
		rows, err := csv.NewReader(strings.NewReader(written(t, "spans", s))).ReadAll()
		if err != nil || len(rows) == 0 || rows[0][8] != "total_ms" {
			t.Errorf("%s: the table of spans is %v, %v", name, rows, err)
		}
	}
}

// TestPaths: critical paths step by step, and their rows among the causes; text of pages runs nothing in a spreadsheet.
func TestPaths(t *testing.T) {
	run := reporttest.Run(1, 1)
	run.Causes = &lab.Causes{
		Rows: []lab.Cause{{Kind: lab.CauseWait, What: "GET /", Unit: "ms"}},
		Paths: &lab.CriticalPaths{
			Share: 10, Rows: []lab.Cause{{Kind: lab.CausePath, Thread: lab.PathWork, What: "=1+1", Unit: "ms", Shift: 5}},
			Control: lab.Path{Trial: 1, Frame: 7, Steps: []lab.PathStep{{Kind: lab.PathStart, ToMS: 5, Inferred: true}, {Kind: lab.PathWork, What: "=1+1", FromMS: 5, ToMS: 9}}},
		},
	}
	read := func(format string) [][]string {
		rows, err := csv.NewReader(strings.NewReader(written(t, format, &Source{Run: run}))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	rows := read("paths")
	if len(rows) != 3 || strings.Join(rows[2][1:11], ",") != "control,1,7,10,2,5,9,4,work," || rows[2][11] != "'=1+1" || rows[1][12] != "true" {
		t.Errorf("paths are %q", rows)
	}
	if rows := read("causes"); len(rows) != 3 || rows[2][1] != "path" || rows[2][3] != "work" || rows[2][10] != "5" {
		t.Errorf("causes are %q", rows)
	}
	run.Causes.Paths = nil
	if rows := read("paths"); len(rows) != 1 {
		t.Errorf("without paths: %q", rows)
	}
}

// TestMemory: a line for each reading, in ms from the trial's start; a trial without readings has none.
func TestMemory(t *testing.T) {
	s := stored(t, reporttest.Run(1, 2))
	trial := s.Run.Trials[1]
	from, _ := trace.Window(trial)
	reading := fmt.Sprintf(`{"t_ns":%d,"pid":7,"name":"=renderer","rss_bytes":9000,"pss_bytes":5000}`+"\n", from+25e5)
	trial.Files["memory"] = "memory.jsonl"
	if err := s.Files.WriteFile(fmt.Sprintf("trials/%03d/memory.jsonl", trial.Number), []byte(reading), 0o644); err != nil {
		t.Fatal(err)
	}
	want := "control,2,2.5,7,'=renderer,9000,5000"
	if text := written(t, "memory", s); !strings.Contains(text, want) || strings.Count(text, "\n") != 2 {
		t.Errorf("the table is %q; want a line with %q", text, want)
	}
	s.Trial = 1
	if text := written(t, "memory", s); strings.Count(text, "\n") != 1 {
		t.Errorf("the table of trial 1 is %q; want its head alone", text)
	}
}

func TestOneTrial(t *testing.T) {
	s := stored(t, reporttest.Run(1, 3))
	s.Trial = 2
	if text := written(t, "trace", s); strings.Contains(text, `"pid":1,`) || !strings.Contains(text, `"pid":2,`) {
		t.Error("the trace of trial 2 has another process than 2")
	}
	s.Trial = 9
	if err := Trace(&bytes.Buffer{}, s); err == nil || !strings.Contains(err.Error(), "no trial 9: it has 3") {
		t.Errorf("Trace() of trial 9 = %v", err)
	}
}

// TestDeveloperToolsRead: the browser's developer tools read a trial's trace, by their own engine.
func TestDeveloperToolsRead(t *testing.T) {
	node := testlab.NeedProgram(t, "node")
	engine, err := filepath.Abs("../../../out/trace-engine/node_modules/@paulirish/trace_engine")
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(engine)
	testlab.Need(t, err == nil, "npm's @paulirish/trace_engine: run make trace-engine")
	s := stored(t, reporttest.Run(1, 2))
	s.Run.Trials[0].PageMarks = []lab.PageMark{
		{Kind: "paint", Name: "first-contentful-paint", PageMS: 200, Earliest: s.Run.Trials[0].StartTime + 200e6, Latest: s.Run.Trials[0].StartTime + 202e6, Frame: -1},
		{Kind: "longtask", Name: "self", PageMS: 100, DurationMS: 60, Earliest: s.Run.Trials[0].StartTime + 100e6, Latest: s.Run.Trials[0].StartTime + 102e6, Frame: -1},
	}
	trial := s.Run.Trials[0]
	reading := fmt.Sprintf(`{"t_ns":%d,"pid":7,"name":"renderer","rss_bytes":9000000}`+"\n", trial.StartTime+1e6)
	trial.Files["memory"] = "memory.jsonl"
	if err := s.Files.WriteFile(fmt.Sprintf("trials/%03d/memory.jsonl", trial.Number), []byte(reading), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"npm/accept.mjs", engine}
	for s.Trial = 1; s.Trial <= 2; s.Trial++ {
		file := filepath.Join(t.TempDir(), "trace.json")
		if err := os.WriteFile(file, []byte(written(t, "trace", s)), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	out, err := exec.CommandContext(t.Context(), node, args...).Output()
	if err != nil {
		t.Fatalf("node %v: %v\n%s", args, err, err.(*exec.ExitError).Stderr)
	}
	lines := 0
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); lines++ {
		var made struct {
			MainFrameURL                  string
			Insights, Requests, Processes int
		}
		if err := json.Unmarshal(in.Bytes(), &made); err != nil {
			t.Fatalf("%q: %v", in.Text(), err)
		}
		if made.MainFrameURL != s.Run.Page || made.Insights < 1 || made.Requests < 50 || made.Processes < 1 {
			t.Errorf("trace %d: the developer tools read %+v", lines+1, made)
		}
	}
	if lines != 2 {
		t.Errorf("%d of 2 traces were read", lines)
	}
}
