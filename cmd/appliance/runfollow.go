package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"eidetic/internal/experiment"
	"eidetic/internal/lab"
	"eidetic/internal/panel"
	"eidetic/internal/store"
)

// follower starts a run and follows it to its end.
type follower struct {
	box    *boxClient
	bar    *progress
	out    io.Writer
	shown  int       // trials
	of     int       // trials that there will be
	next   time.Time // when the run may be read again to show them
	queued bool      // said that it waits
}

const (
	// stall is how long a stream may be silent; it has a heartbeat every 15 seconds.
	stall = 45 * time.Second
	// lookAgain is the time between two looks where there is no stream.
	lookAgain = 2 * time.Second
	// bytesASecond bounds what is read to show trials as they end: the run is
	// read as a whole each time, and that of a thousand trials is large.
	bytesASecond = 100_000
	// maxEvent bounds an event of a stream.
	maxEvent = 64 << 10
)

// askLimit is how long the box may take, after Ctrl-C, to say whether it has
// taken a run: a queue is written to a disk, which may be slow.
const askLimit = 10 * time.Second

// start asks for the run. Once asked, it finds out what became of that even
// when somebody presses Ctrl-C: a run that nobody knows of would go on.
func (f *follower) start(ctx context.Context, q runRequest) (id string, err error) {
	if err := f.box.meet(ctx); err != nil {
		return "", err
	}
	if err := q.archives(ctx, f.box, f.bar.say); err != nil {
		return "", err
	}
	body, err := json.Marshal(q.body)
	if err != nil {
		return "", usage(err)
	}
	if ctx.Err() != nil {
		return "", cannot(errors.New("interrupted before the run was asked for"))
	}
	asking, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	leave := context.AfterFunc(ctx, func() {
		again, stop := signal.NotifyContext(asking, os.Interrupt, syscall.SIGTERM)
		defer stop()
		again, end := context.WithTimeout(again, askLimit)
		defer end()
		<-again.Done()
		done()
	})
	defer leave()
	id, err = f.box.start(asking, body)
	var refused *refusedError
	if errors.As(err, &refused) {
		err = q.where(refused)
	}
	if err != nil {
		return "", f.box.explain(err)
	}
	f.bar.say("Run %s on %s", id, f.box.base)
	return id, nil
}

// follow shows a run until it has ended.
func (f *follower) follow(ctx context.Context, id string) (*lab.Run, error) {
	streams := true
	for {
		if streams {
			streams = f.stream(ctx, id)
		}
		run, err := f.look(ctx, id)
		if err != nil || over(run.State) {
			return run, err
		}
		if err := f.pause(ctx); err != nil {
			return nil, err
		}
	}
}

// await looks until a run has ended.
func (f *follower) await(ctx context.Context, id string) (*lab.Run, error) {
	for {
		run, _, err := f.box.run(ctx, id)
		if err != nil || over(run.State) {
			return run, err
		}
		if err := f.pause(ctx); err != nil {
			return nil, err
		}
	}
}

func (f *follower) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(min(lookAgain, 2*f.box.first), time.Until(f.next))):
		return nil
	}
}

// over says whether nothing more will come of a run.
func over(state string) bool { return state != store.StateQueued && state != store.StateRunning }

// look reads the run, and shows the trials that have ended since.
func (f *follower) look(ctx context.Context, id string) (*lab.Run, error) {
	run, size, err := f.box.run(ctx, id)
	var refused *refusedError
	switch {
	case errors.As(err, &refused) && refused.status == http.StatusNotFound:
		return nil, cannot(fmt.Errorf("the box does not know run %s any more: somebody has cancelled or deleted it", id))
	case err != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("%w; the run may go on: see %s", f.box.explain(err), f.box.base)
	case err != nil:
		return nil, err
	}
	f.next = time.Now().Add(time.Duration(size) * time.Second / bytesASecond)
	f.of = max(f.of, len(run.Trials)) // what is invalid is repeated
	for ; f.shown < len(run.Trials); f.shown++ {
		t := *run.Trials[f.shown]
		t.Invalid = nil
		for _, reason := range run.Trials[f.shown].Invalid {
			t.Invalid = append(t.Invalid, plain(reason))
		}
		f.bar.step(experiment.Step{Trial: t.Number, Of: f.of, Done: &t})
	}
	return run, nil
}

// stream listens to the run's events until they end. It says whether listening
// again is better than looking every now and then.
func (f *follower) stream(ctx context.Context, id string) bool {
	ctx, done := context.WithCancel(ctx)
	defer done()
	silence := time.AfterFunc(stall, done)
	defer silence.Stop()
	answer, err := f.box.do(ctx, http.MethodGet, "/api/v1/runs/"+url.PathEscape(id)+"/events", nil, func(r *http.Request) {
		r.Header.Set("Accept", "text/event-stream")
	})
	if err != nil {
		return passes(err)
	}
	defer answer.Body.Close()
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != "text/event-stream" {
		return false
	}
	heard := false
	err = readEvents(answer.Body, func() { heard = true; silence.Reset(stall) }, func(s panel.Progress) bool {
		f.hear(ctx, id, s)
		return !over(s.State)
	})
	// What holds the events back, as some proxies do, is no stream.
	return heard && !errors.Is(err, bufio.ErrTooLong)
}

// hear shows what an event tells.
func (f *follower) hear(ctx context.Context, id string, s panel.Progress) {
	if s.Of > 0 && s.Of <= store.MaxTrials {
		f.of = s.Of
	}
	switch {
	case s.State == store.StateQueued && !f.queued:
		f.queued = true
		f.bar.say("It waits for its device.")
	case s.State == store.StateRunning && s.Doing != "":
		if s.Trial-1 > f.shown && time.Now().After(f.next) {
			_, _ = f.look(ctx, id) // what it cannot read now is shown later
		}
		f.bar.step(experiment.Step{Trial: s.Trial, Of: f.of, Doing: plain(s.Doing)})
	}
}

// readEvents reads server-sent events (WHATWG HTML, section 9.2). alive is called for
// every line, a heartbeat's too; it ends when event says false, or with the stream.
func readEvents(r io.Reader, alive func(), event func(panel.Progress) bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxEvent)
	var data []byte
	for lines.Scan() {
		alive()
		line := bytes.TrimSuffix(lines.Bytes(), []byte{'\r'})
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data)+len(value) > maxEvent {
				return bufio.ErrTooLong
			}
			data = append(append(data, bytes.TrimPrefix(value, []byte{' '})...), '\n')
			continue
		}
		if len(line) > 0 {
			continue // a comment, or a field that says nothing here
		}
		var s panel.Progress
		// What is no news of ours says nothing; the run is read in the end anyway.
		if len(data) > 0 && json.Unmarshal(data, &s) == nil && !event(s) {
			return nil
		}
		data = data[:0]
	}
	return lines.Err()
}

// cancelLimit is how long a run may take to end after it was cancelled.
const cancelLimit = time.Minute

// cancel ends the run after Ctrl-C. Another Ctrl-C ends that.
func (f *follower) cancel(ctx context.Context, id string) error {
	again, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	again, done := context.WithTimeout(again, cancelLimit)
	defer done()
	f.bar.say("Cancelling run %s; another Ctrl-C leaves at once.", id)
	var refused *refusedError
	unknown := func(err error) bool {
		return errors.As(err, &refused) && (refused.status == http.StatusNotFound || refused.status == http.StatusConflict)
	}
	err := f.box.cancel(again, id)
	if err != nil && again.Err() != nil {
		return cannot(fmt.Errorf("interrupted; the box did not answer, and run %s may go on: see %s", id, f.box.base))
	}
	if err != nil && !unknown(err) { // one that is unknown there has ended, or is about to
		return cannot(fmt.Errorf("interrupted; run %s may go on: %w; see %s", id, f.box.explain(err), f.box.base))
	}
	run, err := f.await(again, id)
	switch {
	case err == nil && run.State != store.StateInterrupted:
		return cannot(fmt.Errorf("interrupted; run %s had ended: it is %s", id, plain(run.State)))
	case err == nil || unknown(err): // one that only waited is forgotten
		return cannot(fmt.Errorf("interrupted; run %s was cancelled", id))
	}
	return cannot(fmt.Errorf("interrupted; run %s was told to end, and has not yet: see %s", id, f.box.base))
}
