package systemd

import (
	"fmt"
	"net"
	"os"
	"sort"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
)

// Sockets holds the sockets that socket activation passed, by FileDescriptorName=, until
// the service takes them. go-systemd's Listeners and PacketConns each consume all the
// descriptors (coreos/go-systemd#286), so they are split here, once.
type Sockets struct {
	files map[string][]*os.File
}

// TakeSockets takes the descriptors of sd_listen_fds(3) and removes their
// environment. Call it once, early; outside systemd the result is empty.
func TakeSockets() *Sockets {
	s := &Sockets{files: make(map[string][]*os.File)}
	for _, f := range activation.Files(true) {
		s.files[f.Name()] = append(s.files[f.Name()], f)
	}
	return s
}

// Listener returns the first stream socket of that name, or nil if none was
// passed. The caller closes it.
func (s *Sockets) Listener(name string) (net.Listener, error) {
	for i, f := range s.files[name] {
		l, err := net.FileListener(f)
		if err != nil {
			continue // a datagram socket of the same name
		}
		s.drop(name, i)
		return l, nil
	}
	return nil, s.wrongKind(name)
}

// Close closes the sockets that were not taken and names them in its error: clients of a
// socket that is open but not served would wait for ever.
func (s *Sockets) Close() error {
	var left []string
	for name, files := range s.files {
		for _, f := range files {
			_ = f.Close()
			left = append(left, name)
		}
	}
	s.files = make(map[string][]*os.File)
	if len(left) == 0 {
		return nil
	}
	sort.Strings(left)
	return fmt.Errorf(
		"sockets passed by systemd that nothing serves: %s; check FileDescriptorName= in the socket unit",
		strings.Join(left, ", "),
	)
}

// drop closes our descriptor of a socket that was taken: package net made a duplicate.
func (s *Sockets) drop(name string, i int) {
	files := s.files[name]
	_ = files[i].Close()
	if files = append(files[:i:i], files[i+1:]...); len(files) == 0 {
		delete(s.files, name)
	} else {
		s.files[name] = files
	}
}

// wrongKind returns nil if no socket of that name is left, and otherwise an error that
// says why those left cannot be used.
func (s *Sockets) wrongKind(name string) error {
	if len(s.files[name]) == 0 {
		return nil
	}
	return fmt.Errorf("socket %q from systemd: none of those passed is a stream socket of a known family", name)
}
