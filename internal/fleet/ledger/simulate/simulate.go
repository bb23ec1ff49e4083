// Package simulate lets many boxes that measure nothing work with one ledger, over a network that drops, doubles and
// delays calls, while the ledger is closed and opened again. In go the sizes of fleet and queue; out come how long
// claims took, and whether every run ended exactly once.
//
// Boxes call an interface, so that a client of the head's HTTP can stand in place of the ledger.
package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/lab"
	"eidetic/internal/store"
)

// Head is what boxes call.
type Head interface {
	Claim(ctx context.Context, c ledger.Claim) (fleet.Assignment, error)
	Renew(ctx context.Context, l ledger.Lease, p fleet.Progress) (fleet.Renewal, error)
	End(ctx context.Context, l ledger.Lease, o fleet.Outcome) error
}

// Options are the sizes of a simulation.
type Options struct {
	Boxes, Runs   int
	Needs, Series int           // distinct ones
	Faults        float64       // share of calls that are dropped, of those whose answer is, that are doubled, and that are delayed
	Delay         time.Duration // the longest
	Work          time.Duration // mean time that a box takes for a part
	Restart       time.Duration // between restarts of the ledger; 0 is never
	RestartAfter  int           // runs that end between restarts, for a machine of unknown speed; 0 is never
	Seed          uint64
	// Open opens the ledger with Assemble, which the simulation passes.
	Open func(ctx context.Context, assemble func(context.Context, ledger.Run) (ledger.Assembled, error)) (*ledger.Ledger, error)
	// Through puts something between boxes and ledger, and returns how to close it; nil is nothing.
	Through func(*ledger.Ledger) (Head, func() error, error)
	// Fingerprint of the certificate of box N; nil invents one.
	Fingerprint func(n int) string
	// Tick is called every second with what has ended so far; nil is nobody.
	Tick func(Result)
}

// Result is what came of a simulation.
type Result struct {
	Claims   []time.Duration // that were answered with a part
	Empty    []time.Duration // that were answered with nothing
	Calls    int
	Faulty   int // calls that were dropped, doubled or delayed
	Restarts int
	Again    int // parts that were given more than once, because a lease ran out
	Ended    int // runs
	Twice    int // parts of which two ends were accepted, runs that ended twice
	Lost     int // runs that did not end
	Took     time.Duration
}

// Run simulates until all runs have ended or the context does.
func Run(ctx context.Context, o Options) (Result, error) {
	s := &simulation{Options: o, ends: map[string]string{}, given: map[string]int{}, ended: map[string]int{}}
	began := time.Now()
	if err := s.open(ctx); err != nil {
		return Result{}, err
	}
	err := s.run(ctx)
	s.mu.Lock()
	r := s.result
	for _, n := range s.given {
		if n > 1 {
			r.Again++
		}
	}
	s.mu.Unlock()
	r.Took = time.Since(began)
	r.Lost = o.Runs - len(s.ended)
	return r, errors.Join(err, s.close())
}

type simulation struct {
	Options
	gate   sync.RWMutex // over the head that boxes call now
	ledger *ledger.Ledger
	head   Head
	close  func() error

	mu     sync.Mutex
	result Result
	ends   map[string]string // token of the end of a part that was accepted
	given  map[string]int    // newest attempt of a part
	ended  map[string]int    // times that a run ended
	seq    int64
	late   sync.WaitGroup // calls that are delayed
}

// open opens the ledger and starts its background work.
func (s *simulation) open(ctx context.Context) error {
	l, err := s.Open(ctx, func(context.Context, ledger.Run) (ledger.Assembled, error) {
		return ledger.Assembled{State: store.StateDone}, nil
	})
	if err != nil {
		return err
	}
	head, closeHead := Head(l), func() error { return nil }
	if s.Through != nil {
		if head, closeHead, err = s.Through(l); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- l.Work(work) }()
	s.gate.Lock()
	defer s.gate.Unlock()
	s.ledger, s.head = l, head
	s.close = func() error {
		stop()
		return errors.Join(<-done, closeHead(), l.Close())
	}
	return nil
}

func (s *simulation) now() (*ledger.Ledger, Head) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	return s.ledger, s.head
}

func (s *simulation) run(ctx context.Context) error {
	boxes := make([]ledger.Box, s.Boxes)
	for n := range boxes {
		var err error
		if boxes[n], err = s.join(ctx, n); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wait sync.WaitGroup
	for n, b := range boxes {
		wait.Go(func() { s.box(ctx, b, rand.New(rand.NewPCG(s.Seed, uint64(n)))) })
	}
	wait.Go(func() { s.add(ctx) })
	err := s.watch(ctx)
	stop()
	wait.Wait()
	s.late.Wait()
	return err
}

func (s *simulation) join(ctx context.Context, n int) (ledger.Box, error) {
	code, err := s.ledger.NewCode(ctx, "simulation", time.Hour)
	if err != nil {
		return ledger.Box{}, err
	}
	print := fmt.Sprintf("simulated-%d", n)
	if s.Fingerprint != nil {
		print = s.Fingerprint(n)
	}
	return s.ledger.Join(ctx, code, fmt.Sprintf("box-%d", n), print, fleet.Offer{
		Software: "simulation", Cores: 2, Labels: map[string]string{"pool": fmt.Sprint(n % 10), "room": fmt.Sprint(n % 7)},
		Devices: []fleet.OfferedDevice{{Name: "virtual", Kind: "virtual", Ready: true, Browsers: []string{"chromium", "firefox-esr"}}},
	})
}

// need is one of Needs, each of which fits some box: pools, rooms, groups of boxes and single boxes.
func (s *simulation) need(n int) fleet.Need {
	switch n %= max(s.Needs, 1); {
	case n == 0:
		return fleet.Need{}
	case n <= 10:
		return fleet.Need{Labels: []string{fmt.Sprintf("pool=%d", min(n-1, s.Boxes-1))}}
	case n <= 17:
		return fleet.Need{Labels: []string{fmt.Sprintf("room=%d", min(n-11, s.Boxes-1))}}
	}
	return fleet.Need{Boxes: []string{fmt.Sprintf("box-%d", n%s.Boxes), fmt.Sprintf("box-%d", (7*n+3)%s.Boxes)}}
}

// add puts the runs into the queue. A call that fails is repeated with its key, as a client of the head would.
func (s *simulation) add(ctx context.Context) {
	random := rand.New(rand.NewPCG(s.Seed, 1<<32))
	for n := range s.Runs {
		r := ledger.NewRun{
			ID: fmt.Sprintf("run-%06d", n), Series: fmt.Sprint("series-", random.IntN(max(s.Series, 1))), Priority: 1 + random.IntN(3),
			Plan: lab.Plan{Name: "a simulated run", Arm: lab.Arm{Page: "https://www.shop.test/"}, Trials: 1 + random.IntN(10)},
		}
		r.Once = store.Once{Key: r.ID, Request: r.ID}
		for range 1 + random.IntN(2) {
			r.Parts = append(r.Parts, ledger.NewPart{Plan: r.Plan, Need: s.need(random.IntN(2 * max(s.Needs, 1)))})
		}
		for ctx.Err() == nil {
			l, _ := s.now()
			if _, err := l.AddRun(ctx, r); err == nil {
				break
			}
			pause(ctx, 20*time.Millisecond)
		}
	}
}

// watch restarts the ledger, and follows the ends of runs until all have ended.
func (s *simulation) watch(ctx context.Context) error {
	tick := time.NewTicker(min(time.Second, max(s.Work, 10*time.Millisecond)))
	defer tick.Stop()
	restarted, then := time.Now(), 0
	for len(s.ended) < s.Runs {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d runs have ended: %w", len(s.ended), s.Runs, ctx.Err())
		case <-tick.C:
		}
		if s.Restart > 0 && time.Since(restarted) >= s.Restart || s.RestartAfter > 0 && len(s.ended)-then >= s.RestartAfter {
			if err := s.close(); err != nil { // calls that go on fail
				return err
			}
			if err := s.open(ctx); err != nil {
				return err
			}
			restarted, then = time.Now(), len(s.ended)
			s.mu.Lock()
			s.result.Restarts++
			s.mu.Unlock()
		}
		if err := s.follow(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulation) follow(ctx context.Context) error {
	for {
		runs, seq, err := s.ledger.EndedSince(ctx, s.seq)
		if err != nil {
			return err
		}
		s.mu.Lock()
		for _, r := range runs {
			if s.ended[r.ID]++; s.ended[r.ID] > 1 {
				s.result.Twice++
			}
		}
		s.result.Ended = len(s.ended)
		r := s.result
		s.mu.Unlock()
		s.seq = seq
		if len(runs) == 0 {
			if s.Tick != nil {
				s.Tick(r)
			}
			return nil
		}
	}
}

// pause waits for a while.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// patience is how long a box waits after an error or an empty answer, in shares of its work.
func (s *simulation) patience(random *rand.Rand) time.Duration {
	return cmp.Or(time.Duration(random.Int64N(int64(s.Work)+1)/2), time.Millisecond)
}
