// Package bisects carries out bisects that a box makes by itself: a hook of the person's deploys a revision when the
// box asks it to, and the box makes the trials. The search is that of package bisection; its runs go through the queue
// like any other, and take their turns.
//
// Requests and the answers of hooks flow in; signed posts ([Standard Webhooks]), runs in the queue and what was found
// flow out. Each bisect has a folder with its request, its journal and its result. What was learned is on the disk
// before the next step begins, and a request for a run has a key: a box that is killed anywhere goes on after its next
// start, asks for no run twice, and may ask a hook once more for the revision that it was deploying.
//
// [Standard Webhooks]: https://www.standardwebhooks.com
package bisects

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"eidetic/internal/box/bisection"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// Sender posts to hooks; a webhook.Sender is one.
type Sender interface {
	CheckHost(ctx context.Context, url string) error
	Names(url string) bool // whether the configuration names the host
	Post(ctx context.Context, p webhook.Post) (webhook.Answer, error)
}

// Config holds what a Keeper needs.
type Config struct {
	Dir    string // a folder for all bisects
	Runs   ownruns.Queue
	Store  *store.Store
	Sender Sender
	// Repositories are those of the configuration, by name.
	Repositories map[string]Repository
	// Ended is called when a bisect has ended, from any goroutine; nil is not.
	Ended func()
	// Check says what is wrong with a plan, without regard to whether its device is there now; nil checks nothing.
	Check func(lab.Plan) error
	Now   func() time.Time // the wall clock; nil is time.Now
	// Pauses are the times between the attempts to reach a hook; nil are Pauses().
	Pauses []time.Duration
	// Patience is how long the queue may refuse a run, as it does while a device is away; 0 is five minutes.
	Patience time.Duration
	Log      *slog.Logger // nil discards
}

// Pauses are the times between the attempts to reach a hook, together half an hour.
func Pauses() []time.Duration {
	return []time.Duration{2 * time.Second, 10 * time.Second, time.Minute, 4 * time.Minute, 10 * time.Minute, 15 * time.Minute}
}

// Bounds.
const (
	mostBisects   = 100 // that are kept
	mostGoing     = 20  // that wait or go on
	mostRevisions = 1000
	mostWords     = 200 // characters of what is said of a revision
	mostPairs     = 10_000
	defaultPairs  = 800
	defaultLimit  = 15 * time.Minute
)

// Request is what somebody asks for.
type Request struct {
	Name       string
	Plan       plan.Request
	Revisions  []bisection.Revision // the oldest, which is good, first; the last is bad
	URL        string               // of the hook
	Repository string               // in place of the hook: a repository of the configuration, whose command deploys
	Minutes    int                  // after which no experiment begins; 0 is no bound
	Once       string               // of two requests of one key, one bisect is made that does not fail; "" is no key
	AnyHook    bool                 // it may be at a host that the configuration does not name
	Secret     lab.Secret           // none lets the box draw one
	Limit      time.Duration        // of a deployment; 0 is 15 minutes
	Metric     string               // empty is the plan's
	Confidence float64              // 0 is 0.95
	Least      float64
	Pairs      int // 0 is 800
	Spread     int // runs of an experiment at the same time; 0 is 1
	Seed       uint64
	By         string // name of the token
}

// Bisect is what is known of a bisect.
type Bisect struct {
	ID    string     `json:"id" example:"b3k7v2m9qxab"`
	Name  string     `json:"name,omitempty" doc:"What you called it" example:"checkout, v41 to v42"`
	State string     `json:"state" enum:"waiting,running,done,failed,cancelled" doc:"One bisect goes on at a time; done: see result.kind"`
	Error string     `json:"error,omitempty" doc:"Why it failed"`
	Doing string     `json:"doing,omitempty" doc:"What it is doing, or did last, in words"`
	Made  time.Time  `json:"made"`
	Ended *time.Time `json:"ended,omitempty"`
	By    string     `json:"by" doc:"Name of the token that made it"`
	// Hook is not the whole address, which may hold a secret.
	Hook string `json:"hook,omitempty" doc:"Host of the hook that deploys" example:"deploy.shop.example"`
	// Repository is of a bisect that an alert began.
	Repository string               `json:"repository,omitempty" doc:"Repository of the configuration whose command deploys, in place of a hook" example:"shop"`
	Began      time.Time            `json:"began,omitzero" doc:"When it first began to measure"`
	Good       string               `json:"good" doc:"The revision before the change"`
	Bad        string               `json:"bad" doc:"The revision after it"`
	Count      int                  `json:"count" doc:"Revisions, with these two"`
	Metric     string               `json:"metric" doc:"The number that changed" example:"speed_index_ms"`
	Run        string               `json:"run,omitempty" doc:"The run that is going on; with spread one of them"`
	Deploying  *Deploying           `json:"deploying,omitempty" doc:"The revision that the hook was asked for and is not known to be deployed"`
	Result     *bisection.Result    `json:"result,omitempty" doc:"What is known so far: the revisions with their probabilities, the pairs and trials spent; and, when it is done, the kind and the text"`
	Parts      *bisection.Parting   `json:"parts,omitempty" doc:"The frame where the culprit and the revision before it part"`
	Revisions  []bisection.Revision `json:"-"`
}

// Deploying is a deployment that is going on.
type Deploying struct {
	Revision string    `json:"revision"`
	Since    time.Time `json:"since"`
	Accepted bool      `json:"accepted" doc:"Whether the hook answered 202: the box waits for PUT /api/v1/bisects/{id}/deployment"`
}

// Going says whether the bisect has not ended.
func (b Bisect) Going() bool { return ownruns.IsGoing(b.State) }

// Errors that callers tell apart.
var (
	ErrMany       = errors.New("there are too many bisects: delete some that have ended, or wait for those that go on")              // constant
	ErrHook       = errors.New("its host is none of those that the box's admin has named (webhooks.allow)")                          // constant
	ErrGoing      = errors.New("the bisect goes on: cancel it first, without files=true")                                            // constant
	ErrOver       = errors.New("the bisect has ended: files=true deletes it")                                                        // constant
	ErrNotFailed  = errors.New("the bisect has not failed: it goes on by itself, or has ended")                                      // constant
	ErrNotAwaited = errors.New("the box does not wait for this revision: it asked for none, for another, or has the answer already") // constant
)

// WrongError says what is wrong with a request.
type WrongError = ownruns.WrongError

func wrong(format string, args ...any) error { return &WrongError{Err: fmt.Errorf(format, args...)} }

// Keeper keeps bisects; they are carried out, one at a time, while [Keeper.Work] runs.
type Keeper struct {
	Config
	line *ownruns.Line[*kept] // its lock guards what follows, too

	// heads are the newest revisions of repositories that hooks were asked for, by the repository.
	heads map[string]head
}

// Open reads the bisects that there are.
func Open(c Config) (*Keeper, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Pauses == nil {
		c.Pauses = Pauses()
	}
	c.Patience = cmp.Or(c.Patience, 5*time.Minute)
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open bisects: %w", err)
	}
	k := &Keeper{Config: c, line: ownruns.NewLine[*kept]()}
	err := k.line.Read(c.Dir, readKept, func(name string, err error) {
		c.Log.Error("a bisect cannot be read, and is left out", "bisect", name, "error", err)
	})
	if err != nil {
		return nil, fmt.Errorf("open bisects: %w", err)
	}
	return k, nil
}

// Make keeps a bisect, which begins when the others have ended. It returns the hook's secret, which cannot be read
// again.
func (k *Keeper) Make(ctx context.Context, q Request) (Bisect, string, error) {
	k.line.Lock()
	for _, b := range k.line.All {
		// One that failed or was cancelled has found nothing: who asks again wants another.
		if q.Once != "" && b.request.Once == q.Once && b.State != ownruns.StateFailed && b.State != ownruns.StateCancelled {
			defer k.line.Unlock()
			return b.Bisect, "", nil
		}
	}
	k.line.Unlock()
	if err := k.check(ctx, &q); err != nil {
		return Bisect{}, "", err
	}
	host := q.URL
	if u, err := url.Parse(q.URL); err == nil {
		host = u.Host
	}
	b := &kept{Bisect: Bisect{
		ID: "b" + strings.ToLower(rand.Text()[:12]), Name: q.Name, State: ownruns.StateWaiting, Made: k.Now().UTC(), By: q.By, Hook: host,
		Good: q.Revisions[0].Name, Bad: q.Revisions[len(q.Revisions)-1].Name, Count: len(q.Revisions), Metric: q.Metric, Revisions: q.Revisions,
		Repository: q.Repository,
	}, request: q}
	b.Dir = filepath.Join(k.Dir, b.ID)
	made := b.Bisect
	if err := k.line.Put(b, mostBisects, mostGoing, ErrMany, b.save); err != nil {
		return Bisect{}, "", err
	}
	return made, q.Secret.Reveal(), nil
}

// check returns an error for a request that cannot be carried out, and fills it in.
func (k *Keeper) check(ctx context.Context, q *Request) error {
	if len(q.Revisions) > mostRevisions {
		return wrong("revisions: %d; at most %d", len(q.Revisions), mostRevisions)
	}
	if err := bisection.CheckRevisions(q.Revisions); err != nil {
		return wrong("revisions: %w", err)
	}
	for i, r := range q.Revisions {
		for name, text := range map[string]string{"words": r.Words, "author": r.Author} {
			if len([]rune(text)) > mostWords || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
				return wrong("revisions[%d].%s: at most %d characters on one line", i, name, mostWords)
			}
		}
	}
	if err := q.Plan.CheckRevisions(); err != nil {
		return wrong("plan.%w", err)
	}
	q.Metric = cmp.Or(q.Metric, q.Plan.Metric())
	q.Confidence, q.Pairs, q.Seed = cmp.Or(q.Confidence, 0.95), cmp.Or(q.Pairs, defaultPairs), cmp.Or(q.Seed, 1)
	q.Limit = cmp.Or(q.Limit, defaultLimit)
	switch {
	case !(q.Confidence >= 0.5 && q.Confidence <= 0.9999):
		return wrong("confidence: %v: from 0.5 to 0.9999", q.Confidence)
	case !(q.Least >= 0 && q.Least < 1e9):
		return wrong("least: %v: a number that is not negative", q.Least)
	case q.Spread < 0 || q.Spread > bisection.MostSpread:
		return wrong("spread: %d: from 1 to %d", q.Spread, bisection.MostSpread)
	case q.Pairs < 10 || q.Pairs > mostPairs:
		return wrong("pairs: %d: from 10, which good and bad alone take, to %d", q.Pairs, mostPairs)
	case q.Limit < time.Second || q.Limit > 24*time.Hour:
		return wrong("hook.limit_s: %v: from a second to a day", q.Limit)
	}
	// A recording that is made when a revision is deployed is not there yet.
	sample := q.Plan
	sample.Archive = ""
	between := plan.Comparison{
		Control: q.Revisions[0].Name, Treatment: q.Revisions[len(q.Revisions)-1].Name, Metric: q.Metric, Pairs: 5, Seed: 1,
	}
	recording, err := sample.Recording(between.Control)
	if err != nil {
		return wrong("plan: %w", err)
	}
	comparison, err := sample.Between(between)
	if err != nil {
		return wrong("plan: %w", err)
	}
	for _, one := range []plan.Request{recording, comparison} {
		if k.Check == nil {
			continue
		}
		if err := k.Check(one.WithDefaults()); err != nil {
			return wrong("plan: %w", err)
		}
	}
	if q.Repository != "" {
		if _, ok := k.Repositories[q.Repository]; !ok {
			return wrong("repository: the configuration has no %.60q", q.Repository)
		}
		return nil
	}
	if q.Secret.IsZero() {
		q.Secret = webhook.NewSecret()
	}
	if err := webhook.CheckSecret(q.Secret); err != nil {
		return wrong("hook.secret: %w", err)
	}
	if err := k.Sender.CheckHost(ctx, q.URL); err != nil {
		return wrong("hook.url: %w", err)
	}
	if !q.AnyHook && !k.Sender.Names(q.URL) {
		return ErrHook
	}
	return nil
}

// List lists the bisects, the newest first, without the probabilities of their revisions.
func (k *Keeper) List() []Bisect {
	k.line.Lock()
	defer k.line.Unlock()
	all := []Bisect{}
	for _, b := range k.line.All {
		short := b.Bisect
		if short.Result != nil {
			r := *short.Result
			r.Revisions = []bisection.Probability{}
			short.Result = &r
		}
		all = append(all, short)
	}
	slices.SortFunc(all, func(a, b Bisect) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(b.ID, a.ID)) })
	return all
}

// Get returns a bisect, or store.ErrNotFound.
func (k *Keeper) Get(id string) (Bisect, error) {
	k.line.Lock()
	defer k.line.Unlock()
	b := k.line.All[id]
	if b == nil {
		return Bisect{}, store.ErrNotFound
	}
	return b.Bisect, nil
}

// Cancel ends a bisect, and the run that it has in the queue. The error is store.ErrNotFound, or [ErrOver].
func (k *Keeper) Cancel(id string) error {
	return k.line.Cancel(id, ErrOver, func(b *kept) error { return k.end(b, ownruns.StateCancelled, "") })
}

// Resume lets a bisect go on that has failed, from what it knows. The error is store.ErrNotFound, [ErrMany], [lab.ErrShare], or
// [ErrNotFailed].
func (k *Keeper) Resume(id string) (Bisect, error) {
	k.line.Lock()
	defer k.line.Unlock()
	b := k.line.All[id]
	switch {
	case b == nil:
		return Bisect{}, store.ErrNotFound
	case b.State != ownruns.StateFailed:
		return Bisect{}, ErrNotFailed
	}
	if err := k.line.RoomToGo(b.By, mostGoing, ErrMany); err != nil {
		return Bisect{}, err
	}
	b.State, b.Error, b.Ended = ownruns.StateWaiting, "", nil
	k.line.Stir()
	return b.Bisect, b.save()
}

// Again makes another bisect of one that has ended, as that was asked for. The error is store.ErrNotFound, or
// [ErrGoing].
func (k *Keeper) Again(ctx context.Context, id, by string) (Bisect, error) {
	k.line.Lock()
	b := k.line.All[id]
	switch {
	case b == nil:
		defer k.line.Unlock()
		return Bisect{}, store.ErrNotFound
	case b.Going():
		defer k.line.Unlock()
		return Bisect{}, ErrGoing
	}
	q := b.request
	k.line.Unlock()
	q.Once, q.By, q.AnyHook = "", by, true // the hook was allowed when the first was made
	made, _, err := k.Make(ctx, q)
	return made, err
}

// Needs says since when runs may be those of a bisect that has not ended; the zero time is that there is none.
func (k *Keeper) Needs() (since time.Time) { return k.line.Needs() }

// Holds names a bisect that has not ended and needs a recording: by the name of an upload, which its plan replays, or
// by a run that it made. It is "" if there is none.
func (k *Keeper) Holds(name string) (id string) { return k.line.Holds(name) }

// Replays implements [ownruns.Errand].
func (b *kept) Replays(name string) bool {
	if slices.Contains(b.runs, name) {
		return true
	}
	archive := b.request.Plan.Archive
	return archive != "" && slices.ContainsFunc(b.Revisions, func(r bisection.Revision) bool {
		return strings.ReplaceAll(archive, plan.RevisionMark, r.Name) == name
	})
}

// Secrets lists the keys and addresses of all hooks, so that they can be removed from what leaves the box.
func (k *Keeper) Secrets() (all []string) {
	for _, r := range k.Repositories {
		if r.Hook != "" {
			all = append(all, r.Secret.Reveal(), strings.TrimPrefix(r.Secret.Reveal(), "whsec_"), r.Hook)
		}
	}
	k.line.Lock()
	defer k.line.Unlock()
	for _, b := range k.line.All {
		if b.request.Repository != "" {
			continue
		}
		all = append(all, b.request.Secret.Reveal(), strings.TrimPrefix(b.request.Secret.Reveal(), "whsec_"), b.request.URL)
	}
	return all
}

// Remove removes a bisect that has ended, with its journal. Its runs stay. The error is store.ErrNotFound, or
// [ErrGoing].
func (k *Keeper) Remove(id string) error { return k.line.Remove(id, ErrGoing) }

// Deployed takes the answer of a hook that had accepted a deployment: reason says why the revision cannot be tried, ""
// that it is deployed. The error is store.ErrNotFound, or [ErrNotAwaited].
func (k *Keeper) Deployed(id, revision, reason string) error {
	k.line.Lock()
	defer k.line.Unlock()
	b := k.line.All[id]
	switch {
	case b == nil:
		return store.ErrNotFound
	case b.Deploying == nil || b.Deploying.Revision != revision:
		return ErrNotAwaited
	}
	select {
	case b.answer <- reason:
		return nil
	default:
		return ErrNotAwaited
	}
}
