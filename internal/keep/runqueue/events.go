package runqueue

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"eidetic/internal/keep/store"
)

// Progress is news of a run.
type Progress struct {
	Run   string `json:"run" doc:"Identifier of the run"`
	State string `json:"state" enum:"queued,running,done,failed,interrupted"`
	Trial int    `json:"trial,omitempty" doc:"The trial that is going on, from 1"`
	Of    int    `json:"of,omitempty" doc:"How many trials there will be"`
	Doing string `json:"doing,omitempty" doc:"What is being done, in words"`
	// Left is nil before a trial has been made.
	Left  *float64 `json:"left_s,omitempty" doc:"How long the trials still take, in s, by those that have been made"`
	Error string   `json:"error,omitempty" doc:"Why it failed"`
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
	process   string // differs from that of any other process
	seq       uint64 // of the newest progress
	ends      []end  // the newest, at most mostEnds
	forgotten uint64 // the newest end that is not in ends any more
}

// end is how a run ended, and its place among all progress.
type end struct {
	Progress
	seq uint64
}

// mostEnds bounds the ends that are kept for listeners that come back.
const mostEnds = 500

// NewEvents returns events without a listener.
func NewEvents() *Events {
	return &Events{latest: map[string]Progress{}, listeners: map[*Listener]struct{}{}, process: strings.ToLower(rand.Text()[:8])}
}

// Publish tells everyone who listens how a run goes. It never blocks: a slow
// listener misses steps, and never the last one.
func (e *Events) Publish(s Progress) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seq++
	if s.Terminal() {
		delete(e.latest, s.Run)
		if e.ends = append(e.ends, end{s, e.seq}); len(e.ends) > mostEnds {
			e.forgotten, e.ends = e.ends[0].seq, slices.Delete(e.ends, 0, 1)
		}
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
	place   string        // as of the last Take
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

// ListenAfter is [Events.Listen] for somebody who was told the ID last, as [Listener.Place] gave it. It
// begins with the ends since then. complete says whether none of them is missing: after a
// restart, and after very many ends, the list of runs must be read again.
func (e *Events) ListenAfter(run, last string) (l *Listener, complete bool) {
	process, number, _ := strings.Cut(last, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	l = e.Listen(run)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil || process != e.process || seq > e.seq || seq < e.forgotten {
		return l, false
	}
	for _, one := range e.ends {
		if _, again := e.latest[one.Run]; one.seq > seq && !again {
			l.offer(one.Progress)
		}
	}
	return l, true
}

// Place is the ID of what was published last: whoever has got all that Take returned before may
// go on after it.
func (l *Listener) Place() string {
	l.events.mu.Lock()
	defer l.events.mu.Unlock()
	return l.place
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
	l.place = fmt.Sprintf("%s-%d", l.events.process, l.events.seq)
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
