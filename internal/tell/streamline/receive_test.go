package streamline

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"eidetic/internal/lab"
)

// TestReceive: the article's bytes come over a named pipe, as a shell and a C program write them, and over TCP.
func TestReceive(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	got := make(chan lab.Annotation, 100)
	r := &Receiver{Clock: lab.Monotonic, Emit: func(a lab.Annotation) { got <- a }}
	path := filepath.Join(t.TempDir(), "annotate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- r.FIFO(ctx, path, "fifo") }()
	go func() { ended <- r.Listen(ctx, l) }()
	writers := map[string]func(string) error{
		"tcp": func(text string) error {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte(text))
			return err
		},
		"fifo": func(text string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the reader
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Write([]byte(text))
			return err
		},
	}
	for source, write := range writers {
		for _, tt := range article {
			before := lab.Monotonic()
			if err := write(tt.bytes); err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			var came []lab.Annotation
			for range tt.want {
				a := <-got
				if a.Source != source || !strings.HasPrefix(a.Group, source) || a.Earliest < before || a.Latest < a.Earliest {
					t.Errorf("%s over %s came as %+v", tt.name, source, a)
				}
				came = append(came, a)
			}
			if diff := cmp.Diff(tt.want, came, cmpopts.IgnoreFields(lab.Annotation{}, "Source", "Group", "Earliest", "Latest")); diff != "" {
				t.Errorf("%s over %s (-want +got):\n%s", tt.name, source, diff)
			}
		}
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a pipe that the receiver did not make: %v, want it to stay", err)
	}
}

// TestFIFORefuses: a file that is there is not taken for a pipe, and stays as it is.
func TestFIFORefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := (&Receiver{Clock: lab.Monotonic, Emit: func(lab.Annotation) {}}).FIFO(t.Context(), path, "fifo")
	if content, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), "no named pipe") || string(content) != "mine" {
		t.Errorf("FIFO() on a file = %v, and it holds %q", err, content)
	}
}

// TestRowsOfWriters: connections of a Unix socket have rows that the kernel names; a writer's clock counts where it can
// be this machine's; what is lost is counted.
func TestRowsOfWriters(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "annotate.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan lab.Annotation, 100)
	r := &Receiver{Clock: lab.Monotonic, Emit: func(a lab.Annotation) { got <- a }}
	ended := make(chan error)
	go func() { ended <- r.Listen(ctx, l) }()
	write := func(text string) {
		t.Helper()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	now := lab.Monotonic()
	write("plain\x00")
	plain := <-got
	write(head("mark", "thread 2", fmt.Sprint(int64(now)), "", "", "stamped"))
	stamped := <-got
	write(head("mark", "", fmt.Sprint(int64(now)+3600e9), "", "", "of tomorrow") + head("draw", "", "", "", "", "x") + head("mark", "", "", "", "4", "after a burst"))
	tomorrow, lost, after := <-got, <-got, <-got
	if me := fmt.Sprintf(" %d, connection 1", os.Getpid()); !strings.HasSuffix(plain.Group, me) || plain.Source != "socket" {
		t.Errorf("a plain note of this process came as %+v, want a row that ends with %q", plain, me)
	}
	if stamped.Earliest != now || stamped.Latest != now || !strings.HasPrefix(stamped.Group, "thread 2, ") || !strings.HasSuffix(stamped.Group, "connection 2") {
		t.Errorf("a note stamped at %v came as %+v", now, stamped)
	}
	if tomorrow.Earliest < now || tomorrow.Latest > lab.Monotonic() {
		t.Errorf("a note of another clock came as %+v", tomorrow)
	}
	if lost.Text != "4 notes before this one are lost: the pipe was full" || after.Text != "after a burst" || lost.Group != after.Group {
		t.Errorf("a writer that lost notes came as %+v, %+v", lost, after)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	want := Losses{Notes: 4, Refused: 1, Why: "op \"draw\": set, mark, begin, end, pause, resume, span, send or receive", Stamps: 1}
	if diff := cmp.Diff(want, r.Losses()); diff != "" || !strings.Contains(want.String(), "op \"draw\"") {
		t.Errorf("Losses() (-want +got):\n%s", diff)
	}
}

// TestSocketTakenOver: a socket that a killed program left is taken over; one at which somebody listens, and a file,
// stay as they are.
func TestSocketTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "annotate.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false) // as when it is killed
	left.Close()
	ctx, stop := context.WithCancel(t.Context())
	got := make(chan lab.Annotation, 1)
	r := &Receiver{Clock: lab.Monotonic, Emit: func(a lab.Annotation) { got <- a }}
	ended := make(chan error, 1)
	go func() { ended <- r.Socket(ctx, path) }()
	var c net.Conn
	for c, err = net.Dial("unix", path); err != nil; c, err = net.Dial("unix", path) {
		select {
		case err := <-ended:
			t.Fatalf("Socket() = %v; want the abandoned socket to be taken over", err)
		case <-t.Context().Done():
			t.Fatal(err)
		default:
		}
	}
	if err := (&Receiver{}).Socket(ctx, path); err == nil || !strings.Contains(err.Error(), "another program listens") {
		t.Errorf("Socket() where another listens = %v", err)
	}
	if _, err := c.Write([]byte("hello\x00")); err != nil {
		t.Fatal(err)
	}
	if a := <-got; a.Text != "hello" || a.Source != "socket" {
		t.Errorf("it came as %+v", a)
	}
	c.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&Receiver{}).Socket(t.Context(), file); err == nil {
		t.Error("Socket() took the place of a file")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
