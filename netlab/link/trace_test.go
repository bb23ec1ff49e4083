package link

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

// files returns a Reader of files in memory.
func files(all map[string]string) Reader {
	return Reader{Open: func(name string) (io.ReadCloser, error) {
		s, ok := all[name]
		if !ok {
			return nil, errors.New("no such file: " + name)
		}
		return io.NopCloser(strings.NewReader(s)), nil
	}}
}

func TestParseTraces(t *testing.T) {
	r := files(map[string]string{"d.trace": "1\n5\n10\n", "u.trace": "20\n", "bad.trace": "5\n4\n"})
	p, err := r.Parse("lte, downtrace=d.trace, uptrace=u.trace; 5s: rtt=200ms; 6s: down=1mbit; 7s: trace=d.trace")
	if err != nil {
		t.Fatal(err)
	}
	if p.DownTrace == nil || len(p.DownTrace.At) != 3 || p.UpTrace == nil || p.UpTrace.Period != 20*time.Millisecond ||
		p.Down != Unlimited || p.Native() {
		t.Errorf("Parse() = %+v, want both traces and no rate", p)
	}
	first, second, third := p.Changes[0].Profile, p.Changes[1].Profile, p.Changes[2].Profile
	if first.DownTrace != p.DownTrace || second.DownTrace != nil || second.Down != 1e6 || second.UpTrace != p.UpTrace ||
		third.DownTrace != p.DownTrace || third.UpTrace != p.DownTrace {
		t.Errorf("changes %+v; want the traces kept, the one down replaced by a rate, and both replaced by a trace", p.Changes)
	}
	for s, says := range map[string]string{
		"trace=none": "no such file: none", "trace=bad.trace": "bad.trace:2: 4 ms is less than the line above",
	} {
		if _, err := r.Parse(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Parse(%q) = %v, want an error that says %q", s, err, says)
		}
	}
	if _, err := Parse("trace=/etc/passwd"); err == nil || !strings.Contains(err.Error(), "on the command line only") {
		t.Errorf("Parse() of a profile with a file = %v, want an error", err)
	}
}

// TestReadTraceOfWindows: a mark and two bytes a character are no part of the first time; what is no text says its line.
func TestReadTraceOfWindows(t *testing.T) {
	want := []time.Duration{time.Millisecond, 5 * time.Millisecond}
	for name, text := range map[string]string{
		"UTF-8 with a mark": "\ufeff1\r\n5\r\n", "UTF-16": "\xff\xfe1\x00\r\x00\n\x005\x00", "UTF-16, big": "\xfe\xff\x001\x00\n\x005",
	} {
		tr, err := ReadTrace("t", strings.NewReader(text))
		if err != nil || !slices.Equal(tr.At, want) {
			t.Errorf("%s: %+v, %v; want %v", name, tr, err, want)
		}
	}
	if _, err := ReadTrace("t", strings.NewReader("1\n"+strings.Repeat("x", 1<<20))); err == nil || !strings.Contains(err.Error(), "t:2: the line is too long") {
		t.Errorf("a line without an end: %v; want an error that names line 2", err)
	}
}

// TestNoTrace: what is no trace says what to do.
func TestNoTrace(t *testing.T) {
	for text, want := range map[string]string{
		"\x1f\x8b\x08\x00": "gunzip -k", "\xd4\xc3\xb2\xa1\x02\x00": "appliance link trace record", "time,mbit\n0,3\n": "down=3mbit; 1s:",
		"0.5 1.5\n": "down=3mbit; 1s:", "1.25\n": "one packet of 1504 bytes",
	} {
		if _, err := ReadTrace("t", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "t:1: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadTrace(%q) = %v; want an error of line 1 that says %q", text, err, want)
		}
	}
}

// TestTraceOfReportIsBounded: what a report claims takes no memory.
func TestTraceOfReportIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "link.json")
	for _, down := range []string{"9000000000000000000", "-5"} {
		if err := os.WriteFile(file, []byte(`{"bins":[{"down_bytes":`+down+`}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		testlab.Bounded(t, 1<<20, func() {
			if tr, err := TraceOfReport(file, false); err == nil {
				t.Errorf("a report of %s bytes is a trace of %d packets; want an error", down, len(tr.At))
			}
		})
	}
}

func TestNewTraceRefuses(t *testing.T) {
	for name, list := range map[string][]time.Duration{"nothing": nil, "one instant": {5, 5, 5}, "a time that goes back": {1e9, 5e6}} {
		if _, err := NewTrace(name, func(yield func(time.Duration, int) bool) {
			for _, at := range list {
				if !yield(at, 1504) {
					return
				}
			}
		}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("NewTrace() of %s = %v, want an error that names the trace", name, err)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("0\n1\n\n 5 \n5\n")
	f.Add("86400000\n")
	f.Add("-1\n9999999999999999999\nx")
	f.Fuzz(func(t *testing.T, s string) {
		defer testlab.Input(t)()
		tr, err := ReadTrace("f", strings.NewReader(s))
		if err != nil {
			return
		}
		if !slices.IsSorted(tr.At) || tr.Period <= 0 || tr.Rate() < 0 {
			t.Fatalf("trace of %q: %+v", s, tr)
		}
		var out bytes.Buffer
		if err := tr.Write(&out); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadTrace("f", &out); err != nil || !again.Equal(tr) {
			t.Fatalf("%q, written and read again, is %+v (%v), want %+v", s, again, err, tr)
		}
	})
}
