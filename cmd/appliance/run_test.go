package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/service"
	"eidetic/internal/box/suites"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/internal/web/panel"
)

// scripted carries out runs whose trials were made before, without a device.
type scripted struct {
	root  string
	run   func() *lab.Run         // what each becomes
	drawn func(lab.Plan) *lab.Run // the same, of its plan; nil is run
	asked chan lab.Plan
	hold  chan struct{} // after its first trial a run waits until this is closed; nil does not
}

func (r *scripted) Accept(_ context.Context, q lab.Plan) (lab.Plan, error) {
	if q.Device = cmp.Or(q.Device, "virtual"); q.Device != "virtual" {
		return q, fmt.Errorf("device: there is no %q; there are: virtual", q.Device)
	}
	return q, nil
}

func (r *scripted) Run(ctx context.Context, id string, q lab.Plan, news func(panel.Progress)) error {
	r.asked <- q
	if r.drawn != nil { // all at once
		run := r.drawn(q)
		run.ID, run.Plan.From = id, q.From
		folder, err := store.Create(r.root, run)
		if err != nil {
			return err
		}
		return folder.Close()
	}
	run := r.run()
	run.Plan.From = q.From
	all, end := run.Trials, run.State
	run.ID, run.Trials, run.State = id, nil, store.StateRunning
	folder, kept, err := store.Resume(r.root, id)
	if errors.Is(err, store.ErrNotFound) {
		folder, err = store.Create(r.root, run)
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	for i, trial := range all {
		if kept != nil && i < len(kept.Trials) { // it was cut off, and goes on
			run.Trials = append(run.Trials, trial)
			continue
		}
		news(panel.Progress{Trial: i + 1, Of: len(all), Doing: "filming"})
		run.Trials = append(run.Trials, trial)
		if err := folder.Save(run); err != nil {
			return err
		}
		if i == 0 && r.hold != nil {
			select {
			case <-r.hold:
			case <-ctx.Done():
				run.State = store.StateInterrupted
				return folder.Save(run)
			}
		}
	}
	run.State = end
	if err := report.Write(folder.Path(), run); err != nil {
		return err
	}
	return folder.Save(run)
}

// testBox is a panel whose runs are scripted; it can be stopped and started again.
type testBox struct {
	*scripted
	data, token, at string
	queue           *store.Queue
	keeper          *automation.Keeper
	stop            func()
	retained        int // how often retention was applied
	boxes           panel.Boxes
	seats           oneSeat
}

func newTestBox(t *testing.T, run func() *lab.Run) *testBox {
	t.Helper()
	return newTestBoxOf(t, run, nil)
}

// newTestBoxOf makes a box that is the head of a fleet, if boxes is not nil.
func newTestBoxOf(t *testing.T, run func() *lab.Run, boxes panel.Boxes) *testBox {
	t.Helper()
	data := t.TempDir()
	b := &testBox{
		scripted: &scripted{root: data, run: run, asked: make(chan lab.Plan, 100)},
		data:     data,
		token:    "0123456789abcdefghij",
		at:       "127.0.0.1:0",
		boxes:    boxes,
	}
	b.start(t)
	return b
}

func (b *testBox) url() string { return "http://" + b.at }

func (b *testBox) start(t *testing.T) {
	t.Helper()
	runs, err := store.Open(t.Context(), b.data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.queue, err = store.OpenQueue(t.Context(), filepath.Join(b.data, "queue.db")); err != nil {
		t.Fatal(err)
	}
	queue := runqueue.New(runqueue.Config{Jobs: b.queue, Store: runs, Runner: b.scripted})
	measured, err := suites.Open(suites.Config{Dir: filepath.Join(b.data, "suites"), Runs: queue, Store: runs})
	if err != nil {
		t.Fatal(err)
	}
	b.keeper, err = automation.Open(t.Context(), automation.Config{
		File: filepath.Join(b.data, "automation.db"), Runs: queue, Store: runs,
		Sender: webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	modules := []panel.Module{
		panel.WithRuns(queue, nil, nil), panel.WithAnswers(b.queue), panel.WithAutomation(b.keeper), panel.WithSuites(measured),
		panel.WithArchives(service.Uploads{Dir: filepath.Join(b.data, service.UploadsDir)}),
		panel.WithSupport(fixedBundle{}), panel.WithRetention(oneOld{&b.retained}), panel.WithSeats(&b.seats),
		panel.WithBackups(service.New(service.Options{Data: b.data, Software: "appliance test"}).Backups(runs, nil, func() {})),
	}
	if b.boxes != nil {
		modules = append(modules, panel.WithBoxes(b.boxes))
	}
	p, err := panel.New(panel.Config{
		Store: runs, Token: lab.NewSecret(b.token), TLS: service.Certificate(service.DefaultConfig(), b.data, slog.New(slog.DiscardHandler)),
		Version: "v1", Modules: modules,
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := panel.Listen(t.Context(), b.at, "--listen")
	if err != nil {
		t.Fatal(err)
	}
	b.at = l.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 3)
	go func() { done <- p.Serve(ctx, l) }()
	go func() { done <- queue.Work(ctx) }()
	go func() { done <- b.keeper.Work(ctx) }()
	stopped := false
	b.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := errors.Join(<-done, <-done, <-done, b.keeper.Close(), b.queue.Close(), runs.Close()); err != nil {
			t.Errorf("the box: %v", err)
		}
	}
	t.Cleanup(b.stop)
}

// client is a command for the box that has no time to lose.
func (b *testBox) client(t *testing.T, change func(*RunCmd)) *RunCmd {
	t.Helper()
	t.Setenv(tokenVariable, b.token)
	page := "https://www.shop.example/"
	c := &RunCmd{boxFlags: boxFlags{Box: b.url()}, Patience: time.Minute, pause: time.Millisecond}
	c.Page = &page
	if change != nil {
		change(c)
	}
	return c
}

func alone() *lab.Run { return reporttest.Run(1, 6) }

func compared(slower float64) func() *lab.Run {
	return func() *lab.Run { return reporttest.Compared(1, 6, slower) }
}

// ends runs the command to its end.
func ends(ctx context.Context, c *RunCmd) result {
	var out, errs bytes.Buffer
	status := printError(c.Run(ctx, &streams{strings.NewReader(""), &out, &errs}), &errs)
	return result{status, out.String(), errs.String()}
}

// The whole of it through the command line: every trial is shown, what was found
// is the status, and the files are fetched.
func TestRunGates(t *testing.T) {
	for name, c := range map[string]struct {
		run    func() *lab.Run
		args   string
		status int
		says   []string
	}{
		"one arm": {alone, "", exitGood, []string{"Trial 1 of 6: first change", "Trial 6 of 6: invalid: 14 frames", "5 of 6 trials are valid", "SpeedIndex"}},
		"slower":  {compared(300), "--treatment-link 3g", exitFailed, []string{"is slower: SpeedIndex", "Trial 12 of 12"}},
		"faster":  {compared(-300), "--treatment-link 3g", exitGood, []string{"is faster: SpeedIndex"}},
		"equal":   {compared(0), "--treatment-link 3g", exitGood, []string{"No difference between treatment and control was found"}},
		"too few": {func() *lab.Run { return reporttest.Compared(1, 2, 300) }, "--treatment-link 3g", exitCannot, []string{"not known: 2 pairs"}},
		"failed": {func() *lab.Run {
			run := reporttest.Run(1, 2)
			for _, trial := range run.Trials {
				trial.Valid, trial.Invalid = false, []string{"the\x1b]0;screen\x07 was dark"}
			}
			run.State, run.Error = store.StateFailed, "no trial was valid"
			return run
		}, "", exitCannot, []string{"invalid: the\uFFFD]0;screen\uFFFD was dark", "the run is failed", "no trial was valid"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestBox(t, c.run)
			file, out := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "out")
			if err := os.WriteFile(file, []byte(b.token+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var said, errs bytes.Buffer
			args := append(
				[]string{
					"run",
					"--box",
					b.url() + "/",
					"--token-file",
					file,
					"--page",
					"https://www.shop.example/",
					"--link",
					"lte",
					"--trials",
					"6",
					"--out",
					out,
				},
				strings.Fields(c.args)...)
			status := run(t.Context(), args, &streams{strings.NewReader(""), &said, &errs})
			all := said.String() + errs.String()
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			id := ""
			if runs, err := os.ReadDir(filepath.Join(b.data, "runs")); err != nil || len(runs) != 1 {
				t.Errorf("%d runs, %v", len(runs), err)
			} else {
				id = runs[0].Name()
			}
			for _, want := range append(c.says, "The report is at "+b.url()+"/runs/"+id+"/report.html\n", "are in "+out) {
				if !strings.Contains(all, want) {
					t.Errorf("%q is missing in:\n%s", want, all)
				}
			}
			if q := <-b.asked; q.Link != "lte" || q.Trials != 6 || (q.Treatment != nil) != (c.args != "") {
				t.Errorf("asked for was %+v", q)
			}
			for _, name := range []string{"run.json", "report.json", "report.html"} {
				want, err := os.ReadFile(filepath.Join(b.data, "runs", id, name))
				got, err2 := os.ReadFile(filepath.Join(out, name))
				if err != nil || err2 != nil || !bytes.Equal(want, got) {
					t.Errorf("%s: %d bytes, want %d (%v, %v)", name, len(got), len(want), err, err2)
				}
			}
		})
	}
}

// What is wrong is said with what to do, and starts nothing.
func TestRunRefused(t *testing.T) {
	b := newTestBox(t, alone)
	shows := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(panel.Health{Status: "ok"})
	}))
	defer shows.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>\x1b[2J") }))
	defer other.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	dir := t.TempDir()
	plan := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const page = "--page https://a.test/"
	for _, c := range []struct {
		name, box, token, args string
		status                 int
		says                   []string
	}{
		{"no page", b.url(), b.token, "", exitUsage, []string{"--page URL, or --plan FILE"}},
		{"sandbox", b.url(), b.token, page + " --no-sandbox", exitUsage, []string{"--no-sandbox", "virtual.no_sandbox"}},
		{"processors", b.url(), b.token, page + " --keep-processors", exitUsage, []string{"--keep-processors", "processors.keep"}},
		{"no address", "box.local:8080", b.token, page, exitUsage, []string{"--box", "http://127.0.0.1:8080"}},
		{"no token", b.url(), "", page, exitUsage, []string{"--token-file FILE", "out/box/token", "EIDETIC_TOKEN"}},
		{"wrong token", b.url(), "0123456789abcdef", page, exitUsage, []string{"the token is not the token of this box", "--token-file"}},
		{"no token file", b.url(), "", page + " --token-file " + dir + "/none", exitUsage, []string{"--token-file", "none"}},
		{"device", b.url(), b.token, page + " --device toaster", exitUsage, []string{`there is no "toaster"; there are: virtual`}},
		{"value", b.url(), b.token, page + " --trials 0", exitUsage, []string{"the box refuses", "trials: must be"}},
		{"no box", gone.URL, b.token, page, exitCannot, []string{"does not answer", "connection refused", "appliance serve"}},
		{"only shows", shows.URL, "", page, exitUsage, []string{"only shows runs"}},
		{"something else", other.URL, "", page, exitUsage, []string{"is not a panel of the appliance"}},
		{"no archive", b.url(), b.token, page + " --archive " + dir + "/none.wacz", exitUsage, []string{"no such file here"}},
		{"no plan", b.url(), b.token, "--plan " + dir + "/none.yaml", exitUsage, []string{"--plan", "none.yaml"}},
		{"field", b.url(), b.token, "--plan " + plan("a.yaml", "page: https://a.test/\ntrails: 3\n"), exitUsage, []string{"a.yaml", "[2:1]", `unknown field "trails"`}},
		{"type", b.url(), b.token, "--plan " + plan("b.json", "{\"page\": \"https://a.test/\",\n \"trials\": \"many\"}"), exitUsage, []string{"b.json", "[2:"}},
		{"refused field", b.url(), b.token, "--plan " + plan("c.yaml", "page: https://a.test/\nname: x\ntrials: 0\n"), exitUsage, []string{"c.yaml", "3 | trials: 0", "must be"}},
		{"plan without a page", b.url(), b.token, "--plan " + plan("d.yaml", "# nothing\n"), exitUsage, []string{"d.yaml", "names no page"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(tokenVariable, c.token)
			var said bytes.Buffer
			status := run(
				t.Context(),
				append([]string{"run", "--box", c.box}, strings.Fields(c.args)...),
				&streams{strings.NewReader(""), &said, &said},
			)
			if status != c.status || strings.Contains(said.String(), "\x1b") {
				t.Errorf("status %d, want %d: %q", status, c.status, said.String())
			}
			for _, want := range c.says {
				if !strings.Contains(said.String(), want) {
					t.Errorf("%q is missing in:\n%s", want, said.String())
				}
			}
		})
	}
	if jobs, err := b.queue.Jobs(t.Context()); err != nil || len(jobs)+len(b.asked) != 0 {
		t.Errorf("something was started: %v, %v", jobs, err)
	}
}

// A plan and flags make one request; a flag goes before a field.
func TestRunOfAPlan(t *testing.T) {
	b := newTestBox(t, compared(0))
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte("page: https://a.test/\nlink: lte\nlimit_s: 30\ntreatment:\n  link: 3g\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link, trials := "4g", 7
	got := ends(t.Context(), b.client(t, func(c *RunCmd) { c.Plan, c.Page, c.Link, c.Trials, c.JSON = file, nil, &link, &trials, true }))
	q := <-b.asked
	if q.Page != "https://a.test/" || q.Link != "4g" || q.Trials != 7 || q.Limit != 30 || q.Treatment == nil || q.Treatment.Link != "3g" {
		t.Errorf("asked for was %+v", q)
	}
	var printed lab.Run
	if err := json.Unmarshal([]byte(got.out), &printed); err != nil || got.status != exitGood || printed.Comparison == nil ||
		!strings.Contains(got.err, "12 of 12 trials are valid") {
		t.Errorf("status %d, %v\n%s\n%s", got.status, err, got.out, got.err)
	}
	got = ends(t.Context(), b.client(t, func(c *RunCmd) { c.NoWait = true }))
	if id, ok := strings.CutSuffix(got.out, "\n"); got.status != exitGood || !ok || !store.ValidID(id) || !strings.Contains(got.err, "Run "+id+" on") {
		t.Errorf("without waiting: %+v", got)
	}
}

// A recording is uploaded once, under a name that says which it is.
func TestRunUploadsRecordings(t *testing.T) {
	b := newTestBox(t, alone)
	file := shopArchive(t)
	for i := range 2 {
		got := ends(t.Context(), b.client(t, func(c *RunCmd) { c.Archive = &file }))
		if got.status != exitGood || strings.Contains(got.out, "Uploading") != (i == 0) {
			t.Errorf("time %d: %+v", i, got)
		}
		q := <-b.asked
		want, err := os.ReadFile(file)
		have, err2 := os.ReadFile(filepath.Join(b.data, service.UploadsDir, q.Archive))
		if err != nil || err2 != nil || !bytes.Equal(want, have) || !strings.HasPrefix(q.Archive, "shop-") {
			t.Errorf("the box has %q: %d bytes, want %d (%v, %v)", q.Archive, len(have), len(want), err, err2)
		}
	}
	there := "shop.wacz"
	if got := ends(t.Context(), b.client(t, func(c *RunCmd) { c.Archive = &there })); got.status != exitGood ||
		(<-b.asked).Archive != there {
		t.Errorf("one that is there: %+v", got)
	}
}

// The service stops while one run is in progress and another waits, and comes back: both are followed to their ends.
func TestRunOverARestart(t *testing.T) {
	b := newTestBox(t, alone)
	b.hold = make(chan struct{})
	first := make(chan result, 1)
	c := b.client(t, nil)
	go func() { first <- ends(t.Context(), c) }()
	<-b.asked // it has the device
	second := make(chan result, 1)
	go func() { second <- ends(t.Context(), c) }()
	for waiting := 0; waiting < 2; {
		jobs, err := b.queue.Jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waiting = len(jobs)
	}
	b.stop()
	close(b.hold)
	b.start(t)
	if got := <-first; got.status != exitGood || !strings.Contains(got.out, "5 of 6 trials are valid") {
		t.Errorf("the run that was cut off: %+v; want it to go on, and to end well", got)
	}
	if got := <-second; got.status != exitGood || !strings.Contains(got.out, "5 of 6 trials are valid") {
		t.Errorf("the run that waited: %+v", got)
	}
}

// flaky stands between the command and the box, and loses what a network may lose.
func flaky(t *testing.T, b *testBox, lose func(path string, w http.ResponseWriter, pass func()) bool) string {
	t.Helper()
	to, err := url.Parse(b.url())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !lose(r.Method+" "+r.URL.Path, w, func() { proxy.ServeHTTP(httptest.NewRecorder(), r) }) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// An answer that is lost starts no second run, and a stream that breaks, or is none, is no end.
func TestRunOverABadNetwork(t *testing.T) {
	for name, stream := range map[string]func(w http.ResponseWriter, pass func()) bool{
		"no stream": func(w http.ResponseWriter, _ func()) bool {
			fmt.Fprint(w, "a portal's page")
			return true
		},
		"breaks": func(w http.ResponseWriter, _ func()) bool {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: progress\ndata: {\"state\":\"running\",\"trial\":1,\"of\":3,\"doing\":\"filming\"}\n\ndata: {")
			return true
		},
		"works": func(http.ResponseWriter, func()) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestBox(t, alone)
			var posts, streams atomic.Int32
			address := flaky(t, b, func(path string, w http.ResponseWriter, pass func()) bool {
				switch {
				case path == "POST /api/v1/runs" && posts.Add(1) < 3:
					pass() // the box has it, and its answer is lost
					panic(http.ErrAbortHandler)
				case strings.HasSuffix(path, "/events"):
					streams.Add(1)
					return stream(w, pass)
				}
				return false
			})
			got := ends(t.Context(), b.client(t, func(c *RunCmd) { c.Box = address }))
			if got.status != exitGood || !strings.Contains(got.out, "5 of 6 trials are valid") || posts.Load() != 3 || streams.Load() == 0 {
				t.Errorf("%d requests, %d streams: %+v", posts.Load(), streams.Load(), got)
			}
			if runs, err := os.ReadDir(filepath.Join(b.data, "runs")); err != nil || len(runs) != 1 || len(b.asked) != 1 {
				t.Errorf("%d runs, %v", len(runs), err)
			}
		})
	}
}

// Patience has an end, and what is no run of ours is not believed.
func TestRunWithABoxThatGoes(t *testing.T) {
	b := newTestBox(t, alone)
	address := flaky(t, b, func(path string, _ http.ResponseWriter, _ func()) bool {
		if strings.HasPrefix(path, "GET /api/v1/runs/") {
			panic(http.ErrAbortHandler)
		}
		return false
	})
	got := ends(t.Context(), b.client(t, func(c *RunCmd) { c.Box, c.Patience = address, 20*time.Millisecond }))
	if got.status != exitCannot || !strings.Contains(got.err, "does not answer") || !strings.Contains(got.err, "may go on") {
		t.Errorf("%+v", got)
	}
	address = flaky(t, b, func(path string, w http.ResponseWriter, _ func()) bool {
		if strings.HasPrefix(path, "GET /api/v1/runs/") {
			fmt.Fprint(w, strings.Repeat("[", 1000))
			return true
		}
		return false
	})
	got = ends(t.Context(), b.client(t, func(c *RunCmd) { c.Box = address }))
	if got.status != exitCannot || !strings.Contains(got.err, "nested deeper") {
		t.Errorf("%+v", got)
	}
}

// Ctrl-C cancels the run, whether it goes on or waits.
func TestRunIsCancelled(t *testing.T) {
	b := newTestBox(t, alone)
	b.hold = make(chan struct{})
	c := b.client(t, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan result, 2)
	go func() { done <- ends(ctx, c) }()
	<-b.asked
	go func() { done <- ends(ctx, c) }()
	var waits store.Job
	for waits.ID == "" {
		jobs, err := b.queue.Jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if j.State == store.StateQueued {
				waits = j
			}
		}
	}
	interrupt()
	for range 2 {
		if got := <-done; got.status != exitCannot || !strings.Contains(got.err, "was cancelled") ||
			!strings.Contains(got.out, "another Ctrl-C") {
			t.Errorf("%+v", got)
		}
	}
	if jobs, err := b.queue.Jobs(t.Context()); err != nil || len(jobs) > 1 {
		t.Errorf("%d jobs are left, %v", len(jobs), err)
	}
	close(b.hold)
}

// A run whose client was interrupted while it was asked for is not left behind.
func TestRunIsCancelledWhileAskedFor(t *testing.T) {
	b := newTestBox(t, alone)
	b.hold = make(chan struct{})
	defer close(b.hold)
	ctx, interrupt := context.WithCancel(t.Context())
	address := flaky(t, b, func(path string, _ http.ResponseWriter, _ func()) bool {
		if path == "POST /api/v1/runs" {
			interrupt()
		}
		return false
	})
	got := ends(ctx, b.client(t, func(c *RunCmd) { c.Box = address }))
	if got.status != exitCannot || !strings.Contains(got.err, "was cancelled") {
		t.Errorf("%+v", got)
	}
}
