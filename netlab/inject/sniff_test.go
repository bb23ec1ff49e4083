package inject

import (
	"bytes"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestSniffing: an answer without a type gets the script if the browser takes it for HTML (WHATWG,
// MIME Sniffing, 7.1), however it is cut into pieces, and one that the browser must not sniff does
// not get it.
func TestSniffing(t *testing.T) {
	long := strings.Repeat(" ", 600)
	for _, c := range []struct {
		name, body string
		header     []lab.HeaderField
		injected   bool
	}{
		{"doctype", "<!doctype html><p>x", nil, true},
		{"a paragraph", "<p>x</p>", nil, true},
		{"a comment", "<!-- x --><p>x", nil, true},
		{"white space first", "\n\t <div >x", nil, true},
		{"a script", "<SCRIPT>x()</SCRIPT>", nil, true},
		{"an unknown element", "<section>x", nil, false},
		{"an element that only begins alike", "<pre>x", nil, false},
		{"text", "hello <p>", nil, false},
		{"JSON", `{"a":"<p>"}`, nil, false},
		{"XML", `<?xml version="1.0"?><html/>`, nil, false},
		{"a byte order mark", "\xef\xbb\xbf<!doctype html>", nil, false},
		{"too late", long + "<!doctype html>", nil, false},
		{"nothing", "", nil, false},
		{"nosniff", "<!doctype html><p>x", document("X-Content-Type-Options", "nosniff").Header[1:], false},
		{"nosniff in a list", "<!doctype html><p>x", document("x-content-type-options", "NoSniff, x").Header[1:], false},
		{"nosniff with a type", "<p>x", htmlHeader("X-Content-Type-Options", "nosniff"), true},
		{"a type that is none", "<p>x", document("Content-Type", "html").Header[1:], true},
		{"unknown/unknown", "<p>x", document("Content-Type", "unknown/unknown").Header[1:], true},
		{"a type that is none, nosniff", "<p>x", document("Content-Type", "html", "X-Content-Type-Options", "nosniff").Header[1:], false},
		{"text/plain", "<!doctype html><p>x", document("Content-Type", "text/plain").Header[1:], false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 7, 1 << 20} {
				injected := false
				if p := testScript.Plan("GET", "https://a.test/", document(), 200, c.header); p != nil {
					out, s := change(t, p, []byte(c.body), size)
					if injected = bytes.Contains(out, []byte(testScript.text)); injected == s.Unchanged() {
						t.Errorf("Unchanged() = %v for a body with the script: %v", s.Unchanged(), injected)
					}
					if !injected && string(out) != c.body {
						t.Errorf("got %q; want the body as it was", out)
					}
				}
				if injected != c.injected {
					t.Errorf("in pieces of %d bytes: the script is in it: %v; want %v", size, injected, c.injected)
				}
			}
			if !c.injected {
				return
			}
			if !testScript.Concerns("GET", 200, c.header) {
				t.Error("Concerns() = false for a response that gets the script")
			}
		})
	}
	p := testScript.Plan("GET", "https://a.test/", document(), 200, nil)
	_, s := change(t, p, []byte(`<!doctype html><meta charset="koi8-r">`+long), 1<<20)
	if got := p.Header(nil, s.Charset()); len(got) != 1 || got[0].Value != "text/html; charset=koi8-r" {
		t.Errorf("the header of a document without a type is %v; want the charset that its <meta> declares", got)
	}
	worker := &lab.Message{Header: []lab.HeaderField{{Name: "Sec-Fetch-Dest", Value: "worker"}}}
	if testScript.Plan("GET", "https://a.test/w.js", worker, 200, document("X-Content-Type-Options", "nosniff").Header[1:]) != nil {
		t.Error("a worker without a type gets the script under nosniff, where no browser runs it")
	}
}

// TestStackedCodings: codings on top of each other are undone from the last one to the first, and
// applied again; too many, and unknown ones, are left alone.
func TestStackedCodings(t *testing.T) {
	const body = "<!doctype html><html><head><title>x</title>"
	for _, stack := range [][]string{{"gzip", "br"}, {"br", "gzip"}, {"deflate", "zstd", "gzip", "br"}, {"gzip", "gzip"}} {
		packed := []byte(body)
		for _, one := range stack {
			packed = encode(t, one, packed)
		}
		header := htmlHeader("Content-Encoding", strings.Join(stack, " , "))
		p := testScript.Plan("GET", "https://a.test/", document(), 200, header)
		if p == nil {
			t.Fatalf("%q: no plan", stack)
		}
		for _, size := range []int{1, 10, 1 << 20} {
			out, _ := change(t, p, packed, size)
			if got := decode(t, ContentCoding(header), out); strings.Count(got, testScript.text) != 1 || !strings.HasSuffix(got, "<title>x</title>") {
				t.Errorf("%q in pieces of %d: %q; want the document with one script", stack, size, got)
			}
		}
	}
	for _, coding := range []string{"gzip, gzip, gzip, gzip, gzip"} {
		if testScript.Plan("GET", "https://a.test/", document(), 200, htmlHeader("Content-Encoding", coding)) != nil || Recodes(coding) {
			t.Errorf("%s: a plan; want none", coding)
		}
		if _, err := NewDecoder(coding, strings.NewReader(body)); err == nil {
			t.Errorf("NewDecoder(%s) = nil error; want one", coding)
		}
	}
}
