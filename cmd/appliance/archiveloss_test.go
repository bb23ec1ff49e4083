package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// A loss ends with status 1 and says what, unless --partial; and what is made with it says so for ever.
func TestArchiveLosses(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	list := []*lab.Exchange{}
	for i, coding := range []string{"", "gzip"} {
		body := []byte("no gzip")
		list = append(list, &lab.Exchange{
			Order: i, Method: "GET", URL: "https://shop.example/" + coding, Protocol: "h2", Status: 200,
			Response: lab.Message{Header: []lab.HeaderField{{Name: "content-encoding", Value: coding}}, Body: body},
			Chunks:   []lab.Chunk{{Bytes: len(body)}},
		})
	}
	if err := archive.Save(in("coded.wacz"), archive.New(list, nil, nil, archive.CreateOptions{Wall: time.Unix(1_700_000_000, 0)})); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(shopArchive(t))
	if err != nil {
		t.Fatal(err)
	}
	cut := bytes.Clone(whole)
	at := bytes.LastIndex(cut[:len(cut)/2], []byte("\x1f\x8b")) // a record in the middle
	copy(cut[at+20:], "damaged")
	for name, content := range map[string]string{
		"damaged.wacz": string(cut),
		"dropped.warc": "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/\r\nContent-Length: 4\r\n\r\njunk\r\n\r\n",
		"one.har": `{"log":{"entries":[{"request":{"method":"GET","url":"https://a.test/"},"response":{"status":200,"content":{"text":"x"}}},` +
			`{"request":{"method":"GET","url":"https://a.test/b"},"response":{"status":200,"content":{"text":"!","encoding":"base64"}}}]}}`,
	} {
		if err := os.WriteFile(in(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"export", in("coded.wacz"), "--out", in("a.har")}, exitFailed, "https://shop.example/gzip: the body is left out: decode gzip"},
		{[]string{"export", in("coded.wacz"), "--out", in("a.har"), "--partial"}, exitGood, "2 exchanges"},
		{[]string{"export", in("dropped.warc"), "--out", in("b.har")}, exitFailed, "--partial goes on without"},
		{[]string{"export", in("dropped.warc"), "--out", in("b.wacz")}, exitFailed, "--partial goes on without"},
		{[]string{"merge", in("c.wacz"), in("coded.wacz"), in("dropped.warc")}, exitFailed, "--partial goes on without"},
		{[]string{"merge", in("c.wacz"), in("coded.wacz"), in("dropped.warc"), "--partial"}, exitGood, "2 exchanges"},
		{[]string{"verify", in("c.wacz")}, exitFailed, "1 exchanges, or damaged parts, could not be read when this archive was made"},
		{[]string{"export", in("damaged.wacz"), "--out", in("d.wacz")}, exitFailed, "--partial goes on without"},
		{[]string{"rm", in("damaged.wacz"), "--id", "0"}, exitFailed, "--partial goes on without"},
		{[]string{"import", in("e.wacz"), in("one.har")}, exitFailed, "1 × left out: response body"},
		{[]string{"import", in("e.wacz"), in("one.har"), "--partial"}, exitGood, "1 exchanges"},
		{[]string{"verify", in("e.wacz")}, exitFailed, "score 0.500"},
		{[]string{"export", in("e.wacz"), "--out", in("e.har")}, exitGood, "1 exchanges"},
		{[]string{"verify", in("e.har")}, exitFailed, "score 0.500"},
	} {
		status, out, errs := archiveCommand(s.args...)
		if status != s.status || !strings.Contains(out+errs, s.says) {
			t.Errorf("archive %s: status %d, printed %q %q; want %d and %q", strings.Join(s.args, " "), status, out, errs, s.status, s.says)
		}
	}
	for _, name := range []string{"b.har", "b.wacz", "d.wacz"} {
		if _, err := os.Lstat(in(name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// What a recording says is no order to the terminal.
func TestTerminalEscapes(t *testing.T) {
	const order = "\x1b]0;owned\x07\x9b31m\u009b2J\u202e"
	path := filepath.Join(t.TempDir(), "a.warc")
	text := "HTTP/1.1 404 Not" + order + "\r\nX-A: b" + order + "\r\n\r\n"
	var warc bytes.Buffer
	for range 2 { // the second repeats the ID, of which a warning tells
		warc.WriteString("WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:" + order + ">\r\nWARC-Target-URI: http://a.test/" + order + "\r\n")
		warc.WriteString("WARC-Truncated: " + order + "\r\nContent-Length: ")
		warc.WriteString(strconv.Itoa(len(text)) + "\r\n\r\n" + text + "\r\n\r\n")
	}
	if err := os.WriteFile(path, warc.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ls", path}, {"cat", path, "0", "--headers"}, {"verify", path}, {"rm", path, "--id", "0", "--dry-run", "--partial"}} {
		_, out, errs := archiveCommand(args...)
		if got := out + errs; strings.ContainsAny(got, "\x1b\x07\u009b\u202e") || bytes.Contains([]byte(got), []byte("\x9b3")) ||
			!strings.Contains(got, `\x1b]0;owned\x07`) {
			t.Errorf("archive %s printed %q, want its escapes visible", args[0], got)
		}
	}
}

// TestErrorsHideUsers: an error that quotes a command line or a plan shows no password of an address.
func TestErrorsHideUsers(t *testing.T) {
	var said strings.Builder
	printError(usage(errors.New("   2 |   - url: https://me:s3cr%40t@h.test/%zz\n>  3 | trials: x")), &said)
	if text := said.String(); strings.Contains(text, "s3cr") || !strings.Contains(text, "h.test/%zz") || !strings.Contains(text, "trials: x") {
		t.Errorf("printError wrote %q; want the address without its user", text)
	}
}
