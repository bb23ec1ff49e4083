package reel

import (
	"os"
	"sync"
	"time"
)

// syncEvery is how much of a recording, in time, a power cut may cost: so
// often what was written is flushed to the disk, beside the writing.
const syncEvery = time.Second

// syncer flushes a file in the background.
type syncer struct {
	file *os.File
	last time.Time // when the flush that runs, or the last one, began
	busy sync.WaitGroup
	mu   sync.Mutex // guards what follows
	runs bool
	err  error // the first failure
}

// tick begins a flush when one is due; it never waits for the disk.
func (s *syncer) tick(now time.Time) {
	if now.Sub(s.last) < syncEvery {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs {
		return // the disk is slow: it gets the time it needs
	}
	s.last, s.runs = now, true
	s.busy.Go(func() {
		err := s.file.Sync()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs = false
		if s.err == nil {
			s.err = err
		}
	})
}

// wait ends the flush that runs, and returns the first error of any.
func (s *syncer) wait() error {
	s.busy.Wait()
	return s.err
}
