package testlab

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// recorder is a testing.TB that notes how the test would have ended.
type recorder struct {
	testing.TB
	ended, said string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.end("failed", format, args) }

func (r *recorder) Skipf(format string, args ...any) { r.end("skipped", format, args) }

// end leaves the goroutine, as the real Fatalf and Skipf do.
func (r *recorder) end(how, format string, args []any) {
	r.ended, r.said = how, fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// outcome runs f on a goroutine of its own, as go test does with a test.
func outcome(t *testing.T, f func(testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

func TestNeed(t *testing.T) {
	lack := func(tb testing.TB) { Need(tb, false, "a third hand; grow it with: make hand") }
	have := func(tb testing.TB) { Need(tb, true, "air") }
	program := func(tb testing.TB) { NeedProgram(tb, "no-such-program-a", "no-such-program-b") }
	for _, c := range []struct {
		name    string
		require string
		f       func(testing.TB)
		ended   string
		said    []string
	}{
		{"met", "1", have, "", nil},
		{"lacking", "", lack, "skipped", []string{"a third hand", "make hand"}},
		{"lacking and required", "1", lack, "failed", []string{"a third hand", "make hand", "REQUIRE_ALL=1"}},
		{"not quite required", "0", lack, "skipped", nil},
		{"program", "1", program, "failed", []string{"no-such-program-a or no-such-program-b", "make deps"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("REQUIRE_ALL", c.require)
			r := outcome(t, c.f)
			if r.ended != c.ended {
				t.Errorf("the test ended as %q, want %q", r.ended, c.ended)
			}
			for _, want := range c.said {
				if !strings.Contains(r.said, want) {
					t.Errorf("message %q lacks %q", r.said, want)
				}
			}
		})
	}
}

func TestNeedProgramTakesTheFirstFound(t *testing.T) {
	if path := NeedProgram(t, "no-such-program", "sh", "go"); filepath.Base(path) != "sh" {
		t.Errorf("path = %q, want that of sh", path)
	}
}

func TestNamespaces(t *testing.T) {
	NeedNamespaces(t) // a machine without them fails here under REQUIRE_ALL=1, and says why
}
