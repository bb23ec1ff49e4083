package inject

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

var testScript = NewScript(Options{Seed: 7, Date: time.UnixMilli(1_700_000_000_000)})

func document(fields ...string) *lab.Message {
	m := &lab.Message{Header: []lab.HeaderField{{Name: "Sec-Fetch-Dest", Value: "document"}}}
	for i := 0; i+1 < len(fields); i += 2 {
		m.Header = append(m.Header, lab.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return m
}

func htmlHeader(fields ...string) []lab.HeaderField {
	return append([]lab.HeaderField{{Name: "Content-Type", Value: "text/html"}}, document(fields...).Header[1:]...)
}

// change runs a whole body through a plan in pieces of n bytes.
func change(t testing.TB, p *Plan, body []byte, n int) ([]byte, *Stream) {
	s, err := p.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for len(body) > 0 {
		n := min(n, len(body))
		b, err := s.Feed(body[:n])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
		body = body[n:]
	}
	b, err := s.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return append(out, b...), s
}

func TestPlace(t *testing.T) {
	tests := []struct{ name, in, want string }{ // § is where the script goes
		{"usual", "<!doctype html><html><head><title>x", "<!doctype html><html><head>§<title>x"},
		{
			"attributes",
			`<!DOCTYPE html PUBLIC "-//W3C//DTD"><HTML lang="a>b"><Head class='>'><meta>`,
			`<!DOCTYPE html PUBLIC "-//W3C//DTD"><HTML lang="a>b"><Head class='>'>§<meta>`,
		},
		{"no head", "<!doctype html>\n<html>\n<body>x", "<!doctype html>\n<html>\n§<body>x"},
		{"header is not head", "<html><header>x", "<html>§<header>x"},
		{"no html", "<!doctype html><p>x", "<!doctype html>§<p>x"},
		{"no doctype", "<p>x", "§<p>x"},
		{"text", "hello", "§hello"},
		{"comment before doctype", "<!-- a > b --><!doctype html><head>x", "<!-- a > b --><!doctype html><head>§x"},
		{"short comments", "<!--><!---><!doctype html><head>x", "<!--><!---><!doctype html><head>§x"},
		{
			"conditional comment",
			"<!doctype html><!--[if IE]><html class=ie><![endif]--><html><head>x",
			"<!doctype html><!--[if IE]><html class=ie><![endif]--><html><head>§x",
		},
		{"open comment", "<!-- never ends", "<!-- never ends"},
		{"open comment of a page", "<!doctype html><html><!-- never ends", "<!doctype html><html><!-- never ends"},
		{"comment behind the head", "<html><head><!-- a > b --><script>", "<html><head>§<!-- a > b --><script>"},
		{"open comment behind the head", "<html><head><!-- a > b", "<html><head><!-- a > b"},
		{"open doctype", "<!doc", "<!doc"},
		{"open XML declaration", "<?xml", "<?xml"},
		{"open tag", "<!doctype html><html lang=", "<!doctype html>§<html lang="},
		{"BOM", "\xef\xbb\xbf<!doctype html><head>x", "\xef\xbb\xbf<!doctype html><head>§x"},
		{"blank", "  \n", "  \n§"},
		{"empty", "", ""},
		{"apostrophe that opens nothing", "<html data'x><head>y", "<html data'x><head>§y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader())
			want := strings.Replace(tt.want, "§", "<script>"+testScript.Text()+"</script>", 1)
			for _, n := range []int{1, 3, 1000} {
				if got, _ := change(t, p, []byte(tt.in), n); string(got) != want {
					t.Errorf("pieces of %d: got %s", n, strings.Replace(string(got), "<script>"+testScript.Text()+"</script>", "§", 1))
				}
			}
		})
	}
}

func TestScriptIsSafeInHTML(t *testing.T) {
	for _, s := range []*Script{testScript, NewScript(Options{Messages: true})} {
		for _, bad := range []string{"</script", "<script", "<!--", "]]>", "\n", "\r"} {
			if strings.Contains(strings.ToLower(s.Text()), bad) {
				t.Errorf("the script contains %q", bad)
			}
		}
		for i, c := range []byte(s.Text()) {
			if c < ' ' || c > '~' {
				t.Fatalf("byte %d of the script is not printable ASCII: %#x", i, c)
			}
		}
	}
}

func TestKinds(t *testing.T) {
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	const chromium = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
	tests := []struct {
		name    string
		method  string
		request []string
		status  int
		mime    string
		want    kind
	}{
		{"document", "GET", []string{"Sec-Fetch-Dest", "document"}, 200, "text/html; charset=utf-8", kindHTML},
		{"frame", "GET", []string{"sec-fetch-dest", "iframe"}, 200, "text/html", kindHTML},
		{"error page", "GET", []string{"Sec-Fetch-Dest", "document"}, 404, "text/html", kindHTML},
		{"fetched fragment", "GET", []string{"Sec-Fetch-Dest", "empty", "Accept", "text/html"}, 200, "text/html", kindNone},
		{"plain HTTP navigation", "GET", []string{"Accept", "text/html,*/*"}, 200, "text/html", kindHTML},
		{"plain HTTP fetch", "GET", []string{"Accept", "*/*"}, 200, "text/html", kindSniff},
		{"jQuery", "GET", []string{"Accept", "text/html", "X-Requested-With", "XMLHttpRequest"}, 200, "text/html", kindNone},
		{"a browser's navigation over plain HTTP", "GET", []string{"Accept", "text/html", "User-Agent", firefox, "Upgrade-Insecure-Requests", "1"}, 200,
			"text/html", kindHTML},
		{"the next page, which a script fetches", "GET", []string{"Accept", "text/html, application/xhtml+xml", "User-Agent", firefox}, 200, "text/html", kindNone},
		{"a page that a script fetches", "GET", []string{"Accept", "*/*", "User-Agent", chromium}, 200, "text/html", kindNone},
		{"a page on an old television", "GET", []string{"Accept", "text/html", "User-Agent", "Mozilla/5.0 AppleWebKit/537.36 Chrome/38.0.2125.122 Safari/537.36"},
			200, "text/html", kindHTML},
		{"a worker of a browser's over plain HTTP", "GET", []string{"Service-Worker", "script", "User-Agent", chromium}, 200, "text/javascript", kindWorker},
		{"worker", "GET", []string{"Sec-Fetch-Dest", "worker"}, 200, "text/javascript", kindWorker},
		{"service worker over plain HTTP", "GET", []string{"Service-Worker", "script"}, 200, "application/javascript", kindWorker},
		{"script", "GET", []string{"Sec-Fetch-Dest", "script"}, 200, "text/javascript", kindNone},
		{"image", "GET", []string{"Sec-Fetch-Dest", "image"}, 200, "text/html", kindNone},
		{"HEAD", "HEAD", []string{"Sec-Fetch-Dest", "document"}, 200, "text/html", kindNone},
		{"not modified", "GET", []string{"Sec-Fetch-Dest", "document"}, 304, "text/html", kindNone},
		{"partial", "GET", []string{"Sec-Fetch-Dest", "document", "Range", "bytes=0-"}, 206, "text/html", kindNone},
		{"a part that nobody asked for", "GET", []string{"Sec-Fetch-Dest", "document"}, 206, "text/html", kindHTML},
		{"several choices", "GET", []string{"Sec-Fetch-Dest", "document"}, 300, "text/html", kindHTML},
		{"a redirect to nowhere", "GET", []string{"Sec-Fetch-Dest", "document"}, 302, "text/html", kindHTML},
		{"XHTML", "GET", []string{"Sec-Fetch-Dest", "document"}, 200, "application/xhtml+xml", kindXHTML},
		{"SVG", "GET", []string{"Sec-Fetch-Dest", "object"}, 200, "image/svg+xml; charset=utf-8", kindSVG},
		{"a picture in SVG", "GET", []string{"Sec-Fetch-Dest", "image"}, 200, "image/svg+xml", kindNone},
		{"SVG over plain HTTP", "GET", []string{"Accept", "text/html,*/*"}, 200, "image/svg+xml", kindNone},
		{"JSON", "GET", []string{"Sec-Fetch-Dest", "document"}, 200, "application/json", kindNone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			request := &lab.Message{Header: document(tt.request...).Header[1:]}
			p := testScript.Plan(
				tt.method,
				"https://a.example/",
				request,
				tt.status,
				[]lab.HeaderField{{Name: "content-type", Value: tt.mime}},
			)
			got := kindNone
			if p != nil {
				got = p.kind
			}
			if got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestShown: what a browser shows nothing of, or runs no script of, gets none.
func TestShown(t *testing.T) {
	for _, c := range []struct {
		status      int
		name, value string
		want        bool
	}{
		{302, "Location", "/a", false}, {300, "Location", "/a", true}, {205, "X-A", "", false},
		{200, "Content-Security-Policy", "default-src *; Sandbox allow-forms", false}, {200, "content-security-policy", "img-src *, sandbox", false},
		{200, "Content-Security-Policy", "sandbox allow-same-origin allow-scripts", true}, {200, "Content-Security-Policy-Report-Only", "sandbox", true},
	} {
		header := []lab.HeaderField{{Name: "Content-Type", Value: "text/html"}, {Name: c.name, Value: c.value}}
		if got := testScript.Plan("GET", "https://a.example/", document("Sec-Fetch-Dest", "document"), c.status, header) != nil; got != c.want {
			t.Errorf("%d with %s: %s has a plan: %v, want %v", c.status, c.name, c.value, got, c.want)
		}
	}
}

func TestPolicy(t *testing.T) {
	const box = "https://a.example/.well-known/eidetic/"
	tests := []struct{ name, in, want string }{ // § is the hash
		{"no scripts named", "img-src 'self'", "img-src 'self'"},
		{"inline allowed", "script-src 'self' 'unsafe-inline'", "script-src 'self' 'unsafe-inline'"},
		{"nonce disables inline", "script-src 'nonce-abc' 'unsafe-inline'", "script-src 'nonce-abc' 'unsafe-inline' §"},
		{
			"strict-dynamic",
			"script-src 'strict-dynamic' 'nonce-a'; base-uri 'none'",
			"script-src 'strict-dynamic' 'nonce-a' §; base-uri 'none'",
		},
		{"none", "script-src 'none'", "script-src §"},
		{"default", "default-src 'self'", "default-src 'self'; script-src 'self' §"},
		{"default none", "default-src 'none'", "default-src 'none'; script-src §; connect-src " + box},
		{"elem governs", "script-src 'unsafe-inline'; script-src-elem 'self'", "script-src 'unsafe-inline'; script-src-elem 'self' §"},
		{"first directive counts", "script-src a; script-src b", "script-src a §; script-src b"},
		{"two policies", "script-src 'self', script-src 'unsafe-inline'", "script-src 'self' §,script-src 'unsafe-inline'"},
		{"connect", "connect-src api.example", "connect-src api.example " + box},
		{"trusted types", "require-trusted-types-for 'script'; trusted-types x", "require-trusted-types-for 'script'; trusted-types x"},
		{
			"a line break behind a name",
			"default-src 'none'; script-src\n\t'self'",
			"default-src 'none'; script-src 'self' §; connect-src " + box,
		},
		{"a tab behind a name", "script-src\t'self'", "script-src 'self' §"},
		{"empty", "", ""},
		{"semicolons", ";;", ";;"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := testScript.Plan("GET", "https://a.example/x", document(), 200, htmlHeader())
			got := p.Header([]lab.HeaderField{{Name: "content-security-policy", Value: tt.in}}, "")[0].Value
			if want := strings.ReplaceAll(tt.want, "§", testScript.hash); strings.TrimSpace(got) != want {
				t.Errorf("got  %s\nwant %s", strings.ReplaceAll(got, testScript.hash, "§"), tt.want)
			}
		})
	}
}

func TestCharsets(t *testing.T) {
	wide := func(s string, little bool) string { return string(widen([]byte(s), little)) }
	tag := "<script>" + testScript.Text() + "</script>"
	tests := []struct{ name, header, in, want, charset string }{
		{"meta", "", `<head><meta charset="ISO-8859-2">`, "<head>" + tag + `<meta charset="ISO-8859-2">`, "iso-8859-2"},
		{
			"http-equiv",
			"",
			`<head><meta http-equiv=content-type content="text/html; charset=koi8-r">`,
			"<head>" + tag + `<meta http-equiv=content-type content="text/html; charset=koi8-r">`,
			"koi8-r",
		},
		{"meta says UTF-16", "", `<meta charset=utf-16>`, tag + `<meta charset=utf-16>`, "utf-8"},
		{"meta in a comment", "", `<!--<meta charset=koi8-r>--><p>`, `<!--<meta charset=koi8-r>-->` + tag + `<p>`, ""},
		{"header wins", "; charset=UTF-8", `<head><meta charset="koi8-r">`, "<head>" + tag + `<meta charset="koi8-r">`, ""},
		{"UTF-16LE mark", "", "\xff\xfe" + wide("<html><head>x", true), "\xff\xfe" + wide("<html><head>"+tag+"x", true), ""},
		{"UTF-16BE mark beats header", "; charset=utf-8", "\xfe\xff" + wide("<p>", false), "\xfe\xff" + wide(tag+"<p>", false), ""},
		{"UTF-16 by header", "; charset=utf-16be", wide("<head>x", false), wide("<head>"+tag+"x", false), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := []lab.HeaderField{{Name: "Content-Type", Value: "text/html" + tt.header}, {Name: "Content-Length", Value: "5"}}
			p := testScript.Plan("GET", "https://a.example/", document(), 200, header)
			got, s := change(t, p, []byte(tt.in), 1)
			if string(got) != tt.want {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
			if s.Charset() != tt.charset {
				t.Errorf("charset %q, want %q", s.Charset(), tt.charset)
			}
			out := p.Header(header, s.Charset())
			if len(out) != 1 || tt.charset != "" && out[0].Value != "text/html; charset="+tt.charset {
				t.Errorf("Header() = %v, want it without lengths and digests", out)
			}
		})
	}
}

func encode(t testing.TB, coding string, plain []byte) []byte {
	var b bytes.Buffer
	w, err := newEncoder(coding, &b)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(plain)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(t testing.TB, coding string, b []byte) string {
	r, err := NewDecoder(coding, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// TestCodings: however a body is cut into pieces, the result decodes to the
// same document with the script once.
func TestCodings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		coding := rapid.SampledFrom([]string{"", "gzip", "br", "zstd", "deflate"}).Draw(t, "coding")
		text := "<!doctype html><html><head><title>" + strings.Repeat(
			rapid.StringN(0, 200, 2000).Draw(t, "text"),
			rapid.IntRange(1, 40).Draw(t, "times"),
		)
		n := rapid.IntRange(1, 700).Draw(t, "piece")
		tb := new(testing.T)
		p := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader("Content-Encoding", coding))
		got, _ := change(tb, p, encode(tb, coding, []byte(text)), n)
		plain := decode(tb, coding, got)
		if strings.Count(plain, testScript.Text()) != 1 || strings.Replace(plain, "<script>"+testScript.Text()+"</script>", "", 1) != text {
			t.Fatalf("%s in pieces of %d changed the document", coding, n)
		}
	})
}

// TestStreaming: what a server flushed comes out without waiting for more.
func TestStreaming(t *testing.T) {
	for _, coding := range []string{"", "gzip", "br", "zstd", "deflate"} {
		t.Run("coding "+coding, func(t *testing.T) {
			var wire bytes.Buffer
			enc, err := newEncoder(coding, &wire)
			if err != nil {
				t.Fatal(err)
			}
			p := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader("Content-Encoding", coding))
			s, err := p.NewStream()
			if err != nil {
				t.Fatal(err)
			}
			var out []byte
			for i, part := range []string{"<head>" + strings.Repeat("a", 2000), strings.Repeat("b", 100), "c"} {
				_, _ = enc.Write([]byte(part))
				_ = enc.Flush()
				b, err := s.Feed(wire.Next(wire.Len()))
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, b...)
				if len(b) == 0 {
					t.Errorf("piece %d is held back, want it returned", i)
				}
			}
			_ = enc.Close()
			b, err := s.Feed(wire.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, b...)
			b, err = s.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if got := decode(t, coding, append(out, b...)); !strings.HasSuffix(got, "abbbb"[:1]+strings.Repeat("b", 100)+"c") {
				t.Errorf("decodes to …%s", got[max(0, len(got)-20):])
			}
		})
	}
}

func TestWorker(t *testing.T) {
	request := &lab.Message{Header: []lab.HeaderField{{Name: "Sec-Fetch-Dest", Value: "worker"}}}
	header := []lab.HeaderField{{Name: "Content-Type", Value: "text/javascript"}}
	p := testScript.Plan("GET", "https://a.example/w.js", request, 200, header)
	for in, want := range map[string]string{
		"self.x = 1":                     testScript.Text() + "self.x = 1",
		"/* c */ 'use strict'; x":        `"use strict";` + testScript.Text() + "/* c */ 'use strict'; x",
		"// c\n\"use strict\"":           `"use strict";` + testScript.Text() + "// c\n\"use strict\"",
		"\xef\xbb\xbfx":                  "\xef\xbb\xbf" + testScript.Text() + "x",
		strings.Repeat("// long\n", 999): testScript.Text() + strings.Repeat("// long\n", 999),
	} {
		if got, _ := change(t, p, []byte(in), 100); string(got) != want {
			t.Errorf("%.20q: got …%.40q", in, got)
		}
	}
}

func TestDamagedCoding(t *testing.T) {
	for _, coding := range []string{"gzip", "br", "zstd", "deflate"} {
		p := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader("Content-Encoding", coding))
		for _, body := range []string{"no " + coding + " at all, in no way", ""} {
			s, err := p.NewStream()
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Feed([]byte(body))
			_, err2 := s.Finish()
			if err == nil && err2 == nil && body != "" {
				t.Errorf("%s: no error for %.10q", coding, body)
			}
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, coding := range []string{"", "gzip", "br", "zstd", "deflate"} {
		f.Add(encode(f, coding, []byte("<!doctype html><html><head><title>x</title>")), coding, 7)
	}
	f.Add([]byte("<!--<meta charset"), "", 1)
	f.Add([]byte("\xff\xfe<\x00h\x00"), "", 2)
	f.Fuzz(func(t *testing.T, body []byte, coding string, n int) {
		defer testlab.Input(t)()
		p := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader("Content-Encoding", coding))
		if p == nil {
			return
		}
		s, err := p.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		n = max(n, 1+len(body)/64)
		var out []byte
		for rest := body; len(rest) > 0; {
			k := min(n, len(rest))
			b, err := s.Feed(rest[:k])
			if err != nil {
				_, _ = s.Finish()
				return
			}
			out = append(out, b...)
			rest = rest[k:]
		}
		b, err := s.Finish()
		if err != nil || p.encoding != "" {
			return
		}
		out = append(out, b...)
		if s.markup != nil &&
			(bytes.Contains(bytes.ToLower(body), []byte("<iframe")) || bytes.Contains(bytes.ToLower(body), []byte("<meta"))) {
			return // FuzzMarkup
		}
		if !bytes.Equal(bytes.Replace(bytes.Replace(out, s.tag(), nil, 1), widen(s.tag(), true), nil, 1), body) &&
			!bytes.Equal(bytes.Replace(out, widen(s.tag(), false), nil, 1), body) {
			t.Errorf("taking the script out of %q does not give the body back", out)
		}
	})
}

func FuzzPolicy(f *testing.F) {
	f.Add("default-src 'none'; script-src 'self', connect-src *")
	f.Fuzz(func(t *testing.T, policy string) {
		defer testlab.Input(t)()
		p := testScript.Plan("GET", "https://a.example/", document(), 200, htmlHeader())
		allow(policy, p)
	})
}

// TestMessages: what tells messages stands once in the script, in every realm, and not at all without the option.
func TestMessages(t *testing.T) {
	with, without := NewScript(Options{Seed: 1, Messages: true}).Text(), NewScript(Options{Seed: 1}).Text()
	head, _, found := strings.Cut(scriptSource, messagesPlace)
	if inner := compact(messagesSource); !found || strings.Count(with, inner) != 1 || strings.Replace(with, inner, "", 1) != without || !strings.HasPrefix(with, compact(head)+inner) {
		t.Errorf("with messages %d bytes, without %d; want %d more, in place of %q", len(with), len(without), len(inner), messagesPlace)
	}
}

// TestMore: somebody's own script stands after ours in documents, and in no worker.
func TestMore(t *testing.T) {
	s := NewScript(Options{Seed: 1, More: "window.mine = 1;\n"})
	if !strings.HasSuffix(s.page, ");\nwindow.mine = 1;\n") || strings.Contains(s.text, "mine") || s.hash == NewScript(Options{Seed: 1}).hash {
		t.Errorf("page …%q, worker …%q", s.page[len(s.page)-30:], s.text[len(s.text)-30:])
	}
	for says, text := range map[string]string{
		"empty": " \n", "line 2": "a\n\"\u00e9\"", "</script": "x('</SCRIPT>')", "<!--": "<!-- x", "]]>": "a[b[0]]>1", "at most": strings.Repeat("a", maxMore+1),
	} {
		if err := CheckScript(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("CheckScript(%.20q) = %v; want %q", text, err, says)
		}
	}
	if err := CheckScript("document.title = \"\\u00e9\";\r\n\tx = a < b;"); err != nil {
		t.Error(err)
	}
}
