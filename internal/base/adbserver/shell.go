package adbserver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"eidetic/internal/lab"
)

// Kinds of the shell protocol's frames.
const (
	frameIn     = 0
	frameOut    = 1
	frameErr    = 2
	frameExit   = 3
	frameCloses = 4
)

// readFrame reads a frame of the shell protocol (version 2): a kind, the length in four
// bytes, the data.
func readFrame(r io.Reader) (kind byte, data []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is more than the shell protocol has", n)
	}
	data = make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, fmt.Errorf("a frame of %d bytes was cut off: %w", n, err)
	}
	return head[0], data, nil
}

func appendFrame(b []byte, kind byte, data []byte) []byte {
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

// CommandError is a command on the phone that failed.
type CommandError struct {
	Command string
	Status  int
	Output  string // of standard error, or of standard output where that is empty
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("%s on the phone ended with status %d: %.300s", lab.Clip(e.Command, 60), e.Status, strings.TrimSpace(e.Output))
}

// openShell starts a command. A phone that does not know the protocol closes the connection without a reason.
func (c Client) openShell(ctx context.Context, serial, service string) (*Conn, error) {
	conn, err := c.Open(ctx, "host:transport:"+serial, service)
	var refused *FailError
	if errors.As(err, &refused) && refused.Reason == "closed" {
		err = fmt.Errorf("%w: the phone was unplugged, or its Android is older than 7", err)
	}
	return conn, err
}

// Shell runs a command on the phone and returns what it prints on standard output.
func (c Client) Shell(ctx context.Context, serial, command string) (string, error) {
	conn, err := c.openShell(ctx, serial, "shell,v2,raw:"+command)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var out, errs []byte
	for {
		kind, data, err := readFrame(conn.r)
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return "", fmt.Errorf("adb: %s on the phone: the connection ended before the command: %w", lab.Clip(command, 60), err)
		}
		switch kind {
		case frameOut:
			out = append(out, data...)
		case frameErr:
			errs = append(errs, data...)
		case frameExit:
			if len(data) != 1 {
				return "", fmt.Errorf("adb: %s on the phone: an exit status of %d bytes", lab.Clip(command, 60), len(data))
			}
			if data[0] != 0 {
				if len(errs) == 0 {
					errs = out
				}
				return "", fmt.Errorf("adb: %w", &CommandError{command, int(data[0]), string(errs)})
			}
			return string(out), nil
		}
		if len(out)+len(errs) > maxOutput {
			return "", fmt.Errorf("adb: %s on the phone prints more than %d bytes", lab.Clip(command, 60), maxOutput)
		}
	}
}

// Stream is a command that is held open on the phone.
type Stream struct {
	conn *Conn
	mu   sync.Mutex // guards writing
}

// Hold starts a command; mode is "raw" or "pty", which makes programs write each line at once.
func (c Client) Hold(ctx context.Context, serial, mode, command string) (*Stream, error) {
	service := "shell,v2,raw:"
	if mode == "pty" {
		service = "shell,v2,TERM=dumb,pty:"
	}
	conn, err := c.openShell(ctx, serial, service+command)
	if err != nil {
		return nil, err
	}
	return &Stream{conn: conn}, nil
}

// Write sends to the command's standard input.
func (s *Stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.conn.Write(appendFrame(nil, frameIn, b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Next returns what the command printed next; io.EOF when it ended well.
func (s *Stream) Next() ([]byte, error) {
	for {
		kind, data, err := readFrame(s.conn.r)
		switch {
		case err != nil:
			return nil, err
		case kind == frameOut || kind == frameErr:
			return data, nil
		case kind == frameExit && len(data) == 1 && data[0] == 0:
			return nil, io.EOF
		case kind == frameExit:
			return nil, fmt.Errorf("it ended with status % d", data)
		}
	}
}

// Close ends the connection, and with it the command.
func (s *Stream) Close() error { return s.conn.Close() }
