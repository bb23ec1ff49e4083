// Package simulate lets many boxes that measure nothing work for one head: the head's real handler and ledger, called
// by the real client of a box over TLS on loopback, each box with a key of its own. The network drops, doubles and
// delays calls, and the head stops and starts again on the same port. In go the sizes of fleet and queue; out come how
// long claims took, and whether every run ended exactly once.
//
// What is missing: people (runs are added without HTTP), the content of files, and run folders made of them.
package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/member"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Options are the sizes of a simulation.
type Options struct {
	Boxes, Runs   int
	Needs, Series int           // distinct ones
	Faults        float64       // share of calls that are dropped, of those whose answer is, that are doubled, and that are delayed
	Delay         time.Duration // the longest
	Work          time.Duration // mean time that a box takes for a part
	Every         time.Duration // mean time between two runs that are added; 0 adds them as fast as the head takes them
	Restart       time.Duration // between restarts of the head; 0 is never
	RestartAfter  int           // runs that end between restarts, for a machine of unknown speed; 0 is never
	Seed          uint64
	Dir           string // of all files, but for those of another Database
	Database      string // as ledger.Config has it
	Lease         time.Duration
	Times         member.Times // of the boxes: Describe, Claim and Call count
	// Tick is called every second with what has ended so far; nil is nobody.
	Tick func(Result)
	Log  *slog.Logger // nil discards
}

// Result is what came of a simulation.
type Result struct {
	// Claims is how long claims took for which there was work: from the call to the answer. Woken is of claims that
	// waited at the head for work: from when the run was asked for to the answer. Parts that are given again after a
	// lease ran out are in neither.
	Claims, Woken []time.Duration
	Empty         []time.Duration // by how much claims that found nothing were answered later than the box wanted to wait
	Calls         int
	Faulty        int // calls that were dropped, doubled or delayed
	Failed        int // calls that got no answer or an error, besides those
	Joined        time.Duration
	Restarts      int           // of the head
	Again         int           // parts that were given more than once, because a lease ran out
	Ended         int           // runs
	Twice         int           // parts of which two ends were accepted, runs that ended twice
	Lost          int           // runs that did not end
	Took          time.Duration // since all boxes had joined
}

// Run simulates until all runs have ended or the context does.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &simulation{
		Options: o, ends: map[string]string{}, given: map[string]int{}, ended: map[string]int{}, added: make([]time.Time, o.Runs),
	}
	var err error
	if s.machine, err = newMachine(ctx, o.Dir, o.Log); err != nil {
		return Result{}, err
	}
	defer s.machine.store.Close()
	if err := s.start(ctx); err != nil {
		return Result{}, err
	}
	err = s.run(ctx)
	s.mu.Lock()
	r := s.result
	for _, n := range s.given {
		if n > 1 {
			r.Again++
		}
	}
	s.mu.Unlock()
	r.Lost = o.Runs - len(s.ended)
	return r, errors.Join(err, s.now().close())
}

type simulation struct {
	Options
	machine *machine
	gate    sync.RWMutex // over the head that runs now
	head    *serving

	mu     sync.Mutex
	result Result
	ends   map[string]string // token of the end of a part that was accepted
	given  map[string]int    // newest attempt of a part
	ended  map[string]int    // times that a run ended
	added  []time.Time       // when run N was added
	seq    int64
	late   sync.WaitGroup // calls that are delayed
}

// start starts the head.
func (s *simulation) start(ctx context.Context) error {
	h, err := s.machine.start(ctx, s.Options)
	if err != nil {
		return err
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	s.head = h
	return nil
}

func (s *simulation) now() *serving {
	s.gate.RLock()
	defer s.gate.RUnlock()
	return s.head
}

func (s *simulation) run(ctx context.Context) error {
	began := time.Now()
	boxes := make([]*box, s.Boxes)
	for n := range boxes {
		b, err := s.join(ctx, n)
		if err != nil {
			return fmt.Errorf("box %d: %w", n, err)
		}
		defer b.client.Close()
		boxes[n] = b
	}
	s.result.Joined = time.Since(began)
	began = time.Now()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wait sync.WaitGroup
	for n, b := range boxes {
		wait.Go(func() { b.work(ctx, rand.New(rand.NewPCG(s.Seed, uint64(n)))) })
		wait.Go(func() { b.keepDescribed(ctx, rand.New(rand.NewPCG(s.Seed, 1<<33+uint64(n)))) })
	}
	wait.Go(func() { s.add(ctx) })
	err := s.watch(ctx)
	s.mu.Lock()
	s.result.Took = time.Since(began)
	s.mu.Unlock()
	stop()
	wait.Wait()
	s.late.Wait()
	return err
}

// join makes a box of the fleet, as "appliance join" does.
func (s *simulation) join(ctx context.Context, n int) (*box, error) {
	code, err := s.now().Boxes().NewCode(ctx, "simulation")
	if err != nil {
		return nil, err
	}
	b := &box{simulation: s, name: fmt.Sprintf("box-%d", n), offer: fleet.Offer{
		Software: "simulation", Cores: 2, Labels: map[string]string{"pool": fmt.Sprint(n % 10), "room": fmt.Sprint(n % 7)},
		Devices: []fleet.OfferedDevice{{Name: "virtual", Kind: "virtual", Ready: true, Browsers: []string{"chromium", "firefox-esr"}}},
	}}
	dir := filepath.Join(s.Dir, "boxes", b.name)
	id, err := member.Join(ctx, code.Link, b.name, b.offer, dir)
	if err != nil {
		return nil, err
	}
	b.client, err = member.Dial(dir, id, s.Times.Call)
	return b, err
}

// on is one of Needs, each of which fits some box: pools, rooms, groups of boxes and single boxes.
func (s *simulation) on(n int) *lab.On {
	switch n %= max(s.Needs, 1); {
	case n == 0:
		return &lab.On{}
	case n <= 10:
		return &lab.On{Labels: []string{fmt.Sprintf("pool=%d", min(n-1, s.Boxes-1))}}
	case n <= 17:
		return &lab.On{Labels: []string{fmt.Sprintf("room=%d", min(n-11, s.Boxes-1))}}
	}
	return &lab.On{Boxes: []string{fmt.Sprintf("box-%d", n%s.Boxes), fmt.Sprintf("box-%d", (7*n+3)%s.Boxes)}}
}

// add puts the runs into the queue. A call that fails is repeated with its key, as a client of the head would.
func (s *simulation) add(ctx context.Context) {
	random := rand.New(rand.NewPCG(s.Seed, 1<<32))
	for n := range s.Runs {
		p := lab.Plan{Name: fmt.Sprint("series-", random.IntN(max(s.Series, 1))), Trials: 1 + random.IntN(10), Seed: uint64(n)}
		p.On = s.on(random.IntN(2 * max(s.Needs, 1)))
		p.On.Priority = 1 + random.IntN(3)
		for page := range 1 + random.IntN(2) { // each is a part
			p.Pages = append(p.Pages, lab.PlanPage{Page: fmt.Sprintf("https://www.shop.test/%d", page)})
		}
		once := store.Once{Key: fmt.Sprint("run-", n), Request: fmt.Sprint("run-", n)}
		for ctx.Err() == nil {
			s.mu.Lock()
			s.added[n] = time.Now()
			s.mu.Unlock()
			if _, err := s.now().Add(ctx, p, once); err == nil {
				break
			}
			_ = lab.Wait(ctx, 20*time.Millisecond)
		}
		if s.Every > 0 {
			_ = lab.Wait(ctx, time.Duration(random.ExpFloat64()*float64(s.Every)))
		}
	}
}

// watch restarts the head, and follows the ends of runs until all have ended.
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
			if err := s.now().close(); err != nil { // calls that go on fail
				return err
			}
			if err := s.start(ctx); err != nil {
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
		runs, seq, err := s.now().ledger.EndedSince(ctx, s.seq)
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

// patience is how long a box waits after an error, in shares of its work.
func (s *simulation) patience(random *rand.Rand) time.Duration {
	return cmp.Or(time.Duration(random.Int64N(int64(s.Work)+1)/2), time.Millisecond)
}
