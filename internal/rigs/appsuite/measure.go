package appsuite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// startLimit bounds an application's start.
const startLimit = 2 * time.Minute

// Bench is what measures the suite.
type Bench struct {
	Appliance string // the binary
	Modules   string // npm's node_modules; the applications run in folders beside it
	Out       string // folder for the results
	Trials    int
	Log       io.Writer
	// Start starts a program that is to end when this process does.
	Start func(*exec.Cmd) error
	// Browser is the browser's name.
	Browser string
	// Still is the stillness after which a page has loaded; 0 is the appliance's own.
	Still time.Duration
	// Flags are more flags of appliance measure, and of appliance run.
	Flags []string
}

// Result is what became of one application.
type Result struct {
	App       App
	Browser   string
	Recorded  int // exchanges until the page came to rest
	Later     int // exchanges after that
	Sockets   int // WebSockets among them
	Open      int // streams and polls that had not ended when the recording did
	Bytes     int // of bodies
	Trials    int
	Valid     int
	Misses    int      // of all trials
	Requests  []int    // of each trial, until the page came to rest
	Pictures  int      // different last pictures
	Invalid   []string // why trials were invalid
	Faults    []string // those of the reasons that a busy machine does not explain
	Misfits   []string // requests that were not answered exactly, with their number
	RunFolder string
}

// Good tells whether every trial was valid, missed nothing, and showed one picture.
func (r Result) Good() bool {
	return r.Valid == r.Trials && r.Misses == 0 && r.Pictures == 1 && r.SameRequests()
}

// SameRequests tells whether each trial asked as often as was recorded.
func (r Result) SameRequests() bool {
	for _, n := range r.Requests {
		if n != r.Recorded {
			return false
		}
	}
	return true
}

// Measure starts the application, lets appliance measure record it, ends it before the
// first replay, and reads the run.
func (b Bench) Measure(ctx context.Context, app App) (r Result, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", app.Name, err)
		}
	}()
	folder := strings.NewReplacer(" ", "-", ".", "-").Replace(app.Name) + "-" + b.Browser
	dir, err := os.MkdirTemp(filepath.Dir(b.Modules), "run-"+folder+"-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	h, err := newHost(dir, b.Modules, b.Log, b.Start)
	if err != nil {
		return r, err
	}
	defer h.stop()
	starting, cancel := context.WithTimeout(ctx, startLimit)
	page, err := app.start(starting, h)
	cancel()
	if err != nil {
		return r, err
	}
	out := filepath.Join(b.Out, folder)
	if err := os.RemoveAll(out); err != nil {
		return r, err
	}
	args, err := b.arguments(app, page, dir, out)
	if err != nil {
		return r, err
	}
	if err := b.appliance(ctx, h, args); err != nil {
		return r, err
	}
	return b.read(app, out)
}

// replaying begins the line by which appliance measure says that the origins are no longer needed.
const replaying = "Replaying "

// arguments are those by which the appliance measures a page, or a journey that begins there. The plan of a
// journey is written into dir.
func (b Bench) arguments(app App, page, dir, out string) ([]string, error) {
	common := append([]string{"--insecure-origin", "--browser", b.Browser, "--trials", fmt.Sprint(b.Trials), "--out", out}, b.Flags...)
	if app.Steps == "" {
		if b.Still > 0 {
			common = append(common, "--still", b.Still.String())
		}
		return append([]string{"measure", page, "--no-serve"}, common...), nil
	}
	if b.Still > 0 {
		common = append(common, "--still", fmt.Sprint(b.Still.Seconds()))
	}
	plan := filepath.Join(dir, "journey.yaml")
	text := fmt.Sprintf("name: %q\nsteps:\n  - name: open\n    open: %q\n%s", app.Name, page, app.Steps)
	return append([]string{"run", "--plan", plan}, common...), os.WriteFile(plan, []byte(text), 0o644)
}

// appliance runs the appliance. Its exit status is no error: the run says what was invalid.
func (b Bench) appliance(ctx context.Context, h *host, args []string) error {
	cmd := exec.CommandContext(ctx, b.Appliance, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Stderr = b.Log
	text, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.Start(cmd); err != nil {
		return err
	}
	replayed := false
	for lines := bufio.NewScanner(text); lines.Scan(); {
		fmt.Fprintln(b.Log, lines.Text())
		if strings.HasPrefix(lines.Text(), replaying) {
			h.stop()
			replayed = true
		}
	}
	err = cmd.Wait()
	if replayed {
		return nil
	}
	if err == nil {
		err = errors.New("it never said that it replays")
	}
	return fmt.Errorf("appliance %s: %w", strings.Join(args, " "), err)
}

// read sums a run up.
func (b Bench) read(app App, out string) (Result, error) {
	r := Result{App: app, Browser: b.Browser}
	runs, err := filepath.Glob(filepath.Join(out, "runs", "*", "run.json"))
	if err != nil || len(runs) != 1 {
		return r, fmt.Errorf("%d runs in %s (%v); want 1", len(runs), out, err)
	}
	r.RunFolder = filepath.Dir(runs[0])
	text, err := os.ReadFile(runs[0])
	if err != nil {
		return r, err
	}
	var run lab.Run
	if err := json.Unmarshal(text, &run); err != nil {
		return r, fmt.Errorf("%s: %w", runs[0], err)
	}
	a, err := archive.Open(filepath.Join(r.RunFolder, "archive.wacz"))
	if err != nil {
		return r, err
	}
	var rest time.Duration
	if pages := a.Pages(); len(pages) == 1 {
		rest = pages[0].RestTime()
	}
	var longest time.Duration // of the trials, from the first request to the last end of an answer
	pictures := map[string]bool{}
	for _, t := range run.Trials {
		if t.IsSuperseded() {
			continue
		}
		r.Trials++
		r.Misses += t.Misses
		log, err := served(r.RunFolder, t)
		if err != nil {
			return r, err
		}
		asked := requests{polls: app.Polls}
		for _, s := range log {
			longest = max(longest, s.Time.Sub(log[0].Time)+s.Duration)
			if s.Stage != lab.StageBox {
				asked.add(s.Method, s.URL)
			}
			// An answer that is neither exact nor the next of a sequence is worth a look.
			if s.Stage != lab.StageExact && s.Stage != lab.StageSequence && s.Stage != lab.StageBox {
				r.Misfits = append(r.Misfits, fmt.Sprintf("trial %d: %s %s %s %v", t.Number, s.Stage, s.Method, s.URL, s.Differs))
			}
		}
		r.Requests = append(r.Requests, asked.n)
		pictures[t.FinalFrame] = true
		if t.Valid {
			r.Valid++
		} else {
			r.Faults = append(r.Faults, t.Faults...)
			r.Invalid = append(r.Invalid, fmt.Sprintf("trial %d: %s", t.Number, strings.Join(t.Invalid, "; ")))
		}
	}
	var first time.Duration
	recorded := requests{polls: app.Polls}
	for _, e := range a.Exchanges() {
		if first == 0 {
			first = e.Start
		}
		// A recording waits for longer than a trial until it takes an open request for a poll.
		if rest > 0 && e.Start > rest || app.Polls && e.Start-first > longest {
			r.Later++
			continue
		}
		recorded.add(e.Method, e.URL)
		r.Bytes += len(e.Response.Body)
		if e.Status == 101 {
			r.Sockets++
		} else if e.IsOpen() {
			r.Open++
		}
	}
	r.Recorded = recorded.n
	r.Pictures = len(pictures)
	return r, nil
}

// requests counts requests, those of a page that polls by their different paths.
type requests struct {
	polls bool
	seen  map[string]bool
	n     int
}

func (r *requests) add(method, url string) {
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	path, _, _ := strings.Cut(url, "?")
	key := method + " " + path
	if !r.polls || !r.seen[key] {
		r.n++
	}
	r.seen[key] = true
}

// served reads what a trial's device asked.
func served(folder string, t *lab.Trial) ([]lab.Served, error) {
	f, err := os.Open(filepath.Join(folder, fmt.Sprintf("trials/%03d/replay.jsonl", t.Number)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []lab.Served
	for d := json.NewDecoder(f); ; {
		var s lab.Served
		if err := d.Decode(&s); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		list = append(list, s)
	}
}
