package device

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// tracing answers as a Chromium that is traced: the trace has the given parts, and the event that ends it.
func tracing(t *testing.T, theirs []*os.File, complete string, parts ...string) {
	t.Helper()
	go func() {
		in := bufio.NewReader(theirs[0])
		for {
			text, err := in.ReadBytes(0)
			if err != nil {
				return
			}
			var m struct {
				ID     int
				Method string
			}
			_ = json.Unmarshal(text[:len(text)-1], &m)
			result, after := any(map[string]any{}), ""
			switch m.Method {
			case "Tracing.end":
				after = complete
			case "IO.read":
				one := map[string]any{"base64Encoded": true, "data": base64.StdEncoding.EncodeToString([]byte(parts[0])), "eof": len(parts) == 1}
				result, parts = one, parts[1:]
			}
			answer, _ := json.Marshal(map[string]any{"id": m.ID, "result": result})
			if _, err := theirs[1].Write([]byte(string(answer) + "\x00" + after)); err != nil {
				return
			}
		}
	}()
}

// TestTrace: a trace is fetched part by part; what the browser lost makes it void.
func TestTrace(t *testing.T) {
	const event = `{"method":"Tracing.tracingComplete","params":{"dataLossOccurred":%,"stream":"7"}}` + "\x00"
	for says, complete := range map[string]string{"": strings.Replace(event, "%", "false", 1), "lost events": strings.Replace(event, "%", "true", 1)} {
		d, theirs, err := openDevtools()
		if err != nil {
			t.Fatal(err)
		}
		tracing(t, theirs, complete, "first ", "second")
		b := &Browser{devtools: d, process: &process{done: make(chan struct{})}}
		end, err := b.Trace(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "trace")
		got, err := end(t.Context(), file)
		if (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("the trace: %v, want an error that says %q", err, says)
		}
		content, err := os.ReadFile(file)
		if string(content) != "first second" || len(got.Pings) != 2 || got.Pings[0].Latest < got.Pings[0].Earliest {
			t.Errorf("the file has %q (%v), pings %+v; want both parts, and two pings", content, err, got.Pings)
		}
		d.close()
		for _, f := range theirs {
			f.Close()
		}
	}
	if _, err := (&Browser{}).Trace(t.Context()); err != ErrNoTrace {
		t.Errorf("a browser without the protocol: %v", err)
	}
}

// TestTraceIsBounded: a stream without end is given up, and so is a browser that has ended.
func TestTraceIsBounded(t *testing.T) {
	d, theirs, err := openDevtools()
	if err != nil {
		t.Fatal(err)
	}
	parts := make([]string, 100)
	for i := range parts {
		parts[i] = strings.Repeat("x", 100)
	}
	tracing(t, theirs, "", parts...)
	var kept bytes.Buffer
	if err := d.copyStream(t.Context(), "7", &kept, 1000); err == nil || !strings.Contains(err.Error(), "larger than") || kept.Len() > 1000 {
		t.Errorf("copyStream() = %v after %d bytes", err, kept.Len())
	}
	gone := &process{done: make(chan struct{})}
	close(gone.done)
	b := &Browser{devtools: d, process: gone}
	if err := b.fetchTrace(t.Context(), filepath.Join(t.TempDir(), "trace")); err == nil || !strings.Contains(err.Error(), "ended before") {
		t.Errorf("a browser that has ended: %v", err)
	}
	d.close()
	for _, f := range theirs {
		f.Close()
	}
}

// profileTexts are a profile as Firefox writes it first, and as it writes it in the end.
const (
	firstProfile = `{"threads":[{"name":"}\"]","profileGatheringLog":1}],"processes":[{"x":"profileGatheringLog"}]}`
	lastProfile  = `{"threads":[{"name":"}\"]"}],"processes":[{},{}],"profileGatheringLog":{"1":{}}}`
)

// TestProfileEnd: a profile that is being written is told from one that is whole, and one that lacks processes from one
// that has all.
func TestProfileEnd(t *testing.T) {
	for _, content := range []string{firstProfile, lastProfile} {
		for n := range len(content) + 1 {
			var p profileEnd
			for i := range n { // in the smallest parts
				_, _ = p.Write([]byte{content[i]})
			}
			want := n == len(content)
			if p.whole != want || p.gathered != (want && content == lastProfile) {
				t.Errorf("%q: whole %t, gathered %t", content[:n], p.whole, p.gathered)
			}
		}
	}
}

// profiles makes a browser's home with a folder for profiles.
func profiles(t *testing.T) (b *Browser, folder string) {
	t.Helper()
	b = &Browser{home: t.TempDir(), process: &process{done: make(chan struct{})}}
	folder = filepath.Join(b.home, profileFolder)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return b, folder
}

// TestKeepProfile: the profile is kept when it has all processes, though it was whole without them before.
func TestKeepProfile(t *testing.T) {
	b, folder := profiles(t)
	file := filepath.Join(folder, "profile_0_1.json")
	if err := os.WriteFile(file, []byte(firstProfile), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "kept.gz")
	ended := make(chan error, 1)
	go func() { ended <- b.keepProfile(t.Context(), kept) }()
	for { // until it was looked at
		if _, err := os.Stat(kept); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended before it had looked: %v", err)
		default:
			runtime.Gosched()
		}
	}
	if err := os.WriteFile(file, []byte(lastProfile), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != lastProfile {
		t.Errorf("kept %q, %v", got, err)
	}
}

// TestHostileProfile: what a browser puts into the folder of its profiles leads nowhere else.
func TestHostileProfile(t *testing.T) {
	b, folder := profiles(t)
	outside := filepath.Join(t.TempDir(), "outside.json")
	if err := os.WriteFile(outside, []byte(lastProfile), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link.json")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link.json", "pipe.json", "../../outside.json"} {
		if seen, err := b.copyProfile(name, filepath.Join(t.TempDir(), "kept.gz")); seen.whole || err == nil {
			t.Errorf("%s: %+v, %v; want an error", name, seen, err)
		}
	}
}
