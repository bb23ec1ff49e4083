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
}

// ExitError is a command on the box that ended with another status than 0.
type ExitError struct {
	Command string
	Status  int
	Output  string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("on the box: %s: exit status %d: %s", e.Command, e.Status, strings.TrimSpace(e.Output))
}

func dialShell(ctx context.Context, path string) (*Shell, error) {
	conn, err := dialUnix(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("serial console: %w", err)
	}
	return &Shell{conn: conn}, nil
}

// maxOutput bounds what one command may print.
const maxOutput = 4 << 20

// Run runs a line of bash on the box and returns what it printed to both its
// outputs. Before the box is up it waits. A status other than 0 is an *ExitError.
func (s *Shell) Run(ctx context.Context, command string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	// The marks are split in what is sent, so that an echoing console does
	// not look like an answer. Each attempt has a number of its own.
	for attempt := 0; ; attempt++ {
		id := fmt.Sprintf("%d.%d", s.count, attempt)
		line := fmt.Sprintf("stty -echo -onlcr; echo; echo '@@''begin %s'; { %s\n} </dev/null 2>&1; echo \"@@\"\"end %s $?\"\n", id, command, id)
		text, err := s.exchange(ctx, line, id)
		if errors.Is(err, errSilent) {
			continue // typed before the shell was there
		}
		if err != nil {
			return text, fmt.Errorf("on the box: %s: %w", command, err)
		}
		out, status, _ := strings.Cut(text, "@@end "+id+" ")
		_, out, _ = strings.Cut(out, "@@begin "+id+"\n")
		n, err := strconv.Atoi(strings.TrimSpace(status))
		if err != nil {
			return out, fmt.Errorf("on the box: %s: end %q", command, status)
		}
		if n != 0 {
			return out, &ExitError{command, n, out}
		}
		return out, nil
	}
}

// errSilent says that nobody took the command.
var errSilent = errors.New("no answer")

// patience is how long a shell may take to say that it begins.
const patience = 3 * time.Second

func (s *Shell) exchange(ctx context.Context, line, id string) (string, error) {
	if _, err := s.conn.Write([]byte(line)); err != nil {
		return "", err
	}
	var text bytes.Buffer
	buffer := make([]byte, 1<<16)
	began := time.Now()
	for {
		if err := s.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			return "", err
		}
		n, err := s.conn.Read(buffer)
		text.Write(bytes.ReplaceAll(buffer[:n], []byte("\r"), nil))
		if text.Len() > maxOutput {
			return text.String(), fmt.Errorf("more than %d bytes of output", maxOutput)
		}
		if end := strings.Index(text.String(), "@@end "+id+" "); end >= 0 && strings.HasSuffix(text.String(), "\n") {
			return text.String(), nil
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return text.String(), err
		}
		if ctx.Err() != nil {
			return text.String(), fmt.Errorf("%w; so far it printed: %q", ctx.Err(), last(text.String(), 400))
		}
		if !strings.Contains(text.String(), "@@begin "+id+"\n") && time.Since(began) > patience {
			return "", errSilent
		}
	}
}

func (s *Shell) close() { _ = s.conn.Close() }

func last(text string, n int) string { return text[max(0, len(text)-n):] }
