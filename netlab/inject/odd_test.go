package inject

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"eidetic/internal/lab"
)

func packed(t *testing.T, w func(io.Writer) io.WriteCloser, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := w(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBodiesAsBrowsersReadThem: what Chromium and Firefox show of a body (tried in both) is what is decoded of it, and
// what they refuse is refused.
func TestBodiesAsBrowsersReadThem(t *testing.T) {
	var words strings.Builder
	for i := range 100_000 {
		words.WriteString(strconv.Itoa(i*i%99_991) + " ")
	}
	text := words.String()
	inGzip := packed(t, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, text)
	inZlib := packed(t, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, text)
	inRaw := packed(t, func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 6); return z }, text)
	inBr := packed(t, func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }, text)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		coding string
		body   []byte
		want   string // "part": a beginning; "error": none
	}{
		"more after gzip":       {"gzip", join(inGzip, []byte("\n\x00x")), "whole"},
		"no trailer":            {"gzip", inGzip[:len(inGzip)-8], "whole"},
		"half a trailer":        {"x-gzip", inGzip[:len(inGzip)-5], "whole"},
		"another checksum":      {"gzip", join(inGzip[:len(inGzip)-8], make([]byte, 8)), "whole"},
		"two members":           {"gzip", join(inGzip, inGzip), "whole"},
		"half of gzip":          {"gzip", inGzip[:len(inGzip)/2], "part"},
		"half of br":            {"br", inBr[:len(inBr)/2], "part"},
		"zlib":                  {"deflate", inZlib, "whole"},
		"zlib, cut":             {"deflate", inZlib[:len(inZlib)-4], "whole"},
		"zlib, and more":        {"deflate", join(inZlib, []byte("more")), "whole"},
		"zlib, another sum":     {"deflate", join(inZlib[:len(inZlib)-4], make([]byte, 4)), "error"},
		"raw":                   {"deflate", inRaw, "whole"},
		"raw, cut":              {"deflate", inRaw[:len(inRaw)/2], "part"},
		"few in gzip's name":    {"gzip", []byte("plain"), "error"},
		"plain in gzip's name":  {"gzip", []byte(text), "error"},
		"zlib in gzip's name":   {"gzip", inZlib, "error"},
		"gzip in zlib's name":   {"deflate", inGzip, "error"},
		"a charset as a coding": {"utf-8", []byte(text), "whole"},
		"none":                  {"None", []byte(text), "whole"},
		"one known of two":      {"gzip, utf-8", []byte(text), "whole"},
		"nothing at all":        {"gzip", nil, ""},
	} {
		coding := ContentCoding([]lab.HeaderField{{Name: "Content-Encoding", Value: c.coding}})
		var got []byte
		r, err := NewDecoder(coding, bytes.NewReader(c.body))
		if err == nil {
			got, err = io.ReadAll(r)
		}
		switch {
		case c.want == "error":
			if err == nil {
				t.Errorf("%s: %d bytes without an error, want one", name, len(got))
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == "whole" && string(got) != text, c.want == "part" && (len(got) == 0 || !strings.HasPrefix(text, string(got))):
			t.Errorf("%s: %d bytes, %.20q; want the text of %d (%s)", name, len(got), got, len(text), c.want)
		}
	}
}

// TestScriptInOddDocuments: each such document gets the script.
func TestScriptInOddDocuments(t *testing.T) {
	document := "<!doctype html><p>" + strings.Repeat("text ", 500)
	inGzip := packed(t, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, document)
	for coding, body := range map[string][]byte{"gzip": append(inGzip[:len(inGzip)-8:len(inGzip)-8], "rest"...), "utf-8": []byte(document)} {
		header := []lab.HeaderField{{Name: "Content-Type", Value: "text/html"}, {Name: "Content-Encoding", Value: coding}}
		request := &lab.Message{Header: []lab.HeaderField{{Name: "Sec-Fetch-Dest", Value: "document"}}}
		plan := NewScript(Options{Seed: 5}).Plan("GET", "https://odd.test/", request, 200, header)
		if plan == nil {
			t.Fatalf("%s: no plan", coding)
		}
		s, err := plan.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for piece := range bytes.SplitAfterSeq(body, []byte("t")) {
			b, err := s.Feed(piece)
			if err != nil {
				t.Fatalf("%s: %v", coding, err)
			}
			out.Write(b)
		}
		rest, err := s.Finish()
		if err != nil {
			t.Fatalf("%s: %v", coding, err)
		}
		out.Write(rest)
		r, err := NewDecoder(ContentCoding(header), &out)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !strings.Contains(string(got), "<script>") || !strings.HasSuffix(string(got), document[15:]) {
			t.Errorf("%s: the document became %.60q… (%d bytes), %v", coding, got, len(got), err)
		}
	}
}
