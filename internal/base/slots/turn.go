package slots

import (
	"context"
	"sync"
)

type holderKey struct{}

// WithHolder says who asks: those that ask by one name wait in a line of their own for a [Turn]. Without it, the service
// asks.
func WithHolder(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, holderKey{}, name)
}

// Lines have each holder wait in a line of its own, of which the first one alone stands among others. So a holder who asks a
// hundred times delays another by no more than one.
type Lines struct {
	mu sync.Mutex
	of map[string]*line
}

type line struct {
	first chan struct{}
	n     int // who stand in it
}

// Front waits until the holder's earlier ones have left, or the one who asks has.
func (l *Lines) Front(ctx context.Context) (leave func(), err error) {
	name, _ := ctx.Value(holderKey{}).(string)
	l.mu.Lock()
	if l.of == nil {
		l.of = map[string]*line{}
	}
	own := l.of[name]
	if own == nil {
		own = &line{first: make(chan struct{}, 1)}
		l.of[name] = own
	}
	own.n++
	l.mu.Unlock()
	out := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if own.n--; own.n == 0 {
			delete(l.of, name)
		}
	}
	select {
	case own.first <- struct{}{}:
		return func() { <-own.first; out() }, nil
	case <-ctx.Done():
		out()
		return nil, ctx.Err()
	}
}

// Turn has those who ask wait for each other, and their lines take turns.
type Turn struct {
	lines Lines
	room  chan struct{}
}

// NewTurn is a turn that so many may have at once.
func NewTurn(room int) *Turn { return &Turn{room: make(chan struct{}, room)} }

// Take waits for the turn, as long as the one who asks does.
func (t *Turn) Take(ctx context.Context) (done func(), err error) {
	leave, err := t.lines.Front(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	select {
	case t.room <- struct{}{}:
		return func() { <-t.room }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Held is how many have the turn.
func (t *Turn) Held() int { return len(t.room) }
