package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
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
	list, left, err := store.ReadAnnotations(f, lab.MostRunAnnotations)
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
		{[]string{"--run", dir, "x", "--fifo", "/tmp/x"}, exitUsage, "leave out the text"},
		{[]string{"x"}, exitUsage, "--run"},
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

const writerC = `
#include "eidetic.h"
int main(int n, char **args) {
	struct timespec next;
	long lost = 0;
	char text[40];
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int i = 0; i < atoi(args[2]); i++) {
		snprintf(text, sizeof text, "from %s %d", args[1], i);
		if (eidetic_note("mark", text, args[3])) lost++;
		if ((next.tv_nsec += 1000000) >= 1000000000) { next.tv_sec++; next.tv_nsec -= 1000000000; }
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
	}
	printf("%ld", lost);
	return n != 4;
}`

const writerShell = `
. ./eidetic.sh
i=0
while [ $i -lt $2 ]; do note mark "from $1 $i" "$3"; i=$((i + 1)); done
printf 0`

// TestFourWriters: three C programs and a shell script, each at 1,000 notes a second, share a pipe, and one uses the
// socket. No note has another's text, row or colour; each is kept, or its writer knows that it is not.
func TestFourWriters(t *testing.T) {
	gcc := testlab.NeedProgram(t, "gcc")
	notes := testlab.Repeat(300, 5000)
	_, dir := going(t)
	work := t.TempDir()
	for language, name := range map[string]string{"c": "eidetic.h", "sh": "eidetic.sh"} {
		var code, said bytes.Buffer
		if status := run(t.Context(), []string{"annotate", "--code", language}, &streams{nil, &code, &said}); status != exitGood {
			t.Fatalf("annotate --code %s = %d, %s", language, status, said.String())
		}
		for file, text := range map[string]string{name: code.String(), "writer.c": writerC, "writer.sh": writerShell} {
			if err := os.WriteFile(filepath.Join(work, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	compile := exec.CommandContext(t.Context(), gcc, "-Wall", "-Wextra", "-Werror", "-O1", "-o", "writer", "writer.c")
	compile.Dir = work
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	pipe, socket := filepath.Join(work, "pipe"), filepath.Join(work, "socket")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var said bytes.Buffer
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"annotate", "--run", dir, "--fifo", pipe, "--socket", socket}, &streams{nil, &said, &said})
	}()
	for _, err := os.Stat(socket); err != nil; _, err = os.Stat(socket) {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	type writer struct {
		name, colour, at string
		args             []string
		out              bytes.Buffer
		cmd              *exec.Cmd
	}
	writers := []*writer{
		{name: "A", colour: "#800000", at: pipe, args: []string{"./writer"}}, {name: "B", colour: "#008000", at: pipe, args: []string{"./writer"}},
		{name: "C", colour: "#000080", at: socket, args: []string{"./writer"}}, {name: "D", colour: "#808000", at: pipe, args: []string{"sh", "writer.sh"}},
	}
	for _, w := range writers {
		w.cmd = exec.CommandContext(t.Context(), w.args[0], append(w.args[1:], w.name, fmt.Sprint(notes), w.colour)...)
		w.cmd.Dir, w.cmd.Env, w.cmd.Stdout, w.cmd.Stderr = work, append(os.Environ(), "EIDETIC_ANNOTATE="+w.at), &w.out, &w.out
		if err := w.cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	unwritten := map[string]int{}
	for _, w := range writers {
		err := w.cmd.Wait()
		n := 0
		if _, scan := fmt.Sscan(w.out.String(), &n); err != nil || scan != nil {
			t.Fatalf("writer %s: %v, %s", w.name, err, w.out.String())
		}
		unwritten[w.name] = n
	}
	stop()
	if status := <-ended; status != exitGood {
		t.Fatalf("annotate = %d, %s", status, said.String())
	}
	rows, next, kept := map[string]string{}, map[string]int{}, map[string]int{}
	for _, a := range keptNotes(t, dir) {
		var name string
		var number int
		if strings.HasSuffix(a.Text, "are lost: the pipe was full") {
			continue
		}
		if n, err := fmt.Sscanf(a.Text, "from %s %d", &name, &number); n != 2 || err != nil || number < next[name] {
			t.Fatalf("%+v is mixed, or out of its order: %v", a, err)
		}
		if row, there := rows[name]; there && row != a.Group {
			t.Errorf("notes of %s are on the rows %q and %q", name, row, a.Group)
		}
		rows[name], next[name] = a.Group, number+1
		kept[name]++
		if want := writers[name[0]-'A'].colour; a.Colour != want {
			t.Errorf("%+v has another's colour, want %s", a, want)
		}
	}
	for _, w := range writers {
		if kept[w.name]+unwritten[w.name] != notes {
			t.Errorf("writer %s: %d of %d notes are kept, and it knows of %d that are not\n%s", w.name, kept[w.name], notes, unwritten[w.name], said.String())
		}
		for _, other := range writers {
			if w != other && rows[w.name] == rows[other.name] {
				t.Errorf("%s and %s share the row %q", w.name, other.name, rows[w.name])
			}
		}
	}
}
