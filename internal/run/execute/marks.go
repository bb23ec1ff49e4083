package execute

import (
	"slices"
	"sync"

	"eidetic/internal/lab"
)

// maxMarks bounds the calls of lab.done() that are kept of one trial: a page may call it in a loop.
const maxMarks = 1000

// markLog keeps the calls of lab.done() of a session.
type markLog struct {
	mu    sync.Mutex
	marks []lab.Event
}

func (l *markLog) add(e lab.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.marks) < maxMarks {
		l.marks = append(l.marks, e)
	}
}

func (l *markLog) all() []lab.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.marks)
}
