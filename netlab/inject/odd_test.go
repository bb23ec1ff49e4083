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
	"eidetic/internal/rigs/testlab"
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
		"more after br":         {"br", join(inBr, []byte("more")), "whole"},
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

// TestCutOffTextIsWhole: what a server has flushed before it is cut off is decoded to the last byte or two.
func TestCutOffTextIsWhole(t *testing.T) {
	text := "<p>begin" + strings.Repeat("said over and over. ", 100) + "</p>"
	in := packed(t, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, text)
	for cut := 10; cut < len(in)-20; cut++ {
		o, err := NewDecoder("gzip", bytes.NewReader(in[:len(in)-cut]))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(o)
		// Of a match that is known, no byte is kept back: the last symbol may be.
		next, _ := io.ReadAll(flate.NewReader(bytes.NewReader(in[10 : len(in)-cut])))
		if err != nil || len(got) < len(next) || !strings.HasPrefix(text, string(got)) {
			t.Errorf("without %d bytes: %d bytes, %v; want %d", cut, len(got), err, len(next))
		}
	}
}

// TestTypesAsBrowsersReadThem: of several types the last one counts that is one.
func TestTypesAsBrowsersReadThem(t *testing.T) {
	for fields, want := range map[string]string{
		"text/plain|text/html": "text/html ", "text/html|text/plain": "text/plain ", "text/html, text/html": "text/html ", "text/html;charset=a|text/html": "text/html a",
		"text/html;charset=a|text/plain": "text/plain ", "html": " ", "text/html|*/*|x": "text/html ", `a/b;x=","; charset="c"`: "a/b c", "text/html charset=x": "text/html ", "": " ",
	} {
		var header []lab.HeaderField
		for value := range strings.SplitSeq(fields, "|") {
			header = append(header, lab.HeaderField{Name: "content-type", Value: value})
		}
		if mime, charset := contentType(header); mime+" "+charset != want {
			t.Errorf("%q is %q %q; want %q", fields, mime, charset, want)
		}
	}
}

// TestDeclaredCharsets: what browsers find in the first bytes of a document (HTML, prescan a byte stream).
func TestDeclaredCharsets(t *testing.T) {
	for text, want := range map[string]string{
		"<meta charset=koi8-r>": "koi8-r", "<META CHARSET = 'Big5' >": "big5", "<meta charset=koi8-r/>": "", "<meta charset=nonsense><meta charset=sjis>": "sjis",
		`<meta name=description content="charset=koi8-r">`: "", `<meta http-equiv="content-type" content="text/html; charset = 'gbk' x">`: "gbk", `<meta http-equiv=content-type content="a charset b charset=l1;">`: "l1",
		"<!-- <meta charset=koi8-r> --><meta charset=utf-16>": "utf-8", `<p title="<meta charset=koi8-r>">`: "", "<script>'<meta charset=koi8-r>'</script>": "koi8-r", "</p <meta charset=koi8-r>": "", "<meta charset=x-user-defined>": "windows-1252",
		"<meta content='text/html; charset=koi8-r'>": "", "<meta": "", "<?php <meta charset=koi8-r>": "",
	} {
		if got := metaCharset([]byte(text)); got != want {
			t.Errorf("%s declares %q, want %q", text, got, want)
		}
	}
}

// TestDoctypeStaysFirst: the script goes behind a doctype, however much stands before that.
func TestDoctypeStaysFirst(t *testing.T) {
	request := &lab.Message{Header: []lab.HeaderField{{Name: "Sec-Fetch-Dest", Value: "document"}}}
	for _, before := range []string{strings.Repeat(" \n", 60_000), "<!--" + strings.Repeat("c", 120_000) + "-->"} {
		plan := NewScript(Options{}).Plan("GET", "https://odd.test/", request, 200, []lab.HeaderField{{Name: "Content-Type", Value: "text/html"}})
		s, err := plan.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for text := before + "<!doctype html><p>x"; text != ""; text = text[min(len(text), 1000):] {
			b, err := s.Feed([]byte(text[:min(len(text), 1000)]))
			if err != nil {
				t.Fatal(err)
			}
			out.Write(b)
		}
		rest, err := s.Finish()
		if out.Write(rest); err != nil || !strings.Contains(out.String(), "<!doctype html><script>") {
			t.Errorf("after %d bytes before it: %v, the doctype is not before the script", len(before), err)
		}
	}
}

// TestMixedCodingsStay: browsers differ on what they undo, so such a document is not touched.
func TestMixedCodingsStay(t *testing.T) {
	request := &lab.Message{Header: []lab.HeaderField{{Name: "Sec-Fetch-Dest", Value: "document"}}}
	for coding, want := range map[string]bool{"gzip, identity": false, " gzip ,": false, "gzip, foo": false, "gzip, br": true, "identity": true, "foo": true, "": true} {
		header := []lab.HeaderField{{Name: "Content-Type", Value: "text/html"}, {Name: "Content-Encoding", Value: coding}}
		if got := NewScript(Options{}).Plan("GET", "https://odd.test/", request, 200, header) != nil; got != want {
			t.Errorf("Content-Encoding %q: changed %v, want %v", coding, got, want)
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

// TestPlaceInXML: in a document of XML the script goes behind the root's start tag, whatever stands before it, and in the
// head of XHTML as in HTML; XML of another vocabulary stays as it is.
func TestPlaceInXML(t *testing.T) {
	const svg, xhtml = "image/svg+xml", "application/xhtml+xml"
	for _, c := range []struct{ mime, in, want string }{ // § is where the script goes
		{svg, `<svg xmlns="a>b" width='1'><g/></svg>`, `<svg xmlns="a>b" width='1'>§<g/></svg>`},
		{svg, "<?xml version='1.0'?>\n<!-- > <svg> -->\n<svg>x", "<?xml version='1.0'?>\n<!-- > <svg> -->\n<svg>§x"},
		{svg, `<!DOCTYPE svg [<!ENTITY a "]>"><!-- '] --> <!ATTLIST p q CDATA 'r'>]><svg:svg>x`, `<!DOCTYPE svg [<!ENTITY a "]>"><!-- '] --> <!ATTLIST p q CDATA 'r'>]><svg:svg>§x`},
		{svg, `<svg/>`, `<svg/>`}, {svg, `<svgx>`, `<svgx>`}, {svg, `<html><svg>`, `<html><svg>`}, {svg, `text`, `text`}, {svg, `<!DOCTYPE svg [`, `<!DOCTYPE svg [`},
		{svg, `<svg width="1`, `<svg width="1`}, {svg, "\xef\xbb\xbf<svg>x", "\xef\xbb\xbf<svg>§x"},
		{xhtml, `<html xmlns="x"><head>y`, `<html xmlns="x"><head>§y`}, {xhtml, `<h:html xmlns:h="x"><h:head/>`, `<h:html xmlns:h="x">§<h:head/>`},
		{xhtml, `<!DOCTYPE html [<!ENTITY me "e">]><html><body>`, `<!DOCTYPE html [<!ENTITY me "e">]><html>§<body>`}, {xhtml, `<math>`, `<math>`},
	} {
		header := []lab.HeaderField{{Name: "Content-Type", Value: c.mime}}
		p := testScript.Plan("GET", "https://a.example/", document(), 200, header)
		element := `<script xmlns="http://www.w3.org/1999/xhtml"><![CDATA[` + testScript.Text() + `]]></script>`
		for _, n := range []int{1, 5, 1000} {
			got, s := change(t, p, []byte(c.in), n)
			if text := strings.Replace(string(got), element, "§", 1); text != c.want || s.Unchanged() == strings.Contains(c.want, "§") {
				t.Errorf("%s in pieces of %d: got %s, want %s", c.mime, n, text, c.want)
			}
		}
	}
}

func FuzzXML(f *testing.F) {
	f.Add([]byte("<?xml?><!-- > --><!DOCTYPE svg [<!ENTITY a ']>'><!-- ] -->]><s:svg a='>'>x"), true, 3)
	f.Add([]byte("\xff\xfe<\x00s\x00v\x00g\x00>\x00"), true, 2)
	f.Add([]byte("<!DOCTYPE html [<!"), false, 1)
	f.Fuzz(func(t *testing.T, body []byte, isSVG bool, n int) {
		defer testlab.Input(t)()
		mime := "application/xhtml+xml"
		if isSVG {
			mime = "image/svg+xml"
		}
		p := testScript.Plan("GET", "https://a.example/", document(), 200, []lab.HeaderField{{Name: "Content-Type", Value: mime}})
		out, s := change(t, p, body, max(n, 1+len(body)/64))
		for _, tag := range [][]byte{s.tag(), widen(s.tag(), true), widen(s.tag(), false)} {
			if bytes.Equal(bytes.Replace(out, tag, nil, 1), body) {
				return
			}
		}
		t.Errorf("taking the script out of %q does not give the body back", out)
	})
}
