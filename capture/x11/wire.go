package x11

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// wire is one connection to an X server, used by one goroutine at a time: a
// request is one write(2), its reply one or two read(2), on a blocking
// descriptor. xgb would pass each through three goroutines, whose
// turns in a busy process come milliseconds late, and allocate for each.
type wire struct {
	fd     int
	events int    // events that were skipped
	seq    uint16 // of the last request
	reply  []byte
	root   uint32
	width  int
	height int
	depth  byte
	nextID uint32
	idMask uint32
	idBase uint32
	bpp    int // bits per pixel of images of the root's depth
}

var le = binary.LittleEndian

// dial connects to display (":99", ":99.0", "unix:99", or the name of a socket, "/dir/name:99") and
// reads the set-up.
func dial(display, authority string) (*wire, error) {
	if display == "" {
		display = os.Getenv("DISPLAY")
	}
	if display == "" {
		return nil, errors.New("no display is named and $DISPLAY is empty")
	}
	host, rest, ok := strings.Cut(display, ":")
	number, err := strconv.Atoi(strings.SplitN(rest, ".", 2)[0])
	if !ok || err != nil || number < 0 {
		return nil, fmt.Errorf("display %q is not of the form :NUMBER", display)
	}
	if host != "" && host != "unix" && host[0] != '/' {
		return nil, fmt.Errorf("display %q is on another machine: shared memory needs a local one", display)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	w := &wire{fd: fd, reply: make([]byte, 32)}
	path := "/tmp/.X11-unix/X" + strconv.Itoa(number)
	if host != "" && host[0] == '/' {
		path = host + ":" + strconv.Itoa(number)
	}
	if err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		// "@": the abstract name, which servers listen on beside the file.
		if unix.Connect(fd, &unix.SockaddrUnix{Name: "@" + path}) != nil {
			w.close()
			return nil, fmt.Errorf("connect to display %s at %s: %w", display, path, err)
		}
	}
	// A server that hangs must not hang us for ever.
	patience := unix.NsecToTimeval((5 * time.Second).Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience)
	cookie, err := findCookie(authority, strconv.Itoa(number))
	if err == nil {
		err = w.setup(cookie)
	}
	if err != nil {
		w.close()
		return nil, fmt.Errorf("connect to display %s: %w", display, err)
	}
	return w, nil
}

func (w *wire) close() {
	if w.fd >= 0 {
		_ = unix.Close(w.fd)
		w.fd = -1
	}
}

func (w *wire) write(b []byte) error {
	for len(b) > 0 {
		n, err := unix.SendmsgN(w.fd, b, nil, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write to the X server: %w", err)
		}
		b = b[n:]
	}
	return nil
}

func (w *wire) read(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(w.fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EAGAIN) {
			return errors.New("the X server does not answer")
		}
		if err != nil {
			return fmt.Errorf("read from the X server: %w", err)
		}
		if n == 0 {
			return fmt.Errorf("the X server closed the connection: %w", io.ErrUnexpectedEOF)
		}
		b = b[n:]
	}
	return nil
}

// setup sends the client's prefix and takes from the server's answer what is
// needed here (X Window System Protocol, chapter 8).
func (w *wire) setup(cookie []byte) error {
	name := ""
	if cookie != nil {
		name = "MIT-MAGIC-COOKIE-1"
	}
	b := []byte{'l', 0, 11, 0, 0, 0, byte(len(name)), 0, byte(len(cookie)), 0, 0, 0}
	b = append(append(b, name...), make([]byte, -len(name)&3)...)
	b = append(append(b, cookie...), make([]byte, -len(cookie)&3)...)
	if err := w.write(b); err != nil {
		return err
	}
	var head [8]byte
	if err := w.read(head[:]); err != nil {
		return err
	}
	body := make([]byte, 4*int(le.Uint16(head[6:])))
	if err := w.read(body); err != nil {
		return err
	}
	if head[0] != 1 {
		reason := strings.TrimRight(string(body[:min(int(head[1]), len(body))]), "\x00\n")
		return fmt.Errorf("the X server refuses: %s", reason)
	}
	return w.screen(body)
}

// screen reads the first screen from the set-up's body.
func (w *wire) screen(b []byte) error {
	short := errors.New("the X server's set-up is too short")
	if len(b) < 32 {
		return short
	}
	w.idBase, w.idMask = le.Uint32(b[4:]), le.Uint32(b[8:])
	vendor, screens, formats := int(le.Uint16(b[16:])), int(b[20]), int(b[21])
	if b[22] != 0 {
		return errors.New("the X server's images are big-endian, which is not supported")
	}
	at := 32 + (vendor+3)&^3
	list := at
	at += 8 * formats
	if screens < 1 || len(b) < at+40 {
		return short
	}
	s := b[at:]
	w.root, w.width, w.height, w.depth = le.Uint32(s), int(le.Uint16(s[20:])), int(le.Uint16(s[22:])), s[38]
	for i := range formats {
		if f := b[list+8*i:]; f[0] == w.depth {
			w.bpp = int(f[1])
		}
	}
	return nil
}

// id returns a fresh resource identifier.
func (w *wire) id() uint32 {
	w.nextID++
	return w.idBase | w.nextID&w.idMask
}

// request builds a request of the given opcodes; words follow the header.
func request(major, minor byte, words ...uint32) []byte {
	b := []byte{major, minor, byte(1 + len(words)), 0}
	for _, v := range words {
		b = le.AppendUint32(b, v)
	}
	return b
}

// send writes n requests that lie in b.
func (w *wire) send(b []byte, n int) error {
	w.seq += uint16(n)
	return w.write(b)
}

// xError is the server's answer to a bad request.
type xError struct{ code, major byte }

func (e xError) Error() string {
	return fmt.Sprintf("the X server reports error %d for request %d", e.code, e.major)
}

// await returns the reply to request number seq, valid until the next call.
// Events are skipped; an error answer to any request is returned as xError.
func (w *wire) await(seq uint16) ([]byte, error) {
	for {
		w.reply = w.reply[:32]
		if err := w.read(w.reply); err != nil {
			return nil, err
		}
		switch w.reply[0] {
		case 0:
			return nil, xError{w.reply[1], w.reply[10]}
		case 1:
			more := 4 * int(le.Uint32(w.reply[4:]))
			if more > 1<<30 {
				return nil, errors.New("the X server announces a reply of more than 1 GiB")
			}
			if cap(w.reply) < 32+more {
				w.reply = append(make([]byte, 0, 32+more+more/4), w.reply...)
			}
			w.reply = w.reply[:32+more]
			if err := w.read(w.reply[32:]); err != nil {
				return nil, err
			}
			if le.Uint16(w.reply[2:]) == seq {
				return w.reply, nil
			}
		default:
			w.events++
		}
	}
}

// call sends one request and returns its reply.
func (w *wire) call(b []byte) ([]byte, error) {
	if err := w.send(b, 1); err != nil {
		return nil, err
	}
	return w.await(w.seq)
}

// check sends requests that have no reply, and waits until the server has done them.
func (w *wire) check(reqs ...[]byte) error {
	for _, b := range reqs {
		if err := w.send(b, 1); err != nil {
			return err
		}
	}
	_, err := w.call(request(43, 0)) // GetInputFocus: the usual round trip
	return err
}

// extension returns an extension's major opcode, 0 when the server lacks it.
func (w *wire) extension(name string) (byte, error) {
	b := []byte{98, 0, byte(2 + (len(name)+3)/4), 0, byte(len(name)), 0, 0, 0}
	b = append(append(b, name...), make([]byte, -len(name)&3)...)
	r, err := w.call(b)
	if err != nil || r[8] == 0 {
		return 0, err
	}
	return r[9], nil
}
