package store

import "sync"

// holds are the runs whose folders must stay as they are for a while.
type holds struct {
	mu      sync.Mutex
	readers map[string]int // -1: it is being changed
}

// Hold keeps a run's files from being removed until release is called. It returns false if
// they are being removed, or somebody writes the run.
func (s *Store) Hold(id string) (release func(), ok bool) {
	dir, err := s.dir(id)
	if err != nil || !s.holds.add(id) {
		return nil, false
	}
	release = sync.OnceFunc(func() { s.holds.done(id) })
	if _, err := s.dir(id); err != nil || isLocked(dir) { // it may have been removed just before
		release()
		return nil, false
	}
	return release, true
}

func (h *holds) add(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers == nil {
		h.readers = map[string]int{}
	}
	if h.readers[id] < 0 {
		return false
	}
	h.readers[id]++
	return true
}

func (h *holds) done(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers[id]--; h.readers[id] == 0 {
		delete(h.readers, id)
	}
}

// take keeps readers away; it returns false if there are some.
func (h *holds) take(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers == nil {
		h.readers = map[string]int{}
	}
	if h.readers[id] != 0 {
		return false
	}
	h.readers[id] = -1
	return true
}

func (h *holds) free(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, id)
}
