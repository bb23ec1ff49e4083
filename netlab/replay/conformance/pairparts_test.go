package conformance

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"eidetic/internal/lab"
)

// choice is one value of a part of a combination.
type choice struct {
	name string
	only int // the version of HTTP that can say it: 1, 2, or 0 for both
	set  func(*odd)
}

// lines1 is a choice of lines in a head of HTTP/1.
func lines1(name string, lines ...string) choice {
	return choice{name, 1, func(a *odd) { a.lines = append(a.lines, lines...) }}
}

// adds is a choice of fields in a head.
func adds(name string, pairs ...string) choice {
	return choice{name, 0, func(a *odd) { a.fields = append(a.fields, field(pairs...)...) }}
}

// start1 is a choice of a start line of HTTP/1.
func start1(line string) choice {
	return choice{"start " + line, 1, func(a *odd) {
		a.start = line
		if a.framing.chunks == nil { // what is no head of HTTP lasts until the end of the connection
			a.framing.close = true
		}
	}}
}

// typed replaces the Content-Type; without a value there is none.
func typed(name string, values ...string) choice {
	return choice{name, 0, func(a *odd) {
		a.fields = dropField(a.fields, "Content-Type")
		for _, v := range values {
			a.fields = append(a.fields, field("Content-Type", v)...)
		}
	}}
}

func dropField(fields []lab.HeaderField, name string) (kept []lab.HeaderField) {
	for _, f := range fields {
		if !strings.EqualFold(f.Name, name) {
			kept = append(kept, f)
		}
	}
	return kept
}

func status(code int) choice {
	return choice{fmt.Sprint("status ", code), 0, func(a *odd) { a.status = code }}
}

// oddHeads are what stands before a body. A zero byte is not among them: browsers refuse it, and the box says that it
// does.
func oddHeads() []choice {
	long := strings.Repeat("long ", 4<<10)
	return []choice{
		start1("HTTP/1.1 200"), start1("HTTP/1.1 200 "), start1("HTTP/1.0 200 OK"), start1("http/1.1 200 ok"), start1("HTTP/1.1  200  OK"),
		start1("HTTP/1.1\t200 OK"), start1("HTTP/1.2 200 OK"), start1("HTTP/1.1 200 Schön"), start1("HTTP/1.1 200 OK OK: yes"), start1("ICY 200 OK"),
		start1("HTTP 200 OK"), start1("HTTP/1 200 OK"), start1("HTTP/01.1 200 OK"), start1("HTTP/1.1 200OK"), start1("HTTP/3.0 200 OK"),
		start1("HTTP/1.1 0200 OK"),
		{"an empty line first", 1, func(a *odd) { a.before = "\r\n" }},
		{"two letters first", 1, func(a *odd) { a.before = "ab" }},
		{"LF alone", 1, func(a *odd) { a.eol = "\n" }},
		lines1("folded", "X-Fold: a", "\tb", "   c"), lines1("folded first", " X-Fold: a"), lines1("blank before colon", "X-Blank : a"),
		lines1("no colon", "nonsense"), lines1("no name", ": nothing"), lines1("empty value", "X-Empty:"), lines1("tabs", "X-Tab:\ta\tb\t"),
		lines1("odd name", "X (y) [z]: a"), lines1("name in Latin-1", "X-\xe9: a"), lines1("value in Latin-1", "X-Latin: \xe9\xff"),
		lines1("value in UTF-8", "X-Utf: żółć ✓"), lines1("control in a value", "X-Control: a\x01b\x7f"), lines1("CR in a value", "X-Cr: a\rb"),
		lines1("only blanks", "X-Only:    "), lines1("colons", "X-Colons: a: b:: c"),
		lines1("long value", "X-Long: "+long), lines1("longer value", "X-Long: "+strings.Repeat(long, 8)),
		lines1("many fields", strings.Split(strings.TrimSpace(strings.Repeat("X-Many: 1\n", 300)), "\n")...),
		lines1("lower case", "x-lower: a", "X-UPPER: b", "x-Lower: c"), lines1("close in capitals", "CONNECTION: CLOSE"),
		lines1("keep-alive with numbers", "Connection: keep-alive", "Keep-Alive: timeout=5, max=100"), lines1("proxy-connection", "Proxy-Connection: keep-alive"),
		lines1("upgrade offered", "Upgrade: h2,h2c", "Connection: Upgrade"), lines1("folded type", "X-A: 1", "Content-Language:", " de"),
		adds("hop by hop", "Trailer", "X-Sum", "X-Sum", "1"), adds("te", "TE", "trailers"),
		adds("server timing", "Server-Timing", `db;dur=53.2;desc="a, b", cache;desc=hit`, "Timing-Allow-Origin", "*"),
		adds("nosniff", "X-Content-Type-Options", "nosniff"), adds("nosniff twice", "X-Content-Type-Options", "nosniff, nosniff"),
		adds("disposition inline", "Content-Disposition", `inline; filename="a b.html"`), adds("no frames", "X-Frame-Options", "SAMEORIGIN"),
		adds("opener policy", "Cross-Origin-Opener-Policy", "same-origin", "Cross-Origin-Embedder-Policy", "require-corp"),
		adds("resource policy", "Cross-Origin-Resource-Policy", "same-origin"), adds("referrer", "Referrer-Policy", "no-referrer, unsafe-url"),
		adds("permissions", "Permissions-Policy", "geolocation=(), camera=*"), adds("age", "Age", "100", "Cache-Control", "max-age=50"),
		adds("vary all", "Vary", "*"), adds("vary list", "Vary", "Accept-Encoding, Cookie, X-Nothing", "Vary", "Origin"),
		adds("agent cluster", "Origin-Agent-Cluster", "?1"), adds("language", "Content-Language", "de, en"), adds("content range", "Content-Range", "bytes 0-9/10"),
		adds("location without redirect", "Location", "/elsewhere"), adds("refresh of long", "Refresh", "3600"), adds("clear site data", "Clear-Site-Data", `"cache"`),
		adds("weak tag", "ETag", `W/"a"`), adds("tag without quotes", "ETag", "a b"), adds("expires zero", "Expires", "0"), adds("expires odd", "Expires", "Thu, 01-Jan-70 00:00:01 GMT"),
		adds("cache nonsense", "Cache-Control", "max-age=\"5\", no-store=, ,,public"), adds("two cache fields", "Cache-Control", "no-cache", "Cache-Control", "private"),
		adds("pragma", "Pragma", "no-cache"), adds("link preload", "Link", "</extra.css>; rel=preload; as=style", "Link", "<>; rel=nothing"),
		adds("link style", "Link", "</extra.css>; rel=stylesheet"), adds("digest", "Content-Digest", "sha-256=:AAAA:", "Content-MD5", "AAAA"),
		adds("accept ranges", "Accept-Ranges", "none"), adds("access", "Access-Control-Allow-Origin", "*", "Access-Control-Expose-Headers", "*"),
		adds("access twice", "Access-Control-Allow-Origin", "*", "Access-Control-Allow-Origin", "*"), adds("source map", "SourceMap", "/x.map"),
		adds("accept ch", "Accept-CH", "Sec-CH-UA-Arch, Device-Memory"), adds("critical ch", "Accept-CH", "Sec-CH-UA-Bitness", "Critical-CH", "Sec-CH-UA-Bitness"),
		adds("alt-svc clear", "Alt-Svc", "clear"), adds("document policy", "Document-Policy", "js-profiling"), adds("no vary search", "No-Vary-Search", `params=("a")`),
		adds("reporting", "Reporting-Endpoints", `default="/report"`, "NEL", `{"report_to":"default","max_age":1}`),
		adds("empty fields", "X-One", "", "X-Two", " "), adds("comma list", "X-List", "a,b", "X-List", "c"),
		status(203), status(206), status(226), status(299), status(400), status(404), status(410), status(418), status(429), status(500), status(503), status(599),
		status(300), status(306), status(999),
		{"100 first", 0, func(a *odd) { a.interim = []interim{{100, nil}} }},
		{"102 and 103 first", 0, func(a *odd) {
			a.interim = []interim{{102, nil}, {103, field("Link", "</extra.css>; rel=preload; as=style")}, {103, field("X-More", "1")}}
		}},
		{"many 103", 0, func(a *odd) {
			for range 20 {
				a.interim = append(a.interim, interim{103, field("X-Hint", "1")})
			}
		}},
		{"no head at all", 1, func(a *odd) { a.noHead = true }},
	}
}

// types are the Content-Types of a document.
func types() []choice {
	const html = "text/html"
	return []choice{
		typed("no type"), typed("empty type", ""), typed("type in capitals", "TEXT/HTML;CHARSET=UTF-8"), typed("quoted charset", `text/html; charset="utf-8"`),
		typed("single quoted charset", "text/html; charset='utf-8'"), typed("charset with blanks", "text/html ; charset = utf-8"), typed("empty charset", "text/html; charset="),
		typed("two charsets", "text/html; charset=utf-8; charset=iso-8859-1"), typed("odd parameter", "text/html; ;a=b;charset=utf-8;"), typed("comma", "text/html, text/html"),
		typed("two types", "text/plain", html), typed("two types, html first", html, "text/plain"), typed("charset of one type", "text/html; charset=utf-8", html),
		typed("unknown charset", "text/html; charset=nonsense"), typed("utf-7", "text/html; charset=utf-7"), typed("x-user-defined", "text/html; charset=x-user-defined"),
		typed("text/plain", "text/plain; charset=utf-8"), typed("xhtml", "application/xhtml+xml"), typed("xml", "text/xml"), typed("svg", "image/svg+xml"),
		typed("json", "application/json"), typed("*/*", "*/*"), typed("unknown", "application/unknown"), typed("no slash", "html"), typed("parameters alone", ";charset=utf-8"),
		typed("text/html with junk", "text/html charset=utf-8"), typed("utf-16 said", "text/html; charset=utf-16"), typed("replacement", "text/html; charset=iso-2022-kr"),
	}
}

// coded is a choice of a content coding.
func coded(name, field string, code func(string) string) choice {
	return choice{name, 0, func(a *odd) {
		if field != "" {
			a.fields = append(a.fields, lab.HeaderField{Name: "Content-Encoding", Value: field})
		}
		a.body = code(a.body)
	}}
}

func through(make func(io.Writer) io.WriteCloser) func(string) string {
	return func(text string) string {
		var b bytes.Buffer
		w := make(&b)
		_, _ = io.WriteString(w, text) // to memory
		_ = w.Close()
		return b.String()
	}
}

func pack(coding string) func(string) string {
	return through(func(w io.Writer) io.WriteCloser {
		switch coding {
		case "gzip":
			return gzip.NewWriter(w)
		case "br":
			return brotli.NewWriter(w)
		case "zlib":
			return zlib.NewWriter(w)
		case "deflate":
			f, _ := flate.NewWriter(w, 6) // the level is valid
			return f
		}
		z, _ := zstd.NewWriter(w) // without options nothing can be wrong
		return z
	})
}

// packings are the content codings.
func packings() []choice {
	gz, br, zs := pack("gzip"), pack("br"), pack("zstd")
	none := func(s string) string { return s }
	cut := func(code func(string) string, n int) func(string) string {
		return func(s string) string { s = code(s); return s[:len(s)-n] }
	}
	more := func(code func(string) string, tail string) func(string) string {
		return func(s string) string { return code(s) + tail }
	}
	halves := func(code func(string) string) func(string) string {
		return func(s string) string { return code(s[:len(s)/2]) + code(s[len(s)/2:]) }
	}
	named := through(func(w io.Writer) io.WriteCloser {
		z := gzip.NewWriter(w)
		z.Name, z.Comment, z.Extra = "index.html", "a comment", []byte("extra")
		return z
	})
	// What comes before the place where a server flushed can be decoded wholly.
	flushed := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, s[:len(s)/2]) // to memory
		_ = z.Flush()
		return b.String()
	}
	stored := through(func(w io.Writer) io.WriteCloser { z, _ := gzip.NewWriterLevel(w, 0); return z })
	return []choice{
		coded("gzip", "gzip", gz), coded("gzip in capitals", "GZIP", gz), coded("x-gzip", "x-gzip", gz), coded("gzip with a name", "gzip", named), coded("gzip stored", "gzip", stored),
		coded("gzip without trailer", "gzip", cut(gz, 8)), coded("gzip cut in the middle", "gzip", flushed), coded("gzip and more", "gzip", more(gz, "garbage\n")),
		coded("gzip and zeros", "gzip", more(gz, strings.Repeat("\x00", 600))), coded("gzip of two members", "gzip", halves(gz)), coded("gzip is a lie", "gzip", none),
		coded("gzip with a wrong sum", "gzip", func(s string) string { s = gz(s); return s[:len(s)-8] + "abcd" + s[len(s)-4:] }),
		coded("gzip with blanks", " gzip ,", gz), coded("gzip and identity", "gzip, identity", gz), coded("deflate of zlib", "deflate", pack("zlib")), coded("deflate raw", "deflate", pack("deflate")),
		coded("zlib cut", "deflate", cut(pack("zlib"), 4)), coded("zlib with a wrong sum", "deflate", func(s string) string { s = pack("zlib")(s); return s[:len(s)-4] + "abcd" }), coded("br", "br", br), coded("br cut", "br", cut(br, 40)), coded("br and more", "br", more(br, "garbage")),
		coded("zstd", "zstd", zs), coded("zstd of two frames", "zstd", halves(zs)), coded("zstd with a skipped frame", "zstd", func(s string) string { return "\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zs(s) }),
		coded("zstd cut", "zstd", cut(zs, 40)), coded("gzip in br", "gzip, br", func(s string) string { return br(gz(s)) }), coded("gzip in gzip", "gzip, gzip", func(s string) string { return gz(gz(s)) }),
		coded("identity", "identity", none), coded("utf-8", "utf-8", none), coded("none", "none", none), coded("empty coding", "", none), coded("unknown on gzip", "gzip, foo", gz),
		coded("gzip not said", "", none), coded("aws-chunked", "aws-chunked", none), coded("two fields", "gzip", func(s string) string { return gz(s) }),
	}
}

// chunked frames a body in chunks of a size.
func chunked(size int, line func(n int) string, end string) func(string) string {
	return func(body string) string {
		var b strings.Builder
		for len(body) > 0 {
			n := min(size, len(body))
			b.WriteString(line(n) + "\r\n" + body[:n] + "\r\n")
			body = body[n:]
		}
		return b.String() + end
	}
}

func hexLine(format string) func(int) string {
	return func(n int) string { return fmt.Sprintf(format, n) }
}

// cutsOff tells framings whose body ends too early. How much of a document is shown then is a race in the browser,
// between its parser and the end of the connection, and differs between two direct loads.
func cutsOff(name string) bool {
	switch name {
	case "no last chunk", "cut in a chunk", "no end of the trailer", "a length that is long", "cut off", "no body", "a long length in HTTP/2":
		return true
	}
	return false
}

// framings are how the end of a body is told. Left out are a length with a sign and chunks in HTTP/1.0, which Firefox
// heeds and Chromium does not.
func framings() []choice {
	f1 := func(name string, f framing) choice { return choice{name, 1, func(a *odd) { a.framing = f }} }
	f2 := func(name string, f framing) choice { return choice{name, 2, func(a *odd) { a.framing = f }} }
	c := []string{"chunked"}
	const end = "0\r\n\r\n"
	return []choice{
		f1("chunked", framing{chunks: chunked(1000, hexLine("%x"), end), codings: c}), f1("chunks of one byte", framing{chunks: chunked(1, hexLine("%x"), end), codings: c}),
		f1("chunk extensions", framing{chunks: chunked(700, hexLine("%x;a=b;c=\"d e\""), end), codings: c}), f1("chunks in capitals", framing{chunks: chunked(700, hexLine("%X"), end), codings: c}),
		f1("chunks with zeros", framing{chunks: chunked(700, hexLine("%08x"), "00000000\r\n\r\n"), codings: c}), f1("chunks with blanks", framing{chunks: chunked(700, hexLine("%x  "), end), codings: c}),
		f1("chunks with LF", framing{chunks: func(b string) string { return fmt.Sprintf("%x\n%s\n0\n\n", len(b), b) }, codings: c}), f1("no last chunk", framing{chunks: chunked(700, hexLine("%x"), ""), codings: c, close: true}),
		f1("cut in a chunk", framing{chunks: chunked(700, hexLine("%x"), end), codings: c, close: true, cut: 60}), f1("no end of the trailer", framing{chunks: chunked(700, hexLine("%x"), "0\r\n"), codings: c, close: true}),
		f1("a trailer", framing{chunks: chunked(700, hexLine("%x"), "0\r\nX-Sum: 1\r\nServer-Timing: late;dur=1\r\n\r\n"), codings: c}), f1("chunked in capitals", framing{chunks: chunked(700, hexLine("%x"), end), codings: []string{"Chunked"}}),
		f1("chunked twice", framing{chunks: chunked(700, hexLine("%x"), end), codings: []string{"chunked", "chunked"}}), f1("chunked and a length", framing{chunks: chunked(700, hexLine("%x"), end), codings: c, length: "5"}),
		f1("identity and chunked", framing{chunks: chunked(700, hexLine("%x"), end), codings: []string{"identity, chunked"}}), f1("identity", framing{codings: []string{"identity"}, close: true}),
		f1("chunk size is nonsense", framing{chunks: chunked(700, hexLine("x%x"), end), codings: c, close: true}),
		f1("until the close", framing{length: "-", close: true}), f1("a length that is short", framing{length: "50", close: true}), f1("a length that is long", framing{length: "999999", close: true}),
		f1("two lengths", framing{length: "-", close: true}), f1("a length that is nonsense", framing{length: "abc", close: true}), f1("a negative length", framing{length: "-5", close: true}),
		f1("an empty length", framing{length: " ", close: true}), f1("a length and a closed connection", framing{close: true}),
		f1("a byte at a time", framing{piece: 1}), f1("a pause after the head", framing{pause: 30 * time.Millisecond}), f1("cut off", framing{cut: 100, close: true}), f1("no body", framing{cut: 1 << 20, close: true}),
		{"HTTP/1.0 until the close", 1, func(a *odd) { a.start, a.framing = "HTTP/1.0 200 OK", framing{length: "-", close: true} }},
		{"HTTP/1.0 kept alive", 1, func(a *odd) { a.start, a.lines = "HTTP/1.0 200 OK", append(a.lines, "Connection: keep-alive") }},
		{"the same length twice", 1, func(a *odd) { a.lines = append(a.lines, fmt.Sprint("Content-Length: ", len(a.body))) }},
		{"the length in a list", 1, func(a *odd) { a.framing.length = fmt.Sprintf("%d, %d", len(a.body), len(a.body)) }},
		{"the length with zeros", 1, func(a *odd) { a.framing.length = fmt.Sprintf("000%d", len(a.body)) }},
		{"two lengths that differ", 1, func(a *odd) { a.lines, a.framing.close = append(a.lines, "Content-Length: 5"), true }},
		f2("one piece without a length", framing{length: "-"}), f2("small frames", framing{length: "-", piece: 100}), f2("padded frames", framing{piece: 1000, pad: 100}), f2("an empty last frame", framing{emptyData: true}),
		f2("a split header", framing{split: true}), f2("a reset after the end", framing{reset: true}), f2("a long length in HTTP/2", framing{length: "999999"}), f2("a short length in HTTP/2", framing{length: "50"}),
		{"a trailer in HTTP/2", 2, func(a *odd) { a.framing.length, a.trailer = "-", field("x-sum", "1", "server-timing", "late;dur=1") }},
	}
}

// utf16of encodes a text; mark is its byte order mark.
func utf16of(text, mark string, little bool) string {
	b := []byte(mark)
	for _, u := range utf16.Encode([]rune(text)) {
		if little {
			b = append(b, byte(u), byte(u>>8))
		} else {
			b = append(b, byte(u>>8), byte(u))
		}
	}
	return string(b)
}

// charsetsOf are documents' charsets, told and true. META stands where a document declares its own, TEXT for letters
// beyond ASCII. A <meta> in a script is left out: it declares a charset in Firefox, and none in Chromium.
func charsetsOf() []choice {
	text := func(name, said, meta, letters string) choice {
		return choice{name, 0, func(a *odd) {
			a.fields = append(dropField(a.fields, "Content-Type"), field("Content-Type", said)...)
			a.body = strings.NewReplacer("META", meta, "TEXT", letters).Replace(a.body)
		}}
	}
	whole := func(name, said string, code func(string) string) choice {
		return choice{name, 0, func(a *odd) {
			a.fields = append(dropField(a.fields, "Content-Type"), field("Content-Type", said)...)
			a.body = code(strings.NewReplacer("META", "", "TEXT", "żółć 日本").Replace(a.body))
		}}
	}
	const html = "text/html"
	late := "<!--" + strings.Repeat("x", 1100) + "-->"
	return []choice{
		text("windows-1252 not said", html, "", "caf\xe9 \x80"), text("latin1 in the head", "text/html; charset=latin1", "", "caf\xe9"), text("meta latin2", html, "<meta charset=iso-8859-2>", "\xbf\xf3\xb3\xe6"),
		text("meta sjis", html, `<meta http-equiv="Content-Type" content="text/html; charset=sjis">`, "\x93\xfa\x96\x7b"), text("meta gb2312", html, "<meta charset='gb2312'>", "\xc4\xe3\xba\xc3"),
		text("meta big5", html, "<META CHARSET = BIG5 >", "\xa4\xa4"), text("meta euc-kr", html, "<meta name=a charset=euc-kr>", "\xc7\xd1"), text("meta koi8-r", html, "<meta charset=koi8-r/>", "\xf0\xd2"),
		text("meta iso-2022-jp", html, "<meta charset=iso-2022-jp>", "\x1b$BF|\x1b(B"), text("meta after 1024 bytes", html, late+"<meta charset=iso-8859-2>", "\xbf\xf3"),
		text("meta in a comment", html, "<!-- <meta charset=koi8-r> --><meta charset=utf-8>", "ż"), text("two metas", html, "<meta charset=utf-8><meta charset=koi8-r>", "ż"),
		text("meta against the head", "text/html; charset=utf-8", "<meta charset=koi8-r>", "ż"), text("meta utf-16", html, "<meta charset=utf-16>", "ż"), text("meta of nonsense", html, "<meta charset=nonsense>", "\xe9"),
		text("meta x-user-defined", html, "<meta charset=x-user-defined>", "\xe9"), text("broken utf-8", "text/html; charset=utf-8", "", "a\xff\xc3(b\xed\xa0\x80"),
		text("iso-8859-8-i", "text/html; charset=iso-8859-8-i", "", "\xf9\xec"), text("meta content without charset", html, `<meta http-equiv=content-type content="text/html">`, "\xe9"),
		text("meta with an entity", html, `<meta charset="utf&#45;8">`, "ż"), text("meta in the body", html, "</head><body><meta charset=koi8-r>", "\xc1"), text("gb18030", "text/html; charset=gb18030", "", "\x81\x30\x81\x30"),
		text("utf8 by its short name", "text/html; charset=utf8", "", "ż"), text("zero bytes", "text/html; charset=utf-8", "", "a\x00b"), text("form feed", "text/html; charset=utf-8", "\f", "a\vb"),
		whole("BOM", html, func(s string) string { return "\xef\xbb\xbf" + s }), whole("BOM against the head", "text/html; charset=koi8-r", func(s string) string { return "\xef\xbb\xbf" + s }),
		whole("UTF-16LE with BOM", html, func(s string) string { return utf16of(s, "\xff\xfe", true) }), whole("UTF-16BE with BOM", html, func(s string) string { return utf16of(s, "\xfe\xff", false) }),
		whole("UTF-16LE said", "text/html; charset=utf-16le", func(s string) string { return utf16of(s, "", true) }), whole("UTF-16BE said", "text/html; charset=utf-16be", func(s string) string { return utf16of(s, "", false) }),
		whole("UTF-16 against the head", "text/html; charset=utf-8", func(s string) string { return utf16of(s, "\xff\xfe", true) }), whole("blanks before the BOM", html, func(s string) string { return "\n\xef\xbb\xbf" + s }),
		whole("XML declaration", html, func(s string) string { return `<?xml version="1.0" encoding="koi8-r"?>` + s }),
	}
}

// targets are the URLs of what is odd, as a page writes them.
func targets() []string {
	return []string{
		"/%", "/100%.html", "/%zz%", "/a|b?c|d", "/żółć?ł=ó", "//double//slash", "/a b?c d", "/?q=%E0%A4%A", "/?", "/a?b?c=?", "/a;p=1;q", "/%2F%2e%2e/x", "/a/%2e/b",
		"/a/../b/./c", `/a\b\c`, "/?" + strings.Repeat("long=value&", 400), "/?" + strings.Repeat("l", 30<<10), "/?a=1&a=2&&b&=c", "/?t=✓", "/%00x", "/a%0Ab%0D", "/a'b\"c<d>", "/^`{}~", "/*", "/-", "/?url=http://x/y?z#f",
		"/[x]{y}?[z]", "/%u1234", "/a\tb\nc", "/%c3%a9", "/%C3%A9", "/%41%42", "/.well-known/x", "/?a+b=c+d", "/?'quoted'", "/;", "/,", "/?%", "/&amp;?a&amp;b", "/:a:b@c", "/http://other.test/x", "/?" + "😀", "/😀%f0%9f",
		"/?a=%26%3D&b=%2", "/%25", "/%2525", "/a//", "/?=", "/?&", "/?a[]=1&a[]=2", "/$&+,;=@!", "/%7Euser/~user", "/?x=\u00a0\u3000", "/index.html?v=1.0.0#/route?x", "/#only", "/a?b#c?d",
	}
}
