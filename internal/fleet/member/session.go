package member

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// session is the box's work for one head.
type session struct {
	Config
	identity Identity
	call     *Client
	stop     context.CancelCauseFunc
	ended    chan struct{} // closed when all of it has ended
	more     chan struct{} // capacity 1: a device may be free
	wanted   *wishes
	news     chan struct{} // capacity 1: the head has something to tell
	updating *updating
	all      sync.WaitGroup

	mu      sync.Mutex
	parts   map[string]*part // by part
	offer   fleet.Offer
	health  Told
	contact time.Time // the last answer of the head
	problem string    // of the last call that failed, since then
	paused  map[string]pause
	request string // the claim that has not got a part yet
	// inherited says that an earlier process named the claim; the part that it got may have been given back meanwhile.
	inherited bool
}

// pause keeps a device from claims after it had to give a part back: the head may have nobody else.
type pause struct {
	until time.Time
	n     int
}

const (
	// firstPause doubles with each part in a row that a device gives back, up to mostPause.
	firstPause, mostPause = 30 * time.Second, 30 * time.Minute
	requestFile           = "claim.json"
)

func newSession(c Config, id Identity, call *Client, stop context.CancelCauseFunc) *session {
	return &session{
		Config: c, identity: id, call: call, stop: stop, ended: make(chan struct{}), more: make(chan struct{}, 1),
		wanted: newWishes(), updating: newUpdating(), news: make(chan struct{}, 1), parts: map[string]*part{}, paused: map[string]pause{},
	}
}

// load reads what an earlier process left.
func (s *session) load() error {
	all, err := readKept(s.Dir)
	if err != nil {
		s.Log.Error("a part of the fleet cannot be gone on with; its run stays on the box", "error", err)
		s.problem = err.Error()
	}
	for _, k := range all {
		s.parts[k.Part] = newPart(s.Dir, k)
	}
	var last struct {
		Request string `json:"request"`
	}
	text, err := readBounded(filepath.Join(s.Dir, requestFile), maxIdentity)
	if err == nil && json.Unmarshal(text, &last) == nil && len(last.Request) <= 64 {
		s.request, s.inherited = last.Request, last.Request != ""
	}
	return nil
}

// work is all that the box does for its head, until the context ends.
func (s *session) work(ctx context.Context) {
	for _, p := range s.list() {
		s.begin(ctx, p, true)
	}
	s.all.Go(func() { s.keepDescribed(ctx) })
	s.all.Go(func() { s.keepClaiming(ctx) })
	s.all.Go(func() { s.grant(ctx) })
	if s.Updater != nil {
		s.all.Go(func() { s.keepUpdated(ctx) })
	}
	s.all.Wait()
}

func (s *session) list() (all []*part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *part) int { return a.get().Claimed.Compare(b.get().Claimed) })
	return all
}

// begin carries a part out, beside the others.
func (s *session) begin(ctx context.Context, p *part, again bool) {
	s.all.Go(func() {
		if s.carry(ctx, p, again) {
			s.drop(ctx, p)
		}
		wake(s.more)
	})
}

// drop takes a part off the list, or puts its newer attempt into its place.
func (s *session) drop(ctx context.Context, p *part) {
	p.mu.Lock()
	id, next := p.kept.Part, p.next
	p.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case next != nil:
		p = newPart(s.Dir, *next)
		s.parts[id] = p
		s.begin(ctx, p, false)
	case s.parts[id] == p: // else the head has given it to the box again meanwhile
		delete(s.parts, id)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// heard notes how a call of the head went.
func (s *session) heard(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answered *statusError
	if err == nil || errors.Is(err, errLost) || errors.As(err, &answered) {
		s.contact = s.Now()
	}
	if err == nil || errors.Is(err, errLost) {
		s.problem = ""
	} else if !errors.Is(err, context.Canceled) {
		s.problem = clip(err.Error(), 2*maxProblem)
	}
}

// retry waits between the attempts of one call: longer after each, and never two boxes at the same times.
type retry struct{ n int }

func (r *retry) wait(ctx context.Context, t Times, wakeUp <-chan struct{}) {
	most := t.First << min(r.n, 20)
	if most <= 0 || most > t.Most {
		most = t.Most
	}
	r.n++
	timer := time.NewTimer(most/2 + mathrand.N(most/2+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wakeUp:
	case <-timer.C:
	}
}

// keepDescribed tells the head what the box is, regularly and when it has changed.
func (s *session) keepDescribed(ctx context.Context) {
	look := time.NewTicker(s.Times.Look)
	defer look.Stop()
	var told fleet.Offer
	var last time.Time
	var failed retry
	for ctx.Err() == nil {
		offer := s.Offer(ctx)
		s.addImage(&offer)
		changed := !reflect.DeepEqual(offer, told)
		s.mu.Lock()
		s.offer = offer
		s.mu.Unlock()
		if changed {
			wake(s.more)
		}
		if changed || last.IsZero() || s.Now().Sub(last).Abs() >= s.Times.Describe {
			answer, err := s.call.Describe(ctx, offer)
			s.heard(err)
			if err != nil {
				failed.wait(ctx, s.Times, nil)
				continue
			}
			told, last, failed = offer, s.Now(), retry{}
			s.mu.Lock()
			s.health = answer
			s.mu.Unlock()
			s.wanted.add(answer.Wanted)
			told, err := checked(answer.Update)
			if err != nil {
				s.Log.Error("the box leaves an update alone", "error", err)
			}
			if s.updating.tell(told) {
				wake(s.more) // the box claims nothing from now on
			}
		}
		select {
		case <-ctx.Done():
		case <-s.news:
			last = time.Time{}
		case <-look.C:
		}
	}
}

// free lists the devices that could begin a part now.
func (s *session) free(ctx context.Context) ([]string, error) {
	jobs, err := s.Queue.List(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := map[string]bool{}
	for _, j := range jobs {
		busy[j.Device] = busy[j.Device] || j.State == store.StateQueued || j.State == store.StateRunning
	}
	for _, p := range s.parts {
		p.mu.Lock()
		busy[p.kept.Device] = busy[p.kept.Device] || !p.measured
		p.mu.Unlock()
	}
	now := s.Now()
	var free []string
	for _, d := range s.offer.Devices {
		if d.Ready && !busy[d.Name] && !now.Before(s.paused[d.Name].until) {
			free = append(free, d.Name)
		}
	}
	if len(s.parts) >= maxParts || s.updating.now() != nil {
		return nil, nil
	}
	return free, nil
}

// keepClaiming asks for parts while a device is free.
func (s *session) keepClaiming(ctx context.Context) {
	events := s.Queue.Events().Listen("")
	defer events.Close()
	look := time.NewTicker(s.Times.Look)
	defer look.Stop()
	var failed, idle retry
	for ctx.Err() == nil {
		free, err := s.free(ctx)
		if err == nil && len(free) > 0 {
			var hasty bool
			if hasty, err = s.claim(ctx, free); err == nil {
				failed = retry{}
				if hasty {
					idle.wait(ctx, s.Times, s.more)
				} else {
					idle = retry{}
				}
				continue
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				s.Log.Debug("a claim failed", "error", err)
			}
			failed.wait(ctx, s.Times, nil)
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.more:
		case <-events.Wake():
			events.Take()
		case <-look.C:
		}
	}
}

// claim asks once for a part for one of the free devices, and begins it. A request keeps its name until it has got one:
// one whose answer was lost, on the way or by a kill of this process, gets the same part again. hasty says that the head
// answered at once that it has none, which a head of ours does only when it has news: asked again and again it would
// keep the box busy.
func (s *session) claim(ctx context.Context, free []string) (hasty bool, err error) {
	if err := s.nameRequest(); err != nil {
		return false, err
	}
	began := time.Now()
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{})
	go func() { // the claim is of devices that are free: it ends when they are others
		defer close(changed)
		s.awaitChange(own, free)
		cancel()
	}()
	a, ok, err := s.call.Claim(own, s.request, free, s.Times.Claim)
	gone := own.Err() != nil && ctx.Err() == nil
	cancel()
	<-changed
	if err != nil && gone {
		return false, nil
	}
	s.heard(err)
	if err != nil {
		return false, err
	}
	if a.News {
		wake(s.news)
	}
	if !ok && s.inherited {
		s.request, s.inherited = "", false
	}
	if !ok || a.News {
		return time.Since(began) < s.Times.Claim/2, nil
	}
	if err := checkAssignment(a); err != nil {
		s.request = "" // it would be answered by the same again
		err = fmt.Errorf("the head gives the box a part that is none: %w", err)
		s.heard(err)
		return false, err
	}
	return false, s.take(ctx, a)
}

// awaitChange returns when the free devices are no longer these.
func (s *session) awaitChange(ctx context.Context, free []string) {
	look := time.NewTicker(s.Times.Look)
	defer look.Stop()
	events := s.Queue.Events().Listen("")
	defer events.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.more:
		case <-events.Wake():
			events.Take()
		case <-look.C:
		}
		if now, err := s.free(ctx); err == nil && !slices.Equal(now, free) {
			return
		}
	}
}

// nameRequest gives the next claim a name, on the disk first.
func (s *session) nameRequest() error {
	s.mu.Lock()
	for _, p := range s.parts {
		if p.get().Request == s.request { // the process was killed before it chose another
			s.request = ""
		}
	}
	s.mu.Unlock()
	if s.request != "" {
		return nil
	}
	name := rand.Text()
	text, err := json.Marshal(map[string]string{"request": name})
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(s.Dir, requestFile), text, 0o600); err != nil {
		return err
	}
	s.request = name
	return nil
}

// take keeps an assignment, and begins it. The same one again changes nothing; a newer attempt of a part that the box
// still holds begins when the box has let the older one go.
func (s *session) take(ctx context.Context, a fleet.Assignment) error {
	k := kept{Assignment: a, Request: s.request, Claimed: s.Now().UTC()}
	s.mu.Lock()
	old := s.parts[a.Part]
	s.mu.Unlock()
	if old != nil {
		if held, err := old.follow(k); held {
			if err != nil {
				return s.refuse(ctx, a, err)
			}
			s.request = ""
			return nil
		}
	}
	if err := k.write(s.Dir); err != nil {
		return s.refuse(ctx, a, err)
	}
	s.request = ""
	if err := s.nameRequest(); err != nil {
		s.Log.Warn("the next claim has no name yet", "error", err)
	}
	s.Log.Info("the box has a part of the fleet", "part", a.Part, "attempt", a.Attempt, "device", a.Device)
	p := newPart(s.Dir, k)
	s.mu.Lock()
	s.parts[a.Part] = p
	s.mu.Unlock()
	s.begin(ctx, p, false)
	return nil
}

// refuse gives back a part that the disk does not take. Kept, its lease would be renewed by each claim that repeats this
// one, and no other box would get it.
func (s *session) refuse(ctx context.Context, a fleet.Assignment, err error) error {
	s.Log.Error("the box gives a part back that it cannot keep", "part", a.Part, "error", err)
	s.gaveBack(a.Device)
	why := clip("the box cannot keep the part on its disk: "+err.Error(), maxReason)
	if err := s.call.giveBack(ctx, a.Part, a.Token, why); err != nil && !IsLost(err) {
		s.heard(err)
		return err // the request keeps its name, and gets the same part
	}
	s.request = ""
	return nil
}

// gaveBack keeps a device from claims for a while; a part that was measured ends that.
func (s *session) gaveBack(device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.paused[device]
	length := min(firstPause<<min(last.n, 20), mostPause)
	s.paused[device] = pause{s.Now().Add(length), last.n + 1}
}

func (s *session) wasMeasured(device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.paused, device)
}
