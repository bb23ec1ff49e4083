package readers

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
)

// install puts warcio.js and the scripts into a folder and returns it.
func install(t *testing.T) string {
	testlab.NeedProgram(t, "node")
	npm := testlab.NeedProgram(t, "npm")
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "read.mjs", "write.mjs"} {
		b, err := os.ReadFile(name)
		check(t, err)
		check(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	cmd := exec.Command(npm, "ci", "--omit=dev", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return dir
}

func node(t *testing.T, dir string, args ...string) []byte {
	cmd := exec.Command("node", args...)
	cmd.Dir = dir
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWarcio(t *testing.T) {
	dir := install(t)
	t.Run("it opens what we write", func(t *testing.T) { theyRead(t, dir) })
	t.Run("we open what it writes", func(t *testing.T) { weRead(t, dir) })
}

// recorded are exchanges with what a WARC can go wrong with.
func recorded() []*lab.Exchange {
	wall := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	var list []*lab.Exchange
	add := func(method, url string, status int, sent, body []byte, header ...lab.HeaderField) {
		e := &lab.Exchange{
			Order: len(list), Wall: wall, Method: method, URL: url, Protocol: "h2", TLS: "tls/1.3", Status: status,
			Server:  netip.MustParseAddrPort("192.0.2.1:443"),
			Request: lab.Message{Header: []lab.HeaderField{{Name: "accept", Value: "*/*"}}, Body: sent},
		}
		e.Response = lab.Message{Header: header, Body: body}
		if len(body) > 0 {
			e.Chunks = []lab.Chunk{{At: time.Millisecond, Bytes: len(body)}}
		}
		list = append(list, e)
	}
	add(
		"GET",
		"https://www.example.test/",
		200,
		nil,
		[]byte("<!doctype html><p>äöü\r\n\r\n</p>"),
		lab.HeaderField{Name: "content-type", Value: "text/html; charset=utf-8"},
	)
	add("GET", "https://www.example.test/empty", 204, nil, nil)
	add(
		"GET",
		"https://www.example.test/picture?a=1&b=2",
		200,
		nil,
		bytes.Repeat([]byte{0, 1, 0xff, '\r', '\n'}, 40_000),
		lab.HeaderField{Name: "content-type", Value: "image/png"},
	)
	add(
		"POST",
		"https://www.example.test/api",
		201,
		[]byte(`{"a":1}`),
		[]byte(`{"ok":true}`),
		lab.HeaderField{Name: "content-type", Value: "application/json"},
	)
	add(
		"GET",
		"https://www.example.test/again",
		200,
		nil,
		[]byte("WARC/1.1\r\nWARC-Type: response\r\n\r\n"),
		lab.HeaderField{Name: "content-type", Value: "text/plain"},
	)
	return list
}

func theyRead(t *testing.T, dir string) {
	path := filepath.Join(t.TempDir(), "ours.wacz")
	w, err := archive.Create(path, archive.CreateOptions{Software: "readers", Wall: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)})
	check(t, err)
	want := recorded()
	for _, e := range want {
		check(t, w.Add(e))
	}
	check(t, w.Close())
	for _, name := range []string{"archive/data.warc.gz", "indexes/index.cdxj"} {
		unpack(t, path, name, filepath.Join(dir, filepath.Base(name)))
	}
	type line struct {
		From, Type, URL, Method, SHA256 string
		Status                          int
	}
	got := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(node(t, dir, "read.mjs", "data.warc.gz", "index.cdxj"))); lines.Scan(); {
		var l line
		check(t, json.Unmarshal(lines.Bytes(), &l))
		if l.Type == "response" || l.Type == "request" {
			got[strings.Join([]string{l.From, l.Type, l.URL, l.SHA256}, " ")]++
		}
	}
	for _, e := range want {
		for _, key := range []string{
			"stream response " + e.URL + " " + sum(e.Response.Body),
			"stream request " + e.URL + " " + sum(e.Request.Body),
			"index response " + e.URL + " " + sum(e.Response.Body),
		} {
			if got[key] != 1 {
				t.Errorf("the reader found %q %d times, want once", key, got[key])
			}
		}
	}
	if len(got) != 3*len(want) {
		t.Errorf("%d records, want %d: %v", len(got), 3*len(want), got)
	}
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func unpack(t *testing.T, wacz, name, to string) {
	z, err := zip.OpenReader(wacz)
	check(t, err)
	defer z.Close()
	f, err := z.Open(name)
	check(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	check(t, err)
	check(t, os.WriteFile(to, b, 0o644))
}

func weRead(t *testing.T, dir string) {
	node(t, dir, "write.mjs", "theirs.warc.gz")
	a, err := archive.Open(filepath.Join(dir, "theirs.warc.gz"))
	check(t, err)
	// Their program saved no icon, for which a browser asks by itself.
	if w := a.Warnings(); len(w) != 1 || !strings.Contains(w[0], "favicon.ico") || len(a.Exchanges()) != 3 {
		t.Fatalf("%d exchanges, warnings %q; want 2 with the icon, and its warning", len(a.Exchanges()), w)
	}
	e := a.Exchanges()[0]
	if e.Method != "GET" || e.URL != "https://www.example.test/page?q=1" || e.Status != 200 || e.Response.Get("X-Theirs") != "yes" ||
		string(e.Response.Body) != "<p>theirs</p>" {
		t.Errorf("the first exchange is %+v, want the page that the other tool wrote", e)
	}
	if e = a.Exchanges()[1]; e.URL != "https://www.example.test/plain.txt" || string(e.Response.Body) != "a resource" {
		t.Errorf("the second exchange is %+v, want the resource that the other tool wrote", e)
	}
}
