package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// going makes the folder of a run in progress.
func going(t *testing.T) (out, dir string) {
	t.Helper()
	out = t.TempDir()
	folder, err := store.Create(out, &lab.Run{ID: "20261122-091400-going", Wall: time.Now(), State: store.StateRunning, Page: "https://shop.example/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	return out, folder.Path()
}

func keptNotes(t *testing.T, dir string) []lab.Annotation {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, store.AnnotationsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, left, err := store.ReadAnnotations(f)
	if err != nil || left > 0 {
		t.Errorf("ReadAnnotations() left %d lines out, %v", left, err)
	}
	return list
}

// TestAnnotate: a note is in the run's folder, also by the link to the newest run, with the time of the command.
func TestAnnotate(t *testing.T) {
	out, dir := going(t)
	before := lab.Monotonic()
	for _, tt := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--run", filepath.Join(out, "latest"), "cache is warm", "--colour", "#800000"}, 0, ""},
		{[]string{"--run", out, "--mark", "deployed", "--group", "server"}, 0, ""}, // as the exports take it
		{[]string{"--run", dir}, 0, ""},
		{[]string{"--run", dir, "--mark"}, exitUsage, "needs one"},
		{[]string{"--run", dir, "x", "--colour", "red"}, exitUsage, "#rrggbb"},
		{[]string{"--run", dir, "x", "--fifo", "/tmp/x"}, exitUsage, "leave out the note"},
		{[]string{"--run", filepath.Join(out, "nothing"), "x"}, exitUsage, "no such folder"},
		{[]string{"--run", t.TempDir(), "x"}, exitUsage, "run.json"},
	} {
		var said bytes.Buffer
		status := run(t.Context(), append([]string{"annotate"}, tt.args...), &streams{nil, &said, &said})
		if status != tt.status || !strings.Contains(said.String(), tt.says) {
			t.Errorf("annotate %q = %d, %q; want %d, %q", tt.args, status, said.String(), tt.status, tt.says)
		}
	}
	got := keptNotes(t, dir)
	if len(got) != 3 || got[0].Text != "cache is warm" || got[0].Colour != "#800000" || got[1].Op != lab.AnnotateMark || got[2].Text != "" {
		t.Fatalf("kept are %+v", got)
	}
	for _, a := range got {
		if a.Earliest < before || a.Latest > lab.Monotonic() || a.Source != "command" || a.Wall.IsZero() {
			t.Errorf("%+v has no time of the command", a)
		}
	}
}

// TestAnnotateFromPrograms: what programs write into the pipe in Streamline's format is kept when the command ends.
func TestAnnotateFromPrograms(t *testing.T) {
	_, dir := going(t)
	pipe := filepath.Join(t.TempDir(), "annotate")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var said bytes.Buffer
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"annotate", "--run", dir, "--fifo", pipe, "--listen", "127.0.0.1:0"}, &streams{nil, &said, &said})
	}()
	f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the command
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\x1b\x80\x00\x00Hello, Streamline.\x00\x00"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for notes := 0; notes < 2; {
		content, err := os.ReadFile(filepath.Join(dir, store.AnnotationsFile))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		notes = bytes.Count(content, []byte("\n"))
	}
	stop()
	if status := <-ended; status != exitGood {
		t.Errorf("annotate --fifo = %d, %s", status, said.String())
	}
	got := keptNotes(t, dir)
	if len(got) != 2 || got[0].Text != "Hello, Streamline." || got[0].Colour != "#800000" || got[0].Source != "fifo" || got[1].Text != "" {
		t.Errorf("kept are %+v\n%s", got, said.String())
	}
}
