package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/member"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// errNoAnswer is what a box has of a call that was dropped or is late.
var errNoAnswer = errors.New("no answer") // constant

// box is a box that measures nothing.
type box struct {
	*simulation
	name   string
	offer  fleet.Offer
	client *member.Client
}

// keepDescribed tells the head regularly what the box is.
func (b *box) keepDescribed(ctx context.Context, random *rand.Rand) {
	_ = lab.Wait(ctx, time.Duration(random.Int64N(int64(b.Times.Describe)))) // boxes did not start all at once
	for ctx.Err() == nil {
		// After an error the next description says the same.
		_, _ = send(ctx, b.simulation, random, func() (member.Told, error) { return b.client.Describe(ctx, b.offer) })
		_ = lab.Wait(ctx, b.Times.Describe)
	}
}

// work claims, works and ends until the context ends.
func (b *box) work(ctx context.Context, random *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		request := fmt.Sprintf("%s-%d-%d", b.name, n, random.Uint64())
		var a *fleet.Assignment
		for a == nil && ctx.Err() == nil {
			b.until(ctx, random, func() (err error) {
				a, err = send(ctx, b.simulation, random, func() (*fleet.Assignment, error) { return b.claim(ctx, request) })
				return err
			})
		}
		if a != nil {
			b.carryOut(ctx, *a, random)
		}
	}
}

// claim measures a claim, and remembers what was given; nil is nothing.
func (b *box) claim(ctx context.Context, request string) (*fleet.Assignment, error) {
	began := time.Now()
	a, ok, err := b.client.Claim(ctx, request, []string{b.offer.Devices[0].Name}, b.Times.Claim)
	answered := time.Now()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !ok {
		b.result.Empty = append(b.result.Empty, answered.Sub(began)-b.Times.Claim)
		return nil, nil
	}
	added := b.added[a.Plan.Seed]
	switch {
	case a.Attempt > 1: // when its first lease ran out, a box does not know
	case added.After(began):
		b.result.Woken = append(b.result.Woken, answered.Sub(added))
	default:
		b.result.Claims = append(b.result.Claims, answered.Sub(began))
	}
	b.given[a.Part] = max(b.given[a.Part], a.Attempt)
	return &a, nil
}

// carryOut renews while the box works, and ends the part.
func (b *box) carryOut(ctx context.Context, a fleet.Assignment, random *rand.Rand) {
	work := time.Duration((0.5 + random.Float64()) * float64(b.Work))
	if random.IntN(50) == 0 {
		work *= 10 // some take so long that they renew
	}
	for trial := 1; work > 0 && ctx.Err() == nil; trial++ {
		step := min(work, a.LeaseFor/3)
		_ = lab.Wait(ctx, step)
		if work -= step; work <= 0 {
			break
		}
		_, err := send(ctx, b.simulation, random, func() (fleet.Renewal, error) {
			return b.client.Renew(ctx, a.Part, a.Token, fleet.Progress{Trial: trial, Doing: "measure"})
		})
		if member.IsLost(err) {
			return
		}
	}
	files := []fleet.File{{Path: "run.json", Bytes: 1000, SHA256: digestOf(a.Token, 0), Stays: true}}
	for n := range 4 {
		name := fmt.Sprintf("trials/%03d/trial.json", n+1)
		files = append(files, fleet.File{Path: name, Bytes: 10_000, SHA256: digestOf(a.Token, n+1), Stays: true})
	}
	b.until(ctx, random, func() error {
		_, err := send(ctx, b.simulation, random, func() (missing []string, err error) {
			missing, err = b.client.End(ctx, a.Part, a.Token, fleet.Outcome{State: store.StateDone, Files: files, Trials: 4})
			if err == nil && len(missing) > 0 {
				err = fmt.Errorf("the head wants %d files that stayed", len(missing))
			}
			if err == nil {
				b.accepted(a)
			}
			return missing, err
		})
		return err
	})
}

// digestOf is as random as a digest: the token is.
func digestOf(token string, n int) string { return fmt.Sprintf("%.62s%02x", token, n) }

// until repeats a call until it has an answer other than an error of the network or the head.
func (b *box) until(ctx context.Context, random *rand.Rand, call func() error) {
	for ctx.Err() == nil {
		if err := call(); err == nil || member.IsLost(err) {
			return
		}
		_ = lab.Wait(ctx, b.patience(random))
	}
}

// accepted counts parts of which the ends of two attempts were accepted.
func (s *simulation) accepted(a fleet.Assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token, ok := s.ends[a.Part]; ok && token != a.Token {
		s.result.Twice++
	}
	s.ends[a.Part] = a.Token
}

// send carries a call out as a bad network does.
func send[T any](ctx context.Context, s *simulation, random *rand.Rand, call func() (T, error)) (answer T, err error) {
	kind, later := int(random.Float64()/max(s.Faults, 1e-9)), time.Duration(random.Int64N(int64(s.Delay)+1))
	s.mu.Lock()
	s.result.Calls++
	if kind < 4 {
		s.result.Faulty++
	}
	s.mu.Unlock()
	switch kind {
	case 0: // dropped
		return answer, errNoAnswer
	case 1: // its answer is dropped
		_, _ = call()
		return answer, errNoAnswer
	case 2: // doubled: the second arrives whenever it does
		s.late.Go(func() { _, _ = call() })
	case 3: // delayed for longer than the box waits
		s.late.Go(func() {
			_ = lab.Wait(ctx, later)
			_, _ = call()
		})
		return answer, errNoAnswer
	}
	answer, err = call()
	if err != nil && ctx.Err() == nil && !member.IsLost(err) {
		s.mu.Lock()
		s.result.Failed++
		s.mu.Unlock()
	}
	return answer, err
}
