package servertest

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"sync"
	"unicode/utf8"
)

// Clipboard is the clipboard of a simulated phone, as scrcpy's server sets and pastes it (ControlMessageReader and
// Controller of its sources). What it is sent it reads byte by byte as they do; nothing else is understood.
type Clipboard struct {
	// Deaf leaves the clipboard as it is, as phones do that have none: the server acknowledges all the same.
	Deaf bool
	// Silent answers nothing.
	Silent bool
	// OnPaste is told each text for which the key PASTE was pressed.
	OnPaste func(text string)

	mu     sync.Mutex
	text   string
	pasted []string
	heard  []byte
	starts []Start
}

// Pasted are the texts for which the key PASTE was pressed.
func (c *Clipboard) Pasted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.pasted...)
}

// Heard is what was sent to the server.
func (c *Clipboard) Heard() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]byte(nil), c.heard...)
}

// Starts are the starts of the server.
func (c *Clipboard) Starts() []Start {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Start(nil), c.starts...)
}

// Serve is for [Serve]: a server that was asked for input and no video. Its first connection is then that of input.
func (c *Clipboard) Serve(_ context.Context, start Start, conn io.ReadWriter) {
	c.mu.Lock()
	c.starts = append(c.starts, start)
	c.mu.Unlock()
	if start.Options["control"] != "true" || start.Options["video"] != "false" || start.Options["audio"] != "false" {
		return // the first connection would be another's
	}
	hello := make([]byte, 1+64)
	copy(hello[1:], "Simulated phone")
	if _, err := conn.Write(hello); err != nil {
		return
	}
	in := bufio.NewReader(io.TeeReader(conn, listener{c}))
	for c.message(in, conn) == nil {
	}
}

// listener keeps what was sent.
type listener struct{ c *Clipboard }

func (l listener) Write(b []byte) (int, error) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.heard = append(l.c.heard, b...)
	return len(b), nil
}

// message reads a message and does what it says.
func (c *Clipboard) message(in io.Reader, out io.Writer) error {
	read := func(n int) ([]byte, error) {
		b := make([]byte, n)
		_, err := io.ReadFull(in, b)
		return b, err
	}
	kind, err := read(1)
	if err != nil {
		return err
	}
	switch kind[0] {
	case 8: // TYPE_GET_CLIPBOARD: the copy key
		if key, err := read(1); err != nil || key[0] != 0 {
			return io.ErrUnexpectedEOF
		}
		c.mu.Lock()
		text := c.text
		c.mu.Unlock()
		return c.say(out, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...))
	case 9: // TYPE_SET_CLIPBOARD: sequence (8), paste (1), length (4), UTF-8
		head, err := read(13)
		if err != nil {
			return err
		}
		text, err := read(int(min(binary.BigEndian.Uint32(head[9:]), 1<<18)))
		if err != nil || !utf8.Valid(text) {
			return io.ErrUnexpectedEOF
		}
		c.set(string(text), head[8] != 0)
		return c.say(out, append([]byte{1}, head[:8]...))
	}
	return io.ErrUnexpectedEOF
}

func (c *Clipboard) set(text string, paste bool) {
	c.mu.Lock()
	if !c.Deaf {
		c.text = text
	}
	if paste {
		c.pasted = append(c.pasted, c.text)
	}
	told, now := c.OnPaste, c.text
	c.mu.Unlock()
	if paste && told != nil {
		told(now)
	}
}

func (c *Clipboard) say(out io.Writer, b []byte) error {
	if c.Silent {
		return nil
	}
	_, err := out.Write(b)
	return err
}
