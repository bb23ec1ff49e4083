package reel

import (
	"errors"
	"fmt"
	"io"
)

// ErrMemoryFull says that a recording in memory has reached its limit.
var ErrMemoryFull = errors.New("the memory set aside for the recording is full")

// Memory is a file in memory for [NewWriter], of at most a given size. What
// does not fit is refused whole, so the reel before it can still be closed.
type Memory struct {
	limit  int64
	size   int64
	chunks [][]byte
}

const memoryChunk = 1 << 20

// NewMemory returns an empty file that holds up to limit bytes; an index may
// go beyond by a sixteenth.
func NewMemory(limit int64) *Memory { return &Memory{limit: limit} }

// Write appends b, or refuses it with ErrMemoryFull.
func (m *Memory) Write(b []byte) (int, error) {
	if m.size+int64(len(b)) > m.limit {
		err := fmt.Errorf("%w (%d bytes)", ErrMemoryFull, m.limit)
		// What follows a refusal is the index, which may take a little more room.
		m.limit += m.limit / 16
		return 0, err
	}
	m.size += int64(len(b))
	n := len(b)
	for len(b) > 0 {
		last := len(m.chunks) - 1
		if last < 0 || len(m.chunks[last]) == memoryChunk {
			m.chunks = append(m.chunks, make([]byte, 0, memoryChunk))
			last++
		}
		c := m.chunks[last]
		k := min(len(b), memoryChunk-len(c))
		m.chunks[last] = append(c, b[:k]...)
		b = b[k:]
	}
	return n, nil
}

// Size returns the bytes written.
func (m *Memory) Size() int64 { return m.size }

// WriteTo writes all to a file.
func (m *Memory) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for _, c := range m.chunks {
		n, err := w.Write(c)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// ReadAt makes it readable by [NewReader].
func (m *Memory) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 {
		return 0, errors.New("read before the start")
	}
	n := 0
	for n < len(b) && at < m.size {
		c := m.chunks[at/memoryChunk][at%memoryChunk:]
		k := copy(b[n:], c)
		n, at = n+k, at+int64(k)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
