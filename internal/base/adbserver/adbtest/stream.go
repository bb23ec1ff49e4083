package adbtest

import (
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"sync"
)

// shellStream is a connection within adbd's: a command's, by the shell protocol, or a service's own bytes.
type shellStream struct {
	link          *link
	local, remote uint32
	pty, raw      bool
	stdin         *io.PipeReader
	feed          chan []byte   // what came and is not yet in frames
	ended         chan struct{} // closed by end
	once          sync.Once
	ready         chan struct{} // holds a token while the server takes data
}

func newStream(l *link, local, remote uint32, options string) *shellStream {
	r, w := io.Pipe()
	s := &shellStream{
		link: l, local: local, remote: remote, stdin: r,
		pty: strings.Contains(options, "pty"), raw: !strings.HasPrefix(options, "shell"),
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
		if s.raw {
			if _, err := w.Write(held); err != nil {
				return
			}
			held = held[:0]
			continue
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
	if s.raw {
		return s.link.send(packet{cmdWrite, s.local, s.remote, data})
	}
	b := append([]byte{kind}, binary.LittleEndian.AppendUint32(nil, uint32(len(data)))...)
	return s.link.send(packet{cmdWrite, s.local, s.remote, append(b, data...)})
}

// Read is standard input, or what came to a service.
func (s *shellStream) Read(b []byte) (int, error) { return s.stdin.Read(b) }

// Write is standard output, or what a service sends. A terminal ends lines with a carriage return too.
func (s *shellStream) Write(b []byte) (int, error) {
	if s.raw {
		for chunk := range slices.Chunk(b, maxPayload) {
			if err := s.frame(0, chunk); err != nil {
				return 0, err
			}
		}
		return len(b), nil
	}
	text := b
	if s.pty {
		text = []byte(strings.ReplaceAll(string(b), "\n", "\r\n"))
	}
	return len(b), s.frame(1, text)
}
