package packet

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
)

// Process is a Link in a process of its own. In the process of a proxy, a
// recorder and an encoder, a goroutine that wakes up waits for their goroutines
// and for the garbage collector, at times for many milliseconds. A process of its
// own has neither, and can have real-time priority as a whole.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended

	mu   sync.Mutex // one call at a time
	conn net.Conn
	enc  *gob.Encoder
	dec  *gob.Decoder
	last link.Report
	err  error // the first failure, the Fault of every later report
}

// request and reply are the messages on the socket between the two processes.
type request struct {
	Op          operation
	Device, Lab string
	Profile     link.Profile
	Direct      []uint16
	Extra       map[netip.Addr]time.Duration
}

type reply struct {
	Error  string
	Report link.Report
}

type operation int

const (
	opStart operation = iota + 1
	opSet
	opRestart
	opExtra
	opReport
)

// answerLimit bounds a call; a process that takes longer counts as broken.
const answerLimit = 10 * time.Second

// StartProcess starts a command that calls Serve with the socket at descriptor 3;
// it forwards in the caller's network namespace. Its messages go to this process's
// standard error. c.Clock is not used: both processes read CLOCK_MONOTONIC.
func StartProcess(c Config, command []string) (*Process, error) {
	if len(command) == 0 {
		return nil, errors.New("link: start a forwarding process: no command")
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("link: make a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "link"), os.NewFile(uintptr(fds[1]), "link")
	conn, err := net.FileConn(ours)
	_ = ours.Close() // conn has its own descriptor
	if err != nil {
		_ = theirs.Close()
		return nil, fmt.Errorf("link: open the forwarding process's socket: %w", err)
	}
	p := &Process{
		cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{}),
		conn: conn, enc: gob.NewEncoder(conn), dec: gob.NewDecoder(conn),
	}
	p.cmd.ExtraFiles, p.cmd.Stderr = []*os.File{theirs}, os.Stderr
	// A signal to our process group, such as that of Ctrl-C, must not end the link
	// before its users have ended. The process ends when our end of the socket is
	// closed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = p.cmd.Start()
	_ = theirs.Close() // the child has a copy
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("link: start the forwarding process: %w", err)
	}
	go func() {
		_ = p.cmd.Wait() // the next call returns the failure
		close(p.ended)
	}()
	if _, err := p.call(request{Op: opStart, Device: c.Device, Lab: c.Lab, Profile: c.Profile, Direct: c.Direct}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// call sends a request and waits for its answer.
func (p *Process) call(r request) (link.Report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.last, p.err
	}
	var a reply
	err := p.conn.SetDeadline(time.Now().Add(answerLimit))
	if err == nil {
		err = p.enc.Encode(r)
	}
	if err == nil {
		err = p.dec.Decode(&a)
	}
	if err != nil {
		p.err = fmt.Errorf("link: the forwarding process does not answer: %w", err)
		return p.last, p.err
	}
	if a.Error != "" {
		return p.last, errors.New(a.Error)
	}
	if r.Op == opReport {
		p.last = a.Report
	}
	return a.Report, nil
}

// Set changes the profile as Link.Set does. The next Report has the failure, if any.
func (p *Process) Set(profile link.Profile) { p.send(request{Op: opSet, Profile: profile}) }

// Restart does what Link.Restart does.
func (p *Process) Restart() { p.send(request{Op: opRestart}) }

// SetExtra sets which addresses have an addition to the RTT.
func (p *Process) SetExtra(extra map[netip.Addr]time.Duration) {
	p.send(request{Op: opExtra, Extra: extra})
}

// send calls and keeps the failure for the next Report.
func (p *Process) send(r request) {
	if _, err := p.call(r); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.err == nil {
			p.err = err
		}
	}
}

// Report says what the link did since Set. For a process that has failed it
// returns the last report, with a Fault.
func (p *Process) Report() link.Report {
	r, err := p.call(request{Op: opReport})
	if err != nil {
		r.Backend, r.Fault = "packet", err.Error()
	}
	return r
}

// Ended returns a channel that is closed when the process has ended, by Close or
// by itself.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Close ends the process and waits for it.
func (p *Process) Close() error {
	err := p.conn.Close()
	select {
	case <-p.ended:
	case <-time.After(answerLimit):
		_ = p.cmd.Process.Kill() // fails only when the process has ended
		<-p.ended
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Serve forwards as the other end of the connection asks, until that end is
// closed. It prepares the whole process for forwarding: real-time priority where
// allowed, memory locked, no garbage collector.
func Serve(conn io.ReadWriter) error {
	got := prepareProcess()
	enc, dec := gob.NewEncoder(conn), gob.NewDecoder(conn)
	var l *Link
	defer func() {
		if l != nil {
			_ = l.Close() // it always succeeds
		}
	}()
	for {
		var r request
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("link: read a request: %w", err)
		}
		shareTraces(&r.Profile)
		var a reply
		switch {
		case r.Op == opStart && l == nil:
			var err error
			c := Config{Device: r.Device, Lab: r.Lab, Profile: r.Profile, Direct: r.Direct, Clock: lab.Monotonic}
			if l, err = newLink(c, got); err != nil {
				a.Error = err.Error()
			}
		case l == nil || r.Op == opStart:
			a.Error = "link: a forwarding process is started once, before anything else"
		case r.Op == opSet:
			l.Set(r.Profile)
		case r.Op == opRestart:
			l.Restart()
		case r.Op == opExtra:
			l.SetExtra(r.Extra)
		case r.Op == opReport:
			a.Report = l.Report()
		}
		if err := enc.Encode(a); err != nil {
			return fmt.Errorf("link: answer: %w", err)
		}
	}
}

// shareTraces makes equal traces of successive changes one pointer again, as
// Parse made them and gob did not keep them: only then does a change of something
// else let the trace go on where it is.
func shareTraces(p *link.Profile) {
	down, up := p.DownTrace, p.UpTrace
	for i := range p.Changes {
		q := &p.Changes[i].Profile
		if down.Equal(q.DownTrace) {
			q.DownTrace = down
		}
		if up.Equal(q.UpTrace) {
			q.UpTrace = up
		}
		down, up = q.DownTrace, q.UpTrace
	}
}
