package dhcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/base/atomicfile"
)

// load reads the leases from the file. A broken file is renamed, because a device
// without an address is worse than a device with a new one.
func (s *Server) load() error {
	if s.c.File == "" {
		return nil
	}
	f, err := os.Open(s.c.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("start DHCP: read the leases: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil {
		err = s.parse(b)
	}
	if err != nil {
		s.c.Log.Warn("the file of leases is broken; starting with an empty one", "file", s.c.File, "error", err)
		if err := os.Rename(s.c.File, s.c.File+".broken"); err != nil {
			return fmt.Errorf("start DHCP: move the broken leases away: %w", err)
		}
	}
	return nil
}

// parse fills the table from a file's bytes. Entries that do not fit this network,
// whose configuration may have changed, are left out.
func (s *Server) parse(b []byte) error {
	if len(b) > maxFile {
		return fmt.Errorf("more than %d bytes", maxFile)
	}
	var list []Lease
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	// No lease is valid for longer than one that is given now. Without this bound a
	// clock that was wrong would reserve an address forever.
	latest := s.c.Now().Add(s.c.Lease)
	for _, l := range list {
		mac, err := net.ParseMAC(l.MAC)
		if err != nil || len(mac) != 6 || !s.usable(l.Addr) {
			continue
		}
		l.MAC, l.Name = mac.String(), hostname(l.Name)
		if l.Until.After(latest) {
			l.Until = latest
		}
		s.leases[l.Addr] = &held{Lease: l, given: true, answered: true}
	}
	return nil
}

// save writes the file now, or later within saveEvery; the caller holds the lock.
func (s *Server) save() {
	if s.c.File == "" || s.later != nil {
		return
	}
	if wait := saveEvery - time.Since(s.saved); wait > 0 {
		s.later = time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.later = nil
			if !s.closed {
				s.write()
			}
		})
		return
	}
	s.write()
}

// write replaces the file; the caller holds the lock.
func (s *Server) write() {
	s.saved = time.Now()
	if err := writeLeases(s.c.File, s.list()); err != nil {
		s.c.Log.Error("the leases were not saved", "file", s.c.File, "error", err)
	}
}

func writeLeases(file string, list []Lease) error {
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteFile(file, append(b, '\n'), 0o644)
}
