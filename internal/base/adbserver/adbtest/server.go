// Package adbtest is for tests of what speaks to phones: Debian's own adb server, started
// for the test, and a phone of ours that speaks adbd's protocol to it over TCP. Commands
// flow in; flow out answers as Android's are, and the reports that its command hid got.
//
// Standards: AOSP packages/modules/adb, protocol.txt and shell_protocol.h.
package adbtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/base/adbserver"
	"eidetic/internal/rigs/testlab"
)

// NewServer starts Debian's adb server on a port of its own, with keys of its own, and
// returns a client of it. The server ends with the test.
func NewServer(t testing.TB) adbserver.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return NewServerAt(t, l.Addr().String())
}

// NewServerAt is NewServer at an address of 127.0.0.1; adbserver.Address is where a box looks for it.
func NewServerAt(t testing.TB, address string) adbserver.Client {
	t.Helper()
	program := testlab.NeedProgram(t, "adb")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	home := testlab.TempDir(t)
	var log tail
	cmd := exec.Command(program, "-P", port, "nodaemon", "server")
	cmd.Env = append(os.Environ(), "HOME="+home, "ANDROID_SDK_HOME="+home, "TMPDIR="+home, "ADB_MDNS=0")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the adb server printed:\n%s", log.String())
		}
	})
	client := adbserver.Client{Address: "127.0.0.1:" + port}
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	for {
		if _, err = client.Devices(ctx); err == nil {
			return client
		}
		select {
		case <-ended:
			t.Fatalf("the adb server ended: %s", log.String())
		case <-ctx.Done():
			t.Fatalf("the adb server does not answer: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tail keeps the end of what a program prints.
type tail struct {
	mu   sync.Mutex
	text string
}

func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(b)
	l.text = l.text[max(0, len(l.text)-8<<10):]
	return len(b), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(l.text)
}

// Await waits until the server shows the phone in a state.
func Await(t testing.TB, client adbserver.Client, serial, state string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	last := ""
	err := client.Track(ctx, func(list []adbserver.Device) {
		last = fmt.Sprint(list)
		for _, d := range list {
			if d.Serial == serial && d.State == state || state == "" {
				cancel()
			}
		}
	})
	if ctx.Err() == nil || t.Context().Err() != nil || !strings.Contains(err.Error(), "canceled") {
		t.Fatalf("the phone %s is never %q: %v; the last list is %s", serial, state, err, last)
	}
}

// Reconnect brings a phone back whose connection has ended.
func Reconnect(t testing.TB, client adbserver.Client, p *Phone) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	for ctx.Err() == nil {
		list, err := client.Devices(ctx)
		if err == nil && len(list) == 1 && list[0].State == "device" {
			return
		}
		_ = client.Connect(ctx, p.Serial) // it may still have the dead connection
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("the phone does not come back")
}
