package boottest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Shell is the root console of the test build, on the second serial port. One
// command runs at a time.
type Shell struct {
	mu    sync.Mutex
	conn  net.Conn
	count int
	text  bytes.Buffer // bytes that were read and not yet used
}

// ExitError reports a command on the box that ended with a status other than 0.
type ExitError struct {
	Command string
	Status  int
	Output  string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("on the box: %s: exit status %d: %s", e.Command, e.Status, strings.TrimSpace(last(e.Output, 2000)))
}

func dialShell(ctx context.Context, path string) (*Shell, error) {
	conn, err := dialUnix(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("serial console: %w", err)
	}
	return &Shell{conn: conn}, nil
}

const (
	// maxOutput bounds what one command may print.
	maxOutput = 4 << 20
	// knockEvery is the interval at which knock repeats its command to a shell that does not answer.
	knockEvery = 3 * time.Second
)

// Run runs a line of bash on the box and returns what it printed to both its
// outputs. Before the box is up it waits. A status other than 0 is an *ExitError.
func (s *Shell) Run(ctx context.Context, command string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.knock(ctx); err != nil {
		return "", fmt.Errorf("on the box: %s: %w", command, err)
	}
	s.count++
	// The command contains the marks in two parts, so that the echo of the command
	// does not look like an answer.
	line := fmt.Sprintf("echo '@@''begin %d'; { %s\n} </dev/null 2>&1; echo \"@@\"\"end %d $?\"\n", s.count, command, s.count)
	if _, err := s.conn.Write([]byte(line)); err != nil {
		return "", fmt.Errorf("on the box: %s: %w", command, err)
	}
	if _, err := s.until(ctx, fmt.Sprintf("@@begin %d\n", s.count)); err != nil {
		return "", fmt.Errorf("on the box: %s: %w", command, err)
	}
	out, err := s.until(ctx, fmt.Sprintf("@@end %d ", s.count))
	if err != nil {
		return out, fmt.Errorf("on the box: %s: %w; so far it printed: %q", command, err, last(out, 400))
	}
	status, err := s.until(ctx, "\n")
	if err != nil {
		return out, fmt.Errorf("on the box: %s: %w", command, err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(status))
	if err != nil {
		return out, fmt.Errorf("on the box: %s: end %q", command, status)
	}
	if n != 0 {
		return out, &ExitError{command, n, out}
	}
	return out, nil
}

// knock returns once a shell answers. Text that is typed before the shell runs may be
// lost or read later, so knock repeats only a command that does nothing.
func (s *Shell) knock(ctx context.Context) error {
	s.text.Reset() // output of a command that timed out
	s.count++
	for {
		line := fmt.Sprintf("\nstty -echo -onlcr; echo '@@''here %d'\n", s.count)
		if _, err := s.conn.Write([]byte(line)); err != nil {
			return err
		}
		attempt, cancel := context.WithTimeout(ctx, knockEvery)
		_, err := s.until(attempt, fmt.Sprintf("@@here %d\n", s.count))
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// until reads up to the mark and returns the text before it. When ctx ends,
// it returns the text so far, which stays in the buffer.
func (s *Shell) until(ctx context.Context, mark string) (string, error) {
	buffer := make([]byte, 1<<16)
	for seen := 0; ; { // bytes of s.text in which the mark cannot begin
		if at := bytes.Index(s.text.Bytes()[seen:], []byte(mark)); at >= 0 {
			before := string(s.text.Next(seen + at))
			s.text.Next(len(mark))
			return before, nil
		}
		seen = max(0, s.text.Len()-len(mark))
		if s.text.Len() > maxOutput {
			return s.text.String(), fmt.Errorf("more than %d bytes of output", maxOutput)
		}
		if ctx.Err() != nil {
			return s.text.String(), ctx.Err()
		}
		if err := s.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			return "", err
		}
		n, err := s.conn.Read(buffer)
		s.text.Write(bytes.ReplaceAll(buffer[:n], []byte("\r"), nil))
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return s.text.String(), err
		}
	}
}

func (s *Shell) close() { _ = s.conn.Close() }

func last(text string, n int) string { return text[max(0, len(text)-n):] }
