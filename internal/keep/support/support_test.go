package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/redact"
)

func TestBundle(t *testing.T) {
	var file bytes.Buffer
	b := New(&file, redact.New("planted-1"), time.Unix(1_800_000_000, 0))
	if err := errors.Join(b.Text("log.txt", "GET https://u:pw@x.test/?planted-2 with planted-1"), b.Text("long.txt", strings.Repeat("x", maxText+1)),
		b.JSON("state.json", map[string]any{"password": "planted-3", "name": "laptop"}), b.Failed("doctor", errors.New("no: planted-1")), b.Close()); err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	all, names := "", ""
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > maxText+20 {
			t.Errorf("%s has %d bytes", h.Name, len(text))
		}
		names, all = names+h.Name+" ", all+string(text)
	}
	if names != "support/log.txt support/long.txt support/state.json support/doctor.error.txt support/README.txt " {
		t.Errorf("the bundle has %s", names)
	}
	if strings.Contains(all, "planted") || !strings.Contains(all, "laptop") {
		t.Errorf("a secret is still there, or the name is not: %.2000s", all[:200])
	}
}

func TestHardware(t *testing.T) {
	if text := Hardware("/"); !strings.Contains(text, "kernel: Linux") || !strings.Contains(text, "MemTotal") {
		t.Errorf("Hardware() = %s", text)
	}
}

func TestTail(t *testing.T) {
	var tail Tail
	for range 40 {
		if n, err := tail.Write(bytes.Repeat([]byte("a"), 100_000)); n != 100_000 || err != nil {
			t.Fatalf("Write() = %d, %v", n, err)
		}
	}
	_, _ = tail.Write([]byte("the end")) // it never fails
	if got := tail.String(); len(got) != maxTail || !strings.HasSuffix(got, "the end") {
		t.Errorf("%d bytes, which end in %q; want %d", len(got), got[len(got)-10:], maxTail)
	}
}
