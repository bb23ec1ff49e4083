// Command tracecost measures what a browser's trace costs a load, or with -of observer the scripts that
// a measure's level puts into pages: it loads the recorded sample page in pairs of trials, in an order drawn by lot,
// of which the treatment's has it, and prints by how much each load time is longer, with its 95 % interval.
//
//	go run ./internal/rigs/truth/tracecost [-of trace] [-level task] [-dir out/bench/tracecost] [-pairs 50] [-link native]
//	    [-browser chromium] [-seed 1] [-out out/bench/tracecost.json]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/rigs/benchrig"
	"eidetic/internal/rigs/benchtable"
	"eidetic/internal/run/experiment"
	"eidetic/internal/run/isolate"
	"eidetic/internal/tell/verdict"
	"eidetic/netlab/archive"
)

func main() { benchrig.Main("bench", run, inside) }

// settings are those of the half in namespaces.
type settings struct {
	Dir, Appliance, Link, Browser, Of, Level string
	Pairs                                    int
	Seed                                     uint64
}

// What is measured.
const (
	ofTrace    = "trace"
	ofObserver = "observer"
)

const (
	recordingFile = "recording.wacz"
	resultFile    = "result.json"
)

func run(ctx context.Context) (err error) {
	var s settings
	dir := flag.String("dir", "out/bench/tracecost", "folder for the recording")
	flag.StringVar(&s.Of, "of", ofTrace, "what costs: trace or observer")
	flag.StringVar(&s.Level, "level", lab.LevelTask, "with -of observer: task (its marks) or debug (its messages too)")
	flag.IntVar(&s.Pairs, "pairs", 50, "of trials")
	flag.StringVar(&s.Link, "link", "native", "access network")
	flag.StringVar(&s.Browser, "browser", lab.Chromium, "chromium or firefox-esr")
	flag.Uint64Var(&s.Seed, "seed", 1, "of the order")
	out := flag.String("out", "out/bench/tracecost.json", "file for the list of results")
	flag.Parse()
	if s.Of != ofTrace && s.Of != ofObserver {
		return fmt.Errorf("-of %q: %s or %s", s.Of, ofTrace, ofObserver)
	}
	if s.Level != lab.LevelTask && s.Level != lab.LevelDebug {
		return fmt.Errorf("-level %q: %s or %s have scripts", s.Level, lab.LevelTask, lab.LevelDebug)
	}
	if s.Pairs < verdict.Least {
		return fmt.Errorf("-pairs %d: at least %d", s.Pairs, verdict.Least)
	}
	if s.Dir, err = filepath.Abs(*dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	if s.Appliance, err = benchrig.Build(ctx, filepath.Join(s.Dir, "bin")); err != nil {
		return err
	}
	if err := benchrig.Record(ctx, s.Appliance, filepath.Join(s.Dir, recordingFile)); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := isolate.Run(ctx, []string{benchrig.InsideArg, string(text)}); err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(s.Dir, resultFile))
	if err != nil {
		return err
	}
	return os.WriteFile(*out, content, 0o644)
}

// inside loads the page.
func inside(ctx context.Context, text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	rig, err := benchrig.Open(ctx, benchrig.Config{
		Appliance: s.Appliance, Keep: []string{s.Dir}, Link: s.Link,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer rig.Close()
	if err := rig.Prepare(ctx, plan.Arm{NamedArm: lab.NamedArm{Arm: lab.Arm{Browser: &lab.Browser{Name: s.Browser}}}}); err != nil {
		return err
	}
	recorded, err := archive.Open(filepath.Join(s.Dir, recordingFile))
	if err != nil {
		return err
	}
	arms := []experiment.Arm{rig.Arm(lab.Control, recorded), rig.Arm(lab.Treatment, recorded)}
	if s.Of == ofTrace {
		arms[1].Traced = true
	} else {
		arms[1].Network = rig.ReplayObserved(recorded, s.Level)
	}
	rig.Runner.Progress = func(step experiment.Step) {
		if step.Done != nil {
			fmt.Printf("trial %d of %d\n", step.Trial, step.Of)
		}
	}
	rig.Runner.Usage = rig.Usage
	run := &lab.Run{}
	const still = 500 * time.Millisecond
	plan := benchrig.Plan(s.Pairs, still, s.Seed)
	err = rig.Runner.Run(ctx, plan, arms, run, benchrig.Scratch{Dir: "/tmp/trial"}, func() error { return nil })
	if err != nil {
		return err
	}
	void, told := 0, 0
	for _, t := range run.Trials {
		if len(t.PageMarks) > 0 {
			told++
		}
		if t.Trace != nil && t.Trace.Void != "" {
			void++
		}
	}
	c := verdict.Of(run, s.Seed)
	if s.Of == ofObserver && told == 0 {
		return errors.New("no page told of anything: the observer was not in the pages")
	}
	fmt.Printf("%s, link %s, %d pairs, %d traces void, %d trials with marks: the %s adds\n", rig.Browser(), s.Link, c.Pairs, void, told, s.Of)
	var list []benchtable.Result
	for _, e := range c.Effects {
		if e.Guard {
			fmt.Printf("%s: %+.1f %s (95 %%: %+.1f to %+.1f), of %.0f\n", e.Metric, e.Shift.Value, e.Unit, e.Shift.Low, e.Shift.High, e.Control)
			name := "cost of the " + s.Of + ", " + s.Browser + ", " + e.Metric
			list = append(list, benchtable.Less(name, e.Shift.Value, e.Unit).Within(e.Shift.Low, e.Shift.High, e.Pairs))
		}
	}
	e, err := processorTime(run, s.Seed)
	if err != nil {
		return err
	}
	fmt.Printf("processor time of the browser, from the key to the end of the trial: %+.1f ms (95 %%: %+.1f to %+.1f)\n", e.Value, e.Low, e.High)
	what := "cost of the " + s.Of + ", " + s.Browser + ", browser_processor_ms"
	list = append(list, benchtable.Less(what, e.Value, "ms").Within(e.Low, e.High, c.Pairs))
	return benchtable.Write(filepath.Join(s.Dir, resultFile), list)
}

// processorTime is by how much the browser computes longer from the input to the trial's end. Who else uses the machine
// changes it less than times on the clock.
func processorTime(run *lab.Run, seed uint64) (stats.Interval, error) {
	at := map[int]int{}
	var blocks []stats.Block
	for _, t := range run.Trials {
		used, known := 0.0, false
		for _, p := range t.Parts {
			if p.Name == experiment.PartLoad || p.Name == experiment.PartStill {
				ms, ok := p.Processor["browser"]
				used, known = used+ms, known || ok
			}
		}
		if !t.Valid || !known {
			continue
		}
		n, ok := at[t.Block]
		if !ok {
			n = len(blocks)
			at[t.Block], blocks = n, append(blocks, stats.Block{})
		}
		if t.Arm == lab.Treatment {
			blocks[n].Treatment = append(blocks[n].Treatment, used)
		} else {
			blocks[n].Control = append(blocks[n].Control, used)
		}
	}
	const permutations = 9999
	shift, _, err := stats.ShiftInBlocks(blocks, 0.95, permutations, seed)
	if err != nil {
		return shift, fmt.Errorf("processor time of the browser: %w", err)
	}
	return shift, nil
}
