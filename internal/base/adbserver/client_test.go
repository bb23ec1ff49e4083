package adbserver_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

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
