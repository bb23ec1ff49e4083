package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a running server with its helpers.
type server struct {
	name string
	addr string // where it listens on the loopback
	cmd  *exec.Cmd
	log  bytes.Buffer
	said []string // what one of ours said when it was ready

	ended chan struct{} // closed when a process that is waited for has ended; nil before
}

// wait starts to wait for the end of the process.
func (s *server) wait() {
	s.ended = make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // a signal ends it
		close(s.ended)
	}()
}

// start runs a server in a process group of its own. One of ours prints "ready" and its facts; another
// is ready when addr accepts connections.
func start(ctx context.Context, name, addr, dir string, argv ...string) (*server, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		for _, sbin := range []string{"/usr/sbin", "/sbin"} {
			if p, e := exec.LookPath(filepath.Join(sbin, argv[0])); e == nil {
				path, err = p, nil
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not installed (scripts/deps.sh bench installs it): %w", name, err)
	}
	s := &server{name: name, addr: addr, cmd: exec.Command(path, argv[1:]...)}
	s.cmd.Dir, s.cmd.Stderr = dir, &s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if addr == "" {
		return s, s.startOurs(ctx)
	}
	s.cmd.Stdout = &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s.wait()
	deadline := time.After(time.Minute)
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			return s, c.Close()
		}
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-ctx.Done():
		case <-deadline:
		case <-s.ended:
		}
		s.stop()
		return nil, fmt.Errorf("%s does not listen: %w: %s", name, err, tail(s.log.String()))
	}
}

func (s *server) startOurs(ctx context.Context) error {
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	stop := context.AfterFunc(ctx, s.stop)
	defer stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	s.said = strings.Fields(line)
	if err != nil || len(s.said) < 2 || s.said[0] != "ready" {
		s.stop()
		return fmt.Errorf("%s did not start (%v): %s", s.name, err, tail(s.log.String()))
	}
	s.addr = s.said[1]
	return nil
}

// stop ends the server and its helpers. One of ours has time to write its profile.
func (s *server) stop() {
	if s.cmd.Process == nil {
		return
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM)
	if s.ended == nil {
		s.wait()
	}
	select {
	case <-s.ended:
	case <-time.After(3 * time.Second):
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.ended
}

// cpu returns the processor time that the server's process group has used: of its running processes and
// of their helpers that have ended.
func (s *server) cpu() (time.Duration, error) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	found := false
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended meanwhile
		}
		if err != nil {
			return 0, err
		}
		_, rest, ok := strings.Cut(string(text), ") ") // the name may hold anything
		f := strings.Fields(rest)
		if !ok || len(f) < 15 || f[2] != strconv.Itoa(s.cmd.Process.Pid) {
			continue
		}
		found = true
		for _, field := range f[11:15] { // utime, stime, and those of children
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", path, err)
			}
			sum += time.Duration(n) * tick
		}
	}
	if !found {
		return 0, fmt.Errorf("%s has ended: %s", s.name, tail(s.log.String()))
	}
	return sum, nil
}

// freePort finds a free TCP port on the loopback.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func tail(s string) string {
	s = strings.TrimSpace(s)
	return s[max(0, len(s)-2000):]
}
