package adbtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// lister is the phone's ps: the one of this machine has other options, and would list this machine's processes.
const lister = "#!/bin/sh\nexec cat \"${0%/*}/list\"\n"

// list writes what ps prints for the programs that the phone runs in its shell. The caller holds the lock.
func (p *Phone) list() {
	if p.bin == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(p.bin, "list"), []byte(p.listing()), 0o600); err != nil {
		p.t.Errorf("adbtest: %v", err)
	}
}

// listing is what ps prints. The caller holds the lock.
func (p *Phone) listing() string {
	out := "  PID NAME\n    1 init\n"
	for _, one := range p.props.Running {
		out += fmt.Sprintf("%5d %s\n", one.PID, one.Name)
	}
	return out
}

// shell runs a program of the phone's shell in that of this machine, so that it reads this machine's /proc.
func (p *Phone) shell(ctx context.Context, s *shellStream, program string) (status byte) {
	p.mu.Lock()
	if p.bin == "" {
		p.bin = p.t.TempDir()
		if err := os.WriteFile(filepath.Join(p.bin, "ps"), []byte(lister), 0o700); err != nil {
			p.t.Errorf("adbtest: %v", err)
		}
		p.list()
	}
	env := append(os.Environ(), "PATH="+p.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.ended: // adbd ends what is on a terminal that is gone
			cancel()
		case <-ctx.Done():
		}
	}()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", program)
	out := counting{s, p}
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Errorf("adbtest: %v", err)
		return 1
	}
	go func() {
		defer in.Close()
		buffer := make([]byte, 4096)
		for {
			n, err := s.stdin.Read(buffer)
			if _, writeErr := in.Write(buffer[:n]); err != nil || writeErr != nil {
				return
			}
		}
	}()
	if err := cmd.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
		return 1
	}
	return 0
}

// readMark is what each reading that the phone's shell prints ends with.
const readMark = ".\n"

// counting counts the readings that pass.
type counting struct {
	*shellStream
	phone *Phone
}

func (c counting) Write(b []byte) (int, error) {
	n, err := c.shellStream.Write(b)
	if string(b) == readMark || strings.HasSuffix(string(b), "\n"+readMark) {
		c.phone.mu.Lock()
		c.phone.readings++
		c.phone.mu.Unlock()
	}
	return n, err
}

// AwaitReadings waits until the phone's shell has printed so many readings of processes more.
func AwaitReadings(t testing.TB, p *Phone, more int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	now := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.readings
	}
	for want := now() + more; now() < want; {
		if err := lab.Wait(ctx, time.Millisecond); err != nil {
			t.Fatalf("the phone does not print %d readings: %v", more, err)
		}
	}
}
