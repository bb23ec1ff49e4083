package adbserver_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"eidetic/internal/base/adbserver"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/rigs/testlab"
)

// TestFilesAndSockets: a file is pushed through the real server and a socket of the phone is spoken with; what the phone
// refuses says why.
func TestFilesAndSockets(t *testing.T) {
	client, phone := adbtest.NewServer(t), adbtest.NewPhone(t)
	phone.Accept()
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "device")
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	const name = "/data/local/tmp/file.jar"
	for _, size := range []int{0, 1, 64 << 10, 300_001} {
		data := bytes.Repeat([]byte{1, 2, 3}, size/3+1)[:size]
		if err := client.Push(ctx, phone.Serial, name, data); err != nil || !bytes.Equal(phone.File(name), data) {
			t.Errorf("Push() of %d bytes = %v; the phone has %d", size, err, len(phone.File(name)))
		}
	}
	for path, want := range map[string]string{"/system/x": "Permission denied", "a,b": "no name of a file"} {
		if err := client.Push(ctx, phone.Serial, path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Push() to %s = %v; want an error with %q", path, err, want)
		}
	}
	open := func() (io.ReadWriteCloser, error) {
		return client.Open(ctx, "host:transport:"+phone.Serial, "localabstract:echo")
	}
	if _, err := open(); err == nil {
		t.Error("Open() of a socket where nobody listens = nil; want an error")
	}
	phone.Listen("echo", func(conn io.ReadWriter, _ <-chan struct{}) { _, _ = io.Copy(conn, io.LimitReader(conn, 1000)) })
	conn, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent := bytes.Repeat([]byte("ab"), 500)
	if _, err := conn.Write(sent); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("read %d bytes, %v; want what was sent, and the end", len(got), err)
	}
}

// server is an adb server that sends an answer to each connection, and leaves it open.
func server(t *testing.T, answer string) adbserver.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close() // with the listener
			_, _ = io.WriteString(c, answer)
		}
	}()
	return adbserver.Client{Address: l.Addr().String()}
}

// TestWhichPhone: who has to name a phone is told which of them cannot be used, such as an emulator that has ended.
func TestWhichPhone(t *testing.T) {
	client := server(t, "OKAY0035R58M123 device usb:1-1\nemulator-5554 offline usb:1-2\n")
	if _, err := client.Find(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "name one of R58M123, emulator-5554 (offline)") {
		t.Errorf("Find() = %v; want an error with the states of the phones", err)
	}
}

// TestServerThatHangs: the error says that the server does not answer, and what to do.
func TestServerThatHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := server(t, "").Devices(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "adb kill-server") {
		t.Errorf("Devices() = %v; want an error that says what to do", err)
	}
}
