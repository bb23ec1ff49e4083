package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"eidetic/internal/run/counters"
)

// process is a program of the lab in a process group of its own, so that it can be ended
// together with everything that it started.
type process struct {
	cmd  *exec.Cmd
	name string
	log  *tail
	done chan struct{} // closed when the program has ended
	err  error         // result of the program, once done is closed
	// counted are its counters; nil where nothing is counted.
	counted *counters.Set
}

// start runs cmd in its own process group and keeps the end of its output.
func start(cmd *exec.Cmd, name string) (*process, error) {
	p := &process{cmd: cmd, name: name, log: &tail{max: 16 << 10}, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = p.log
	}
	cmd.Stderr = p.log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid // the first process of a session has a group of its own
	// A browser's helpers may outlive it with our pipe open; Wait must not wait for them.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop ends the whole group, by SIGTERM and after the grace by SIGKILL.
func (p *process) stop(grace time.Duration) {
	if p == nil {
		return
	}
	group := -p.cmd.Process.Pid
	if grace > 0 {
		_ = syscall.Kill(group, syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(grace):
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-p.done
	reap(group)
	p.counted.End()
}

// reap waits for dead processes of a group that became our children when their parent died
// (this process is the first of the namespace).
func reap(group int) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(group, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}

// ended describes why the program ended without being stopped.
func (p *process) ended() error {
	how := "without an error"
	if p.err != nil {
		how = p.err.Error()
	}
	if last := p.log.lastLine(); last != "" {
		return fmt.Errorf("%s ended by itself (%s): %s", p.name, how, last)
	}
	return fmt.Errorf("%s ended by itself (%s)", p.name, how)
}

// waitLine reads r until a line arrives, the program ends, or ctx ends.
func (p *process) waitLine(ctx context.Context, r io.Reader) (string, error) {
	type read struct {
		line string
		err  error
	}
	got := make(chan read, 1)
	go func() {
		var line []byte
		var one [1]byte
		for len(line) < 4096 {
			if _, err := io.ReadFull(r, one[:]); err != nil {
				got <- read{string(line), err}
				return
			}
			if one[0] == '\n' {
				break
			}
			line = append(line, one[0])
		}
		got <- read{string(line), nil}
	}()
	select {
	case g := <-got:
		if g.err == nil {
			return g.line, nil
		}
		select {
		case <-p.done:
			return "", p.ended()
		case <-ctx.Done():
			return "", ctx.Err()
		}
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for %s: %w", p.name, ctx.Err())
	}
}

// tail is a writer that keeps only the last bytes.
type tail struct {
	mu  sync.Mutex
	buf []byte
	max int
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.buf), []byte("\n"))
	return strings.TrimSpace(string(lines[len(lines)-1]))
}
