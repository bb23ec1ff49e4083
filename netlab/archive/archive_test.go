package archive

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/lab"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/gzip"

	"eidetic/internal/rigs/testlab"
)

var (
	wall      = time.Date(2026, 11, 21, 9, 0, 0, 123456789, time.UTC)
	pageDate  = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	addrEqual = cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
)

// sample returns exchanges of every shape that the format must keep.
func sample() []*lab.Exchange {
	body := bytes.Repeat([]byte("hello "), 1000)
	return []*lab.Exchange{
		{
			Order: 0, Wall: wall, Start: time.Millisecond, Method: "GET", URL: "https://www.example.com/a?id=5&cb=9",
			Protocol: "h2", TLS: "tls/1.3", Server: netip.MustParseAddrPort("192.0.2.1:443"),
			Request: lab.Message{
				Header: []lab.HeaderField{
					{Name: "accept", Value: "text/html"},
					{Name: "cookie", Value: "a=b"},
					{Name: "cookie", Value: "c=d"},
				},
			},
			Status: 200,
			Response: lab.Message{
				Header: []lab.HeaderField{
					{Name: "content-type", Value: "text/html; charset=utf-8"},
					{Name: "set-cookie", Value: "x=1"},
					{Name: "set-cookie", Value: "y=2"},
				},
				Body:    body,
				Trailer: []lab.HeaderField{{Name: "server-timing", Value: "total;dur=12"}},
			},
			FirstByte: 20 * time.Millisecond,
			Chunks:    []lab.Chunk{{At: 20 * time.Millisecond, Bytes: 1000}, {At: 90 * time.Millisecond, Bytes: 5000}},
		},
		{
			Order: 1, Wall: wall.Add(time.Second), Start: time.Second, Method: "POST", URL: "http://api.example.com:8080/q",
			Protocol: "http/1.1", Server: netip.MustParseAddrPort("[2001:db8::1]:8080"),
			Request: lab.Message{
				Header: []lab.HeaderField{{Name: "Host", Value: "api.example.com:8080"}, {Name: "X-OdD-CaSe", Value: ""}},
				Body:   []byte(`{"q":1}`),
			},
			Sent:   []lab.Sent{{At: 1, Bytes: 3, Heard: -1}, {At: 6, Bytes: 4, Heard: 2000}, {At: 9, Heard: 6000}},
			Status: 404, Reason: "Not Found At All",
			Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: "application/json"}}, Body: body},
			Chunks:   []lab.Chunk{{At: 5, Bytes: 6000}},
		},
		{
			Order: 2, Wall: wall.Add(2 * time.Second), Start: 2 * time.Second, Method: "GET", URL: "https://cdn.example.com/cut",
			Protocol: "h3", TLS: "tls/1.3", Server: netip.MustParseAddrPort("192.0.2.3:443"),
			Status:   200,
			Response: lab.Message{Header: []lab.HeaderField{{Name: "content-length", Value: "100"}}, Body: []byte("half")},
			Chunks:   []lab.Chunk{{At: 7, Bytes: 4}}, Truncated: "disconnect",
		},
		{
			Order:    3,
			Wall:     wall.Add(3 * time.Second),
			Start:    3 * time.Second,
			Method:   "HEAD",
			URL:      "https://cdn.example.com/none",
			Protocol: "h2",
			TLS:      "tls/1.2",
			Status:   204,
		},
	}
}

func sampleDNS() []DNS {
	return []DNS{
		{
			Name:    "www.example.com",
			Type:    "A",
			RCode:   "NOERROR",
			Records: []string{"www.example.com.\t300\tIN\tA\t192.0.2.1"},
			Wall:    wall,
			Elapsed: time.Millisecond,
			Server:  "192.0.2.53:53",
		},
		{Name: "no.example.com", Type: "AAAA", RCode: "NXDOMAIN", Wall: wall},
	}
}

func record1(t *testing.T, path string, exchanges []*lab.Exchange) *Writer {
	t.Helper()
	w, err := Create(path, CreateOptions{Software: "test 1", Wall: wall, Title: "A title", Seed: 1<<63 + 5, PageDate: pageDate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Discard() })
	for _, e := range exchanges {
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range sampleDNS() {
		if err := w.AddDNS(d); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wacz")
	want := sample()
	w := record1(t, path, want)
	check := func(a *Archive) {
		t.Helper()
		if diff := cmp.Diff(want, a.Exchanges(), addrEqual, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("exchanges (-written +read):\n%s", diff)
		}
		if diff := cmp.Diff(sampleDNS(), a.DNS(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("DNS (-written +read):\n%s", diff)
		}
		if o := a.Options(); o.Seed != 1<<63+5 || !o.PageDate.Equal(pageDate) || o.Title != "A title" || o.Software != "test 1" {
			t.Errorf("Options() = %+v, want those of the recording", o)
		}
		if len(a.Warnings()) != 0 {
			t.Errorf("Warnings() = %q, want none", a.Warnings())
		}
	}
	working, err := Open(path + WorkingSuffix)
	if err != nil {
		t.Fatal(err)
	}
	check(working)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if names := dirNames(t, filepath.Dir(path)); cmp.Diff([]string{"a.wacz"}, names) != "" {
		t.Errorf("the files %q are left, want a.wacz alone", names)
	}
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	check(a)
	if diff := cmp.Diff([]Page{{URL: want[0].URL, Title: want[0].URL, Wall: wall}}, a.Pages()); diff != "" {
		t.Errorf("Pages() (-want +got):\n%s", diff)
	}
	info := a.Info()
	if info.Exchanges != 4 || len(info.SHA256) != 64 || info.BodyBytes != 12004 || !strings.HasSuffix(info.File, "a.wacz") {
		t.Errorf("Info() = %+v; want 4 exchanges of 12004 bytes in a.wacz", info)
	}
	if diff := cmp.Diff([]string{"api.example.com:8080", "cdn.example.com", "www.example.com"}, info.Hosts); diff != "" {
		t.Errorf("Info().Hosts (-want +got):\n%s", diff)
	}
	if &a.Exchanges()[0].Response.Body[0] != &a.Exchanges()[1].Response.Body[0] {
		t.Error("two equal bodies are kept, want one")
	}
	for _, body := range [][]byte{a.Exchanges()[0].Response.Body, a.Exchanges()[2].Response.Body[:3], nil} {
		if got, want := a.BodySHA256(body), fmt.Sprintf("%x", sha256.Sum256(body)); got != want {
			t.Errorf("BodySHA256(%q…) = %s, want %s", body[:min(10, len(body))], got, want)
		}
	}
}

func dirNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestCutOff cuts a working file at every fifth byte: what was whole is there, and nothing else.
func TestCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wacz")
	exchanges := sample()
	w := record1(t, path, exchanges)
	data, err := os.ReadFile(path + WorkingSuffix)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Discard()
	before := 0
	for n := 0; n <= len(data); n += 5 {
		a, err := OpenReader(bytes.NewReader(data), int64(n), Limits{})
		if err != nil {
			if before > 0 {
				t.Fatalf("cut at %d: %v", n, err)
			}
			continue
		}
		got := len(a.Exchanges())
		if got < before || got > before+1 {
			t.Fatalf("cut at %d: %d exchanges, want %d or one more", n, got, before)
		}
		before = got
		for i, e := range a.Exchanges() {
			if !bytes.Equal(e.Response.Body, exchanges[i].Response.Body) || e.Method != exchanges[i].Method {
				t.Fatalf("cut at %d: exchange %d is incomplete, want it left out", n, i)
			}
		}
	}
	if before < len(exchanges)-1 {
		t.Errorf("%d exchanges at the end, want at least %d", before, len(exchanges)-1)
	}
}

func TestTruncatedWACZ(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wacz")
	w := record1(t, path, sample())
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 3, 4, 100, len(data) / 2, len(data) - 1} {
		_, err := OpenReader(bytes.NewReader(data[:n]), int64(n), Limits{})
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("cut at %d: error %v, want one of one line", n, err)
		}
	}
}

// TestDamage flips bits all over a small WACZ: never a panic, and never a
// changed body without a word.
// TestDamage: a changed byte is told, or changes nothing; and reading by parts
// finds the same as reading from front to back.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wacz")
	if err := record1(t, path, sample()).Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := OpenReader(bytes.NewReader(data), int64(len(data)), Limits{part: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(data); i += testlab.Repeat(29, 7) {
		data[i] ^= 0x55
		a, err := bothWays(t, data, Limits{})
		data[i] ^= 0x55
		if err != nil || len(a.Warnings()) > 0 {
			continue
		}
		if !reflect.DeepEqual(whole.Exchanges(), a.Exchanges()) {
			t.Fatalf("byte %d was changed: the exchanges differ without a warning (-want +got):\n%s",
				i, cmp.Diff(whole.Exchanges(), a.Exchanges(), addrEqual))
		}
	}
}

// bothWays reads data by parts of single exchanges and from front to back,
// which must find the same.
func bothWays(t *testing.T, data []byte, l Limits) (*Archive, error) {
	t.Helper()
	open := func(part int64) (*Archive, error) {
		l.part = part
		return OpenReader(bytes.NewReader(data), int64(len(data)), l)
	}
	byParts, err1 := open(1)
	inOne, err2 := open(1 << 40)
	if fmt.Sprint(err1) != fmt.Sprint(err2) {
		t.Fatalf("read by parts: %v; from front to back: %v; want one result", err1, err2)
	}
	if err1 != nil {
		return nil, err1
	}
	byParts.sums, inOne.sums = nil, nil // by addresses
	if !reflect.DeepEqual(byParts, inOne) {
		t.Fatalf("by parts (+) and from front to back (-): %s\n%s",
			cmp.Diff(inOne.warnings, byParts.warnings), cmp.Diff(inOne.exchanges, byParts.exchanges, addrEqual))
	}
	return byParts, nil
}

// TestManyHeaders: a part whose records are mostly header is not kept whole
// in memory, and found all the same.
func TestManyHeaders(t *testing.T) {
	var warc, index bytes.Buffer
	long := strings.Repeat("x", 1<<20-1000)
	for i := range 80 {
		if i < 5 { // the rest is one part
			fmt.Fprintf(&index, "x 2026 {\"filename\":\"data.warc.gz\",\"offset\":%d}\n", warc.Len())
		}
		header := []lab.HeaderField{
			{Name: "WARC-Type", Value: "response"},
			{Name: "WARC-Target-URI", Value: fmt.Sprint("http://a.example/", i)},
			{Name: "X-Long", Value: long},
		}
		if err := appendMember(&warc, gzip.BestSpeed, header, []byte("HTTP/1.1 200 OK\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	a, err := bothWays(t, zipOf(t, warc.Bytes(), index.Bytes()), Limits{})
	if err != nil || len(a.Exchanges()) != 80 || len(a.Warnings()) > 0 {
		t.Fatalf("read by parts: %v, %+v; want 80 exchanges, no warning", err, a)
	}
}

func TestHostileZip(t *testing.T) {
	build := func(files ...[2]string) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, f := range files {
			out, err := z.Create(f[0])
			if err != nil {
				t.Fatal(err)
			}
			_, _ = out.Write([]byte(f[1]))
		}
		_ = z.Close()
		return b.Bytes()
	}
	var bomb bytes.Buffer
	zw := gzip.NewWriter(&bomb)
	fmt.Fprintf(zw, "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n", 1<<40)
	_, _ = zw.Write(make([]byte, 1<<20))
	_ = zw.Close()
	many := make([][2]string, 30)
	for i := range many {
		many[i] = [2]string{fmt.Sprint("f", i), ""}
	}
	pkg := [2]string{namePackage, "{}"}
	tests := []struct {
		name, says string
		data       []byte
	}{
		{"traversal", "impossible name", build(pkg, [2]string{"archive/../../etc/passwd", "x"})},
		{"absolute", "impossible name", build(pkg, [2]string{"/../archive/x", "x"})},
		{"backslash", "impossible name", build(pkg, [2]string{`archive\..\..\x`, "x"})},
		{"twice", "two files named", build(pkg, pkg)},
		{"no package", "not a WACZ", build([2]string{"a", "b"})},
		{"no data", "nothing under archive/", build(pkg)},
		{"package is not JSON", "datapackage.json", build([2]string{namePackage, "{"})},
		{"many files", "limit", build(many...)},
		{"long index", "limit", build([2]string{namePackage, strings.Repeat(" ", 5000)})},
		{"bomb", "limit", build(pkg, [2]string{nameData, bomb.String()})},
		{"not a WARC", "not a WACZ, WARC, HAR or Web Page Replay", build(pkg, [2]string{nameData, "hello world"})},
		{"half a record", "cut off or damaged before the end of its first record", []byte("WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 80\r\n\r\nHTTP/1.1")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := OpenReader(bytes.NewReader(tt.data), int64(len(tt.data)), Limits{Entries: 20, Index: 4000, Record: 1 << 20})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("OpenReader: %v, want an error with %q", err, tt.says)
			}
		})
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.wacz")
	w := record1(t, path, nil)
	if _, err := Create(path, CreateOptions{Wall: wall}); !errors.Is(err, os.ErrExist) {
		t.Errorf("Create over a recording: %v, want os.ErrExist", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(sample()[0]); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Add after Close: %v, want os.ErrClosed", err)
	}
	if _, err := Create(path, CreateOptions{Wall: wall}); !errors.Is(err, os.ErrExist) {
		t.Errorf("Create over a finished archive: %v, want os.ErrExist", err)
	}
	if _, err := Create(filepath.Join(dir, "none", "a.wacz"), CreateOptions{Wall: wall}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Create in a missing directory: %v, want os.ErrNotExist", err)
	}
	if _, err := Create(filepath.Join(dir, "b.wacz"), CreateOptions{}); err == nil {
		t.Error("Create without a time = nil error, want one")
	}
}

func TestConcurrentAdd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wacz")
	w := record1(t, path, nil)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			e := sample()[i%4]
			e.Order, e.ID = i, ""
			if err := w.Add(e); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range a.Exchanges() {
		if e.Order != i || e.URL != sample()[i%4].URL {
			t.Fatalf("exchange %d is %s with order %d; want %s, order %d", i, e.URL, e.Order, sample()[i%4].URL, i)
		}
	}
	if len(a.Exchanges()) != 64 {
		t.Errorf("%d exchanges, want 64", len(a.Exchanges()))
	}
}

func TestSurt(t *testing.T) {
	// Expected by pywb's canonicalisation (python3 -c 'import surt; print(surt.surt(URL))').
	for raw, want := range map[string]string{
		"https://www.Example.com/A/?b=2&a=1": "com,example)/a?a=1&b=2",
		"http://example.com":                 "com,example)/",
		"http://example.com:8080/x":          "com,example:8080)/x",
		"https://example.com:443/x/":         "com,example)/x",
		"https://www2.example.co.uk/":        "uk,co,example)/",
		"http://192.0.2.1/x":                 "192.0.2.1)/x",
	} {
		if got := surt(raw); got != want {
			t.Errorf("surt(%s) = %s, want %s", raw, got, want)
		}
	}
}

// appendMember appends a record to what a test makes.
func appendMember(dst *bytes.Buffer, level int, header []lab.HeaderField, block ...[]byte) error {
	m := members{packers: &sync.Map{}}
	err := m.member(level, header, block...)
	dst.Write(m.buffer.Bytes())
	return err
}
