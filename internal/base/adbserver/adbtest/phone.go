package adbtest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// Commands of adbd's protocol.
const (
	cmdConnect = 0x4e584e43
	cmdAuth    = 0x48545541
	cmdOpen    = 0x4e45504f
	cmdOkay    = 0x59414b4f
	cmdClose   = 0x45534c43
	cmdWrite   = 0x45545257
)

const (
	protocol   = 0x01000000 // with checksums
	maxPayload = 256 << 10
)

// Phone is a simulated phone with adbd.
type Phone struct {
	Serial string // as the server calls it: its address
	t      testing.TB
	l      net.Listener

	mu       sync.Mutex
	trusted  *rsa.PublicKey // whose signatures are good; nil trusts nobody
	accept   bool           // the person accepts the next key
	conns    map[net.Conn]bool
	props    State
	nodes    *nodes
	done     func(command string) // told what a command has done
	files    map[string][]byte    // that were pushed
	sockets  map[string]Service
	program  Program
	pids     map[int]context.CancelFunc // of those that run
	readings int                        // that the phone's shell has printed
	bin      string                     // a folder of programs for the phone's shell; "" before one was needed
}

// OnDone calls f with every command that stops, clears or starts a package, before the command ends.
func (p *Phone) OnDone(f func(command string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = f
}

// NewPhone makes a phone that listens on a port of its own. It trusts no key until Accept.
func NewPhone(t testing.TB) *Phone {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Phone{Serial: l.Addr().String(), t: t, l: l, conns: map[net.Conn]bool{}, props: newState(), nodes: newNodes(),
		files: map[string][]byte{}, sockets: map[string]Service{}, pids: map[int]context.CancelFunc{}}
	var all sync.WaitGroup
	all.Add(1)
	go func() {
		defer all.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns[conn] = true
			p.mu.Unlock()
			all.Add(1)
			go func() {
				defer all.Done()
				p.serve(conn)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		p.Disconnect()
		all.Wait()
	})
	return p
}

// Accept lets the person at the phone accept the key that is offered from now on.
func (p *Phone) Accept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accept = true
}

// Leave pulls the cable for good: the server, which connects again, finds nothing.
func (p *Phone) Leave() {
	p.l.Close()
	p.Disconnect()
}

// Disconnect pulls the cable: all connections end.
func (p *Phone) Disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// packet is one message of the protocol.
type packet struct {
	command, arg0, arg1 uint32
	data                []byte
}

func readPacket(r io.Reader) (m packet, err error) {
	var head [24]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return m, err
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(head[4*i:]) }
	m = packet{command: word(0), arg0: word(1), arg1: word(2)}
	if word(5) != ^m.command || word(3) > maxPayload {
		return m, fmt.Errorf("command %#x with magic %#x and %d bytes", m.command, word(5), word(3))
	}
	m.data = make([]byte, word(3))
	_, err = io.ReadFull(r, m.data)
	return m, err
}

func (m packet) bytes() []byte {
	var b []byte
	var check uint32
	for _, v := range m.data {
		check += uint32(v)
	}
	for _, w := range []uint32{m.command, m.arg0, m.arg1, uint32(len(m.data)), check, ^m.command} {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return append(b, m.data...)
}

// link is a connection with the server.
type link struct {
	phone *Phone
	conn  net.Conn
	wmu   sync.Mutex

	mu      sync.Mutex
	streams map[uint32]*shellStream // by our numbers
	next    uint32
}

func (l *link) send(m packet) error {
	l.wmu.Lock()
	defer l.wmu.Unlock()
	_, err := l.conn.Write(m.bytes())
	return err
}

// serve speaks with the server until the connection ends.
func (p *Phone) serve(conn net.Conn) {
	l := &link{phone: p, conn: conn, streams: map[uint32]*shellStream{}}
	ctx, cancel := context.WithCancel(context.Background())
	var commands sync.WaitGroup
	defer func() {
		cancel()
		_ = conn.Close()
		p.mu.Lock()
		delete(p.conns, conn)
		p.mu.Unlock()
		l.mu.Lock()
		for _, s := range l.streams {
			s.end()
		}
		l.mu.Unlock()
		commands.Wait()
	}()
	if err := l.greet(); err != nil {
		return
	}
	for {
		m, err := readPacket(conn)
		if err != nil {
			return
		}
		l.handle(ctx, m, &commands)
	}
}

// greet does the beginning: the server's CNXN, AUTH until the key is trusted, our CNXN.
func (l *link) greet() error {
	m, err := readPacket(l.conn)
	if err != nil || m.command != cmdConnect {
		return errors.Join(err, errors.New("it does not begin with CNXN"))
	}
	const token, signature, publicKey = 1, 2, 3
	for {
		challenge := make([]byte, 20)
		if _, err := rand.Read(challenge); err != nil {
			return err
		}
		if err := l.send(packet{cmdAuth, token, 0, challenge}); err != nil {
			return err
		}
		if m, err = readPacket(l.conn); err != nil {
			return err
		}
		switch {
		case m.command == cmdAuth && m.arg0 == signature && l.phone.knows(challenge, m.data):
			return l.send(packet{cmdConnect, protocol, maxPayload, []byte(banner)})
		case m.command == cmdAuth && m.arg0 == publicKey:
			if err := l.phone.ask(l.conn, m.data); err != nil {
				return err
			}
			return l.send(packet{cmdConnect, protocol, maxPayload, []byte(banner)})
		}
	}
}

const banner = "device::ro.product.name=eidetic;ro.product.model=Simulated phone;ro.product.device=eidetic;features=shell_v2,cmd"

func (p *Phone) knows(challenge, signature []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trusted != nil && rsa.VerifyPKCS1v15(p.trusted, crypto.SHA1, challenge, signature) == nil
}

// ask shows a key to the person, who accepts it or lets the phone lie.
func (p *Phone) ask(conn net.Conn, offered []byte) error {
	key, err := parseKey(offered)
	if err != nil {
		p.t.Errorf("adbtest: the server's key: %v", err)
		return err
	}
	p.mu.Lock()
	accepted := p.accept
	if accepted {
		p.trusted = key
	}
	p.mu.Unlock()
	if !accepted {
		_, _ = conn.Read(make([]byte, 1)) // until the cable is pulled
		return errors.New("nobody accepts the key")
	}
	return nil
}

// parseKey reads Android's form of a public key: base64 of a structure with the modulus,
// little-endian, and a name.
func parseKey(text []byte) (*rsa.PublicKey, error) {
	encoded, _, _ := strings.Cut(strings.TrimRight(string(text), "\x00"), " ")
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(b) != 524 {
		return nil, fmt.Errorf("%d bytes: %w", len(b), err)
	}
	modulus := make([]byte, 256)
	for i := range modulus {
		modulus[i] = b[8+255-i]
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(modulus), E: int(binary.LittleEndian.Uint32(b[520:]))}, nil
}

// handle does what a packet says.
func (l *link) handle(ctx context.Context, m packet, commands *sync.WaitGroup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m.command {
	case cmdOpen:
		service := strings.TrimRight(string(m.data), "\x00")
		options, command, ok := strings.Cut(service, ":")
		if options == "reboot" {
			l.next++
			_ = l.send(packet{cmdOkay, l.next, m.arg0, nil})
			l.phone.Change(func(s *State) { s.Boots, s.Hangs = s.Boots+1, "" })
			_ = l.conn.Close()
			return
		}
		run := func(s *shellStream) { l.phone.run(ctx, s, command) }
		if f := l.phone.service(options, command); f != nil {
			run = func(s *shellStream) { f(s, s.ended) }
		} else if !ok || !strings.HasPrefix(options, "shell,v2") || l.phone.State().Old {
			_ = l.send(packet{cmdClose, 0, m.arg0, nil})
			return
		}
		l.next++
		s := newStream(l, l.next, m.arg0, options)
		l.streams[l.next] = s
		_ = l.send(packet{cmdOkay, s.local, s.remote, nil})
		commands.Add(1)
		go func() {
			defer commands.Done()
			run(s)
			l.mu.Lock()
			delete(l.streams, s.local)
			l.mu.Unlock()
			_ = l.send(packet{cmdClose, s.local, s.remote, nil})
		}()
	case cmdWrite:
		if s := l.streams[m.arg1]; s != nil {
			s.input(m.data)
			_ = l.send(packet{cmdOkay, s.local, s.remote, nil})
		}
	case cmdOkay:
		if s := l.streams[m.arg1]; s != nil {
			s.acknowledged()
		}
	case cmdClose:
		if s := l.streams[m.arg1]; s != nil {
			s.end()
		}
	}
}

// Connect lets the server connect to the phone and waits until it is usable.
func (p *Phone) Connect(t testing.TB, c interface {
	Connect(ctx context.Context, address string) error
}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	if err := c.Connect(ctx, p.Serial); err != nil && !strings.Contains(err.Error(), "authenticate") {
		t.Fatal(err)
	}
}
