package bisects

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"eidetic/analysis/bisect"
	"eidetic/internal/box/bisection"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/netlab/reach"
)

// Work carries the bisects out, one after another in the order in which they were made, until ctx is done.
func (k *Keeper) Work(ctx context.Context) error { return k.line.Work(ctx, k.carryOut) }

// change changes a bisect and keeps it. A bisect that has ended stays as it is.
func (k *Keeper) change(b *kept, change func()) {
	k.line.Lock()
	defer k.line.Unlock()
	if !b.Going() {
		return
	}
	change()
	if err := b.save(); err != nil { // the journal has what matters
		k.Log.Error("a bisect cannot be kept", "bisect", b.ID, "error", err)
	}
}

// end notes how a bisect ended. Who calls it holds the lock.
func (k *Keeper) end(b *kept, state, reason string) error {
	now := k.Now().UTC()
	b.State, b.Error, b.Ended, b.Run, b.Deploying = state, reason, &now, "", nil
	return b.save()
}

// carryOut carries a bisect out until it ends or ctx does.
func (k *Keeper) carryOut(ctx context.Context, b *kept) {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k.change(b, func() {
		if b.State, b.Cancel = ownruns.StateRunning, cancel; b.Began.IsZero() {
			b.Began = k.Now().UTC()
		}
	})
	found, err := k.hunt(own, b)
	var part *bisection.Parting
	if err == nil && found.Kind == bisect.Culprit && len(found.Steps) == 1 {
		if part, err = PartOf(k.Store.Root(), found.Steps[0]); err != nil { // the culprit is known without it
			k.Log.Warn("where the films of two revisions part is not known", "bisect", b.ID, "error", err)
			err = nil
		}
	}
	k.line.Lock()
	defer k.line.Unlock()
	b.Cancel = nil
	var failed error
	switch {
	case !b.Going(): // it was cancelled
	case err == nil:
		b.Result, b.Parts, b.Doing = found, part, ""
		failed = k.end(b, ownruns.StateDone, "")
	case ctx.Err() != nil: // the box stops: it goes on after the next start
		b.State = ownruns.StateWaiting
	default:
		failed = k.end(b, ownruns.StateFailed, err.Error())
	}
	if failed != nil {
		k.Log.Error("the end of a bisect cannot be kept", "bisect", b.ID, "error", failed)
	}
	if k.Ended != nil && !b.Going() {
		k.Ended()
	}
}

// hunt is the search itself.
func (k *Keeper) hunt(ctx context.Context, b *kept) (*bisection.Result, error) {
	q := b.request
	text, err := json.Marshal(q.Plan)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(text)
	begun := time.Now()
	c := bisection.Config{
		Dir: b.Dir, Revisions: q.Revisions, Deploy: q.URL, Metric: q.Metric, Records: q.Plan.Records(),
		Plan: hex.EncodeToString(digest[:]), Seed: q.Seed,
		Problem: bisect.Problem{Confidence: q.Confidence, Least: q.Least, Budget: q.Pairs},
		Spread:  q.Spread,
		Lab:     &queueLab{Keeper: k, bisect: b},
		Say: func(format string, args ...any) {
			k.change(b, func() { b.Doing = fmt.Sprintf(format, args...) })
		},
		Learned: func(r *bisection.Result) { k.change(b, func() { b.Result = r }) },
		Since:   func() time.Duration { return time.Since(begun) },
		Over: func() string {
			if q.Minutes > 0 && k.Now().Sub(b.Began) >= time.Duration(q.Minutes)*time.Minute {
				return fmt.Sprintf("its %d minutes are over", q.Minutes)
			}
			return ""
		},
	}
	hook := asking{url: q.URL, secret: q.Secret, limit: q.Limit}
	c.Deployer = func(ctx context.Context, r bisection.Revision) (string, error) { return k.deploy(ctx, b, r, hook) }
	if q.Repository != "" {
		r, err := k.Repository(q.Repository)
		if err != nil {
			return nil, err
		}
		c.Limit = r.limit()
		switch {
		case r.URL != "":
			c.Deploy, c.Deployer = r.URL, func(context.Context, bisection.Revision) (string, error) { return "", nil }
		case r.Hook != "":
			c.Deploy, hook = r.Hook, asking{url: r.Hook, secret: r.Secret, limit: r.limit()}
		default:
			c.Deploy, c.Deployer = r.Deploy, nil
		}
	}
	return bisection.Run(ctx, c)
}

// event is what is posted to a hook.
type event struct {
	Type string    `json:"type"`
	Time time.Time `json:"timestamp"`
	Data order     `json:"data"`
}

// order asks for a revision.
type order struct {
	Bisect     string `json:"bisect,omitempty"`
	Repository string `json:"repository,omitempty"` // of the configuration
	Name       string `json:"name,omitempty"`
	Revision   string `json:"revision"`
	Words      string `json:"words,omitempty"`
	Answer     string `json:"answer"` // path on the box, for a hook that answers 202
}

// EventDeploy and EventDeployHead are the types of what is posted to a hook: for a bisect, and for a run of a schedule.
const (
	EventDeploy     = "bisect.deploy"
	EventDeployHead = "schedule.deploy"
)

// asking is how a hook is asked for a revision.
type asking struct {
	url      string
	secret   lab.Secret
	limit    time.Duration
	kind, id string // of the event
	order    order
	answer   <-chan string // of a hook that answered 202
	accepted func()        // is called when it does
	again    func(pause time.Duration, why error)
}

// deploy asks the hook for a revision, and waits until it is deployed. It returns why the revision cannot be tried, or
// "".
func (k *Keeper) deploy(ctx context.Context, b *kept, r bisection.Revision, a asking) (reason string, err error) {
	answer := make(chan string, 1)
	k.change(b, func() { b.Deploying, b.answer = &Deploying{Revision: r.Name, Since: k.Now().UTC()}, answer })
	defer k.change(b, func() { b.Deploying = nil })
	number := 0
	for i, one := range b.request.Revisions {
		if one.Name == r.Name {
			number = i
		}
	}
	a.kind, a.id, a.answer = EventDeploy, "bisect_"+b.ID+"_"+strconv.Itoa(number), answer
	a.order = order{b.ID, b.Repository, b.Name, r.Name, r.Words, "/api/v1/bisects/" + b.ID + "/deployment"}
	a.accepted = func() {
		k.change(b, func() { b.Deploying = &Deploying{b.Deploying.Revision, b.Deploying.Since, true} })
	}
	a.again = func(pause time.Duration, why error) {
		k.change(b, func() { b.Doing = fmt.Sprintf("Asking the hook again for %s in %v: %v", r.Name, pause, why) })
	}
	return k.ask(ctx, a)
}

// askHead asks the hook of a repository for its newest revision, and waits until it is deployed.
func (k *Keeper) askHead(ctx context.Context, name string, r Repository, revision string) (reason string, err error) {
	answer := make(chan string, 1)
	k.line.Lock()
	if k.heads == nil {
		k.heads = map[string]head{}
	}
	k.heads[name] = head{revision, answer}
	k.line.Unlock()
	defer func() {
		k.line.Lock()
		defer k.line.Unlock()
		delete(k.heads, name)
	}()
	return k.ask(ctx, asking{
		url: r.Hook, secret: r.Secret, limit: r.limit(), kind: EventDeployHead, id: "deploy_" + rand.Text(), answer: answer,
		order:    order{Repository: name, Revision: revision, Answer: "/api/v1/repositories/" + name + "/deployment"},
		accepted: func() {}, again: func(time.Duration, error) {}})
}

// head is a revision that the hook of a repository was asked for.
type head struct {
	revision string
	answer   chan<- string // capacity 1
}

// HeadDeployed is Deployed of the newest revision of a repository, for a run of a schedule.
func (k *Keeper) HeadDeployed(name, revision, reason string) error {
	k.line.Lock()
	defer k.line.Unlock()
	if _, ok := k.Repositories[name]; !ok {
		return store.ErrNotFound
	}
	h, ok := k.heads[name]
	if !ok || h.revision != revision {
		return ErrNotAwaited
	}
	select {
	case h.answer <- reason:
		return nil
	default:
		return ErrNotAwaited
	}
}

// ask posts to a hook until it has answered, or the limit is over. It returns why the revision cannot be tried, or "".
func (k *Keeper) ask(ctx context.Context, a asking) (reason string, err error) {
	body, err := json.Marshal(event{a.kind, k.Now().UTC(), a.order})
	if err != nil {
		return "", err
	}
	post := webhook.Post{URL: a.url, Secret: a.secret, ID: a.id, Body: body}
	limited, done := context.WithTimeout(ctx, a.limit)
	defer done()
	for attempt := 0; ; attempt++ {
		post.At = k.Now()
		got, postErr := k.Sender.Post(limited, post)
		pause := time.Duration(0)
		switch v := judge(got, postErr); {
		case limited.Err() != nil:
		case v.err != nil:
			return "", &bisection.LabError{Err: fmt.Errorf("the hook cannot deploy %s: %w", a.order.Revision, v.err)}
		case v.done:
			return v.reason, nil
		case v.accepted:
			a.accepted()
			pause = a.limit
		case attempt == len(k.Pauses):
			err := fmt.Errorf("the hook did not deploy %s, though it was asked %d times: %w", a.order.Revision, attempt+1, v.again)
			return "", &bisection.LabError{Err: err}
		default:
			pause = max(k.Pauses[attempt], got.RetryAfter)
			a.again(pause, v.again)
		}
		wait := time.NewTimer(pause)
		select {
		case reason := <-a.answer:
			wait.Stop()
			return reason, nil
		case <-limited.Done():
			wait.Stop()
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return fmt.Sprintf("the hook had not deployed it within %v", a.limit), nil
		case <-wait.C:
		}
	}
}

// verdict is what an answer of a hook means; one of its fields is set.
type verdict struct {
	done, accepted bool
	reason         string // with done: why the revision cannot be tried
	again          error  // it is asked again
	err            error  // the hook is none
}

// judge reads an answer.
func judge(a webhook.Answer, err error) verdict {
	said := fmt.Errorf("it answered %d", a.Status)
	switch {
	case errors.Is(err, reach.ErrRefused):
		return verdict{err: err}
	case err != nil:
		return verdict{again: err}
	case a.Status == 202:
		return verdict{accepted: true}
	case a.Good():
		return verdict{done: true}
	case a.Status == 422:
		return verdict{done: true, reason: "the hook says so, with status 422"}
	case a.Status >= 500 || a.Status == 408 || a.Status == 425 || a.Status == 429:
		return verdict{again: said}
	}
	return verdict{err: said}
}
