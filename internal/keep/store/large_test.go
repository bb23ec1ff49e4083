package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"eidetic/internal/lab"
)

// long is a trial as large as those of real page loads, with series of 234 frames.
func long(number int) *lab.Trial {
	t := &lab.Trial{
		Number: number, Arm: lab.Control, Page: "https://www.shop.example/", Valid: true, FinalFrame: strings.Repeat("a", 64),
		Capture: &lab.CaptureState{Rate: 59.998, IntervalP99: 17.2, IntervalMax: 18.4, Jitter: 0.2, Scheduling: "SCHED_FIFO"},
		Events:  []lab.Event{{Name: "navigate", Detail: "Return on the page"}, {Name: "end"}},
		Files:   map[string]string{},
	}
	for i := range 12 {
		low, high := 1452.841679, 1474.328575
		m := lab.Measurement{Name: fmt.Sprintf("a_metric_of_a_load_%d_ms", i), Value: 1473.25, Unit: "ms",
			Method: strings.Repeat("how it is made ", 14), Frames: []int{98, 331}, Low: &low, High: &high}
		t.Measurements = append(t.Measurements, m)
		t.Files[fmt.Sprint("file", i)] = "evidence.webm"
	}
	for _, name := range []string{"birth", "settle", "load", "still", "stop", "analysis", "evidence"} {
		t.Parts = append(t.Parts, lab.TrialPart{Name: name, MS: 735.9,
			Processor: map[string]float64{"browser": 1480, "appliance": 230, "link": 10, "screen": 30, "encoder": 350}})
	}
	for range 8 {
		t.Spans = append(t.Spans, &lab.Span{Name: "to 85 % visually complete", Level: "detail", Start: 76345123456789, End: 76345123456789})
	}
	for i := range 234 {
		t.LoadHistogram = append(t.LoadHistogram, float64(i)/3)
		t.VisualProgress = append(t.VisualProgress, float64(i)/3)
		t.FrameTimes = append(t.FrameTimes, float64(i)*50/3)
	}
	return t
}

// Only trial.json has the per-frame series and the parts of a trial; saving leaves those in memory intact.
func TestSeriesStayWithTheirTrial(t *testing.T) {
	run := sample("1", StateDone)
	run.Trials = []*lab.Trial{long(1)}
	f := create(t, t.TempDir(), run)
	read, err := ReadRun(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	if got := read.Trials[0]; got.LoadHistogram != nil || got.VisualProgress != nil || got.FrameTimes != nil || got.Parts != nil ||
		len(got.Measurements) != 12 {
		t.Errorf("run.json has series, or lacks measurements: %d values, %d measurements", len(got.LoadHistogram), len(got.Measurements))
	}
	content, err := os.ReadFile(filepath.Join(f.Path(), trialsDir, "001", TrialFile))
	if err != nil {
		t.Fatal(err)
	}
	var one lab.Trial
	if err := json.Unmarshal(content, &one); err != nil {
		t.Fatal(err)
	}
	for _, trial := range []*lab.Trial{&one, run.Trials[0]} {
		if len(trial.LoadHistogram) != 234 || len(trial.VisualProgress) != 234 || len(trial.FrameTimes) != 234 || len(trial.Parts) != 7 {
			t.Error("Save removed the series or the parts from the trial in memory")
		}
	}
}

// A run.json with MaxTrials trials can be opened. The test extrapolates from a tenth of them.
func TestMostTrialsCanBeOpened(t *testing.T) {
	run := sample("1", StateDone)
	run.Trials = nil
	for n := range MaxTrials / 10 {
		run.Trials = append(run.Trials, long(n+1))
	}
	b, err := encode(withoutSeries(run))
	if err != nil {
		t.Fatal(err)
	}
	if size, objects := 10*len(b), 10*(bytes.Count(b, []byte("{"))+bytes.Count(b, []byte("["))); size > MaxRunBytes ||
		objects > maxObjects {
		t.Errorf("%d trials are %d bytes and %d objects", MaxTrials, size, objects)
	}
	if read, err := DecodeRun(bytes.NewReader(b)); err != nil || len(read.Trials) != MaxTrials/10 {
		t.Error(err)
	}
}

// Save does not replace a readable run by one that DecodeRun would refuse.
func TestSaveKeepsWhatCanBeRead(t *testing.T) {
	run := sample("1", StateRunning)
	f := create(t, t.TempDir(), run)
	for range maxDepth {
		run.Link = lab.Link{Changes: []lab.LinkChange{{Profile: run.Link}}}
	}
	if err := f.Save(run); err == nil || !strings.Contains(err.Error(), "too large to be read again") {
		t.Errorf("Save() of a run that is too large: %v; want an error that says so", err)
	}
	if _, err := ReadRun(f.Path()); err != nil {
		t.Error(err)
	}
}

// Runs of several devices may begin at once in one process.
func TestRunsThatBeginAtOnce(t *testing.T) {
	root := t.TempDir()
	var all sync.WaitGroup
	for device := range 4 {
		all.Go(func() {
			for n := range 50 {
				if err := publish(root, fmt.Sprintf("%d-%d", device, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	left, err := filepath.Glob(filepath.Join(root, "*.tmp"))
	hidden, _ := filepath.Glob(filepath.Join(root, ".*.tmp"))
	if err != nil || len(left)+len(hidden) > 0 {
		t.Errorf("temporary files left behind: %v %v (%v)", left, hidden, err)
	}
}
