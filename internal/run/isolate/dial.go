package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// The inside has no way out. If it must reach a server, as a recorder its origins, the
// outside connects for it and passes the connected socket through a Unix socket (unix(7),
// SCM_RIGHTS). The inside then has these connections and no others, and can get no more
// once it closes the Unix socket.

// dialLimit bounds the time for a connection outside.
const dialLimit = 30 * time.Second

// maxDial bounds the size of a request and of an answer.
const maxDial = 4096

// Dial connects to an address on behalf of a host; without one for the name server.
type Dial func(ctx context.Context, network, host, address string) (net.Conn, error)

type dialRequest struct {
	ID                     uint64
	Network, Host, Address string
}

type dialAnswer struct {
	ID    uint64
	Error string `json:",omitempty"`
	// ByBox says that Error is the box's own refusal.
	ByBox bool `json:",omitempty"`
}

// dialError is an error of the outside, as the inside has it.
type dialError struct {
	text  string
	byBox bool
}

func (e *dialError) Error() string { return e.text }

// ByBox tells that the box refused to connect: the origin is not at fault.
func (e *dialError) ByBox() bool { return e.byBox }

// isByBox tells whether an error is the box's own refusal.
func isByBox(err error) bool {
	var own interface{ ByBox() bool }
	return errors.As(err, &own) && own.ByBox()
}

// DialSockets returns the outside's end, and the inside's end to pass to Run.
func DialSockets() (outside *net.UnixConn, inside *os.File, err error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket for the inside: %w", err)
	}
	inside = os.NewFile(uintptr(pair[1]), "inside")
	ours := os.NewFile(uintptr(pair[0]), "outside")
	defer ours.Close()
	if outside, err = unixConn(ours); err != nil {
		inside.Close()
		return nil, nil, err
	}
	return outside, inside, nil
}

// unixConn makes a connection from a copy of the file's descriptor.
func unixConn(f *os.File) (*net.UnixConn, error) {
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("a socket to the outside: %w", err)
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, errors.New("a socket to the outside: it is not of Unix")
	}
	return u, nil
}

// ServeDials connects for the inside until the inside closes its end, then closes conn.
func ServeDials(ctx context.Context, conn *net.UnixConn, dial Dial) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	context.AfterFunc(ctx, func() { conn.Close() })
	buf := make([]byte, maxDial)
	for {
		n, err := conn.Read(buf)
		if err != nil || n == 0 {
			return
		}
		var r dialRequest
		if json.Unmarshal(buf[:n], &r) != nil {
			return // only this program is inside, and it sends nothing else
		}
		go func() {
			ctx, cancel := context.WithTimeout(ctx, dialLimit)
			defer cancel()
			answer := dialAnswer{ID: r.ID}
			var rights []byte
			file, err := dialFile(ctx, dial, r)
			if err == nil {
				defer file.Close()
				rights = syscall.UnixRights(int(file.Fd()))
			} else {
				answer.Error, answer.ByBox = clip(err.Error()), isByBox(err)
			}
			text, err := json.Marshal(answer)
			if err != nil {
				return // marshalling a number and a string cannot fail
			}
			_, _, _ = conn.WriteMsgUnix(text, rights, nil) // an error means that the inside has ended
		}()
	}
}

// clip shortens an error to the length of an answer.
func clip(s string) string {
	if len(s) > maxDial/8 {
		return s[:maxDial/8] + "…"
	}
	return s
}

// dialFile connects and returns the socket's file.
func dialFile(ctx context.Context, dial Dial, r dialRequest) (*os.File, error) {
	switch r.Network {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
	default:
		return nil, fmt.Errorf("network %q is not for the inside", r.Network)
	}
	c, err := dial(ctx, r.Network, r.Host, r.Address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	f, ok := c.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("a %T cannot be passed on", c)
	}
	return f.File()
}

// Dialer is the inside's end.
type Dialer struct {
	conn *net.UnixConn

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan dialled
	broken  error
}

type dialled struct {
	conn net.Conn
	err  error
}

// NewDialer makes a Dialer from the descriptor that Run passed.
func NewDialer(inside *os.File) (*Dialer, error) {
	defer inside.Close()
	conn, err := unixConn(inside)
	if err != nil {
		return nil, err
	}
	d := &Dialer{conn: conn, waiting: map[uint64]chan dialled{}}
	go d.read()
	return d, nil
}

// Dial has the outside connect.
func (d *Dialer) Dial(ctx context.Context, network, host, address string) (net.Conn, error) {
	answer := make(chan dialled, 1)
	d.mu.Lock()
	if d.broken != nil {
		defer d.mu.Unlock()
		return nil, d.broken
	}
	d.last++
	id := d.last
	d.waiting[id] = answer
	d.mu.Unlock()
	text, err := json.Marshal(dialRequest{id, network, host, address})
	if err == nil && len(text) > maxDial {
		err = fmt.Errorf("dial %s: the address is too long", network)
	}
	if err == nil {
		_, err = d.conn.Write(text)
	}
	if err != nil {
		d.forget(id, answer)
		return nil, err
	}
	select {
	case a := <-answer:
		return a.conn, a.err
	case <-ctx.Done():
		d.forget(id, answer)
		return nil, ctx.Err()
	}
}

// Close ends every way out. Existing connections stay.
func (d *Dialer) Close() error { return d.conn.Close() }

// forget abandons a request; a connection that still arrives is closed.
func (d *Dialer) forget(id uint64, answer <-chan dialled) {
	d.mu.Lock()
	_, waits := d.waiting[id]
	delete(d.waiting, id)
	d.mu.Unlock()
	if waits {
		return
	}
	if a := <-answer; a.conn != nil { // the answer arrived in between
		a.conn.Close()
	}
}

// read passes answers to the waiting callers.
func (d *Dialer) read() {
	buf, oob := make([]byte, maxDial), make([]byte, syscall.CmsgSpace(4))
	for {
		n, on, _, _, err := d.conn.ReadMsgUnix(buf, oob)
		if err != nil || n == 0 {
			d.fail(errors.New("the way out is closed"))
			return
		}
		var a dialAnswer
		got := dialled{}
		got.conn, err = receive(oob[:on])
		if jsonErr := json.Unmarshal(buf[:n], &a); jsonErr != nil {
			err = jsonErr
		}
		switch {
		case a.Error != "":
			got.err = &dialError{a.Error, a.ByBox}
		case err != nil:
			got.err = err
		case got.conn == nil:
			got.err = errors.New("the outside connected and passed no socket")
		}
		d.mu.Lock()
		answer := d.waiting[a.ID]
		delete(d.waiting, a.ID)
		d.mu.Unlock()
		if answer != nil {
			answer <- got
		} else if got.conn != nil {
			got.conn.Close()
		}
	}
}

func (d *Dialer) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = err
	for id, answer := range d.waiting {
		delete(d.waiting, id)
		answer <- dialled{err: err}
	}
}

// receive makes a connection from the descriptor in a control message, if there is one.
func receive(oob []byte) (net.Conn, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	descriptors, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(descriptors) == 0 {
		return nil, err
	}
	f := os.NewFile(uintptr(descriptors[0]), "connection")
	defer f.Close()
	return net.FileConn(f)
}
