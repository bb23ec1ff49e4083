package archive

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"

	"github.com/google/go-cmp/cmp"
)

// warcText renders a plain WARC as other tools write it; records are
// (header lines, block) pairs.
func warcText(records ...[2]string) []byte {
	var b bytes.Buffer
	for i, r := range records {
		fmt.Fprintf(
			&b,
			"WARC/1.0\r\nWARC-Record-ID: <urn:x:%d>\r\n%s\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n",
			i,
			strings.ReplaceAll(r[0], "\n", "\r\n"),
			len(r[1]),
			r[1],
		)
	}
	return b.Bytes()
}

func TestForeignRecords(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	data := warcText(
		[2]string{
			"WARC-Type: response\nWARC-Target-URI: <http://a.example/1>\nWARC-Date: 2020-01-02T03:04:06Z\nContent-Type: application/http;msgtype=response",
			ok + "one",
		},
		[2]string{
			"WARC-Type: request\nWARC-Target-URI: http://a.example/1\nWARC-Concurrent-To: <urn:x:0>",
			"GET /1 HTTP/1.1\r\nHost: a.example\r\n\r\n",
		},
		[2]string{"WARC-Type: response\nWARC-Target-URI: http://a.example/0\nWARC-Date: 2020-01-02T03:04:05Z",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"},
		[2]string{"WARC-Type: request\nWARC-Target-URI: http://a.example/0", "POST /0 HTTP/1.1\r\nHost: a.example\r\n\r\nq=1"},
		[2]string{
			"WARC-Type: revisit\nWARC-Target-URI: http://a.example/2\nWARC-Date: 2020-01-02T03:04:07Z\nWARC-Refers-To-Target-URI: http://a.example/1\nWARC-Refers-To-Date: 2020-01-02T03:04:06Z",
			ok,
		},
		[2]string{"WARC-Type: revisit\nWARC-Target-URI: http://a.example/3\nWARC-Refers-To-Target-URI: http://a.example/none", ok},
		[2]string{
			"WARC-Type: resource\nWARC-Target-URI: http://a.example/4\nWARC-Date: 2020-01-02T03:04:08Z\nContent-Type: image/png",
			"png",
		},
		[2]string{
			"WARC-Type: response\nWARC-Target-URI: dns:a.example\nContent-Type: text/dns",
			"20200102030405\na.example.\t60\tIN\tA\t192.0.2.9\n",
		},
		[2]string{
			"WARC-Type: response\nWARC-Target-URI: http://a.example/bad\nWARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
			ok + "changed",
		},
	)
	a, err := OpenReader(bytes.NewReader(data), int64(len(data)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range a.Exchanges() {
		got = append(got, fmt.Sprintf("%d %s %s %d %s %v", e.Order, e.Method, e.URL, e.Status, e.Response.Body, e.Start))
	}
	want := []string{
		"0 POST http://a.example/0 200 abcde 0s",
		"1 GET http://a.example/1 200 one 1s",
		"2 GET http://a.example/2 200 one 2s",
		"3 GET http://a.example/4 200 png 3s",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(a.DNS()) != 1 || a.DNS()[0].Records[0] != "a.example.\t60\tIN\tA\t192.0.2.9" {
		t.Errorf("DNS() = %+v; want one A record of 192.0.2.9", a.DNS())
	}
	if len(a.Warnings()) != 2 {
		t.Errorf("Warnings() = %q, want 2", a.Warnings())
	}
}

// A revisit gets the body whose digest it names, or none.
func TestRevisitsHaveTheirDigest(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	sha1of := func(s string) string { h := sha1.Sum([]byte(s)); return base32.StdEncoding.EncodeToString(h[:]) }
	revisit := func(n int, digest string) [2]string {
		return [2]string{
			fmt.Sprintf(
				"WARC-Type: revisit\nWARC-Target-URI: http://a.example/r%d\nWARC-Refers-To: <urn:x:0>\nWARC-Payload-Digest: %s",
				n,
				digest,
			),
			ok,
		}
	}
	data := warcText(
		[2]string{"WARC-Type: response\nWARC-Target-URI: http://a.example/1", ok + "one"},
		[2]string{"WARC-Type: response\nWARC-Target-URI: http://a.example/2\nWARC-Payload-Digest: md5:2", ok + "two"},
		[2]string{
			"WARC-Type: response\nWARC-Target-URI: http://a.example/3",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n3\r\n0\r\n\r\n",
		},
		revisit(0, "sha1:"+sha1of("one")),
		revisit(1, "sha1:"+sha1of("two")), // the record that it names has another body
		revisit(2, fmt.Sprintf("SHA-256:%X", sha256.Sum256([]byte("two")))),
		revisit(3, "sha1:"+sha1of("gone")),
		revisit(4, "md5:2"),
		revisit(5, "blake3:x"), // which nobody can tell
	)
	a, err := OpenReader(bytes.NewReader(data), int64(len(data)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range a.Exchanges() {
		if name, ok := strings.CutPrefix(e.URL, "http://a.example/r"); ok {
			got[name] = string(e.Response.Body)
		}
	}
	want := map[string]string{"0": "one", "1": "two", "2": "two", "4": "two", "5": "one"}
	if d := cmp.Diff(want, got); d != "" || len(a.Warnings()) != 1 {
		t.Errorf("warnings %q, bodies (-want +got):\n%s", a.Warnings(), d)
	}
}

// TestDigests: a digest is compared in each form that tools write, and one in another form is not. A body with another
// digest is left out, unless the record as a whole has the digest that it states.
func TestDigests(t *testing.T) {
	const block = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n???>>>~~~"
	const body = "???>>>~~~"
	one, two, of := sha1.Sum([]byte(body)), sha256.Sum256([]byte(body)), sha1.Sum([]byte(block))
	other, ofBlock := sha1.Sum([]byte("other")), "sha1:"+hex.EncodeToString(of[:])
	for _, c := range []struct {
		payload, block string
		kept           bool
		told           string
	}{
		{"sha1:" + hex.EncodeToString(one[:]), "", true, ""},
		{"SHA-1:" + strings.ToLower(base32.StdEncoding.EncodeToString(one[:])), "", true, ""},
		{"sha1:" + base64.StdEncoding.EncodeToString(one[:]), "", true, ""},
		{"sha256:" + base64.RawURLEncoding.EncodeToString(two[:]), "", true, ""},
		{"sha256:" + strings.TrimRight(base32.StdEncoding.EncodeToString(two[:]), "="), "", true, ""},
		{"sha1:cut", "", true, ""},
		{"sha512:" + hex.EncodeToString(one[:]), "", true, ""},
		{"sha1:" + base64.StdEncoding.EncodeToString(other[:]), "", false, "does not have the digest"},
		{"sha256:" + hex.EncodeToString(make([]byte, 32)), "", false, "does not have the digest"},
		{"sha1:" + hex.EncodeToString(other[:]), ofBlock, true, "WARC-Block-Digest"},
		{"sha1:" + hex.EncodeToString(other[:]), "sha1:" + hex.EncodeToString(other[:]), false, "does not have the digest"},
	} {
		fields := "WARC-Type: response\nWARC-Target-URI: http://a.example/\nWARC-Payload-Digest: " + c.payload
		if c.block != "" {
			fields += "\nWARC-Block-Digest: " + c.block
		}
		data := warcText([2]string{fields, block})
		a, err := OpenReader(bytes.NewReader(data), int64(len(data)), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Join(a.Warnings(), "\n")
		if len(a.Exchanges()) == 1 != c.kept || !strings.Contains(told, c.told) || (c.told == "") != (told == "") {
			t.Errorf("%s, of the block %q: %d exchanges, told %q; want it kept %v, and told %q", c.payload, c.block, len(a.Exchanges()), told, c.kept, c.told)
		}
	}
}

// TestRevisitIsWholeAsItsBody: crawlers state "length" in every revisit, as its block has no body; it is cut off only if
// the body to which it refers is.
func TestRevisitIsWholeAsItsBody(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	data := warcText(
		[2]string{"WARC-Type: response\nWARC-Target-URI: http://a.example/whole", ok + "whole"},
		[2]string{"WARC-Type: response\nWARC-Target-URI: http://a.example/cut\nWARC-Truncated: time", ok + "cu"},
		[2]string{"WARC-Type: revisit\nWARC-Target-URI: http://a.example/r0\nWARC-Refers-To: <urn:x:0>\nWARC-Truncated: length", ok},
		[2]string{"WARC-Type: revisit\nWARC-Target-URI: http://a.example/r1\nWARC-Refers-To: <urn:x:1>\nWARC-Truncated: length", ok},
		[2]string{"WARC-Type: revisit\nWARC-Target-URI: http://a.example/r2\nWARC-Refers-To: <urn:x:1>", ok},
		[2]string{"WARC-Type: revisit\nWARC-Target-URI: http://a.example/r3\nWARC-Truncated: length\n" + // wget's of a redirect
			"WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "HTTP/1.1 302 Found\r\nLocation: /whole\r\n\r\n"},
	)
	a, err := OpenReader(bytes.NewReader(data), int64(len(data)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range a.Exchanges() {
		got[strings.TrimPrefix(e.URL, "http://a.example/")] = string(e.Response.Body) + " " + e.Truncated
	}
	want := map[string]string{"whole": "whole ", "cut": "cu time", "r0": "whole ", "r1": "cu time", "r2": "cu time", "r3": " "}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("bodies, and why they are cut off (-want +got):\n%s", d)
	}
}

// realWACZ is what we write.
func realWACZ(f *testing.F) []byte {
	path := filepath.Join(f.TempDir(), "a.wacz")
	w, err := Create(path, CreateOptions{Software: "test", Wall: wall})
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range sample() {
		e.Response.Body = e.Response.Body[:min(4, len(e.Response.Body))]
		e.Chunks = nil
		if n := len(e.Response.Body); n > 0 {
			e.Chunks = []lab.Chunk{{Bytes: n}}
		}
		err = errors.Join(err, w.Add(e))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return data
}

func FuzzOpen(f *testing.F) {
	f.Add(warcText([2]string{"WARC-Type: response\nWARC-Target-URI: http://a.example/1", "HTTP/1.1 200 OK\r\n\r\nx"}))
	f.Add([]byte("PK\x03\x04"))
	f.Add(realWACZ(f))
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0})
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0})
	limits := Limits{Decoded: 1 << 20, Record: 1 << 20, Exchanges: 100, Header: 1 << 14, Index: 1 << 16, Entries: 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		var a *Archive
		var err error
		testlab.Bounded(t, 512<<20, func() { a, err = bothWays(t, data, limits) })
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line", err)
			}
			return
		}
		for _, e := range a.Exchanges() {
			sum := 0
			for _, c := range e.Chunks {
				sum += c.Bytes
			}
			if sum != len(e.Response.Body) {
				t.Errorf("chunks of %d bytes, want the body's %d", sum, len(e.Response.Body))
			}
			if e.Status < 100 || e.Method == "" || e.ID == "" {
				t.Errorf("exchange %+v, want one with status, method and ID", e)
			}
		}
	})
}

// FuzzWACZ puts any bytes as WARC and index into a zip that is whole.
func FuzzWACZ(f *testing.F) {
	var warc bytes.Buffer
	second := 0
	for i, id := range []string{"a", "b"} {
		second = warc.Len()
		header := []lab.HeaderField{
			{
				Name:  "WARC-Type",
				Value: "response",
			}, {Name: "WARC-Record-ID", Value: id}, {Name: "WARC-Target-URI", Value: "http://a.example/" + id},
		}
		if err := appendMember(&warc, i, header, []byte("HTTP/1.1 200 OK\r\n\r\nbody of "+id)); err != nil {
			f.Fatal(err)
		}
	}
	line := func(offset int) []byte {
		return fmt.Appendf(nil, "example,a)/ 20260102030405 {\"filename\":\"data.warc.gz\",\"offset\":\"%d\"}\n", offset)
	}
	f.Add(warc.Bytes(), line(second))
	f.Add(warc.Bytes(), line(second-3))
	f.Add(append(warc.Bytes()[:second:second], "damaged"...), line(second))
	limits := Limits{Decoded: 1 << 20, Record: 1 << 20, Exchanges: 100, Header: 1 << 14, Index: 1 << 16, Entries: 20}
	f.Fuzz(func(t *testing.T, warc, index []byte) {
		testlab.Bounded(t, 512<<20, func() { _, _ = bothWays(t, zipOf(t, warc, index), limits) }) // an error is an answer
	})
}

// zipOf packs a WARC with an index, whatever they hold.
func zipOf(t testing.TB, warc, index []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, file := range []struct {
		name string
		text []byte
	}{{nameData, warc}, {nameIndex, index}, {namePackage, []byte("{}")}} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: file.name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(file.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestTransferCodings: a record whose body a crawler asked for in a compressed transfer coding, and kept so, is read like
// any other; one that another tool has decoded, too.
func TestTransferCodings(t *testing.T) {
	chunked := func(b []byte) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(b), b) }
	packed := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	const page = "<p>hello"
	for head, body := range map[string]string{
		"Transfer-Encoding: gzip, chunked":                              chunked(packed(page)),
		"Transfer-Encoding: x-gzip\r\nTransfer-Encoding: chunked":       chunked(packed(page)),
		"Transfer-Encoding: gzip":                                       string(packed(page)),
		"Transfer-Encoding: GZIP , chunked ":                            string(packed(page)),  // without its chunks
		"Transfer-Encoding: gzip,chunked":                               chunked([]byte(page)), // decoded by another tool
		"Transfer-Encoding: gzip, deflate":                              page,
		"Content-Encoding: gzip\r\nTransfer-Encoding: gzip, chunked":    chunked(packed(string(packed(page)))),
		"Content-Encoding: gzip\r\nTransfer-Encoding: gzip , chunked  ": chunked(packed(page)),
	} {
		data := warcText([2]string{"WARC-Type: response\nWARC-Target-URI: http://a.example/\nWARC-Date: 2026-03-01T10:00:00Z",
			"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + head + "\r\n\r\n" + body})
		a, err := OpenReader(bytes.NewReader(data), int64(len(data)), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		e := a.Exchanges()[0]
		got, err := Decoded(&e.Response)
		if err != nil || string(got) != page || e.Response.Get("Transfer-Encoding") != "" {
			t.Errorf("%q: the body is %q, %v, with %v; want %q", head, got, err, e.Response.Header, page)
		}
	}
}
