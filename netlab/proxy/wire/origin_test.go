package wire

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/message"
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
		reason, got, ok := c.Head()
		if want := fields("server: x\nX-b: 1\nx-A: 2\nX-b: 3"); !ok || reason != "Quite Fine" || !cmp.Equal(got, want) {
			t.Fatalf("in pieces of %d: %q %v, want %v", n, reason, got, want)
		}
		c.Begin("GET", true)
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
		defer testlab.Input(t)()
		m := &memory{}
		c := NewConn(m)
		c.Arrange(fields(order))
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		_, _, whole := finalHead([]byte(sent))
		if whole && m.out.Len() != len(sent) && !strings.Contains(sent, "://") && message.WithoutControls(order) == order {
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

// TestOddAnswers: net/http reads of an answer that browsers take what they read of it, and the next one after it.
func TestOddAnswers(t *testing.T) {
	const next = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext"
	for name, c := range map[string]struct{ method, sent, body, header string }{
		"LF alone":             {"GET", "HTTP/1.1 200 OK\nContent-Length: 3\nX-A: b\n\nabc", "abc", "X-A: b"},
		"lengths that agree":   {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\ncontent-length: 3\r\n\r\nabc", "abc", "content-length: 3"},
		"no name, no colon":    {"GET", "HTTP/1.1 200 OK\r\n: none\r\nnothing\r\nX-A: c\r\nContent-Length: 1\r\n\r\nx", "x", "X-A: c"},
		"a blank before colon": {"GET", "HTTP/1.1 200 OK\r\nX-A : d\r\nContent-Length : 2\r\n\r\nhi", "hi", "X-A: d"},
		"folded":               {"GET", "HTTP/1.1 200\r\nX-A: e\r\n\tf\r\nContent-Length: 2\r\n\r\nhi", "hi", "X-A: e f"},
		"a control character":  {"GET", "HTTP/1.1 200 OK\r\nSet-Cookie: a=\x02b\xe9\r\nContent-Length: 0\r\n\r\n", "", "Set-Cookie: a=\x02b\xe9"},
		"zeros, LF, blanks": {
			"GET", "HTTP/1.1 200 OK\r\ntransfer-encoding:  Chunked \r\n\r\n0003 \nabc\n2;x=y\r\nde\r\n000000000000000000000\r\n\r\n", "abcde", "",
		},
		"chunks and a length": {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: u\r\n\r\n", "a", ""},
		"bytes before a head": {"GET", "\r\nab\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "hi", ""},
		"no status":           {"GET", "HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\nhi", "hi", ""},
		"a CR in a value":     {"GET", "HTTP/1.1 200 OK\r\nX-A: b\rc\r\nContent-Length: 2\r\n\r\nhi", "hi", "X-A: b"},
		"HEAD":                {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", "", ""},
		"not modified":        {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "", ""},
		"reset content":       {"GET", "HTTP/1.1 205 Reset Content\r\nX-A: g\r\n\r\n", "", "X-A: g"},
		"an unknown interim":  {"GET", "HTTP/1.1 199 Wait\nX: y\n\nHTTP/1.1 200 OK\nContent-Length: 1\n\n1", "1", ""},
	} {
		for _, n := range []int{1, 7, 4096} {
			c2 := NewConn(&memory{in: strings.NewReader(c.sent + next), n: n})
			c2.Begin(c.method, true)
			r := bufio.NewReader(c2)
			request := &http.Request{Method: c.method}
			resp, err := http.ReadResponse(r, request)
			for err == nil && resp.StatusCode/100 == 1 {
				resp, err = http.ReadResponse(r, request)
			}
			if err != nil {
				t.Errorf("%s, in pieces of %d: %v", name, n, err)
				continue
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || string(body) != c.body {
				t.Errorf("%s, in pieces of %d: body %q, %v; want %q", name, n, body, err, c.body)
			}
			if _, got, ok := c2.Head(); c.header != "" && (!ok || !slices.Contains(got, fields(c.header)[0])) {
				t.Errorf("%s: received %q, want %q among them", name, got, c.header)
			}
			c2.Begin("GET", true)
			resp, err = http.ReadResponse(r, &http.Request{Method: "GET"})
			if err != nil {
				t.Errorf("%s, in pieces of %d: the next answer: %v", name, n, err)
				continue
			}
			if body, err = io.ReadAll(resp.Body); string(body) != "next" || err != nil {
				t.Errorf("%s, in pieces of %d: the next body is %q, %v", name, n, body, err)
			}
		}
	}
}

// TestBodyAlone: HTTP/0.9 is what comes first from a port of HTTP's own, or of an internet radio, and nothing else is.
func TestBodyAlone(t *testing.T) {
	for text, isRadio := range map[string]bool{"<p>no head": false, "x": false, "ic": false, "ICY 200 OK\r\nicy-name: Radio\r\n\r\n\xff\xfb": true} {
		for _, own := range []bool{true, false} {
			c := NewConn(&memory{in: strings.NewReader(text), n: 5})
			c.Begin("GET", own)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if !own && !isRadio {
				if err == nil {
					t.Errorf("%q from another port: status %d, want an error", text, resp.StatusCode)
				}
				continue
			}
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			if body, err := io.ReadAll(resp.Body); string(body) != text || err != nil {
				t.Errorf("the body is %q, %v; want %q", body, err, text)
			}
		}
	}
}

// TestContentThatMayNotBe: a body behind a status that has none is no next answer, and ends the connection.
func TestContentThatMayNotBe(t *testing.T) {
	for method, sent := range map[string]string{
		"PUT":   "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}",
		"POST":  "HTTP/1.1 205 Reset Content\r\nContent-Length: 2\r\n\r\n{}",
		"GET":   "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"HEAD":  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHEAD ",
		"QUERY": "HTTP/1.1 304 Not Modified\r\n\r\nold",
	} {
		c := NewConn(&memory{in: strings.NewReader(sent), n: 4096})
		c.Begin(method, true)
		resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
		if err != nil {
			t.Errorf("%q: %v", sent, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		if len(body) > 0 || err != nil || !resp.Close {
			t.Errorf("%q: body %q, %v, closes %v; want no body and the end of the connection", sent, body, err, resp.Close)
		}
		if _, got, ok := c.Head(); !ok || slices.ContainsFunc(got, func(f lab.HeaderField) bool { return f.Name == "Connection" }) {
			t.Errorf("%q: received %v, want the fields as they came", sent, got)
		}
	}
}

// TestAnswersThatStayRefused: two readers could see different bodies, or none is whole.
func TestAnswersThatStayRefused(t *testing.T) {
	for sent, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd": "Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabcd":                   "Content-Length",
		"SSH-2.0-x\r\n\r\n": "malformed",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc":        "unexpected EOF",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfive\r\nabc\r\n": "malformed",
	} {
		resp, err := http.ReadResponse(bufio.NewReader(NewConn(&memory{in: strings.NewReader(sent), n: 512})), nil)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that says %q", sent, err, want)
		}
	}
}

// FuzzConn: whatever an origin sends, what a Conn makes of it ends.
func FuzzConn(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\nHTTP/1.0 404\n\nrest"))
	f.Add([]byte("http/1.1 101 x\r\n\r\n\x81\x00"))
	f.Add([]byte("HTTP/1.1 103 Hints\nLink: x\n\nHTTP/1.1 200 OK\nContent-Length: 2, 2\n\nhi"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		defer testlab.Input(t)()
		n, _ := io.Copy(io.Discard, NewConn(&memory{in: bytes.NewReader(sent), n: 100})) // an error is one of the answer's
		if most := int64(8*len(sent)) + 4096; n > most {
			t.Errorf("%d bytes became %d, want at most %d", len(sent), n, most)
		}
	})
}
