package adbtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// Service is what serves a socket of the phone: it has the connection until it returns, and is to return when ended is
// closed.
type Service func(conn io.ReadWriter, ended <-chan struct{})

// Program is what the phone runs for app_process, the command that starts Java programs: it has the whole command, what
// it prints goes to out, and it returns its exit status. It is to return when ctx ends.
type Program func(ctx context.Context, command string, out io.Writer) (status byte)

// Install has the phone run f for app_process.
func (p *Phone) Install(f Program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.program = f
}

// Listen serves a local socket with an abstract name, until remove is called.
func (p *Phone) Listen(name string, f Service) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sockets[name] = f
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.sockets, name)
	}
}

// File is a file that was pushed to the phone, or nil.
func (p *Phone) File(name string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.files[name]
}

// Files is how many files were pushed and not removed.
func (p *Phone) Files() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.files)
}

// service is what serves a request for a service, or nil.
func (p *Phone) service(kind, name string) Service {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch kind {
	case "sync":
		return p.sync
	case "localabstract":
		return p.sockets[name]
	}
	return nil
}

// sync takes files.
func (p *Phone) sync(conn io.ReadWriter, _ <-chan struct{}) {
	name, data := "", []byte(nil)
	for {
		var head [8]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		n := binary.LittleEndian.Uint32(head[4:])
		var body []byte
		if id := string(head[:4]); id == "SEND" || id == "DATA" {
			body = make([]byte, min(n, 64<<10))
			if _, err := io.ReadFull(conn, body); err != nil {
				return
			}
		}
		switch string(head[:4]) {
		case "SEND":
			name, _, _ = strings.Cut(string(body), ",")
			data = nil
		case "DATA":
			data = append(data, body...)
		case "DONE":
			if reason := p.refuses(name); reason != "" {
				_, _ = conn.Write(append(binary.LittleEndian.AppendUint32([]byte("FAIL"), uint32(len(reason))), reason...))
				continue
			}
			p.mu.Lock()
			p.files[name] = data
			p.mu.Unlock()
			_, _ = conn.Write([]byte("OKAY\x00\x00\x00\x00"))
		default:
			return
		}
	}
}

// refuses says why a file is not taken.
func (p *Phone) refuses(name string) string {
	if !strings.HasPrefix(name, "/data/local/tmp/") {
		return "couldn't create file: Permission denied"
	}
	return ""
}

// java runs the program that is installed, after the words of the command before it: its process number is printed.
func (p *Phone) java(ctx context.Context, s *shellStream, command string) byte {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	p.mu.Lock()
	program := p.program
	pid := 5000
	for ; p.pids[pid] != nil; pid++ {
	}
	p.pids[pid] = cancel
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.pids, pid)
	}()
	if program == nil {
		fmt.Fprintln(s, "/system/bin/sh: app_process: inaccessible or not found")
		return 127
	}
	if strings.HasPrefix(command, "echo $$;") {
		fmt.Fprintln(s, pid)
	}
	return program(ctx, command, s)
}

// kill ends a program.
func (p *Phone) kill(command string) {
	var pid int
	_, _ = fmt.Sscanf(command, "kill %d", &pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.pids[pid]; cancel != nil {
		cancel()
	}
}

// Programs is how many programs run.
func (p *Phone) Programs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pids)
}
