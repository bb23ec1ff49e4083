package wire

import (
	"context"
	"sync"

	"eidetic/internal/lab"
	"eidetic/netlab/hop"
)

// requestContext ends when its request does or the device goes away. Most handlers
// never wait for that, so the connection is only watched once a handler does.
type requestContext struct {
	context.Context          // of the connection, for values
	watch           func()   // starts the disconnect watcher; nil when none is needed
	received        received // nil on HTTP/2

	mu   sync.Mutex
	done chan struct{}
	err  error
}

// received are the fields of an HTTP/1.1 request's header in the order and case in which they came.
type received []lab.HeaderField

var _ hop.FieldSource = received(nil) // package hop finds it by its context key alone

// Fields implements hop.FieldSource.
func (r received) Fields() (fields []lab.HeaderField, ok bool) { return r, r != nil }

// Value implements context.Context.
func (c *requestContext) Value(key any) any {
	if key == (hop.FieldsKey{}) {
		return c.received
	}
	return c.Context.Value(key)
}

// Done implements context.Context.
func (c *requestContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		} else if c.watch != nil {
			c.watch()
		}
	}
	return c.done
}

// Err implements context.Context.
func (c *requestContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// watchFromNow sets watch late, and calls it if a handler waits already.
func (c *requestContext) watchFromNow(watch func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = watch
	if c.done != nil && c.err == nil {
		watch()
	}
}

func (c *requestContext) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = context.Canceled
	if c.done != nil {
		close(c.done)
	}
}
