package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// TestAnnotate: what several writers add at once is read again whole, and a half line of a killed one is left out.
func TestAnnotate(t *testing.T) {
	dir := t.TempDir()
	one := lab.Annotation{Op: lab.AnnotateMark, Text: "<b>é", Source: "command", Earliest: 1, Latest: 2}
	if err := Annotate(dir, one); err == nil || !strings.Contains(err.Error(), "no run's folder") {
		t.Errorf("Annotate() in a folder without a run = %v, want an error that says so", err)
	}
	if err := os.WriteFile(filepath.Join(dir, RunFile), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 50 {
				if err := Annotate(dir, one, one); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	path := filepath.Join(dir, AnnotationsFile)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list, left, err := ReadAnnotations(strings.NewReader(string(content)+"\n{\"op\":\"draw\"}\n{\"op\":\"ma"), lab.MostAnnotations)
	if len(list) != 800 || left != 2 || err != nil || list[799] != one {
		t.Errorf("ReadAnnotations() = %d, %d left, %v; want 800, 2, nil", len(list), left, err)
	}
	if err := os.WriteFile(path, append(content, `{"op":"ma`...), 0o644); err != nil { // a killed writer
		t.Fatal(err)
	}
	if err := Annotate(dir, one); err != nil {
		t.Fatal(err)
	}
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if list, left, err := ReadAnnotations(strings.NewReader(string(content)), lab.MostAnnotations); len(list) != 801 || left != 1 || err != nil {
		t.Errorf("behind half a line: %d, %d left, %v; want 801, 1, nil", len(list), left, err)
	}
	if err := os.Truncate(path, maxAnnotations); err != nil {
		t.Fatal(err)
	}
	if err := Annotate(dir, one); !errors.Is(err, ErrAnnotations) {
		t.Errorf("Annotate() to a full file = %v, want ErrAnnotations", err)
	}
	if err := Annotate(dir, lab.Annotation{Op: "draw"}); err == nil || !strings.Contains(err.Error(), "annotation 1: op") {
		t.Errorf("Annotate() of what is none = %v", err)
	}
}

// TestPutAnnotations: an import replaces the one before, while others add theirs: nothing of theirs is lost, and an
// import that has no room changes nothing.
func TestPutAnnotations(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, RunFile), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, AnnotationsFile)
	read := func() (counts map[string]int, left int) {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		list, left, err := ReadAnnotations(f, lab.MostRunAnnotations)
		if err != nil {
			t.Fatal(err)
		}
		counts = map[string]int{}
		for _, a := range list {
			counts[a.Source]++
		}
		return counts, left
	}
	one := func(source string) lab.Annotation {
		return lab.Annotation{Op: lab.AnnotateMark, Text: "x", Source: source, Earliest: 1, Latest: 2}
	}
	if err := os.WriteFile(path, []byte("{\"op\":\"ma"), 0o644); err != nil { // a killed writer
		t.Fatal(err)
	}
	isSpan := func(a lab.Annotation) bool { return a.Source == "otlp" }
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for range 50 {
				if err := Annotate(dir, one("command")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range 20 {
		list := make([]lab.Annotation, n+1)
		for i := range list {
			list[i] = one("otlp")
		}
		if replaced, err := PutAnnotations(dir, isSpan, list); replaced != n || err != nil {
			t.Errorf("PutAnnotations() number %d = %d, %v; want %d, nil", n+1, replaced, err, n)
		}
	}
	others.Wait()
	if counts, left := read(); counts["command"] != 200 || counts["otlp"] != 20 || left != 1 {
		t.Errorf("kept are %v, %d left; want 200 of commands, 20 of the last import and the line of the killed writer", counts, left)
	}
	large := one("otlp")
	large.Text = strings.Repeat("x", lab.MaxAnnotationText)
	if _, err := PutAnnotations(dir, isSpan, slices.Repeat([]lab.Annotation{large}, maxAnnotations/lab.MaxAnnotationText)); !errors.Is(err, ErrAnnotations) {
		t.Errorf("PutAnnotations() of more than there is room for = %v, want ErrAnnotations", err)
	}
	if counts, _ := read(); counts["command"] != 200 || counts["otlp"] != 20 {
		t.Errorf("after an import that has no room: %v; want what there was", counts)
	}
}

func FuzzReadAnnotations(f *testing.F) {
	f.Add("{\"op\":\"set\",\"text\":\"a\",\"source\":\"tcp\",\"earliest_ns\":1,\"latest_ns\":2}\n")
	f.Add("{\"op\":\"mark\",\"text\":\"\\u202e\\u0000<script>\",\"colour\":\"#123456\"}\n{")
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		list, _, err := ReadAnnotations(strings.NewReader(text), lab.MostAnnotations)
		for _, a := range list {
			if err != nil || len(a.Text) > lab.MaxAnnotationText || strings.ContainsAny(a.Text, "\x00\n\u202e") {
				t.Errorf("ReadAnnotations(%q) = %+v, %v", text, a, err)
			}
		}
	})
}
