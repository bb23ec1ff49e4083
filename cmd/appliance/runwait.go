package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/keep/store"
	"eidetic/internal/plan"
	"eidetic/internal/run/experiment"
	"eidetic/internal/tell/terminal"
)

// waiting is a person or a script that waits for a run.
type waiting struct {
	box *client.Client
	bar *terminal.Progress

	workflow string // of the box, which the request changes; empty: the request is the plan
}

const (
	// startLimit is how long the box may take, after Ctrl-C, to say whether it has
	// taken a run: a queue is written to a disk, which may be slow.
	startLimit = 10 * time.Second
	// cancelLimit is how long a run may take to end after it was cancelled.
	cancelLimit = time.Minute
)

// start asks for the run. Once it has asked, it finds out what became of that even
// after Ctrl-C: otherwise a run that nobody knows of would go on.
func (w *waiting) start(ctx context.Context, q plan.Request) (id string, err error) {
	if err := w.box.CheckReady(ctx); err != nil {
		return "", boxError(err)
	}
	err = w.box.UploadArchives(ctx, &q, uploads("box", w.bar.Say))
	if err != nil {
		return "", boxError(err)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return "", usage(err)
	}
	if ctx.Err() != nil {
		return "", cannot(errors.New("interrupted before the run was asked for"))
	}
	asking, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	leave := context.AfterFunc(ctx, func() {
		again, stop := untilInterruptedAgain(asking, startLimit)
		defer stop()
		<-again.Done()
		done()
	})
	defer leave()
	if w.workflow == "" {
		id, err = w.box.Start(asking, body)
	} else {
		name, version, _ := parseVersion(w.workflow) // it was checked
		id, err = w.box.StartWorkflow(asking, name, version, &q)
	}
	if err != nil {
		return "", boxError(located(err, q))
	}
	w.bar.Say("Run %s on %s", id, w.box.Base())
	return id, nil
}

// uploads says which recordings are uploaded.
func uploads(to string, say func(format string, args ...any)) func(file, name string, size int64) {
	return func(file, name string, size int64) {
		say("Uploading %s (%.1f MB) to the %s as %s", file, float64(size)/1e6, to, name)
	}
}

// located is an error of the client with the lines of the plan that it is about.
func located(err error, q plan.Request) error {
	var refused *client.RefusedError
	if errors.As(err, &refused) {
		return refused.Locate(q)
	}
	return err
}

// show returns what shows the events of a run.
func (w *waiting) show() func(client.Event) {
	var news queueNews
	of := 0
	return func(e client.Event) {
		if e.Queued {
			news.say(w.bar, "It", e.Doing)
			return
		}
		if of != 0 && e.Trial > 0 && e.Of != of {
			why := fmt.Sprintf("%d trials in all now, instead of %d: invalid trials are repeated, and traces have "+
				"trials of their own", e.Of, of)
			if strings.HasSuffix(e.Doing, " in all") { // the run's own words
				why = e.Doing
			}
			w.bar.Say("%s", why)
		}
		if e.Trial > 0 {
			of = e.Of
		}
		w.bar.Step(experiment.Step{Trial: e.Trial, Of: e.Of, Doing: e.Doing, Done: e.Done})
	}
}

// saysWaits is how often a person is told what a run waits for, if that changes.
const saysWaits = time.Minute

// queueNews tells of one run why it waits.
type queueNews struct{ told time.Time }

func (n *queueNews) say(bar *terminal.Progress, which, why string) {
	switch {
	case time.Since(n.told) < saysWaits:
	case why == "":
		bar.Say("%s waits for its device.", which)
	default:
		n.told = time.Now()
		bar.Say("%s waits: %s.", which, why)
	}
}

// cancel cancels the run after Ctrl-C, and returns the error that says what became of it.
func (w *waiting) cancel(ctx context.Context, id string) error {
	again, stop := untilInterruptedAgain(context.WithoutCancel(ctx), cancelLimit)
	defer stop()
	w.bar.Say("Cancelling run %s; another Ctrl-C leaves at once.", id)
	err := w.box.Cancel(again, id)
	if err != nil && again.Err() != nil {
		return cannot(fmt.Errorf("interrupted; the box did not answer, and run %s may go on: see %s", id, w.box.Base()))
	}
	if err != nil && !client.NotRunning(err) {
		return cannot(fmt.Errorf("interrupted; run %s may go on: %w; see %s", id, err, w.box.Base()))
	}
	run, err := w.box.Await(again, id)
	switch {
	case err == nil && run.State != store.StateInterrupted:
		return cannot(fmt.Errorf("interrupted; run %s had ended: it is %s", id, terminal.Plain(run.State)))
	case err == nil || client.NotRunning(err): // the box forgets a run that only waited
		return cannot(fmt.Errorf("interrupted; run %s was cancelled", id))
	}
	return cannot(fmt.Errorf("interrupted; run %s was told to end, and has not yet: see %s", id, w.box.Base()))
}

// untilInterruptedAgain returns a context that ends with the next Ctrl-C or after limit.
func untilInterruptedAgain(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	ctx, done := context.WithTimeout(ctx, limit)
	return ctx, func() { done(); stop() }
}

// tokenHelp says where a person finds the panel's token.
const tokenHelp = "appliance serve keeps its token in the file token of its data folder (out/box/token), " +
	"and a box shows it on its screen: pass it with --token-file FILE, or in the environment as " + tokenVariable

// boxError gives an error of the client its exit status, and says what to do.
func boxError(err error) error {
	var refused *client.RefusedError
	var unreachable *client.UnreachableError
	var unsuitable *client.UnsuitableError
	switch {
	case err == nil, errors.As(err, new(*exitError)): // it has its status
		return err
	case errors.Is(err, client.ErrNoArchive), errors.Is(err, errNoHead), errors.As(err, new(*client.UntrustedError)):
		return usage(err)
	case errors.As(err, &unsuitable):
		return usage(fmt.Errorf("%w; --box is the address that appliance serve prints", err))
	case errors.As(err, &unreachable):
		return cannot(fmt.Errorf("%w; is appliance serve running there, and is --box its address?", err))
	case !errors.As(err, &refused):
		return cannot(err)
	case refused.Status == http.StatusUnauthorized:
		return usage(fmt.Errorf("%w. %s", err, tokenHelp))
	case refused.Status/100 == 3:
		return cannot(fmt.Errorf("%w: name that address with --box if it is the panel's", err))
	case refused.Rejected():
		return usage(err)
	}
	return cannot(err)
}
