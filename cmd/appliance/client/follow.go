package client

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
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// Event is one piece of news of a run that is followed.
type Event struct {
	Queued bool       // the run waits; told when what it waits for changes
	Trial  int        // counted from 1; 0 before the first trial
	Of     int        // how many trials there will be
	Doing  string     // what goes on, or what the run waits for, in words
	Done   *lab.Trial // a trial that has ended
}

const (
	// streamSilence is how long a stream may be silent; the panel sends a heartbeat every 15 seconds.
	streamSilence = 45 * time.Second
	// pollPause is the time between two reads of a run where there is no stream.
	pollPause = 2 * time.Second
	// pollRate bounds, in bytes a second, what is read to show trials as they
	// end: each read gets the whole run, and a run of a thousand trials is large.
	pollRate = 100_000
	// maxEvent bounds an event of a stream.
	maxEvent = 64 << 10
)

// Follow reports the news of a run to hear until the run has ended, and returns
// the run. It listens to the panel's stream of events, and where there is none
// (a proxy may hold it back) it reads the run every now and then.
func (c *Client) Follow(ctx context.Context, id string, hear func(Event)) (*lab.Run, error) {
	f := &follower{client: c, id: id, hear: hear}
	streams := true
	for {
		if streams {
			streams = f.stream(ctx)
		}
		run, err := f.poll(ctx)
		if err != nil || isTerminal(run.State) {
			return run, err
		}
		if err := f.pause(ctx); err != nil {
			return nil, err
		}
	}
}

// Await reads a run until it has ended.
func (c *Client) Await(ctx context.Context, id string) (*lab.Run, error) {
	f := &follower{client: c, id: id}
	for {
		run, err := c.Run(ctx, id)
		if err != nil || isTerminal(run.State) {
			return run, err
		}
		if err := f.pause(ctx); err != nil {
			return nil, err
		}
	}
}

// follower follows one run.
type follower struct {
	client *Client
	id     string
	hear   func(Event)
	shown  int       // trials that were reported
	of     int       // trials that there will be
	next   time.Time // the earliest time of the next read
	waits  *string   // what the run waits for, as hear knows it
}

// isTerminal says whether a run in this state has ended.
func isTerminal(state string) bool { return state != store.StateQueued && state != store.StateRunning }

// pause waits until the run may be read again.
func (f *follower) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(min(pollPause, 2*f.client.config.FirstPause), time.Until(f.next))):
		return nil
	}
}

// poll reads the run, and reports the trials that have ended since the last time.
func (f *follower) poll(ctx context.Context) (*lab.Run, error) {
	run, size, err := f.client.run(ctx, f.id)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return nil, fmt.Errorf("the box does not know run %s any more: somebody has cancelled or deleted it", f.id)
	case err != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("run %s may go on: %w; see %s", f.id, f.client.outcome(err), f.client.Base())
	case err != nil:
		return nil, err
	}
	if run.State == store.StateQueued {
		f.queued(run.Waits)
	}
	f.next = time.Now().Add(time.Duration(size) * time.Second / pollRate)
	f.of = max(f.of, len(run.Trials)) // invalid trials are repeated
	for ; f.shown < len(run.Trials); f.shown++ {
		t := *run.Trials[f.shown]
		t.Invalid = nil
		for _, reason := range run.Trials[f.shown].Invalid {
			t.Invalid = append(t.Invalid, Plain(reason))
		}
		f.hear(Event{Trial: t.Number, Of: f.of, Done: &t})
	}
	return run, nil
}

// stream listens to the run's events until they end. It says whether listening
// again is better than polling.
func (f *follower) stream(ctx context.Context) bool {
	ctx, done := context.WithCancel(ctx)
	defer done()
	silence := time.AfterFunc(streamSilence, done)
	defer silence.Stop()
	answer, err := f.client.do(ctx, http.MethodGet, "/api/v1/runs/"+url.PathEscape(f.id)+"/events", nil, func(r *http.Request) {
		r.Header.Set("Accept", "text/event-stream")
	})
	if err != nil {
		return isRetryable(err)
	}
	defer answer.Body.Close()
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != "text/event-stream" {
		return false
	}
	heard := false
	err = readEvents(answer.Body, func() { heard = true; silence.Reset(streamSilence) }, func(s panel.Progress) bool {
		f.report(ctx, s)
		return !isTerminal(s.State)
	})
	// A stream that some proxy holds back delivers nothing.
	return heard && !errors.Is(err, bufio.ErrTooLong)
}

// report reports an event of the stream.
func (f *follower) report(ctx context.Context, s panel.Progress) {
	if s.Of > 0 && s.Of <= store.MaxTrials {
		f.of = s.Of
	}
	switch {
	case s.State == store.StateQueued:
		f.queued(s.Doing)
	case s.State == store.StateRunning && s.Doing != "":
		if s.Trial-1 > f.shown && time.Now().After(f.next) {
			_, _ = f.poll(ctx) // a trial that cannot be read now is reported later
		}
		f.hear(Event{Trial: s.Trial, Of: f.of, Doing: Plain(s.Doing)})
	}
}

// queued reports that the run waits.
func (f *follower) queued(why string) {
	if why = Plain(why); f.waits != nil && *f.waits == why {
		return
	}
	f.waits = &why
	f.hear(Event{Queued: true, Doing: why})
}

// readEvents reads server-sent events (WHATWG HTML, section 9.2). It calls alive
// for every line, also that of a heartbeat, and ends when event returns false
// or the stream ends.
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
			continue // a comment, or a field without meaning here
		}
		var s panel.Progress
		// An event that cannot be read is skipped; the run is read in the end anyway.
		if len(data) > 0 && json.Unmarshal(data, &s) == nil && !event(s) {
			return nil
		}
		data = data[:0]
	}
	return lines.Err()
}
