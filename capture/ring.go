package capture

import (
	"image"
	"sync"
)

// buffer holds one frame.
type buffer struct {
	pix     []byte
	changed []image.Rectangle
}

// ring is the bounded store of frame buffers. The buffer given back last is
// handed out first, so that a sink that keeps up works in a few warm buffers
// and the others are never touched.
type ring struct {
	mu    sync.Mutex
	free  []*buffer
	total int
	peak  int // most buffers in use at once
}

func newRing(n, size int) *ring {
	r := &ring{total: n, free: make([]*buffer, 0, n)}
	for range n {
		r.free = append(r.free, &buffer{pix: make([]byte, size)})
	}
	return r
}

// get returns a buffer of size bytes, or nil when all are in use. Only
// compressed frames, whose size is not known beforehand, make it grow.
func (r *ring) get(size int) *buffer {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.free)
	if n == 0 {
		return nil
	}
	b := r.free[n-1]
	r.free = r.free[:n-1]
	r.peak = max(r.peak, r.total-n+1)
	if cap(b.pix) < size {
		b.pix = make([]byte, size+size/2)
	}
	b.pix = b.pix[:size]
	return b
}

// put gives a buffer back; nil is allowed.
func (r *ring) put(b *buffer) {
	if b == nil {
		return
	}
	r.mu.Lock()
	r.free = append(r.free, b)
	r.mu.Unlock()
}
