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
)

// load reads the leases of before. A broken file is moved out of the way: a
// device without an address is worse than one with a new address.
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
		s.c.Log.Warn("the file of leases is broken and begins anew", "file", s.c.File, "error", err)
		if err := os.Rename(s.c.File, s.c.File+".broken"); err != nil {
			return fmt.Errorf("start DHCP: move the broken leases away: %w", err)
		}
	}
	return nil
}

// parse fills the table from a file's bytes. Entries that do not fit this
// network are left out: it may have been configured anew.
func (s *Server) parse(b []byte) error {
	if len(b) > maxFile {
		return fmt.Errorf("more than %d bytes", maxFile)
	}
	var list []Lease
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	// None can hold for longer than one that is given now; a clock that was
	// wrong would keep an address for ever.
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
		s.leases[l.Addr] = &held{Lease: l}
	}
	return nil
}

// save sees to it that the file is written, now or within saveEvery; the
// caller holds the lock.
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

// write replaces the file as a whole, on the medium before it has its name;
// the caller holds the lock.
func (s *Server) write() {
	s.saved = time.Now()
	if err := replace(s.c.File, s.list()); err != nil {
		s.c.Log.Error("the leases were not kept", "file", s.c.File, "error", err)
	}
}

func replace(file string, list []Lease) (err error) {
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".leases-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the other error counts
		}
	}()
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
