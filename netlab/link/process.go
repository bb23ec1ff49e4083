package link

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
)

// Process is a Packet link in a process of its own. Beside a proxy, a recorder
// and an encoder, a goroutine that wakes up waits for its turn among theirs and
// for the collector, for many milliseconds at times; alone it waits for nobody,
// and the whole process can have real-time priority.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended

	mu   sync.Mutex // one call at a time
	conn net.Conn
	enc  *gob.Encoder
	dec  *gob.Decoder
	last Report
	err  error // the first failure; every report tells it from then on
}

// request and reply are what goes over the socket between the two.
type request struct {
	Op          operation
	Device, Lab string
	Profile     Profile
	Direct      []uint16
	Extra       map[netip.Addr]time.Duration
}

type reply struct {
	Error  string
	Report Report
}

type operation int

const (
	opStart operation = iota + 1
	opSet
	opRestart
	opExtra
	opReport
)

// answerLimit bounds a call: what takes longer is broken.
const answerLimit = 10 * time.Second

// StartProcess starts a command that calls Serve with the socket that it finds
// at descriptor 3, and has it forward in the caller's network namespace. Its
// messages go to this process's standard error. c.Clock is not used: both read
// CLOCK_MONOTONIC.
func StartProcess(c PacketConfig, command []string) (*Process, error) {
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
		return nil, fmt.Errorf("link: speak to the forwarding process: %w", err)
	}
	p := &Process{
		cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{}),
		conn: conn, enc: gob.NewEncoder(conn), dec: gob.NewDecoder(conn),
	}
	p.cmd.ExtraFiles, p.cmd.Stderr = []*os.File{theirs}, os.Stderr
	// A signal for our process group, Ctrl-C say, must not end the link before
	// those who use it; it ends with our end of the socket.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = p.cmd.Start()
	_ = theirs.Close() // the child has its own
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("link: start the forwarding process: %w", err)
	}
	go func() {
		_ = p.cmd.Wait() // what went wrong there shows in the next call
		close(p.ended)
	}()
	if _, err := p.call(request{Op: opStart, Device: c.Device, Lab: c.Lab, Profile: c.Profile, Direct: c.Direct}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// call sends a request and waits for its answer.
func (p *Process) call(r request) (Report, error) {
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

// Set changes the profile, as Packet.Set does. A failure shows in the next Report.
func (p *Process) Set(profile Profile) { p.tell(request{Op: opSet, Profile: profile}) }

// Restart begins the times of the profile's changes anew, at the start of a trial.
func (p *Process) Restart() { p.tell(request{Op: opRestart}) }

// SetExtra tells which addresses have an RTT of their own to add.
func (p *Process) SetExtra(extra map[netip.Addr]time.Duration) {
	p.tell(request{Op: opExtra, Extra: extra})
}

func (p *Process) tell(r request) {
	if _, err := p.call(r); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.err == nil {
			p.err = err
		}
	}
}

// Report tells what the link did since Set; of a process that has failed, what
// it did until the last Report, with the Fault.
func (p *Process) Report() Report {
	r, err := p.call(request{Op: opReport})
	if err != nil {
		r.Backend, r.Fault = "packet", err.Error()
	}
	return r
}

// Ended is closed when the process has ended, by Close or by itself.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Close ends the process and waits for it.
func (p *Process) Close() error {
	err := p.conn.Close()
	select {
	case <-p.ended:
	case <-time.After(answerLimit):
		_ = p.cmd.Process.Kill() // it has ended meanwhile, or does now
		<-p.ended
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Serve forwards as the other end of the connection says, until that is
// closed. It makes the whole process a forwarder: real-time priority where
// allowed, memory kept, no collector.
func Serve(conn io.ReadWriter) error {
	got := prepareProcess()
	enc, dec := gob.NewEncoder(conn), gob.NewDecoder(conn)
	var p *Packet
	defer func() {
		if p != nil {
			_ = p.Close() // it always succeeds
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
		case r.Op == opStart && p == nil:
			var err error
			if p, err = newPacket(PacketConfig{Device: r.Device, Lab: r.Lab, Profile: r.Profile, Direct: r.Direct, Clock: monotonic}, got); err != nil {
				a.Error = err.Error()
			}
		case p == nil || r.Op == opStart:
			a.Error = "link: a forwarder is started once"
		case r.Op == opSet:
			p.Set(r.Profile)
		case r.Op == opRestart:
			p.Restart()
		case r.Op == opExtra:
			p.SetExtra(r.Extra)
		case r.Op == opReport:
			a.Report = p.Report()
		}
		if err := enc.Encode(a); err != nil {
			return fmt.Errorf("link: answer: %w", err)
		}
	}
}

// shareTraces makes changes that keep a trace point to the one before again,
// as Parse made them: then it goes on where it is.
func shareTraces(p *Profile) {
	down, up := p.DownTrace, p.UpTrace
	for i := range p.Changes {
		q := &p.Changes[i].Profile
		if down.equal(q.DownTrace) {
			q.DownTrace = down
		}
		if up.equal(q.UpTrace) {
			q.UpTrace = up
		}
		down, up = q.DownTrace, q.UpTrace
	}
}
