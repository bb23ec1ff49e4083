// Package rfbtest is an in-process VNC server for behaviour that real servers do not show on
// demand: old versions, missing extensions, silence, violations of the protocol. Its input is
// drawing and screen sizes; its output is Raw frames, and a log of the client's input. The
// same suites run on it and on real servers.
package rfbtest

import (
	"bufio"
	"crypto/des"
	"encoding/binary"
	"fmt"
	"image"
	"io"
	"math/bits"
	"net"
	"slices"
	"sync"
	"testing"
)

// Config configures a server. The zero value speaks 3.8 and offers no extensions.
type Config struct {
	Version    string // "3.3", "3.7" or "3.8"
	Password   string // "": security type None
	Fences     bool
	Continuous bool // with Fences
	// Prelude answers the first request with an update that has only the size, and the
	// next one with the pixels, as Xvnc does.
	Prelude bool
	Width   int // default 64
	Height  int // default 48
	// Off starts the server with a screen of 0×0.
	Off bool
	// Late is the size that the screen gets when the first client announces its encodings.
	Late image.Point
}

// Server is a VNC server with one screen.
type Server struct {
	// Connected has an element after each of the first connections.
	Connected chan struct{}

	cfg      Config
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	size    image.Point
	pix     []byte
	clients map[*client]bool
	input   []string
	silent  bool
	quiet   *sync.Cond
}

// client is one connection.
type client struct {
	s    *Server
	conn net.Conn
	r    *bufio.Reader

	// Guarded by the server's mu.
	known     image.Point // the size that the client knows
	dirty     image.Rectangle
	wanted    image.Rectangle
	always    bool // continuous updates are on
	prelude   bool // the prelude has been sent
	writing   sync.Mutex
	encodings []int32
}

// New starts a server that ends with the test.
func New(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Version == "" {
		cfg.Version = "3.8"
	}
	if cfg.Width == 0 {
		cfg.Width, cfg.Height = 64, 48
	}
	if cfg.Off {
		cfg.Width, cfg.Height = 0, 0
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		Connected: make(chan struct{}, 100), cfg: cfg, listener: l, clients: map[*client]bool{}, size: image.Pt(cfg.Width, cfg.Height),
	}
	s.quiet = sync.NewCond(&s.mu)
	s.pix = make([]byte, 4*cfg.Width*cfg.Height)
	s.wg.Go(s.accept)
	t.Cleanup(s.Close)
	return s
}

// Addr is the server's address.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends every connection.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.Silence(false)
	s.mu.Lock()
	for c := range s.clients {
		_ = c.conn.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		c := &client{s: s, conn: conn, r: bufio.NewReader(conn), known: s.size}
		s.clients[c] = true
		s.mu.Unlock()
		select {
		case s.Connected <- struct{}{}:
		default:
		}
		s.wg.Go(func() {
			_ = c.serve() // a client's disconnect is not a failure
			_ = conn.Close()
			s.mu.Lock()
			delete(s.clients, c)
			s.mu.Unlock()
		})
	}
}

// Paint fills r with a colour, 0xRRGGBB.
func (s *Server) Paint(r image.Rectangle, rgb uint32) {
	s.mu.Lock()
	r = r.Intersect(image.Rectangle{Max: s.size})
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			// Real servers leave any value in the fourth byte.
			binary.LittleEndian.PutUint32(s.pix[4*(y*s.size.X+x):], rgb|0xa5000000)
		}
	}
	for c := range s.clients {
		c.dirty = c.dirty.Union(r)
	}
	s.mu.Unlock()
	s.flush()
}

// Resize changes the size of the screen and makes it black.
func (s *Server) Resize(w, h int) {
	s.mu.Lock()
	s.size, s.pix = image.Pt(w, h), make([]byte, 4*w*h)
	for c := range s.clients {
		c.dirty = image.Rectangle{Max: s.size}
	}
	s.mu.Unlock()
	s.flush()
}

// Silence makes the server stop, or resume, reading and answering.
func (s *Server) Silence(on bool) {
	s.mu.Lock()
	s.silent = on
	s.quiet.Broadcast()
	s.mu.Unlock()
}

// Input returns the client's input so far: "down 61", "up 61", "pointer 0 10,20".
func (s *Server) Input() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.input)
}

func (s *Server) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		_ = c.update()
	}
}

func (c *client) send(b []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.conn.Write(b)
	return err
}

func (c *client) read(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(c.r, b)
	return b, err
}

// authenticate checks the answer to a challenge of sixteen bytes of value 1.
func (c *client) authenticate() error {
	challenge := slices.Repeat([]byte{1}, 16)
	if err := c.send(challenge); err != nil {
		return err
	}
	answer, err := c.read(16)
	if err != nil {
		return err
	}
	var key [8]byte
	copy(key[:], c.s.cfg.Password)
	for i := range key {
		key[i] = bits.Reverse8(key[i])
	}
	block, err := des.NewCipher(key[:])
	if err != nil {
		return err
	}
	want := make([]byte, 16)
	block.Encrypt(want, challenge)
	block.Encrypt(want[8:], challenge[8:])
	if slices.Equal(answer, want) {
		return c.send([]byte{0, 0, 0, 0})
	}
	refusal := []byte{0, 0, 0, 1}
	if c.s.cfg.Version == "3.8" {
		refusal = append(refusal, "\x00\x00\x00\x05wrong"...)
	}
	_ = c.send(refusal)
	return fmt.Errorf("wrong password")
}

func (c *client) handshake() error {
	version := c.s.cfg.Version
	if err := c.send(fmt.Appendf(nil, "RFB 003.00%c\n", version[2])); err != nil {
		return err
	}
	if got, err := c.read(12); err != nil || string(got) != fmt.Sprintf("RFB 003.00%c\n", version[2]) {
		return fmt.Errorf("version %q: %w", got, err)
	}
	security := byte(1)
	if c.s.cfg.Password != "" {
		security = 2
	}
	if version == "3.3" {
		if err := c.send([]byte{0, 0, 0, security}); err != nil {
			return err
		}
	} else {
		if err := c.send([]byte{2, 99, security}); err != nil {
			return err
		}
		if got, err := c.read(1); err != nil || got[0] != security {
			return fmt.Errorf("security %v: %w", got, err)
		}
	}
	if security == 2 {
		if err := c.authenticate(); err != nil {
			return err
		}
	} else if version == "3.8" {
		if err := c.send([]byte{0, 0, 0, 0}); err != nil {
			return err
		}
	}
	if shared, err := c.read(1); err != nil || shared[0] != 1 {
		return fmt.Errorf("shared %v: %w", shared, err)
	}
	var b []byte
	b = binary.BigEndian.AppendUint16(b, uint16(c.known.X))
	b = binary.BigEndian.AppendUint16(b, uint16(c.known.Y))
	b = append(b, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) // a palette, which clients must ignore
	return c.send(append(b, "\x00\x00\x00\x04fake"...))
}
