package streamline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"eidetic/internal/lab"
)

const (
	// mostConnections bounds the programs that annotate at once over TCP, and those over a Unix socket.
	mostConnections = 64
	// pipeSize is asked of the kernel, so that a burst finds room while notes are written to a file.
	pipeSize = 1 << 20
	// oldest is how long before its arrival a writer may say that a note was made.
	oldest = lab.Time(60e9)
)

// Receiver takes annotations until its context ends.
type Receiver struct {
	Clock lab.Clock
	// Emit gets each annotation, one at a time, with Source ("fifo", "socket", "tcp") and Group set.
	Emit func(lab.Annotation)

	mu   sync.Mutex
	lost Losses
}

// Losses are what a receiver could not take as it was meant.
type Losses struct {
	Notes       int    // that writers had no room for, by their own word
	Refused     int    // notes with a head that is none
	Why         string // of the first that was refused
	Stamps      int    // notes whose writer's time cannot be: they have that of their arrival
	Connections int    // beyond mostConnections
}

// Losses says what was lost until now.
func (r *Receiver) Losses() Losses {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// String says it in sentences; "" where nothing was lost.
func (l Losses) String() string {
	var said []string
	if l.Notes > 0 {
		said = append(said, fmt.Sprintf("Writers had no room for %d notes, which are lost.", l.Notes))
	}
	if l.Refused > 0 {
		said = append(said, fmt.Sprintf("%d notes were refused; the first: %s.", l.Refused, l.Why))
	}
	if l.Stamps > 0 {
		said = append(said, fmt.Sprintf("%d notes have the time of their arrival, because their writers' clocks are not this machine's.", l.Stamps))
	}
	if l.Connections > 0 {
		said = append(said, fmt.Sprintf("%d connections were refused: at most %d are taken at once.", l.Connections, mostConnections))
	}
	return strings.Join(said, " ")
}

// taker returns what takes a writer's notes. A note's own row stands beside that of its connection, which the writer
// cannot choose; writers of a pipe cannot be told apart but by their own word.
func (r *Receiver) taker(source, group string) func(Note) {
	return func(n Note) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n.Err != nil {
			if r.lost.Refused++; r.lost.Refused == 1 {
				r.lost.Why = lab.OneLine(n.Err.Error(), 200)
			}
			return
		}
		a := n.Annotation
		a.Source = source
		switch {
		case a.Group == "":
			a.Group = group
		case source != "fifo":
			a.Group = lab.OneLine(a.Group+", "+group, lab.MaxAnnotationGroup)
		}
		if n.Stamp != 0 && source != "tcp" { // another machine has another clock
			if n.Stamp <= a.Latest && n.Stamp >= a.Earliest-oldest {
				a.Earliest, a.Latest = n.Stamp, n.Stamp
			} else {
				r.lost.Stamps++
			}
		}
		if n.Lost > 0 {
			r.lost.Notes += n.Lost
			said := a
			said.Op, said.Text, said.Colour = lab.AnnotateMark, fmt.Sprintf("%d notes before this one are lost: the pipe was full", n.Lost), ""
			r.Emit(said)
		}
		r.Emit(a)
	}
}

// FIFO makes a named pipe, or takes one that is there, and reads it until ctx ends. It removes the pipe if it made
// it. Plain notes are on a row of that name: a pipe does not say who wrote, so such a pipe is one program's.
func (r *Receiver) FIFO(ctx context.Context, path, group string) error {
	made := false
	switch err := syscall.Mkfifo(path, 0o666); {
	case err == nil:
		made = true
	case !errors.Is(err, syscall.EEXIST):
		return fmt.Errorf("make the named pipe %s: %w", path, err)
	}
	if made {
		defer os.Remove(path)
	}
	// Open for writing too: the pipe does not end when its last writer closes it.
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("open the named pipe: %w", err)
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return errors.Join(fmt.Errorf("%s is there and is no named pipe: name another path", path), err, f.Close())
	}
	if c, err := f.SyscallConn(); err == nil { // as large as this user may; the usual size does too
		_ = c.Control(func(fd uintptr) { _, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETPIPE_SZ, pipeSize) })
	}
	defer f.Close()
	return r.read(ctx, f, "fifo", group)
}

// Socket makes a Unix socket and takes connections until ctx ends. Each is a row of its own, named by the process that
// the kernel says is at its other end.
func (r *Receiver) Socket(ctx context.Context, path string) error {
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && isAbandoned(path) {
		if err = os.Remove(path); err == nil {
			l, err = net.Listen("unix", path)
		}
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("make the socket %s: something is there, and another program listens or it is no socket: name another path", path)
	}
	if err != nil {
		return fmt.Errorf("make the socket: %w", err)
	}
	return r.Listen(ctx, l)
}

// isAbandoned says whether a path is a socket at which nobody listens: that of a program that was killed.
func isAbandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return false
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Listen takes connections of TCP or of a Unix socket until ctx ends, and closes l. Each connection is a group of its
// own.
func (r *Receiver) Listen(ctx context.Context, l net.Listener) error {
	var open sync.WaitGroup
	defer open.Wait()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	free := make(chan struct{}, mostConnections)
	for n := 1; ; n++ {
		c, err := l.Accept()
		if err != nil {
			l.Close()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept annotations: %w", err)
		}
		select {
		case free <- struct{}{}:
		default:
			r.mu.Lock()
			r.lost.Connections++
			r.mu.Unlock()
			c.Close()
			continue
		}
		source, group := "tcp", fmt.Sprintf("tcp %d", n)
		if u, ok := c.(*net.UnixConn); ok {
			source, group = "socket", fmt.Sprintf("%s, connection %d", peer(u), n)
		}
		open.Go(func() {
			defer func() { c.Close(); <-free }()
			_ = r.read(ctx, c.(stream), source, group) // a device that goes away ends its connection alone
		})
	}
}

// peer names the process at the other end of a Unix socket.
func peer(c *net.UnixConn) string {
	raw, err := c.SyscallConn()
	if err != nil {
		return "socket"
	}
	var who *syscall.Ucred
	ask := func(fd uintptr) { who, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED) }
	if failed := raw.Control(ask); failed != nil || err != nil {
		return "socket"
	}
	name, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(who.Pid), "comm"))
	if err != nil {
		name = []byte("process")
	}
	return fmt.Sprintf("%s %d", lab.OneLine(string(name), 16), who.Pid)
}

// stream is an end of a pipe or of a connection.
type stream interface {
	io.Reader
	syscall.Conn
	SetReadDeadline(time.Time) error
}

// read takes notes until ctx ends, and then those that have arrived by then.
func (r *Receiver) read(ctx context.Context, from stream, source, group string) error {
	defer context.AfterFunc(ctx, func() { _ = from.SetReadDeadline(time.Unix(1, 0)) })()
	var p Parser
	take := r.taker(source, group)
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		p.Feed(buf[:n], r.Clock(), take)
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			return err
		}
		raw, err := from.SyscallConn()
		if err != nil {
			return err
		}
		for left := pipeSize; left > 0; left -= n {
			if err := raw.Control(func(fd uintptr) { n, _ = syscall.Read(int(fd), buf) }); err != nil || n <= 0 {
				return err
			}
			p.Feed(buf[:n], r.Clock(), take)
		}
		return nil
	}
}
