package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// A file may take the less of a share of the machine's memory and a number of times its size; the
// error says which, and what to do.
func TestMemoryBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.warc.gz")
	a := New([]*lab.Exchange{{
		Method: "GET", URL: "http://a.test/", Status: 200, Protocol: "http/1.1",
		Response: lab.Message{Body: make([]byte, 3<<20)},
	}}, nil, nil, CreateOptions{})
	if err := WriteWARC(path, a); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limits Limits
		want   string
	}{
		{Limits{}, ""},
		{Limits{Memory: 1 << 20}, "takes more than 1 MB of memory, which is the share of this machine's memory"},
	} {
		_, err := OpenWithin(path, c.limits)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !errors.Is(err, errLimit)) {
			t.Errorf("OpenWithin(%+v) = %v, want %q", c.limits, err, c.want)
		}
	}
	bomb := gzipped(t, strings.Repeat("x", 100<<20))
	record := append(gzipped(t, "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.test/\r\nContent-Length: 104857600\r\n\r\n"), bomb...)
	record = append(record, gzipped(t, "\r\n\r\n")...)
	_, err := OpenReader(bytes.NewReader(record), int64(len(record)), Limits{})
	if err == nil || !strings.Contains(err.Error(), "32 times its size and 64 MB") || !strings.Contains(err.Error(), "import --ratio 3200") {
		t.Errorf("a record of 100 MB in %d bytes: %v, want that it is too much, and the flag", len(record), err)
	}
	if b, err := OpenReader(bytes.NewReader(record), int64(len(record)), Limits{Ratio: 3200}); err != nil || len(b.Exchanges()) != 1 {
		t.Errorf("the same with a ratio of 3200: %v", err)
	}
}

// TestSocketsAreBounded: messages of a WebSocket are counted before they are made, as each takes many times its bytes.
func TestSocketsAreBounded(t *testing.T) {
	const many, fewer = 200_000, 40_000
	upgrade := []any{[]any{[]byte("Upgrade"), []byte("websocket")}}
	messages := netString{']', bytes.Repeat([]byte(netText([]any{1, true, []byte(""), 1772359201.25})), many)}
	flow := flowText(nil, fields{"status_code", 101, "headers", upgrade}, fields{"websocket", fields{"messages", messages}})
	for name, c := range map[string]struct {
		text         string
		many         int
		memory, most int64
	}{
		"mitmproxy": {flow, many, 12 << 20, 50 << 20},
		"Fiddler": {zipText(t, "raw/1_c.txt", "GET /ws HTTP/1.1\r\nHost: f.test\r\nUpgrade: websocket\r\n\r\n",
			"raw/1_s.txt", "HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n", "raw/1_m.xml", "<a/>",
			"raw/1_w.txt", strings.Repeat("Request-Length: 1\r\n\r\nx\r\n", fewer)), fewer, 2 << 20, 6 << 20},
	} {
		read := func(memory int64) (*Archive, error) {
			return OpenReader(strings.NewReader(c.text), int64(len(c.text)), Limits{Memory: memory, Ratio: 1000})
		}
		testlab.Bounded(t, uint64(c.most), func() {
			if _, err := read(c.memory); !errors.Is(err, errLimit) {
				t.Errorf("%s: %v; want that it takes too much memory", name, err)
			}
		})
		if a, err := read(10 * c.memory); err != nil || len(a.Exchanges()) != 1 || len(a.Exchanges()[0].Socket) != c.many {
			t.Errorf("%s with more memory: %v; want one exchange with all messages", name, err)
		}
	}
}

// What this program writes is within the ratio that it reads: bodies that shrink too much are stored.
func TestOwnArchivesAreWithinTheRatio(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wacz")
	a := New([]*lab.Exchange{{
		Method: "GET", URL: "http://a.test/speed-test", Status: 200, Protocol: "http/1.1",
		Response: lab.Message{Body: make([]byte, 80<<20)}, Chunks: []lab.Chunk{{Bytes: 80 << 20}},
	}}, nil, nil, CreateOptions{})
	if err := Save(path, a); err != nil {
		t.Fatal(err)
	}
	b, err := Open(path)
	if err != nil || len(b.Exchanges()) != 1 || len(b.Exchanges()[0].Response.Body) != 80<<20 {
		t.Errorf("Open() of 80 MB of zeros = %v", err)
	}
}

func TestGroupMemory(t *testing.T) {
	root := t.TempDir()
	for dir, limit := range map[string]string{"a": "3000", "a/b": "max", "a/b/c": "5000"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "memory.max"), []byte(limit+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]int64{
		"0::/a/b/c\n": 3000, "12:memory:/x\n0::/a/b\n": 3000, "0::/\n": math.MaxInt64, "0::/none\n": math.MaxInt64, "": math.MaxInt64,
	} {
		if got := groupMemory(root, text); got != want {
			t.Errorf("groupMemory(%q) = %d, want %d", text, got, want)
		}
	}
	if n := MemoryOf(0.5); n < 1<<20 || n == math.MaxInt64 {
		t.Errorf("half of this machine's memory is %d bytes", n)
	}
}

// FuzzJSONStream: the values of an object are those that encoding/json finds.
func FuzzJSONStream(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1}`, `{"a":[{"b":"\\\"]}"}, 2 ,[]] , "c" : -1.5e3}`, ` { "a" : "x\u0022" , "b":null } `, `{"a":1`, `{"a":1}}`, `{"a":"`,
		`{,}`, `{"a":1,}`, `{"a"}`, `[1]`, `{"a":{"b":[1,2,{"c":"d"}]},"e":true}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		got := map[string]string{}
		s := newJSONStream(&uncommented{r: bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(text)), 16)}, nil)
		err := s.object(func(name string) error {
			raw, _, err := s.value(true)
			got[name] = string(raw)
			return err
		})
		if err == nil {
			_, err = s.another()
		}
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || want == nil {
			return // what is wrong inside a value is found when it is decoded
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q: %d values, %v; want %d", text, len(got), err, len(want))
		}
		for name, raw := range want {
			if got[name] != string(raw) {
				t.Errorf("%q: %q is %q, want %q", text, name, got[name], raw)
			}
		}
	})
}
