package main

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/box/service"
	"eidetic/internal/fleet/ledger/pgtest"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/storytest"
	"eidetic/internal/rigs/testlab"
)

// headHere starts the head of a fleet on this machine, at an address.
func headHere(t *testing.T, data, listen string, flags ...string) *serving {
	t.Helper()
	return startHere(t, data, "head", append([]string{"--listen", listen}, flags...)...)
}

// joinFleet makes a box whose service runs a member of a head's fleet, with the command that a person would use, and
// returns the link.
func joinFleet(t *testing.T, head, box *serving, name string) (link string) {
	t.Helper()
	status, body, err := head.panel.Do(t.Context(), http.MethodPost, "/api/v1/boxes/codes", nil)
	var code struct{ Link string }
	if err != nil || status != http.StatusCreated || json.Unmarshal(body, &code) != nil || code.Link == "" {
		t.Fatalf("POST codes = %d %s, %v; want a link", status, body, err)
	}
	if got := finishCmd(t, joining(t, code.Link, box, name)); got.status != exitGood {
		t.Fatalf("join = %d %s; want %d", got.status, got.err, exitGood)
	}
	return code.Link
}

func joining(t *testing.T, link string, box *serving, name string) *exec.Cmd {
	t.Helper()
	cmd := appliance(t, "join", link, "--name", name, "--box", box.panel.URL)
	cmd.Env = append(cmd.Env, "EIDETIC_TOKEN="+box.panel.Token)
	return cmd
}

// fleetPairs is the number of pairs of each page of fleetRun.
func fleetPairs() int { return testlab.Repeat(1, 2) }

// fleetRun is a run of three pages with a pair or two each, for any boxes, in a recording that a head gets.
func fleetRun(t *testing.T, head string) map[string]any {
	t.Helper()
	archives := filepath.Join(head, service.UploadsDir)
	if err := os.MkdirAll(archives, 0o755); err != nil {
		t.Fatal(err)
	}
	var pages []map[string]any
	for _, page := range smallSite(t, filepath.Join(archives, "site.wacz")) {
		pages = append(pages, map[string]any{"page": page})
	}
	return map[string]any{
		"name": "fleet", "archive": "site.wacz", "trials": fleetPairs(), "still_s": 0.2, "limit_s": 30, "tolerance_ms": 10000, "seed": 7,
		"pages": pages, "treatment": map[string]any{"link": "rtt=100ms"},
	}
}

// checkFleetRun: the run of fleetRun has ended once, with one verdict, all trials, and each pair from one box; and two
// boxes made it.
func checkFleetRun(t *testing.T, head *serving, id string) {
	t.Helper()
	run, err := store.ReadRun(filepath.Join(head.data, "runs", id))
	if err != nil || run.State != store.StateDone || len(run.Cells) != 3 {
		t.Fatalf("the run: %v, %+v; want it done, with three pages", err, run)
	}
	boxes, valid := map[string]bool{}, map[string]int{}
	for _, trial := range run.Trials {
		if trial.Valid {
			valid[trial.Cell+" "+trial.Arm]++
		}
	}
	for _, c := range run.Cells {
		if c.Box == nil || c.Comparison == nil || c.Comparison.Pairs < fleetPairs() {
			t.Errorf("%s: box %+v, %+v; want all pairs, of one box", c.Name, c.Box, c.Comparison)
			continue
		}
		boxes[c.Box.Name] = true
		for _, arm := range []string{lab.Control, lab.Treatment} {
			// The boxes are each other's company on this machine: a trial that was made up for may count again.
			if n := valid[c.Name+" "+arm]; n < fleetPairs() {
				t.Errorf("%s, %s: %d valid trials; want %d", c.Name, arm, n, fleetPairs())
			}
		}
	}
	if len(boxes) != 2 {
		t.Errorf("the pages were measured by %v; want both boxes", boxes)
	}
	if page := string(head.panel.Get(t, "/runs/"+id+"/report.html")); !strings.Contains(page, "3 pages") {
		t.Error("the report does not say that it is of three pages")
	}
}

// TestFleetKilled: two boxes with real browsers carry out a run of three pages for one head. The head is killed in the
// middle, and so is a box in a trial.
func TestFleetKilled(t *testing.T) {
	needLab(t)
	dir := t.TempDir()
	data := func(name string) string { return filepath.Join(dir, name) }
	plan := fleetRun(t, data("head"))
	head := headHere(t, data("head"), "127.0.0.1:0", "--films-stay")
	one, two := serveHere(t, data("one")), serveHere(t, data("two"))
	used := joinFleet(t, head, one, "lab-1")
	joinFleet(t, head, two, "lab-2")
	if got := finishCmd(t, joining(t, used, two, "lab-3")); got.status == exitGood {
		t.Errorf("a link that was used lets another box join: %+v", got)
	}
	id := head.panel.Start(t, plan)
	head.panel.Follow(t, id, 3*testlab.Hang, func(p storytest.Progress) bool { return p.Trial >= 2 })
	address := strings.TrimPrefix(head.panel.URL, "http://")
	head.kill()
	one.kill()
	head = headHere(t, data("head"), address, "--films-stay")
	serveHere(t, data("one"))
	head.panel.Follow(t, id, 5*testlab.Hang, nil)

	checkFleetRun(t, head, id)
	// The films stayed on their boxes, and come when somebody opens them.
	if _, err := os.Stat(filepath.Join(data("head"), "runs", id, "trials", "001", "screen.reel")); err == nil {
		t.Error("the film of the first trial is at the head; want it on its box")
	}
	if film := head.panel.Artifact(t, id, "trials/001/screen.reel"); len(film) == 0 {
		t.Error("the film of the first trial is empty")
	}

	// Retention deletes the evidence of what is not the newest of its series, and nobody fetches it again; the numbers
	// stay.
	plan["trials"] = 1
	delete(plan, "treatment")
	next := head.panel.Start(t, plan)
	head.panel.Follow(t, next, 5*testlab.Hang, nil)
	if status, body, err := head.panel.Do(t.Context(), http.MethodPost, "/api/v1/retention?keep_gb=0.000001", nil); err != nil || status != http.StatusOK {
		t.Fatalf("POST retention = %d %s, %v; want 200", status, body, err)
	}
	for run, want := range map[string]int{id: http.StatusGone, next: http.StatusOK} {
		if status, body, err := head.panel.Do(t.Context(), http.MethodGet, "/api/v1/runs/"+run+"/artifacts/trials/001/screen.reel", nil); err != nil || status != want {
			t.Errorf("after retention the film of %s is %d %.200s, %v; want %d", run, status, body, err, want)
		}
	}
	checkFleetRun(t, head, id)
}

// TestFleetTwoHeads: two heads with one PostgreSQL and one folder of files. While the boxes measure, their network is
// cut for a minute, the database is killed, and so is the head that they called; the other one takes its address, and
// the run ends there.
func TestFleetTwoHeads(t *testing.T) {
	testlab.Long(t, "another database, and a long fault")
	needLab(t)
	testlab.Need(t, pgtest.Programs() != "", "PostgreSQL's server; install it with: make deps")
	server, err := pgtest.Start(t.Context(), testlab.TempDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	database, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data := func(name string) string { return filepath.Join(dir, name) }
	plan := fleetRun(t, data("first"))
	road := newRoad(t)
	shared := []string{"--database", database, "--files", "file://" + data("files"), "--address", road.address()}
	first := headHere(t, data("first"), "127.0.0.1:0", shared...)
	if err := os.CopyFS(filepath.Join(data("second"), "panel"), os.DirFS(filepath.Join(data("first"), "panel"))); err != nil {
		t.Fatal(err) // the certificate, which the boxes know
	}
	second := headHere(t, data("second"), "127.0.0.1:0", shared...)
	road.leadTo(first)
	joinFleet(t, first, serveHere(t, data("one")), "lab-1")
	joinFleet(t, first, serveHere(t, data("two")), "lab-2")

	id := first.panel.Start(t, plan)
	begun := func(p storytest.Progress) bool { return p.State == store.StateRunning }
	if state := second.panel.Follow(t, id, 3*testlab.Hang, begun); state != store.StateRunning {
		t.Fatalf("the second head heard of the run first when it was %s; want to hear when a box that calls the first begins", state)
	}
	road.leadTo(nil)
	restored := time.After(time.Minute)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	first.kill()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-restored
	road.leadTo(second)
	second.panel.Follow(t, id, 5*testlab.Hang, nil)
	checkFleetRun(t, second, id)

	// A head that comes back has the run that ended without it.
	first = headHere(t, data("first"), "127.0.0.1:0", shared...)
	first.panel.Follow(t, id, testlab.Hang, nil)
	if run := first.panel.Run(t, id); run.State != store.StateDone || len(run.Trials) < 12 {
		t.Errorf("the first head has the run %s with %d trials; want it done, with 12 or more", run.State, len(run.Trials))
	}
}

// road is the way from boxes to a head, which can be cut and can lead elsewhere.
type road struct {
	listener net.Listener
	mu       sync.Mutex
	to       string // "" is nowhere
	open     map[net.Conn]bool
}

func newRoad(t *testing.T) *road {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{listener: l, open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.carry(from) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.leadTo(nil)
		all.Wait()
	})
	return r
}

func (r *road) address() string { return r.listener.Addr().String() }

// leadTo cuts what goes on, and leads to a head from now on; nil is nowhere.
func (r *road) leadTo(head *serving) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = ""
	if head != nil {
		r.to = strings.TrimPrefix(head.panel.URL, "http://")
	}
	for conn := range r.open {
		_ = conn.Close() // the other end may have closed it
	}
}

func (r *road) carry(from net.Conn) {
	defer from.Close()
	to, err := r.dial(from)
	if err != nil {
		return
	}
	defer to.Close()
	defer r.forget(from, to)
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}

func (r *road) dial(from net.Conn) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == "" {
		return nil, errors.New("the road leads nowhere")
	}
	to, err := net.Dial("tcp", r.to)
	if err == nil {
		r.open[from], r.open[to] = true, true
	}
	return to, err
}

func (r *road) forget(all ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range all {
		delete(r.open, conn)
	}
}
