package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHostileHTTP1 sends what is known to make one server see two requests
// where another sees one (request smuggling), and other things that no browser
// sends. Want is the status of each answer.
func TestHostileHTTP1(t *testing.T) {
	s := newStand(t, "http/1.1", echo)
	const next = "GET /smuggled HTTP/1.1\r\nHost: b\r\n\r\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"two in a row", "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", []string{"200", "200"}},
		{"a body and a request", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", []string{"200", "200"}},
		{"an empty line after a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", []string{"200", "200"}},
		{"an empty line at the end", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\n", []string{"200"}},
		{"an empty line at the beginning", "\r\n" + next, []string{"200"}},
		{"only empty lines", strings.Repeat("\r\n", 100) + next, []string{"400"}},
		{"one and nonsense", next + "nonsense\r\n\r\n", []string{"200", "400"}},
		{"one and a huge header", next + "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 200<<10) + "\r\n\r\n", []string{"200", "431"}},
		{"one and the beginning of another", next + "GET / HTTP/1.1\r\nHost: a\r\n", []string{"200"}},
		{"one and a body that ends early", next + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhi", []string{"200"}},
		{"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 38\r\n\r\n" + next, []string{"400"}},
		{"a length with a sign", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\n" + next, []string{"400"}},
		{"a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 38\r\n\r\n" + next, []string{"400"}},
		{"an unknown transfer coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + next, []string{"400"}},
		{"a space before the colon", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + next, []string{"400"}},
		{"a folded line", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n" + next, []string{"200", "200"}},
		{"no host", "GET / HTTP/1.1\r\n\r\n" + next, []string{"400"}},
		{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + next, []string{"400"}},
		{"a zero byte", "GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n" + next, []string{"400"}},
		{"a bare carriage return", "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n" + next, []string{"400"}},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []string{"400"}},
		{"HTTP/0.9", "GET /\r\n\r\n", []string{"400"}},
		{"HTTP/1.0 that expects", "POST / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", []string{"200"}},
		{"HTTP/1.1 that expects", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", []string{"100", "200"}},
		{"a later HTTP/1", "GET / HTTP/1.2\r\nHost: a\r\n\r\n" + next, []string{"200", "200"}},
		{"HTTP/1 without a minor version", "GET / HTTP/1.\r\nHost: a\r\n\r\n", []string{"400"}},
		{"a huge header", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 200<<10) + "\r\n\r\n", []string{"431"}},
		{"a huge request line", "GET /" + strings.Repeat("x", 200<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", []string{"431"}},
		{"a chunk size that overflows", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", nil},
		{"a body that ends early", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhi", nil},
		{"nothing", "", nil},
		{"bytes of a handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []string{"400"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := statuses(t, talk(t, s, c.text)); !cmp.Equal(got, c.want) {
				t.Errorf("answers %v, want %v", got, c.want)
			}
		})
	}
}

// talk sends all of text and returns what comes back until the end.
func talk(t *testing.T, s *stand, text string) string {
	c := s.dial(t)
	go func() {
		_, _ = io.WriteString(c, text) // the server may hang up before the end
		_ = c.CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	return string(got)
}

// statuses reads answers until their end.
func statuses(t *testing.T, text string) (out []string) {
	r := bufio.NewReader(strings.NewReader(text))
	for {
		if _, err := r.Peek(1); err != nil {
			return out
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("the answer cannot be read: %v in %q", err, text)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatalf("the answer is incomplete: %v in %q", err, text)
		}
		out = append(out, fmt.Sprint(resp.StatusCode))
	}
}
