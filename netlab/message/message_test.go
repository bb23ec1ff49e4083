package message

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

func read(t *testing.T, text string) *Head {
	t.Helper()
	h, err := ReadHead(bufio.NewReader(strings.NewReader(text)), 1<<20)
	if err != nil {
		t.Fatalf("ReadHead(%q): %v", text, err)
	}
	return h
}

func TestRequestFraming(t *testing.T) {
	for fields, want := range map[string]Framing{
		"":                              {},
		"Content-Length: 7":             {Length: 7},
		"Content-Length: 7, 7":          {Length: 7},
		"Transfer-Encoding: chunked":    {Length: -1, Chunked: true},
		"Content-Length: 7\nX: 1\n : 2": {Length: 7},
	} {
		if got, err := read(t, "POST / HTTP/1.1\n"+fields+"\n\n").RequestFraming(); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", fields, got, err, want)
		}
	}
	for _, fields := range []string{
		"Content-Length: 7\nContent-Length: 8", "Content-Length: 7, 8", "Content-Length: 7\nTransfer-Encoding: chunked",
		"Transfer-Encoding: chunked\nTransfer-Encoding: chunked", "Transfer-Encoding: gzip", "Content-Length : 7",
		"Transfer-Encoding\t: chunked", "Content-Length: +7", "Content-Length: ",
	} {
		if got, err := read(t, "POST / HTTP/1.1\n"+fields+"\n\n").RequestFraming(); !errors.Is(err, ErrFraming) {
			t.Errorf("%q: %+v, %v; want ErrFraming", fields, got, err)
		}
	}
}

func TestStatus(t *testing.T) {
	for line, want := range map[string][3]any{
		"HTTP/1.1 200 OK":       {1, 200, "OK"},
		"HTTP/1.0 404":          {0, 404, ""},
		"http/1.1  503  Not up": {1, 503, "Not up"},
		"HTTP 200 OK":           {0, 200, "OK"},
		"HTTP/1.1 0200 OK":      {1, 200, "OK"},
		"HTTP/1.1 200OK":        {1, 200, "OK"},
		"HTTP/1.1 OK":           {1, 200, ""},
		"HTTP/1.0":              {0, 200, ""},
	} {
		minor, status, reason, ok := Status(line)
		if got := [3]any{minor, status, reason}; !ok || got != want {
			t.Errorf("Status(%q) = %v, %v; want %v", line, got, ok, want)
		}
	}
	for _, line := range []string{"", "GET / HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 2000"} {
		if _, _, _, ok := Status(line); ok {
			t.Errorf("Status(%q): ok, want not", line)
		}
	}
}

// TestChunksLeaveTheRest: what follows a body is not read.
func TestChunksLeaveTheRest(t *testing.T) {
	r := bufio.NewReader(strings.NewReader("2\nhi\n00\nX: y\n\nGET /next"))
	c := NewChunks(r)
	body, err := io.ReadAll(c)
	rest, _ := io.ReadAll(r)
	if err != nil || string(body) != "hi" || string(rest) != "GET /next" || len(c.Trailer) != 1 {
		t.Errorf("body %q, %v, trailer %v, rest %q", body, err, c.Trailer, rest)
	}
}

func TestBounds(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	if _, err := ReadHead(bufio.NewReader(strings.NewReader("GET /"+long)), 64<<10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a long line: %v, want ErrTooLarge", err)
	}
	if _, err := ReadHead(bufio.NewReader(strings.NewReader("GET /\n"+strings.Repeat("a: b\n", 20<<10))), 64<<10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("many lines: %v, want ErrTooLarge", err)
	}
	for _, body := range []string{"1;" + long, "0\n" + long, "ffffffffffffffffff\n", "-1\n", "\n"} {
		if n, err := io.Copy(io.Discard, NewChunks(bufio.NewReader(strings.NewReader(body)))); err == nil || n > 0 {
			t.Errorf("%.20q: %d bytes, %v; want an error", body, n, err)
		}
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\nContent-Length: 1, 1\n\nx")
	f.Add("POST / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n00a;b\r\n0123456789\r\n0\r\nt: u\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		r := bufio.NewReader(strings.NewReader(text))
		h, err := ReadHead(r, 32<<10)
		if err != nil {
			return
		}
		for _, field := range h.Fields {
			if !IsToken(field.Name) || strings.Contains(field.Value, "\n") {
				t.Errorf("the field %q of %q", field, text)
			}
		}
		if framing, err := h.RequestFraming(); err == nil && framing.Length < 0 != framing.Chunked {
			t.Errorf("the framing of %q is %+v", text, framing)
		}
		n, err := io.Copy(io.Discard, NewChunks(r))
		if int(n) > len(text) || err == nil && n == 0 && !strings.Contains(text, "0") {
			t.Errorf("%d bytes of %q, %v", n, text, err)
		}
	})
}
