package wire

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
)

// memory is a net.Conn that reads from in, in pieces of n bytes, and writes to out.
type memory struct {
	net.Conn
	in  io.Reader
	n   int
	out bytes.Buffer
}

func (m *memory) Read(p []byte) (int, error)  { return m.in.Read(p[:min(m.n, len(p))]) }
func (m *memory) Write(p []byte) (int, error) { return m.out.Write(p) }

func fields(text string) (out []lab.HeaderField) {
	for line := range strings.SplitSeq(text, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			out = append(out, lab.HeaderField{Name: name, Value: value})
		}
	}
	return out
}

func TestHeadKeepsOrderAndCase(t *testing.T) {
	const interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
	const head = "HTTP/1.1 200 Quite Fine\r\nserver: x\r\nX-b: 1\r\nx-A:  2 \r\nX-b: 3\r\n\r\n"
	for n := 1; n < 200; n += 13 {
		c := NewConn(&memory{in: strings.NewReader(interim + head + strings.Repeat("body\r\n\r\n", 100)), n: n})
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Fatal(err)
		}
		start, got, ok := c.Head()
		if want := fields("server: x\nX-b: 1\nx-A: 2\nX-b: 3"); !ok || start != "HTTP/1.1 200 Quite Fine" || !cmp.Equal(got, want) {
			t.Fatalf("in pieces of %d: %q %v, want %v", n, start, got, want)
		}
		if len(c.in) > len(interim+head)+n {
			t.Fatalf("%d bytes are remembered, want at most the head of %d and one piece", len(c.in), len(interim+head))
		}
		c.Begin()
		if _, _, ok := c.Head(); ok {
			t.Fatal("Head() after Begin returns the head of the previous message, want none")
		}
	}
}

func TestArrange(t *testing.T) {
	const sent = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nEtag: \"x\"\r\nX-Two: 1\r\nX-Two: 2\r\nConnection: close\r\n\r\nhi"
	const want = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nx-two: 1\r\nETag: \"x\"\r\nX-TWO: 2\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
	for n := 1; n < len(sent); n += 7 {
		m := &memory{}
		c := NewConn(m)
		c.Arrange(fields("x-two: other values\nX-Absent: 1\nETag: 0\nX-TWO: 1"))
		for rest := sent; rest != ""; rest = rest[min(n, len(rest)):] {
			if wrote, err := io.WriteString(c, rest[:min(n, len(rest))]); err != nil || wrote != min(n, len(rest)) {
				t.Fatal(wrote, err)
			}
		}
		if got := m.out.String(); got != want {
			t.Fatalf("in pieces of %d:\n%q, want\n%q", n, got, want)
		}
		if _, err := io.WriteString(c, "more\r\n\r\n"); err != nil || !strings.HasSuffix(m.out.String(), "himore\r\n\r\n") {
			t.Fatalf("sent %q, want the bytes after the head too", m.out.String())
		}
	}
}

// FuzzArrange: whatever stands in a head, net/http reads the same of it before
// and after.
func FuzzArrange(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\nbody", "b: 1\na: 2")
	f.Add("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", "")
	f.Add("\r\n\r\n", ": x")
	f.Fuzz(func(t *testing.T, sent, order string) {
		m := &memory{}
		c := NewConn(m)
		c.Arrange(fields(order))
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		_, _, whole := finalHead([]byte(sent))
		if whole && m.out.Len() != len(sent) {
			t.Fatalf("%d bytes became %d: %q, %q", len(sent), m.out.Len(), sent, m.out.String())
		}
		before, err := http.ReadResponse(bufio.NewReader(strings.NewReader(sent)), nil)
		if err != nil || !whole {
			return
		}
		defer before.Body.Close()
		after, err := http.ReadResponse(bufio.NewReader(&m.out), nil)
		if err != nil {
			t.Fatalf("%q cannot be read any more: %v", sent, err)
		}
		defer after.Body.Close()
		if d := cmp.Diff(before.Header, after.Header); d != "" || before.StatusCode != after.StatusCode {
			t.Fatalf("%q means something else (-before +after):\n%s", sent, d)
		}
	})
}
