package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/box/doctor"
	"eidetic/internal/keep/redact"
	"eidetic/internal/keep/support"
	"eidetic/internal/web/panel"
)

type fixedBundle struct{}

func (fixedBundle) Support(_ context.Context, w io.Writer, _ panel.Health) error {
	_, err := io.WriteString(w, "a bundle")
	return err
}

func TestSupportCommand(t *testing.T) {
	b := newTestBox(t, alone)
	t.Setenv(tokenVariable, b.token)
	file := filepath.Join(t.TempDir(), "support.tar.gz")
	command := func(args ...string) (int, string) {
		var out bytes.Buffer
		return run(t.Context(), append([]string{"support", "--out", file}, args...), &streams{strings.NewReader(""), &out, &out}), out.String()
	}
	if status, said := command("--box", b.url()); status != exitGood || !strings.Contains(said, "look through it") {
		t.Fatalf("support: status %d, %q", status, said)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "a bundle" {
		t.Errorf("the file has %q (%v), want what the box sent", text, err)
	}
	var bundle bytes.Buffer
	found := func(context.Context) ([]doctor.Finding, error) {
		return []doctor.Finding{{Name: "chromium", Found: "137.0"}}, nil
	}
	if err := here(t.Context(), support.New(&bundle, redact.New(), time.Unix(1, 0)), found); err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(&bundle)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil || !bytes.Contains(text, []byte("kernel: Linux")) || !bytes.Contains(text, []byte("137.0")) {
		t.Errorf("the bundle of this machine (%v) has no hardware or no findings", err)
	}
}
