package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/keep/store"
	"eidetic/systemd"
)

// diary notes what parts do.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// part returns a part that notes its start and its stop.
func (d *diary) part(name string) part {
	return part{name: name, start: func(context.Context) (func() error, error) {
		d.note("start " + name)
		return func() error { d.note("stop " + name); return nil }, nil
	}}
}

// working is a part that also notes when its work ends, with its context.
func (d *diary) working(name string) part {
	p := d.part(name)
	p.work = func(ctx context.Context) error {
		<-ctx.Done()
		d.note("end " + name)
		return nil
	}
	return p
}

func (d *diary) want(t *testing.T, lines ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(lines, d.lines); diff != "" {
		t.Errorf("what the parts did (-want +got):\n%s", diff)
	}
}

func TestPartsStopInReverseOrder(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	d := &diary{}
	network := d.working("network")
	network.untilStop = true
	last := part{name: "last", start: func(context.Context) (func() error, error) { stop(); return nil, nil }}
	err := serveParts(ctx, []part{d.part("store"), network, d.working("queue"), last}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Errorf("serveParts() of a service that was told to stop = %v; want nil", err)
	}
	d.want(t, "start store", "start network", "start queue", "end queue", "stop queue", "end network", "stop network", "stop store")
}

// All work is told at once that the service stops, though it is waited for in order: a queue must not take the end of
// its children, to which systemd sends the same signal, for the failure of a run.
func TestWorkIsToldAtOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	told := make(chan struct{})
	queue := part{name: "queue", work: func(ctx context.Context) error { <-ctx.Done(); close(told); return nil }}
	panel := part{name: "panel", work: func(ctx context.Context) error { stop(); <-told; return nil }}
	if err := serveParts(ctx, []part{queue, panel}, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("serveParts() = %v; want nil", err)
	}
}

func TestPartThatDoesNotStart(t *testing.T) {
	d, broken := &diary{}, errors.New("disk full")
	fails := part{name: "queue", start: func(context.Context) (func() error, error) { return nil, broken }}
	err := serveParts(t.Context(), []part{d.part("store"), d.working("network"), fails, d.part("panel")}, slog.New(slog.DiscardHandler))
	if !errors.Is(err, broken) || err.Error() != "queue: disk full" {
		t.Errorf("serveParts() = %v; want queue: disk full", err)
	}
	d.want(t, "start store", "start network", "end network", "stop network", "stop store")
}

func TestPartThatFailsAtWork(t *testing.T) {
	d, broken := &diary{}, errors.New("no listener")
	panel := d.part("panel")
	panel.work = func(context.Context) error { return broken }
	var log bytes.Buffer
	err := serveParts(t.Context(), []part{d.part("queue"), panel}, slog.New(slog.NewTextHandler(&log, nil)))
	if !errors.Is(err, broken) || err.Error() != "panel: no listener" {
		t.Errorf("serveParts() = %v; want panel: no listener", err)
	}
	d.want(t, "start queue", "start panel", "stop panel", "stop queue")
	if got := log.String(); strings.Count(got, "no listener") != 1 {
		t.Errorf("log %q; want the failure once", got)
	}
}

// The signal to stop may come while a part starts: later parts do not start. It is no failure, even if the start that
// it cuts short ends with an error.
func TestStopDuringTheStart(t *testing.T) {
	for name, end := range map[string]error{"that goes on": nil, "that is cut short": context.Canceled} {
		ctx, stop := context.WithCancel(t.Context())
		d := &diary{}
		slow := part{name: "slow", start: func(ctx context.Context) (func() error, error) {
			stop()
			<-ctx.Done()
			return nil, end
		}}
		if err := serveParts(ctx, []part{d.part("store"), slow, d.part("panel")}, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("serveParts() with a start %s = %v; want nil", name, err)
		}
		d.want(t, "start store", "stop store")
	}
}

// What cannot be undone is told, and the parts before it stop all the same.
func TestPartThatDoesNotStopWell(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	d := &diary{}
	tokens := part{name: "tokens", start: func(context.Context) (func() error, error) {
		stop()
		return func() error { return errors.New("disk full") }, nil
	}}
	var log bytes.Buffer
	if err := serveParts(ctx, []part{d.part("store"), tokens}, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Errorf("serveParts() = %v; want nil", err)
	}
	d.want(t, "start store", "stop store")
	if got := log.String(); !strings.Contains(got, "part=tokens") || !strings.Contains(got, "disk full") {
		t.Errorf("log %q; want the part and its error", got)
	}
}

// services are a box's and a head's, on a folder.
func services(data string, notifier *systemd.Notifier) map[string]func(context.Context, net.Listener) error {
	log := slog.New(slog.DiscardHandler)
	return map[string]func(context.Context, net.Listener) error{
		"box":  New(Options{Config: DefaultConfig(), Data: data, Token: newToken(), Notifier: notifier, Log: log}).Serve,
		"head": NewHead(HeadOptions{Data: data, Token: newToken(), Notifier: notifier, Log: log}).Serve,
	}
}

// Each service says which part failed, and lets go of its folder: it can be started again in the same process.
func TestServiceSaysWhichPartFailed(t *testing.T) {
	for name, broken := range map[string]struct{ file, part string }{
		"box": {"ca", "certificate authority: "}, "head": {"files", "fleet: "},
	} {
		t.Run(name, func(t *testing.T) {
			data, states := t.TempDir(), make(chan string, 1000)
			notifier := func() *systemd.Notifier {
				return systemd.NewNotifier(func(s string) error { states <- s; return nil }, 10*time.Second, time.Now)
			}
			path := filepath.Join(data, broken.file)
			if err := os.WriteFile(path, nil, 0o600); err != nil { // in the place of a folder
				t.Fatal(err)
			}
			l := loopback(t)
			if err := services(data, notifier())[name](t.Context(), l); err == nil || !strings.HasPrefix(err.Error(), broken.part) {
				t.Errorf("Serve() with a file %s = %v; want %s…", broken.file, err, broken.part)
			}
			if len(states) != 0 {
				t.Errorf("systemd was told %q of a service that did not start; want nothing", <-states)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			done := make(chan error, 1)
			go func() { done <- services(data, notifier())[name](ctx, l) }()
			select {
			case got := <-states:
				if !strings.HasPrefix(got, "READY=1\n") {
					t.Errorf("first state %q; want READY=1", got)
				}
			case err := <-done:
				t.Fatalf("Serve() again = %v; want it to serve", err)
			}
			stop()
			if err := <-done; err != nil {
				t.Errorf("Serve() = %v; want nil", err)
			}
		})
	}
}

// A service that is told to stop before it serves stops, and nothing failed.
func TestServiceThatIsStoppedAtOnce(t *testing.T) {
	for _, name := range []string{"box", "head"} {
		data := t.TempDir()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		notifier := systemd.NewNotifier(func(s string) error { t.Errorf("systemd was told %q", s); return nil }, 10*time.Second, time.Now)
		if err := services(data, notifier)[name](ctx, loopback(t)); err != nil {
			t.Errorf("Serve() of a %s = %v; want nil", name, err)
		}
		runs, err := store.Open(t.Context(), data, nil)
		if err != nil {
			t.Fatalf("the folder of the %s cannot be opened: %v", name, err)
		}
		_ = runs.Close()
	}
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}
