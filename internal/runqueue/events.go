package runqueue

import (
	"sync"

	"eidetic/internal/store"
)

// Progress is news of a run.
type Progress struct {
	Run   string `json:"run" doc:"Identifier of the run"`
	State string `json:"state" enum:"queued,running,done,failed,interrupted"`
	Trial int    `json:"trial,omitempty" doc:"The trial that is going on, from 1"`
	Of    int    `json:"of,omitempty" doc:"How many trials there will be"`
	Doing string `json:"doing,omitempty" doc:"What is being done, in words"`
	Error string `json:"error,omitempty" doc:"Why it failed"`
}

// Terminal says whether the run has ended.
func (p Progress) Terminal() bool {
	return p.State != store.StateRunning && p.State != store.StateQueued
}

// Events passes progress to all listeners. A listener gets the newest progress of
// each run; progress that it was too slow for is replaced by newer progress of the
// same run.
type Events struct {
	mu        sync.Mutex
	latest    map[string]Progress // of the runs that have not ended
	listeners map[*Listener]struct{}
}

// NewEvents returns events without a listener.
func NewEvents() *Events {
	return &Events{latest: map[string]Progress{}, listeners: map[*Listener]struct{}{}}
}

// Publish tells everyone who listens how a run goes. It never blocks: a slow
// listener misses steps, and never the last one.
func (e *Events) Publish(s Progress) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Terminal() {
		delete(e.latest, s.Run)
	} else {
		e.latest[s.Run] = s
	}
	for l := range e.listeners {
		l.offer(s)
	}
}

// Listener gets the progress of one run, or of all.
type Listener struct {
	events  *Events
	run     string // "" for all
	pending map[string]Progress
	order   []string
	wake    chan struct{} // capacity 1
}

// Listen begins with the newest progress of the runs that have not ended; run ""
// listens to all runs. The caller closes the listener.
func (e *Events) Listen(run string) *Listener {
	l := &Listener{events: e, run: run, pending: map[string]Progress{}, wake: make(chan struct{}, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listeners[l] = struct{}{}
	for _, s := range e.latest {
		l.offer(s)
	}
	return l
}

// Close ends the listening.
func (l *Listener) Close() {
	l.events.mu.Lock()
	defer l.events.mu.Unlock()
	delete(l.events.listeners, l)
}

// Wake receives when there may be progress to take.
func (l *Listener) Wake() <-chan struct{} { return l.wake }

// Take returns the progress that is pending, the oldest run first.
func (l *Listener) Take() []Progress {
	l.events.mu.Lock()
	defer l.events.mu.Unlock()
	var out []Progress
	for _, run := range l.order {
		out = append(out, l.pending[run])
	}
	l.order, l.pending = nil, map[string]Progress{}
	return out
}

// offer is called with the lock held.
func (l *Listener) offer(s Progress) {
	if l.run != "" && l.run != s.Run {
		return
	}
	if _, ok := l.pending[s.Run]; !ok {
		l.order = append(l.order, s.Run)
	}
	l.pending[s.Run] = s
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
