package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"eidetic/internal/rigs/noise"
	"eidetic/internal/run/experiment"
)

// categories returns the categories of the trace: the work of the page's main thread, its
// requests, and the way of a picture to the screen.
func categories() []string {
	return []string{"-*", "blink.user_timing", "loading", "devtools.timeline", "cc", "viz", "v8"}
}

// traceLimit bounds the time in which a browser must deliver its trace.
const traceLimit = 20 * time.Second

// tracer asks a browser for its trace over --remote-debugging-pipe: JSON messages, each followed by a zero byte.
type tracer struct {
	theirs []*os.File // descriptors 3 and 4 of the browser
	ask    *os.File
	answer *os.File
	done   chan struct{} // closed when the trace is complete, or will not be

	mu     sync.Mutex
	events []noise.Event
	whole  bool
}

func newTracer() (*tracer, error) {
	theirIn, ask, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answer, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), ask.Close())
	}
	t := &tracer{theirs: []*os.File{theirIn, theirOut}, ask: ask, answer: answer, done: make(chan struct{})}
	go t.read()
	return t, t.send(1, "Tracing.start", map[string]any{
		"transferMode": "ReportEvents", "traceConfig": map[string]any{"recordMode": "recordAsMuchAsPossible", "includedCategories": categories()},
	})
}

func (t *tracer) send(id int, method string, params any) error {
	text, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	_, err = t.ask.Write(append(text, 0))
	return err
}

// read collects the trace until it is complete or the browser has ended.
func (t *tracer) read() {
	defer close(t.done)
	r := bufio.NewReaderSize(t.answer, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var message struct {
			Method string
			Params struct {
				Value            []noise.Event
				DataLossOccurred bool
			}
		}
		if json.Unmarshal(text[:len(text)-1], &message) != nil { // an event with fields of other types, which is not evaluated
			continue
		}
		t.mu.Lock()
		switch message.Method {
		case "Tracing.dataCollected":
			t.events = append(t.events, message.Params.Value...)
		case "Tracing.tracingComplete":
			t.whole = !message.Params.DataLossOccurred
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
	}
}

// finish requests the trace while the browser still runs.
func (t *tracer) finish() {
	if t.send(2, "Tracing.end", map[string]any{}) != nil {
		return
	}
	timer := time.NewTimer(traceLimit)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
	}
}

// result returns the trace after the browser has ended.
func (t *tracer) result() ([]noise.Event, error) {
	for _, f := range append(t.theirs, t.ask, t.answer) {
		f.Close()
	}
	<-t.done
	if !t.whole {
		return nil, fmt.Errorf("the browser's trace is incomplete: %d events", len(t.events))
	}
	return t.events, nil
}

// tracedDevice requests the trace before its browser is stopped.
type tracedDevice struct {
	experiment.Device
	tracer *tracer
}

func (d tracedDevice) Birth(ctx context.Context, url string) (experiment.Life, error) {
	life, err := d.Device.Birth(ctx, url)
	return tracedLife{life, d.tracer}, err
}

type tracedLife struct {
	experiment.Life
	tracer *tracer
}

func (l tracedLife) Stop() error {
	l.tracer.finish()
	return l.Life.Stop()
}
