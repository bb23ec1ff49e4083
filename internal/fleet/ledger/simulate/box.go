package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/store"
)

// errNoAnswer is what a box has of a call that was dropped or is late.
var errNoAnswer = errors.New("no answer")

// idle is how long a box waits at least before it asks again, as one that the head lets wait.
const idle = 200 * time.Millisecond

// box claims, works and ends until the context ends.
func (s *simulation) box(ctx context.Context, b ledger.Box, random *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		c := ledger.Claim{BoxID: b.ID, Request: fmt.Sprintf("%s-%d-%d", b.Name, n, random.Uint64()), Free: []string{b.Offer.Devices[0].Name}}
		var a fleet.Assignment
		s.until(ctx, random, func() (err error) {
			a, err = send(ctx, s, random, func(h Head) (fleet.Assignment, error) { return s.claim(ctx, h, c) })
			return err
		})
		if a.Part == "" {
			continue
		}
		s.carryOut(ctx, a, ledger.Lease{BoxID: b.ID, Part: a.Part, Token: a.Token}, random)
	}
}

// carryOut renews while the box works, and ends the part.
func (s *simulation) carryOut(ctx context.Context, a fleet.Assignment, l ledger.Lease, random *rand.Rand) {
	work := time.Duration((0.5 + random.Float64()) * float64(s.Work))
	if random.IntN(50) == 0 {
		work *= 20 // some take so long that they renew
	}
	for trial := 1; work > 0 && ctx.Err() == nil; trial++ {
		step := min(work, a.LeaseFor/3)
		pause(ctx, step)
		if work -= step; work <= 0 {
			break
		}
		_, err := send(ctx, s, random, func(h Head) (fleet.Renewal, error) {
			return h.Renew(ctx, l, fleet.Progress{Trial: trial, Doing: "measure"})
		})
		if errors.Is(err, ledger.ErrLost) {
			return
		}
	}
	files := []fleet.File{{Path: "run.json", Bytes: 1000, SHA256: digestOf(a.Token, 0)}}
	for n := range 4 {
		files = append(files, fleet.File{Path: fmt.Sprintf("trials/%03d/trial.json", n+1), Bytes: 10_000, SHA256: digestOf(a.Token, n+1)})
	}
	s.until(ctx, random, func() error {
		_, err := send(ctx, s, random, func(h Head) (struct{}, error) {
			err := h.End(ctx, l, fleet.Outcome{State: store.StateDone, Files: files, Trials: 4})
			if err == nil {
				s.accepted(l)
			}
			return struct{}{}, err
		})
		return err
	})
}

// digestOf is as random as a digest: the token is.
func digestOf(token string, n int) string { return fmt.Sprintf("%.62s%02x", token, n) }

// until repeats a call until it has an answer other than an error of the network or the head.
func (s *simulation) until(ctx context.Context, random *rand.Rand, call func() error) {
	for ctx.Err() == nil {
		err := call()
		if err == nil || errors.Is(err, ledger.ErrLost) || errors.Is(err, store.ErrNotFound) {
			return
		}
		wait := s.patience(random)
		if errors.Is(err, ledger.ErrNothing) {
			wait += idle
		}
		pause(ctx, wait)
	}
}

// claim measures a claim, and remembers what was given.
func (s *simulation) claim(ctx context.Context, h Head, c ledger.Claim) (fleet.Assignment, error) {
	began := time.Now()
	a, err := h.Claim(ctx, c)
	took := time.Since(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.result.Claims = append(s.result.Claims, took)
		s.given[a.Part] = max(s.given[a.Part], a.Attempt)
	case errors.Is(err, ledger.ErrNothing):
		s.result.Empty = append(s.result.Empty, took)
	}
	return a, err
}

// accepted counts parts of which the ends of two attempts were accepted.
func (s *simulation) accepted(l ledger.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token, ok := s.ends[l.Part]; ok && token != l.Token {
		s.result.Twice++
	}
	s.ends[l.Part] = l.Token
}

// send carries a call out as a bad network does.
func send[T any](ctx context.Context, s *simulation, random *rand.Rand, call func(Head) (T, error)) (answer T, err error) {
	kind, later := int(random.Float64()/max(s.Faults, 1e-9)), time.Duration(random.Int64N(int64(s.Delay)+1))
	s.mu.Lock()
	s.result.Calls++
	if kind < 4 {
		s.result.Faulty++
	}
	s.mu.Unlock()
	_, head := s.now()
	switch kind {
	case 0: // dropped
		return answer, errNoAnswer
	case 1: // its answer is dropped
		_, _ = call(head)
		return answer, errNoAnswer
	case 2: // doubled: the second arrives whenever it does
		s.late.Go(func() { _, _ = call(head) })
	case 3: // delayed for longer than the box waits
		s.late.Go(func() {
			pause(ctx, later)
			_, head := s.now()
			_, _ = call(head)
		})
		return answer, errNoAnswer
	}
	return call(head)
}
