package replay

import (
	"bytes"
	"io"
	"sync"

	"eidetic/internal/lab"
)

// piece is a part of a body, with the time at which it arrived.
type piece struct {
	data []byte // valid until the next one
	at   lab.Time
}

// pieces returns a function that gives the parts of a body as they arrive, with the error at its
// end. While a page is recorded they are read one after the other. Under MissFill the device is
// behind an emulated link, which must not slow the reading: the recorded times are to be those of
// the origin. stop closes the body.
func (f *fetch) pieces(body io.ReadCloser) (next func() (piece, error), stop func()) {
	const size = 32 << 10
	read := func(buf []byte) (piece, error) {
		n, err := body.Read(buf)
		now := f.c.o.Clock()
		if n > 0 {
			f.heard.Store(int64(now))
			f.got.Add(int64(n))
			f.upload.hear(n)
		}
		return piece{buf[:n], now}, err
	}
	buf := make([]byte, size)
	if f.c.added == nil {
		return func() (piece, error) { return read(buf) }, func() { _ = body.Close() }
	}
	q := newQueue()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			p, err := read(buf)
			p.data = bytes.Clone(p.data) // of its own length: a body may come a byte at a time
			if !q.put(p, err) || err != nil {
				return
			}
		}
	}()
	return q.take, func() {
		q.close()
		_ = body.Close() // which ends a read
		<-ended
	}
}

// mostQueued bounds the bytes that are read ahead of a slow device.
const mostQueued = 64 << 20

// queue holds the pieces of a body that were not sent yet.
type queue struct {
	mu      sync.Mutex
	changed *sync.Cond
	list    []piece
	bytes   int
	err     error // at the end
	closed  bool
}

func newQueue() *queue {
	q := &queue{}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// put adds a piece when there is room for it. It returns false if nobody takes any more.
func (q *queue) put(p piece, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes > mostQueued && !q.closed {
		q.changed.Wait()
	}
	q.list, q.bytes, q.err = append(q.list, p), q.bytes+sizeOf(p), err
	q.changed.Broadcast()
	return !q.closed
}

// sizeOf is what a piece takes in a queue.
func sizeOf(p piece) int { return len(p.data) + 64 }

// take waits for the next piece; the error is that of the end, and comes with the last piece.
func (q *queue) take() (piece, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 {
		q.changed.Wait()
	}
	p := q.list[0]
	q.list, q.bytes = q.list[1:], q.bytes-sizeOf(p)
	q.changed.Broadcast()
	if len(q.list) > 0 {
		return p, nil
	}
	return p, q.err
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
