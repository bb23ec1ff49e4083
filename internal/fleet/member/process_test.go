package member

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/fleettest"
	"eidetic/internal/rigs/testlab"
)

// processDir is the variable that makes the test binary a box with its files in that folder.
const processDir = "FLEET_BOX_DIR"

// boxProcess is a box in a process of its own, until it is told to stop. Its trials take a few milliseconds. It closes
// its standard output when it catches signals: before, one ends the process, as with every program whose main has not
// begun.
func boxProcess(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := os.Stdout.Close(); err != nil {
		return err
	}
	b, err := openBox(ctx, dir, &simulated{trial: func(ctx context.Context, _ string, _ int) error {
		timer := time.NewTimer(4 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		return nil
	}})
	if err != nil {
		return err
	}
	if err := b.work(ctx); err != nil {
		return err
	}
	return b.close()
}

// process is a box that can be killed.
type process struct {
	t   *testing.T
	dir string

	mu      sync.Mutex
	cmd     *exec.Cmd
	catches chan struct{} // it catches signals, or has ended
	ended   chan struct{}
	output  bytes.Buffer
}

func (p *process) start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output.Reset()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), processDir+"="+p.dir)
	p.cmd.Stderr = &p.output
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := testlab.Start(p.t, p.cmd); err != nil {
		p.t.Fatal(err)
	}
	cmd, catches, ended := p.cmd, make(chan struct{}), make(chan struct{})
	p.catches, p.ended = catches, ended
	go func() {
		_, _ = io.Copy(io.Discard, out) // its end is the event
		close(catches)
		_ = cmd.Wait() // how it ended is looked at where it matters
		close(ended)
	}()
}

// kill kills it with kill -9; it may be called from anywhere, and more than once.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // it may be dead already
	}
}

func (p *process) await() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(testlab.Hang):
		p.t.Fatal("the box does not end")
	}
}

// stop ends it as systemd does, once it catches signals.
func (p *process) stop() {
	p.t.Helper()
	select {
	case <-p.catches:
	case <-time.After(testlab.Hang):
		p.t.Fatal("the box does not start")
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Errorf("the box has ended by itself: %v\n%s", err, p.output.String())
	}
	p.await()
	if !p.cmd.ProcessState.Success() {
		p.t.Errorf("the box ended with %v\n%s", p.cmd.ProcessState, p.output.String())
	}
}

// newProcess returns a box that belongs to the head and does not run yet.
func newProcess(t *testing.T, h *fleettest.Head) *process {
	t.Helper()
	p := &process{t: t, dir: t.TempDir()}
	if _, err := Join(t.Context(), h.Link(), "lab-1", fleet.Offer{}, filepath.Join(p.dir, "fleet")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if p.ended != nil {
			p.await()
		}
	})
	return p
}

// heldBy returns when a box process holds no part.
func heldBy(t *testing.T, p *process) {
	t.Helper()
	awaitNoParts(t, filepath.Join(p.dir, "fleet"))
}

// awaitNoParts returns when a box holds no part any more.
func awaitNoParts(t *testing.T, dir string) {
	t.Helper()
	var parts []string
	testlab.Await(t, "a box that holds no part", func() bool {
		var err error
		if parts, err = heldIn(dir); err != nil {
			t.Fatal(err)
		}
		return len(parts) == 0
	}, func() any { return parts })
}

// A box that is killed at any of its calls, before the head gets it or after it did it, goes on where it was: each part
// ends once, in its first attempt, with all trials.
func TestFleetBoxIsKilledAtEachCall(t *testing.T) {
	const trials = 5
	h := fleettest.NewHead(t)
	p := newProcess(t, h)
	n := 0
	for _, call := range []string{
		"PUT offer", "POST claims", "GET archives", "PUT lease", "PUT files", "PATCH blobs", "POST end",
	} {
		for _, fault := range []fleettest.Fault{fleettest.DropRequest, fleettest.DropAnswer} {
			n++
			id := fmt.Sprintf("20270115-080000-x.%02d", n)
			t.Run(fmt.Sprintf("%s %d", call, fault), func(t *testing.T) {
				p.t = t
				a := assignment(id, trials)
				a.Archives = []fleet.ArchiveFile{h.AddSource("x.wacz", fmt.Appendf(nil, "recording %d", n))}
				h.Lock()
				h.Lease = time.Minute
				if call == "PUT lease" {
					h.Lease = 15 * time.Millisecond // so that there is a renewal before the end; nobody else claims
				}
				var once sync.Once
				hit := make(chan struct{})
				method, kind, _ := strings.Cut(call, " ")
				h.Fault = func(r *http.Request) (f fleettest.Fault) {
					if r.Method == method && strings.Contains(r.URL.Path+"/", "/"+kind+"/") {
						once.Do(func() { p.kill(); close(hit); f = fault })
					}
					return f
				}
				h.Unlock()
				h.Add(a)
				p.start()
				select {
				case <-hit:
				case <-time.After(testlab.Hang):
					t.Fatalf("the box has made no call %s\n%s", call, p.output.String())
				}
				p.await()
				h.Lock()
				h.Fault = nil
				h.Unlock()
				p.start()
				got := awaitEnd(t, h, id)
				checkWhole(t, h, got, trials)
				if got.Attempt != 1 {
					t.Errorf("the part was claimed %d times; want 1", got.Attempt)
				}
				heldBy(t, p)
				p.stop()
			})
		}
	}
}

// A box that is killed again and again at any moment, by a head that loses calls and answers, ends each part once.
// There is always work that is not done, however quick the box's disk is: a kill of an idle box proves nothing.
func TestFleetBoxIsKilledAgainAndAgain(t *testing.T) {
	const atOnce, trials, kills = 6, 12, 25
	rng := rand.New(rand.NewPCG(22, 7))
	h := fleettest.NewHead(t)
	p := newProcess(t, h)
	var ids []string
	ask := func() {
		h.Lock()
		open := 0
		for _, part := range h.Parts {
			if part.Outcome == nil {
				open++
			}
		}
		h.Unlock()
		for ; open < atOnce; open++ {
			n := len(ids) + 1
			a := assignment(fmt.Sprintf("20270115-090000-y.%03d", n), trials)
			a.Archives = []fleet.ArchiveFile{h.AddSource("y.wacz", fmt.Appendf(nil, "recording %d", n))}
			h.Add(a)
			ids = append(ids, a.Part)
		}
	}
	var mu sync.Mutex
	h.Lock()
	h.Fault = func(*http.Request) fleettest.Fault {
		mu.Lock()
		defer mu.Unlock()
		return map[int]fleettest.Fault{0: fleettest.DropRequest, 1: fleettest.DropAnswer}[rng.IntN(20)]
	}
	h.Unlock()
	for range kills {
		ask()
		h.Lock()
		calls := h.Calls["PUT offer"] + h.Calls["PUT files"] + h.Calls["PATCH blobs"] + h.Calls["POST end"]
		h.Unlock()
		mu.Lock()
		more, late := 1+rng.IntN(12), time.Duration(rng.IntN(20))*time.Millisecond
		mu.Unlock()
		p.start()
		h.Await(limited(t), t, "calls", func() bool {
			return h.Calls["PUT offer"]+h.Calls["PUT files"]+h.Calls["PATCH blobs"]+h.Calls["POST end"] >= calls+more
		})
		<-time.After(late) // the moment is any
		p.kill()
		p.await()
	}
	ask()
	p.start()
	for _, id := range ids {
		got := awaitEnd(t, h, id)
		checkWhole(t, h, got, trials)
		if got.Attempt != 1 {
			t.Errorf("part %s was claimed %d times; want 1", id, got.Attempt)
		}
	}
	t.Logf("%d parts, %d kills", len(ids), kills)
	heldBy(t, p)
	p.stop()
}
