package archive

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"eidetic/internal/lab"
)

// oddRecord is a WARC record of another tool; more is what its stated length is too large by.
func oddRecord(kind, url, block string, more int, fields ...string) string {
	extra := ""
	for _, f := range fields {
		extra += f + "\r\n"
	}
	return fmt.Sprintf("WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: %s\r\nWARC-Date: 2026-05-01T12:00:00Z\r\nWARC-Record-ID: <urn:test:%s>\r\n%sContent-Length: %d\r\n\r\n%s\r\n\r\n",
		kind, url, strings.ReplaceAll(url, " ", "_"), extra, len(block)+more, block)
}

func oddResponse(fields, body string) string { return "HTTP/1.1 200 OK\r\n" + fields + "\r\n" + body }

func openOdd(t *testing.T, text string) *Archive {
	t.Helper()
	a, err := OpenReader(strings.NewReader(text), int64(len(text)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func byURL(a *Archive) map[string]*lab.Exchange {
	out := map[string]*lab.Exchange{}
	for _, e := range a.Exchanges() {
		out[e.URL] = e
	}
	return out
}

// TestChunkedRecords: sizes of chunks are in no body, and a body without its last chunk is marked.
func TestChunkedRecords(t *testing.T) {
	for name, c := range map[string]struct{ body, want, cut string }{
		"whole":              {"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde", ""},
		"zeros and LF":       {"003\nabc\n000000000000000000000000\n\n", "abc", ""},
		"an extension":       {"1;a=\"b;c\"\r\nx\r\n0\r\n\r\n", "x", ""},
		"no end of trailers": {"1\r\nx\r\n0\r\nX-Sum: 1", "x", ""},
		"cut in a chunk":     {"1\r\nx\r\nffff\r\nyz", "xyz", "unspecified"},
		"cut in the first":   {"40\r\nbegin", "begin", "unspecified"},
		"cut before a size":  {"2\r\nxy\r\n", "xy", "unspecified"},
		"no chunks at all":   {"{\"a\": 1}", "{\"a\": 1}", ""},
		"like a chunk":       {"a\n{color:red}\nb{}\n", "a\n{color:red}\nb{}\n", ""},
		"damaged later":      {"2\r\nab\r\n2\r\ncd, and more", "abcd", "unspecified"},
		"empty":              {"0\r\n\r\n", "", ""},
	} {
		const url = "http://c.test/x"
		e := byURL(openOdd(t, oddRecord("response", url, oddResponse("transfer-encoding: Chunked \r\n", c.body), 0)))[url]
		if e == nil || string(e.Response.Body) != c.want || e.Truncated != c.cut || e.Response.Get("Transfer-Encoding") != "" {
			t.Errorf("%s: %+v; want the body %q, cut off %q", name, e, c.want, c.cut)
		}
	}
}

// TestWrongLengths: a record whose stated length is wrong costs no other, and is told.
func TestWrongLengths(t *testing.T) {
	odd := strings.Repeat("odd\n", 20) + "end"
	for _, more := range []int{-40, -9, -1, 1, 3, 5, 17, 60, 300} {
		for _, inGzip := range []bool{false, true} {
			parts := []string{
				oddRecord("response", "http://l.test/first", oddResponse("Content-Type: text/plain\r\n", "the first"), 0),
				oddRecord("response", "http://l.test/odd", oddResponse("", odd), more),
				oddRecord("response", "http://l.test/next", oddResponse("", "the next"), 0),
				oddRecord("response", "http://l.test/last", oddResponse("", "the last"), 0),
			}
			text := strings.Join(parts, "")
			if inGzip {
				var b bytes.Buffer
				for _, p := range parts {
					z := gzip.NewWriter(&b)
					_, _ = z.Write([]byte(p)) // a buffer takes it
					_ = z.Close()
				}
				text = b.String()
			}
			a := openOdd(t, text)
			got := byURL(a)
			for _, name := range []string{"first", "next", "last"} {
				if e := got["http://l.test/"+name]; e == nil || string(e.Response.Body) != "the "+name {
					t.Errorf("%+d bytes (gzip %v): /%s is %+v", more, inGzip, name, e)
				}
			}
			if e := got["http://l.test/odd"]; e == nil || string(e.Response.Body) != odd {
				t.Errorf("%+d bytes (gzip %v): the odd one is %+v", more, inGzip, e)
			}
			if w := strings.Join(a.Warnings(), "\n"); !strings.Contains(w, "wrong Content-Length of the record") || a.Lost() > 0 {
				t.Errorf("%+d bytes (gzip %v): told %q, %d lost", more, inGzip, w, a.Lost())
			}
		}
	}
}

// TestDamagedRecord: of a damaged record the next is found.
func TestDamagedRecord(t *testing.T) {
	good := func(n int) string {
		return oddRecord("response", fmt.Sprint("http://d.test/", n), oddResponse("", "body"), 0)
	}
	a := openOdd(t, good(1)+strings.Replace(good(2), "WARC/1.0", "WANC?1.0", 1)+good(3))
	got := byURL(a)
	if len(got) != 2 || got["http://d.test/3"] == nil || a.Lost() != 1 {
		t.Errorf("read %d exchanges, %d lost, told %q; want those before and after the damaged one", len(got), a.Lost(), a.Warnings())
	}
}

// TestRecordsOfTheTool: what is no web exchange is left out and told, and nothing is lost by that.
func TestRecordsOfTheTool(t *testing.T) {
	a := openOdd(t, oddRecord("response", "http://t.test/", oddResponse("Content-Type: text/html\r\n", "<p>"), 0)+
		oddRecord("resource", "urn:thumbnail:http://t.test/", "picture", 0, "Content-Type: image/png")+
		oddRecord("resource", "file.html", "<p>", 0, "Content-Type: text/html"))
	if got := byURL(a); len(got) != 2 || a.Lost() != 0 || !strings.Contains(fmt.Sprint(a.Warnings()), "2 × left out") { // and an icon
		t.Errorf("read %d, lost %d, told %q", len(got), a.Lost(), a.Warnings())
	}
}

func oddHAR(t *testing.T, entries ...string) *Archive {
	t.Helper()
	return openOdd(t, `{"log":{"version":"1.2","entries":[`+strings.Join(entries, ",")+`]}}`)
}

const oddEntry = `{"startedDateTime":"2026-05-01T12:00:00Z","time":1,
	"request":{"method":"GET","url":"http://h.test/%s","headers":[]},
	"response":{"status":200,"headers":[{"name":"Content-Type","value":"text/javascript"}],"content":%s}}`

// TestLooseHAR: numbers may be texts and texts numbers, and one odd field costs no other entry.
func TestLooseHAR(t *testing.T) {
	plain := `{"size":1,"text":"x"}`
	for name, odd := range map[string]string{
		"a size":      fmt.Sprintf(oddEntry, "odd", `{"size":"5","mimeType":null,"text":"hello"}`),
		"a status":    strings.Replace(fmt.Sprintf(oddEntry, "odd", plain), `"status":200`, `"status":"200"`, 1),
		"a time":      strings.Replace(fmt.Sprintf(oddEntry, "odd", plain), `"time":1`, `"time":"soon"`, 1),
		"a date":      strings.Replace(fmt.Sprintf(oddEntry, "odd", plain), `"2026-05-01T12:00:00Z"`, `1777636800000`, 1),
		"a value":     strings.Replace(fmt.Sprintf(oddEntry, "odd", plain), `"text/javascript"`, `12`, 1),
		"a list":      strings.Replace(fmt.Sprintf(oddEntry, "odd", plain), `"headers":[]`, `"headers":"none"`, 1),
		"an object":   strings.Replace(fmt.Sprintf(oddEntry, "odd", plain), `"time":1`, `"time":{},"serverIPAddress":[]`, 1),
		"bad address": strings.Replace(fmt.Sprintf(oddEntry, "odd", plain), `h.test/odd`, `h.test/odd%`, 1),
	} {
		got := byURL(oddHAR(t, odd, fmt.Sprintf(oddEntry, "after", plain)))
		if got["http://h.test/after"] == nil || got["http://h.test/odd"] == nil && got["http://h.test/odd%"] == nil {
			t.Errorf("%s: read %v, want both entries", name, got)
		}
	}
	if e := byURL(oddHAR(t, strings.Replace(fmt.Sprintf(oddEntry, "odd", plain), `"2026-05-01T12:00:00Z"`, `1777636800000`, 1)))["http://h.test/odd"]; e.Wall.Year() != 2026 {
		t.Errorf("milliseconds since 1970 are %v, want 2026", e.Wall)
	}
	if a := openOdd(t, `{"log":{"entries":[`+fmt.Sprintf(oddEntry, "whole", plain)+`,{"request":{"meth`); len(a.Exchanges()) != 1 || a.Lost() == 0 {
		t.Errorf("a HAR that is cut off has %d exchanges, %d lost; want its whole entry, and the loss told", len(a.Exchanges()), a.Lost())
	}
}

// TestHARBodiesThatAreCut: a body that is shorter than its stated size is cut off, unless its text was only written
// in another way.
func TestHARBodiesThatAreCut(t *testing.T) {
	kept := strings.Repeat("0123456;", firefoxLimit/8)
	for name, c := range map[string]struct {
		content string
		isCut   bool
	}{
		"Firefox":       {fmt.Sprintf(`{"size":1500000,"text":%q}`, kept), true},
		"just whole":    {fmt.Sprintf(`{"size":%d,"text":%q}`, firefoxLimit, kept), false},
		"another tool":  {fmt.Sprintf(`{"size":90000,"text":%q}`, kept[:50000]), true},
		"base64":        {`{"size":9,"encoding":"base64","text":"AAAA"}`, true},
		"UTF-16":        {`{"size":202,"text":"` + strings.Repeat("a", 100) + `"}`, false},
		"line ends":     {`{"size":12,"text":"a\nb\nc\nd\n"}`, false},
		"a mark":        {`{"size":103,"text":"` + strings.Repeat("a", 100) + `"}`, false},
		"size unknown":  {`{"size":-1,"text":"abc"}`, false},
		"both unknown":  {`{"size":-1,"mimeType":"text/javascript"}`, true}, // Playwright, of an answer that broke off
		"a file is not": {`{"size":-1,"_file":"gone.js"}`, true},
		"nothing":       {`{"size":0,"mimeType":"text/javascript"}`, false},
		"size too low":  {`{"size":1,"text":"abc"}`, false},
		"Latin 1 known": {`{"size":2,"text":"é!"}`, false},
	} {
		e := byURL(oddHAR(t, fmt.Sprintf(oddEntry, "x", c.content)))["http://h.test/x"]
		if got := e.Truncated != ""; got != c.isCut {
			t.Errorf("%s: cut off %q, want %v", name, e.Truncated, c.isCut)
		}
	}
}

// TestBodiesInFiles reads what Playwright writes: bodies beside the HAR, or in one zip with it.
func TestBodiesInFiles(t *testing.T) {
	dir := t.TempDir()
	entries := []string{
		fmt.Sprintf(oddEntry, "a", `{"size":7,"_file":"aa11.js"}`), fmt.Sprintf(oddEntry, "gone", `{"size":7,"_file":"missing.js"}`),
		fmt.Sprintf(oddEntry, "out", `{"size":7,"_file":"../secret"}`), fmt.Sprintf(oddEntry, "link", `{"size":7,"_file":"link.js"}`),
	}
	text := `{"log":{"entries":[` + strings.Join(entries, ",") + `]}}`
	if !json.Valid([]byte(text)) {
		t.Fatal("the test's HAR is no JSON")
	}
	inner := filepath.Join(dir, "har")
	for name, body := range map[string]string{"secret": "secret!", "har/aa11.js": "let a=1", "har/t.har": text} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(inner, "link.js")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, body := range map[string]string{"t.har": text, "aa11.js": "let a=1", "__MACOSX/._t.har": "notes of macOS"} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(body))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	zipped := filepath.Join(dir, "t.har.zip")
	if err := os.WriteFile(zipped, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(inner, "t.har"), zipped} {
		a, err := OpenWithFiles(path, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := byURL(a)
		if e := got["http://h.test/a"]; string(e.Response.Body) != "let a=1" || e.Truncated != "" {
			t.Errorf("%s: the body is %q, cut off %q; want that of the file", path, e.Response.Body, e.Truncated)
		}
		for _, name := range []string{"gone", "out", "link"} {
			if e := got["http://h.test/"+name]; len(e.Response.Body) > 0 || e.Truncated == "" {
				t.Errorf("%s: /%s has the body %q, cut off %q; want none, marked", path, name, e.Response.Body, e.Truncated)
			}
		}
		if w := strings.Join(a.Warnings(), "\n"); !strings.Contains(w, "_file") {
			t.Errorf("%s: told %q, want the files that are missing", path, w)
		}
	}
	a, err := Open(filepath.Join(inner, "t.har")) // as a box opens what somebody gave it
	if err != nil {
		t.Fatal(err)
	}
	if e := byURL(a)["http://h.test/a"]; len(e.Response.Body) > 0 {
		t.Errorf("Open reads %q from a file beside the HAR, want that only from OpenWithFiles", e.Response.Body)
	}
}

// TestNavigates: a document is what a navigation got, and not all that was asked of its address.
func TestNavigates(t *testing.T) {
	const url = "https://n.test/"
	page := got(url, 200, "text/html", "<p>")
	ask := func(method string, status int, fields ...string) *lab.Exchange {
		e := got(url, status, "text/html", "no")
		e.Method = method
		if len(fields) == 2 {
			e = asked(e, fields[0], fields[1])
		}
		return e
	}
	for name, c := range map[string]struct {
		list []*lab.Exchange
		fit  bool
	}{
		"OPTIONS of its own address": {[]*lab.Exchange{page, ask("OPTIONS", 404)}, true},
		"a post to itself":           {[]*lab.Exchange{page, ask("POST", 500, "Sec-Fetch-Dest", "empty")}, true},
		"a fetch of itself":          {[]*lab.Exchange{page, ask("GET", 404, "Accept", "*/*")}, true},
		"a sign-in":                  {[]*lab.Exchange{ask("GET", 401, "Accept", "text/html"), page}, true},
		"a navigation":               {[]*lab.Exchange{page, ask("GET", 404, "Sec-Fetch-Dest", "document")}, false},
		"a form's answer":            {[]*lab.Exchange{page, ask("POST", 500, "Accept", "text/html,*/*")}, false},
	} {
		if err := Assess(New(c.list, nil, []Page{{URL: url}}, CreateOptions{})).Unfit(0); (err == nil) != c.fit {
			t.Errorf("%s: Unfit() = %v, want fit %v", name, err, c.fit)
		}
	}
}

// TestOddRecords: what is odd in a record costs nothing, or is told, and the record after it is read.
func TestOddRecords(t *testing.T) {
	head := func(fields, block string) string {
		return "WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: 2026-05-01T12:00:00Z\r\nContent-Type: application/http;msgtype=response\r\n" + fields + "\r\n" + block + "\r\n\r\n"
	}
	const one = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nodd"
	length := func(block string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(block)) }
	const uri = "WARC-Target-URI: http://t.test/odd\r\n"
	interim := "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + one
	decoded := strings.Replace(one, "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1)
	for name, c := range map[string]struct{ record, told string }{
		"empty lines first":    {"\r\n\r\n\n" + head(uri+length(one), one), ""},
		"a folded address":     {head("WARC-Target-URI:\r\n http://t.test/odd\r\n"+length(one), one), ""},
		"a password":           {head("WARC-Target-URI: http://user:word@t.test/odd\r\n"+length(one), one), ""},
		"a scheme in capitals": {head("WARC-Target-URI: <HTTP://T.test:80/odd>\r\n"+length(one), one), ""},
		"a negative length":    {head(uri+"Content-Length: -5\r\n", one), "wrong Content-Length"},
		"a length of words":    {head(uri+"Content-Length: many\r\n", one), "wrong Content-Length"},
		"an enormous length":   {head(uri+"Content-Length: 1000000000000000\r\n", one), "wrong Content-Length"},
		"a line without colon": {head(uri+"no field\r\n"+length(one), one), "no fields"},
		"no type":              {strings.Replace(head(uri+length(one), one), "WARC-Type: response\r\n", "", 1), ""},
		"answers before it":    {head(uri+length(interim), interim), ""},
		"another version":      {head(uri+length(strings.Replace(one, "HTTP/1.1 200 OK", "http/1.1  200", 1)), strings.Replace(one, "HTTP/1.1 200 OK", "http/1.1  200", 1)), ""},
		"a decoded body":       {head(uri+length(decoded), decoded), "not in the coding"},
		"a scheme of others":   {head(uri+length(one), one) + head("WARC-Target-URI: whois://t.test/\r\n"+length(one), one), "1 × left out"},
	} {
		a := openOdd(t, c.record+oddRecord("response", "http://t.test/after", oddResponse("Content-Type: text/plain\r\n", "after"), 0))
		e, told := byURL(a)["http://t.test/odd"], strings.Join(a.Warnings(), "\n")
		if e == nil || e.Status != 200 || string(e.Response.Body) != "odd" || e.Protocol != "http/1.1" || e.Response.Get("Content-Encoding") != "" ||
			byURL(a)["http://t.test/after"] == nil || a.Lost() != 0 || !strings.Contains(told, c.told) || (c.told == "") != (told == "") {
			t.Errorf("%s: read %+v, lost %d, told %q; want it whole, the record after it, and told %q", name, e, a.Lost(), told, c.told)
		}
		if name == "answers before it" && e != nil && (len(e.Interim) != 1 || e.Interim[0].Status != 103) {
			t.Errorf("%s are %+v; want the 103", name, e.Interim)
		}
	}
}

// TestPaddedMembers: zeros between gzip members are no damage.
func TestPaddedMembers(t *testing.T) {
	member := func(url string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(oddRecord("response", url, oddResponse("Content-Type: text/plain\r\n", url), 0))) // to memory
		_ = z.Close()
		return b.String()
	}
	a := openOdd(t, member("http://t.test/1")+strings.Repeat("\x00", 70_000)+member("http://t.test/2")+"\x00\x00")
	if got := byURL(a); len(got) != 2 || a.Lost() != 0 || len(a.Warnings()) != 0 {
		t.Errorf("read %d exchanges, lost %d, told %q; want 2, and nothing told", len(got), a.Lost(), a.Warnings())
	}
}

// TestBeforeRecords: what tools put before, between and behind records costs none, also in gzip.
func TestBeforeRecords(t *testing.T) {
	record := func(n string) string {
		return oddRecord("response", "http://t.test/"+n, oddResponse("Content-Type: text/plain\r\n", n), 0)
	}
	const mark = "\xef\xbb\xbf"
	zeros := strings.Repeat("\x00", 5000)
	for name, text := range map[string]string{
		"a mark": mark + record("1") + record("2"), "marks": mark + record("1") + mark + record("2"), "a mark and lines": mark + "\r\n\n" + record("1") + record("2"),
		"blanks": " \t\r\n" + record("1") + "\n \n" + record("2"), "many lines": strings.Repeat("\r\n", 3000) + record("1") + record("2"),
		"zeros": zeros + record("1") + zeros + record("2") + zeros,
	} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte(text)) // to memory
		_ = z.Close()
		for kind, file := range map[string]string{"plain": text, "gzip": packed.String(), "gzip behind blanks": mark + "\n" + packed.String()} {
			a := openOdd(t, file)
			if got := byURL(a); len(got) != 2 || string(got["http://t.test/2"].Response.Body) != "2" || a.Lost() != 0 || len(a.Warnings()) != 0 {
				t.Errorf("%s, %s: read %d exchanges, lost %d, told %q; want 2, and nothing told", name, kind, len(got), a.Lost(), a.Warnings())
			}
		}
	}
}

// TestBlanksAreBounded: blanks that unpack to more than a file may hold end the reading, in one stretch or in many, and
// the error names the bound.
func TestBlanksAreBounded(t *testing.T) {
	record := func(n int) string {
		url := fmt.Sprint("http://t.test/", n)
		return oddRecord("response", url, oddResponse("Content-Type: text/plain\r\n", "x"), 0)
	}
	many := ""
	for i := range 60 {
		many += record(i) + strings.Repeat("\n", 4000)
	}
	limits := Limits{Decoded: 200_000, Ratio: 1}
	for name, text := range map[string]string{"one stretch": record(1) + strings.Repeat("\x00", 240_000) + record(2), "many": many} {
		var packed, zipped bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte(text)) // to memory
		_ = z.Close()
		inZip := zip.NewWriter(&zipped)
		w, err := inZip.Create("x.warc")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text)) // to memory
		_ = inZip.Close()
		for kind, file := range map[string]string{"gzip": packed.String(), "zip": zipped.String(), "plain": text} {
			_, err := OpenReader(strings.NewReader(file), int64(len(file)), limits)
			if !errors.Is(err, errLimit) || !strings.Contains(err.Error(), "more than 200000 bytes of it are blanks") {
				t.Errorf("%s, %s: %v; want that more than 200000 bytes are blanks", name, kind, err)
			}
		}
	}
	front := strings.Repeat("\x00", 240_000) + record(1)
	var zipped bytes.Buffer
	inZip := zip.NewWriter(&zipped)
	if w, err := inZip.Create("x.warc"); err == nil {
		_, _ = w.Write([]byte(front)) // to memory
	}
	_ = inZip.Close()
	if _, err := OpenReader(bytes.NewReader(zipped.Bytes()), int64(zipped.Len()), limits); !errors.Is(err, errLimit) {
		t.Errorf("blanks before a WARC in a zip: %v; want %v", err, errLimit)
	}
}

// TestZipsByHand: WARCs in a zip that a person made are read, and other zips are named.
func TestZipsByHand(t *testing.T) {
	one := oddRecord("response", "http://t.test/1", oddResponse("Content-Type: text/plain\r\n", "1"), 0)
	build := func(files ...string) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := 0; i < len(files); i += 2 {
			w, err := z.Create(files[i])
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.Write([]byte(files[i+1])) // to memory
		}
		_ = z.Close()
		return b.String()
	}
	const pack = `{"profile":"data-package","resources":[]}`
	for name, file := range map[string]string{
		"a WARC": build("x.warc", one), "no package": build("archive/data.warc", one), "a folder": build("site/"+namePackage, pack, "site/archive/x", one),
		"Windows":       build(namePackage, "\ufeff"+pack, `archive\data.warc`, one, `indexes\`, ""),
		"bsdtar":        build("./", "", "./"+namePackage, pack, "./archive/data.warc", one),
		"one is empty":  build(namePackage, pack, "archive/a.warc.gz", "", "archive/b.warc", one),
		"one is no one": build(namePackage, pack, "archive/README", "of the crawl, in words", "archive/b.warc", one),
		"macOS":         build("site/"+namePackage, pack, "site/archive/x.warc", one, "__MACOSX/site/._"+namePackage, "x", "__MACOSX/site/archive/._x.warc", "x"),
	} {
		if got := byURL(openOdd(t, file)); len(got) != 1 {
			t.Errorf("%s: read %d exchanges; want the one", name, len(got))
		}
	}
	for want, file := range map[string]string{
		"several WACZ": build(namePackage, pack, "a.wacz", "x"),
		"names WACZ":   build(namePackage, `{"profile":"multi-wacz-package","resources":[{"path":"https://x.test/a.wacz"}]}`),
		"Playwright":   build("trace.trace", "", "trace.network", ""), "flows of mitmproxy: unpack it": build("site.mp", ""),
		"a.warc in the WACZ: cut off": build(namePackage, pack, "archive/a.warc", "WA"), "the archive is empty": build(namePackage, pack, "archive/a.warc", ""),
		"is encrypted: unpack":   strings.Replace(build("x.warc", one), "PK\x01\x02\x14\x00\x14\x00\x08", "PK\x01\x02\x14\x00\x14\x00\x09", 1),
		"is compressed by xz, w": strings.Replace(build("x.warc", one), "PK\x01\x02\x14\x00\x14\x00\x08\x00\x08", "PK\x01\x02\x14\x00\x14\x00\x08\x00\x5f", 1),
		"Charles":                build("0-meta.json", "{}", "0-res.dat", ""), "SingleFile": build("index.html", "", "manifest.json", "{}"),
	} {
		if _, err := OpenReader(strings.NewReader(file), int64(len(file)), Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error with %q", err, want)
		}
	}
}

// TestIndexInAFolder: the index of a WACZ that was zipped with its folder says where its WARC can be cut.
func TestIndexInAFolder(t *testing.T) {
	var whole bytes.Buffer
	w := zip.NewWriter(&whole)
	for name, text := range map[string]string{
		namePackage: "{}", nameData: "WARC", nameIndex: `a 1 {"filename":"data.warc.gz","offset":"7"}` + "\n",
	} {
		f, err := w.Create("site/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write([]byte(text)) // to memory
	}
	_ = w.Close()
	z, err := zip.NewReader(bytes.NewReader(whole.Bytes()), int64(whole.Len()))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*zip.File{}
	for _, f := range z.File {
		files[f.Name] = f
	}
	files = inFolder(files)
	got, err := readCuts(warcsOf(z, files), files[nameIndex], Limits{Index: 1000, part: 1})
	if list := got.of("site/" + nameData); err != nil || len(list) != 1 || list[0] != 7 {
		t.Errorf("readCuts() = %v, %v; want one cut at byte 7", got, err)
	}
}

// TestRepeatedIDs: a record that is in the file twice counts once, and another with its ID is kept.
func TestRepeatedIDs(t *testing.T) {
	const id = "WARC-Record-ID: <urn:test:same>"
	one := func(url, body string) string {
		text := oddRecord("response", url, oddResponse("Content-Type: text/plain\r\n", body), 0)
		return strings.Replace(text, "WARC-Record-ID: <urn:test:"+url+">", id, 1)
	}
	a := openOdd(t, one("http://t.test/1", "a")+one("http://t.test/1", "a")+one("http://t.test/1", "b")+one("http://t.test/2", "a"))
	ids := map[string]bool{}
	var got []string
	for _, e := range a.Exchanges() {
		ids[e.ID] = true
		got = append(got, e.URL+" "+string(e.Response.Body))
	}
	if want := "http://t.test/1 a, http://t.test/1 b, http://t.test/2 a"; strings.Join(got, ", ") != want || len(ids) != 3 || a.Lost() != 0 {
		t.Errorf("read %q with %d IDs, lost %d; want %s with 3, and nothing lost", got, len(ids), a.Lost(), want)
	}
}

// TestSeveralHARsInAZip: the message says what to do.
func TestSeveralHARsInAZip(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"b.har", "a.har", "._a.har"} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(`{"log":{"entries":[]}}`)) // to memory
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := OpenReader(bytes.NewReader(b.Bytes()), int64(b.Len()), Limits{})
	if err == nil || !strings.Contains(err.Error(), `2 HARs ("a.har", "b.har" …)`) || !strings.Contains(err.Error(), "merge") {
		t.Errorf("a zip of two HARs: %v; want their names, and that they can be merged", err)
	}
}

// TestRevisitsOfALargeBody: what revisits refer to counts again for each of them.
func TestRevisitsOfALargeBody(t *testing.T) {
	text := oddRecord("response", "http://t.test/0", oddResponse("Content-Type: text/plain\r\n", strings.Repeat("x", 1000)), 0)
	for i := range 9 {
		text += oddRecord("revisit", fmt.Sprint("http://t.test/", i+1), "HTTP/1.1 200 OK\r\n\r\n", 0, "WARC-Refers-To: <urn:test:http://t.test/0>")
	}
	a, err := OpenReader(strings.NewReader(text), int64(len(text)), Limits{Decoded: 5000})
	if err != nil {
		t.Fatal(err)
	}
	if told := strings.Join(a.Warnings(), "\n"); len(byURL(a)) != 6 || a.Lost() != 4 || !strings.Contains(told, "more than the limit") {
		t.Errorf("read %d exchanges, lost %d, told %q; want 6 and 4, and the limit named", len(byURL(a)), a.Lost(), told)
	}
}

// TestLargeHeaders: what no WARC can hold is left out of an import and counts as lost; the rest can be written, and read.
func TestLargeHeaders(t *testing.T) {
	long := strings.Repeat("x", 2<<20)
	field := `"headers":[{"name":"X","value":"` + long + `"}]`
	for name, entry := range map[string]string{
		"a field of an answer":  `{"request":{"method":"GET","url":"http://l.test/1"},"response":{"status":200,` + field + `,"content":{"text":"x"}}}`,
		"a field of a request":  `{"request":{"method":"GET","url":"http://l.test/1",` + field + `},"response":{"status":200,"content":{"text":"x"}}}`,
		"an address":            `{"request":{"method":"GET","url":"http://l.test/?` + long + `"},"response":{"status":200,"content":{"text":"x"}}}`,
		"the words of a status": `{"request":{"method":"GET","url":"http://l.test/1"},"response":{"status":200,"statusText":"` + long + `","content":{"text":"x"}}}`,
	} {
		a := oddHAR(t, entry, `{"request":{"method":"GET","url":"http://l.test/2"},"response":{"status":200,"content":{"text":"two"}}}`)
		if told := strings.Join(a.Warnings(), "\n"); len(a.Exchanges()) != 1 || a.Lost() != 1 || !strings.Contains(told, "header have more than") {
			t.Errorf("%s: %d exchanges, %d lost, told %.200q; want one of each, and why", name, len(a.Exchanges()), a.Lost(), told)
		}
		made, err := a.Import()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "a.wacz")
		if err := Save(path, made); err != nil {
			t.Errorf("%s: Save() = %v", name, err)
			continue
		}
		if b, err := Open(path); err != nil || len(b.Exchanges()) != 1 || b.Lost() != 0 {
			t.Errorf("%s, read again: %+v, %v; want the other exchange", name, b, err)
		}
	}
}

// TestHARCutOff: a file that ends within an entry says how many are used.
func TestHARCutOff(t *testing.T) {
	const one = `{"request":{"method":"GET","url":"http://l.test/"},"response":{"status":200,"content":{"text":"x"}}},`
	a := openOdd(t, `{"log":{"version":"1.2","entries":[`+one+one+one[:60])
	if told := strings.Join(a.Warnings(), "\n"); len(a.Exchanges()) != 2 || a.Lost() != 1 || !strings.Contains(told, "behind the 2 entries that are used") {
		t.Errorf("%d exchanges, %d lost, told %q; want 2, 1, and how many are used", len(a.Exchanges()), a.Lost(), told)
	}
}

// TestSpoiledBodies: a picture that an exporter wrote as text is lost, which is told; a text may have any sign.
func TestSpoiledBodies(t *testing.T) {
	for content, want := range map[string]string{
		`{"size":8,"mimeType":"image/png","text":"\ufffdPNG\r\n"}`:                                "unspecified",
		`{"mimeType":"font/woff2","text":"wOF2\u0000\ufffd"}`:                                     "unspecified",
		`{"size":4,"mimeType":"image/png","text":"iVBORw==","encoding":"base64"}`:                 "",
		`{"size":8,"mimeType":"image/svg+xml; charset=utf-8","text":"<p>\ufffd</p>"}`:             "",
		`{"size":3,"mimeType":"text/plain","text":"\ufffd"}`:                                      "",
		`{"size":6,"mimeType":"image/png","text":"\udc89PNG\r\n"}`:                                "", // bytes as Python writes them
		`{"size":8,"mimeType":"image/png","text":"\u0089PNG\r\n\u001a\n","comment":"as Latin 1"}`: "",
	} {
		a := oddHAR(t, fmt.Sprintf(oddEntry, "x", content))
		e, told := byURL(a)["http://h.test/x"], strings.Join(a.Warnings(), "\n")
		if e == nil || e.Truncated != want || (want == "") != (len(e.Response.Body) > 0) || strings.Contains(told, "turned into text") != (want != "") {
			t.Errorf("%s: %+v, told %q; want it cut off by %q", content, e, told, want)
		}
	}
}
