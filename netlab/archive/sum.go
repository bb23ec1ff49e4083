package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync/atomic"
)

// summing computes a SHA-256 in the background: hashing an archive takes as long as all other work
// on it.
type summing struct {
	stopped atomic.Bool
	done    chan struct{}
	sum     string
	err     error
}

// background starts to hash what open opens.
func background(open func() (io.ReadCloser, error)) *summing {
	s := &summing{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.sum, s.err = s.read(open)
	}()
	return s
}

func (s *summing) read(open func() (io.ReadCloser, error)) (string, error) {
	r, err := open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	h := sha256.New()
	buffer := make([]byte, 128<<10)
	for !s.stopped.Load() {
		n, err := r.Read(buffer)
		h.Write(buffer[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// wait returns the hash in hex.
func (s *summing) wait() (string, error) {
	<-s.done
	return s.sum, s.err
}

// stop ends the hashing; when it returns, nothing is read any more.
func (s *summing) stop() {
	s.stopped.Store(true)
	<-s.done
}
