// Package head is the head of a fleet: one queue and one history for many boxes.
//
// In go plans, as a box gets them, and what boxes hand in; out come the same run folders that a box makes. It works in
// these steps:
//
//  1. [Queue] takes a plan for a box's panel, divides it into parts (fleet.Split), keeps its recordings as blobs, and puts it
//     into the ledger.
//  2. [Head.BoxHandler] is HTTP for boxes, which are known by their certificates: they join, describe themselves, claim parts,
//     renew leases, hand files in and end parts. Every call on a part carries its lease's token, which the ledger checks.
//  3. When all parts of a run have ended, [Head.assemble] makes one run folder of them, with one verdict and one report. Its
//     files are kept as blobs, and the ledger commits their list together with the run's end.
//  4. Each head moves runs that have ended into its own store (known.go), from which the panel shows them. A file that stayed on a
//     box, or is large and in another place, comes when somebody asks for it (fetch.go).
//  5. Boxes measure a reference from time to time (reference.go); package metrology judges what they measure.
//  6. Boxes install an update one after another (update.go, rollout.go, turn.go); each measures the reference before and after.
package head

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Config is what a head is made of.
type Config struct {
	Data     string        // folder of this head: runs, uploads, staged files
	Database string        // as ledger.Config has it
	Lease    time.Duration // as ledger.Config has it
	Blobs    blob.Store
	Store    *store.Store
	// Check says what is wrong with a plan, whatever the boxes are; Archive finds the file of a recording that a plan
	// names.
	Check   func(lab.Plan) error
	Archive func(name string) (file string, err error)
	// Address is how boxes reach the head, HOST:PORT, and Pin the SHA-256 of its certificate: for the links with which
	// they join.
	Address, Pin string
	// Stay are the names of files that stay on the boxes until somebody opens them, as fleet.Assignment has them.
	Stay []string
	Now  func() time.Time // nil is time.Now
	Log  *slog.Logger     // nil discards
}

// Head is the head of a fleet. It works while [Head.Work] runs.
type Head struct {
	Config
	ledger   *ledger.Ledger
	uploads  *blob.Uploads
	events   *runqueue.Events
	waiters  *waiters   // claims that found nothing
	bell     *bell      // rings when parts may wait for which nobody was woken
	ended    *bell      // rings when a run may have ended
	wished   *bell      // rings when somebody wants a file that stayed on a box
	untidy   *bell      // rings when there are blobs that no run refers to
	rolling  *bell      // rings when the update of the boxes may go on
	sending  sync.Mutex // one update is sent at a time
	judging  sync.Mutex // of readings that are added or changed
	refusals refusals   // of those who may not join

	mu    sync.Mutex
	known map[string]judged // by box and device
	// changes counts what makes known wrong.
	changes int
	digests digestCache
}

// Open opens the ledger, and nothing works yet. A database that is away is waited for. The caller closes the head.
func Open(ctx context.Context, c Config) (*Head, error) {
	h, err := Over(nil, c)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(knockPeriod)
	defer tick.Stop()
	for n := 0; ; n++ {
		h.ledger, err = ledger.Open(ctx, ledger.Config{Database: c.Database, Lease: c.Lease, Now: h.Now, Log: h.Log, Assemble: h.assemble})
		var away *lab.AwayError
		if !errors.As(err, &away) {
			break
		}
		if n%knocks == 0 {
			h.Log.Warn("the fleet's database does not answer: the head waits for it", "error", away.Err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
	if err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	return h, nil
}

const (
	// knockPeriod is how often a head that starts tries to reach its database, and knocks is after how many tries it
	// says so again.
	knockPeriod = time.Second
	knocks      = 30
)

// Over is [Open] with a ledger that is open, and that assembles runs by itself: a simulation's, whose runs have no
// files.
func Over(l *ledger.Ledger, c Config) (*Head, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	h := &Head{
		Config: c, ledger: l, events: runqueue.NewEvents(), waiters: newWaiters(), bell: newBell(), ended: newBell(), wished: newBell(),
		untidy: newBell(), rolling: newBell(), known: map[string]judged{},
	}
	if err := errors.Join(os.RemoveAll(h.staging()), os.MkdirAll(h.staging(), 0o700)); err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	var err error
	if h.uploads, err = blob.OpenUploads(blob.UploadsConfig{Dir: filepath.Join(c.Data, "uploading"), Store: c.Blobs}); err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	return h, nil
}

// Close closes the ledger.
func (h *Head) Close() error { return h.ledger.Close() }

// Events tell how runs go.
func (h *Head) Events() *runqueue.Events { return h.events }

// staging is where run folders are made; what a killed head left there is made anew.
func (h *Head) staging() string { return filepath.Join(h.Data, "assembling") }

// Work keeps the ledger, the store and the reference going until the context ends.
func (h *Head) Work(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.ledger.Work(ctx) })
	group.Go(func() error { h.follow(ctx); return nil })
	group.Go(func() error {
		h.every(ctx, glance, h.bell, "boxes that wait cannot be given parts", h.glance)
		return nil
	})
	group.Go(func() error { h.keepMeasuring(ctx); return nil })
	group.Go(func() error { h.keepRolling(ctx); return nil })
	group.Go(func() error { h.keepTidy(ctx); return nil })
	return group.Wait()
}

// every calls f at once and then regularly until the context ends; a bell rings it earlier.
func (h *Head) every(ctx context.Context, period time.Duration, rings *bell, what string, f func(context.Context) error) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for ctx.Err() == nil {
		var rung <-chan struct{}
		if rings != nil {
			rung = rings.wait() // before f looks, so that nothing is missed
		}
		if err := f(ctx); err != nil && ctx.Err() == nil {
			h.Log.Error(what, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-rung:
		}
	}
}

// bell wakes all who wait.
type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

func newBell() *bell { return &bell{next: make(chan struct{})} }

// wait returns a channel that is closed when the bell is rung.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.next)
	b.next = make(chan struct{})
}
