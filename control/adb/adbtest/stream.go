package adbtest

import (
	"encoding/binary"
	"io"
	"strings"
	"sync"
)

// shellStream is a command's connection: the shell protocol within adbd's.
type shellStream struct {
	link          *link
	local, remote uint32
	pty           bool
	stdin         *io.PipeReader
	feed          chan []byte   // what came and is not yet in frames
	ended         chan struct{} // closed by end
	once          sync.Once
	ready         chan struct{} // holds a token while the server takes data
}

func newStream(l *link, local, remote uint32, pty bool) *shellStream {
	r, w := io.Pipe()
	s := &shellStream{
		link: l, local: local, remote: remote, pty: pty, stdin: r,
		feed: make(chan []byte, 1024), ended: make(chan struct{}), ready: make(chan struct{}, 1),
	}
	s.ready <- struct{}{}
	go s.unpack(w)
	return s
}

// input takes what the server wrote.
func (s *shellStream) input(b []byte) {
	select {
	case s.feed <- b:
	case <-s.ended:
	}
}

// unpack makes standard input of frames.
func (s *shellStream) unpack(w *io.PipeWriter) {
	defer w.Close()
	var held []byte
	for {
		select {
		case b := <-s.feed:
			held = append(held, b...)
		case <-s.ended:
			return
		}
		for len(held) >= 5 {
			n := int(binary.LittleEndian.Uint32(held[1:]))
			if len(held) < 5+n {
				break
			}
			if held[0] == 0 {
				if _, err := w.Write(held[5 : 5+n]); err != nil {
					return
				}
			}
			held = held[5+n:]
		}
	}
}

func (s *shellStream) acknowledged() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// end is the server's close, or the end of the connection.
func (s *shellStream) end() {
	s.once.Do(func() { close(s.ended) })
}

// frame sends a frame of the shell protocol once the server has taken the one before.
func (s *shellStream) frame(kind byte, data []byte) error {
	select {
	case <-s.ready:
	case <-s.ended:
		return io.ErrClosedPipe
	}
	b := append([]byte{kind}, binary.LittleEndian.AppendUint32(nil, uint32(len(data)))...)
	return s.link.send(packet{cmdWrite, s.local, s.remote, append(b, data...)})
}

// Write is standard output. A terminal ends lines with a carriage return too.
func (s *shellStream) Write(b []byte) (int, error) {
	text := b
	if s.pty {
		text = []byte(strings.ReplaceAll(string(b), "\n", "\r\n"))
	}
	return len(b), s.frame(1, text)
}
