package adb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"eidetic/control/hid"
	"eidetic/internal/base/scrcpyserver"
	"eidetic/internal/lab"
)

// Types of the messages to scrcpy's server, and of its own.
const (
	askClipboard  = 8
	setClipboard  = 9
	saysClipboard = 0
	saysSet       = 1
	saysUHID      = 2
)

const (
	// pasteLimit bounds how long the phone may take to paste where the caller's context ends later.
	pasteLimit = 10 * time.Second
	// maxClipboard bounds the text of the phone's clipboard: scrcpy's messages have at most 256 KiB.
	maxClipboard = 1 << 18
	// helloBytes are what the server says first: a zero, which proves that it listens, and the phone's name.
	helloBytes = 1 + 64
)

// clipboard pastes by scrcpy's server, which is started when it is needed first. It films nothing.
type clipboard struct {
	phone Phone
	file  string // of the server
	clock lab.Clock

	run      *scrcpyserver.Running // nil while none runs
	conn     io.ReadWriteCloser
	sequence uint64
}

// server reads the server's file.
func (c *clipboard) server() (f scrcpyserver.File, err error) {
	if f, err = scrcpyserver.Read(c.file); err == nil && (f.Major < 2 || f.Major == 2 && f.Minor < 1) {
		err = fmt.Errorf("scrcpy: %s: version %s takes no input without filming: take 2.1 or later", c.file, f.Version)
	}
	return f, err
}

// says is whether text can be pasted, for people.
func (c *clipboard) says() string {
	f, err := c.server()
	if err != nil {
		return fmt.Sprintf("Text that the layout lacks is refused, because it cannot be pasted: %v.", err)
	}
	return fmt.Sprintf("Text that the layout lacks is pasted by scrcpy's server %s.", f.Version)
}

// prepare starts the server, unless it runs.
func (c *clipboard) prepare(ctx context.Context) error {
	if c.run != nil {
		select {
		case <-c.run.Ended():
			c.close()
		default:
			return nil
		}
	}
	f, err := c.server()
	if err != nil {
		return err
	}
	run, conn, err := scrcpyserver.Start(ctx, c.phone.Client, c.phone.Serial, f,
		"video=false", "audio=false", "control=true", "clipboard_autosync=false", "power_on=false")
	if err != nil {
		return fmt.Errorf("adb: %s: %w", c.phone.Serial, err)
	}
	c.run, c.conn = run, conn
	return c.ask(ctx, "starting scrcpy's server", func() error {
		var hello [helloBytes]byte
		_, err := io.ReadFull(conn, hello[:])
		if err == nil && hello[0] != 0 {
			err = fmt.Errorf("its first byte is %d in place of 0", hello[0])
		}
		return err
	})
}

// ask speaks with the server within a context, and ends it if that fails.
func (c *clipboard) ask(ctx context.Context, what string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, pasteLimit)
	defer cancel()
	conn := c.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // what waits for the phone ends
	err := f()
	if !stop() {
		err = errors.Join(err, ctx.Err())
	}
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		err = c.run.Reason(err)
	}
	c.close()
	return fmt.Errorf("adb: %s: %s: %w", c.phone.Serial, what, err)
}

// paste sets the phone's clipboard, sees that it has the text, and has the key pressed that pastes it: the interval is
// that of the key.
func (c *clipboard) paste(ctx context.Context, text string) (at hid.Interval, err error) {
	if err := c.prepare(ctx); err != nil {
		return at, err
	}
	if err := c.ask(ctx, "setting the phone's clipboard", func() error { return c.put(text) }); err != nil {
		return at, err
	}
	err = c.ask(ctx, "pasting", func() error {
		at.Earliest = c.clock()
		err := c.set(text, true) // the server leaves a clipboard alone that has the text already
		at.Latest = c.clock()
		return err
	})
	return at, err
}

// put sets the clipboard and reads it back: the server acknowledges whatever the phone did.
func (c *clipboard) put(text string) error {
	if err := c.set(text, false); err != nil {
		return err
	}
	const noKey = 0 // nothing is copied before
	if _, err := c.conn.Write([]byte{askClipboard, noKey}); err != nil {
		return err
	}
	for {
		a, err := readAnswer(c.conn)
		switch {
		case err != nil:
			return err
		case a.kind != saysClipboard:
		case a.text != text:
			return errors.New("the phone's clipboard has another text afterwards")
		default:
			return nil
		}
	}
}

// set sets the clipboard, and with paste has Android's key PASTE pressed. It returns when the server has done both.
func (c *clipboard) set(text string, paste bool) error {
	c.sequence++
	if _, err := c.conn.Write(appendSetClipboard(nil, c.sequence, paste, text)); err != nil {
		return err
	}
	for {
		if a, err := readAnswer(c.conn); err != nil || a.kind == saysSet && a.sequence == c.sequence {
			return err
		}
	}
}

// appendSetClipboard appends scrcpy's message SET_CLIPBOARD.
func appendSetClipboard(b []byte, sequence uint64, paste bool, text string) []byte {
	b = binary.BigEndian.AppendUint64(append(b, setClipboard), sequence)
	flag := byte(0)
	if paste {
		flag = 1
	}
	b = binary.BigEndian.AppendUint32(append(b, flag), uint32(len(text)))
	return append(b, text...)
}

// answer is a message of scrcpy's server.
type answer struct {
	kind     byte
	sequence uint64 // of saysSet
	text     string // of saysClipboard
}

// readAnswer reads a message.
func readAnswer(r io.Reader) (a answer, err error) {
	var head [9]byte
	read := func(n int) []byte {
		if err == nil {
			_, err = io.ReadFull(r, head[:n])
		}
		return head[:n]
	}
	switch a.kind = read(1)[0]; {
	case err != nil:
	case a.kind == saysClipboard:
		n := binary.BigEndian.Uint32(read(4))
		if err == nil && n > maxClipboard {
			err = fmt.Errorf("the server announces a clipboard of %d bytes", n)
		}
		if err == nil {
			var text bytes.Buffer // what is said of the length is believed as far as bytes come
			_, err = io.CopyN(&text, r, int64(n))
			a.text = text.String()
		}
	case a.kind == saysSet:
		a.sequence = binary.BigEndian.Uint64(read(8))
	case a.kind == saysUHID:
		n := binary.BigEndian.Uint16(read(4)[2:]) // after the number of a device, which is none of ours
		if err == nil {
			_, err = io.CopyN(io.Discard, r, int64(n))
		}
	default:
		err = fmt.Errorf("%d is no message of scrcpy's server", a.kind)
	}
	return a, err
}

// close ends the server, if it runs.
func (c *clipboard) close() {
	if c.run == nil {
		return
	}
	_ = c.conn.Close() // the phone may have done so before
	c.run.Stop()
	c.run, c.conn = nil, nil
}
