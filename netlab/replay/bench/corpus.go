package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

const (
	host      = "www.bench.test"
	exchanges = 20_000
	bodyBytes = 10_000
	asked     = 1000 // URLs that the clients ask for, spread over all
)

// path returns the path of the i-th exchange.
func path(i int) string { return fmt.Sprintf("/assets/%03d/file-%05d.css", i%97, i) }

// askedPaths are the paths that the clients ask for.
func askedPaths() []string {
	var out []string
	for i := range asked {
		out = append(out, path(i*(exchanges/asked)))
	}
	return out
}

// bodyOf draws the body of the i-th exchange: bytes that do not compress, as
// the pictures and compressed texts of the web, which stay compressed in an archive.
func bodyOf(i, size int) []byte {
	src := rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), byte(i >> 16)})
	b := make([]byte, size)
	_, _ = src.Read(b) // never fails
	return b
}

// exchange makes the i-th exchange with the header that a web server sends.
func exchange(i, size int) *lab.Exchange {
	wall := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Millisecond)
	field := func(name, value string) lab.HeaderField { return lab.HeaderField{Name: name, Value: value} }
	return &lab.Exchange{
		Order: i, Wall: wall, Start: time.Duration(i) * time.Millisecond,
		Method: "GET", URL: "https://" + host + path(i), Protocol: "h2", TLS: "tls/1.3",
		Server:  netip.MustParseAddrPort("203.0.113.10:443"),
		Request: lab.Message{Header: []lab.HeaderField{field("accept", "*/*"), field("user-agent", "bench")}},
		Status:  200,
		Response: lab.Message{Header: []lab.HeaderField{
			field("date", wall.Format("Mon, 02 Jan 2006 15:04:05 GMT")), field("content-type", "text/css"),
			field("content-length", strconv.Itoa(size)), field("cache-control", "max-age=3600"), field("etag", fmt.Sprintf(`"%x"`, i)),
		}, Body: bodyOf(i, size)},
		FirstByte: time.Millisecond, Chunks: []lab.Chunk{{At: 2 * time.Millisecond, Bytes: size}},
	}
}

// record writes an archive of n exchanges.
func record(file string, n, size int) error {
	w, err := archive.Create(file, archive.CreateOptions{Software: "bench", Wall: time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)})
	if err != nil {
		return err
	}
	for i := range n {
		if err := w.Add(exchange(i, size)); err != nil {
			_ = w.Close()
			return err
		}
	}
	return w.Close()
}

// writeFiles lays the bodies that are asked for into a folder, for nginx.
func writeFiles(root string) error {
	for i := 0; i < exchanges; i += exchanges / asked {
		name := filepath.Join(root, path(i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, bodyOf(i, bodyBytes), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeWPR writes the same exchanges in Web Page Replay's format.
func writeWPR(file string) error {
	type request struct{ SerializedRequest, SerializedResponse []byte }
	requests := map[string][]request{}
	for i := range exchanges {
		e := exchange(i, bodyBytes)
		var head strings.Builder
		head.WriteString("HTTP/1.1 200 OK\r\n")
		for _, f := range e.Response.Header {
			head.WriteString(f.Name + ": " + f.Value + "\r\n")
		}
		head.WriteString("\r\n")
		requests[e.URL] = []request{{
			SerializedRequest:  []byte("GET " + path(i) + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"),
			SerializedResponse: append([]byte(head.String()), e.Response.Body...),
		}}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(z).Encode(map[string]any{
		"Requests":           map[string]any{host: requests},
		"NegotiatedProtocol": map[string]string{host: "h2"},
	}); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}
