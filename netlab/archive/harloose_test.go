package archive

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/netlab/inject"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// TestHARForms: what exporters write instead of HAR 1.2 is read, or costs its entry and is told.
func TestHARForms(t *testing.T) {
	entry := func(old, other string) string {
		text := fmt.Sprintf(oddEntry, "odd", `{"size":3,"mimeType":"text/javascript","text":"ab>"}`)
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in the entry", old)
		}
		return strings.Replace(text, old, other, 1)
	}
	const headers, content = `[{"name":"Content-Type","value":"text/javascript"}]`, `"text":"ab>"`
	for name, one := range map[string]struct{ entry, told string }{
		"fields in an object":        {entry(headers, `{"Content-Type":["text/javascript"]}`), ""},
		"fields as pairs":            {entry(headers, `[["Content-Type","text/javascript"],null]`), ""},
		"fields as lines":            {entry(headers, `["Content-Type: text/javascript"]`), ""},
		"fields as a text":           {entry(headers, `"Content-Type: text/javascript\r\nX-A: 1"`), ""},
		"fields with keys":           {entry(headers, `[{"key":"Content-Type","value":"text/javascript"}]`), ""},
		"a field that is no pair":    {entry(headers, `[{"name":"Content-Type","value":"text/javascript"},7]`), "header fields that cannot be read"},
		"cookies as texts":           {entry(`"status":200,`, `"status":200,"cookies":["a=1"],`), ""},
		"a status in words":          {entry(`"status":200,`, `"status":"200 OK",`), ""},
		"a method in lower case":     {entry(`"GET"`, `" get"`), ""},
		"blanks around the address":  {entry(`"http://h.test/odd"`, `" http://h.test/odd\n"`), ""},
		"no number":                  {entry(`"time":1`, `"time":NaN,"_x":[-Infinity,undefined,]`), ""},
		"a line end in a text":       {entry(`"status":200`, "\"statusText\":\"a\n\\x\",\"status\":200"), ""},
		"a text that is an object":   {entry(`"headers":[]`, `"headers":[],"postData":{"text":{"a":1}}`), ""},
		"an encoding that is none":   {entry(content, content+`,"encoding":"utf-8"`), ""},
		"base64 in capitals":         {entry(content, `"text":"YWI-","encoding":"BASE64"`), ""},
		"base64 in a data URL":       {entry(content, `"text":"data:a/b;base64,YW I+\r\n","encoding":"base64"`), ""},
		"the body for the content":   {entry(`{"size":3,"mimeType":"text/javascript","text":"ab>"}`, `"ab>"`), ""},
		"a time that none takes":     {entry(`"time":1`, `"time":1,"timings":{"wait":1e300}`), "more than a day (1e+300 ms), which is not used"},
		"a date that cannot be read": {entry("2026-05-01T12:00:00Z", "1/5/26"), "a date that cannot be read"},
	} {
		a := oddHAR(t, fmt.Sprintf(oddEntry, "before", `{}`), one.entry, fmt.Sprintf(oddEntry, "after", `{}`))
		e, told := byURL(a)["http://h.test/odd"], strings.Join(a.Warnings(), "\n")
		if e == nil || string(e.Response.Body) != "ab>" || e.Method != "GET" || e.Status != 200 || e.Response.Get("Content-Type") != "text/javascript" ||
			len(a.Exchanges()) != 3 || a.Lost() != 0 || (one.told == "") != (told == "") || !strings.Contains(told, one.told) {
			t.Errorf("%s: read %+v of %d exchanges, told %q; want the entry whole, and told %q", name, e, len(a.Exchanges()), told, one.told)
		}
		if e != nil && !e.Wall.Equal(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: its time is %v; want the entry's, or that of the entry before it", name, e.Wall)
		}
	}
	for _, content := range []string{`null`, `[1]`, `7`, `{"mimeType":[]}`} { // and what stands behind it is read
		a := oddHAR(t, entry(`{"size":3,"mimeType":"text/javascript","text":"ab>"}`, content+`,"bodySize":9`))
		if e := byURL(a)["http://h.test/odd"]; e == nil || e.Truncated == "" || (content != "null") != strings.Contains(fmt.Sprint(a.Warnings()), "another kind") {
			t.Errorf("the content %s: read %+v, told %q; want it cut off, and told what is not used", content, e, a.Warnings())
		}
	}
	for _, url := range []string{"/rel", "h.test/rel", "//h.test/rel", ""} {
		a := oddHAR(t, entry(`"http://h.test/odd"`, `"`+url+`"`), fmt.Sprintf(oddEntry, "after", `{}`))
		if len(a.Exchanges()) != 1 || a.Lost() != 1 || !strings.Contains(fmt.Sprint(a.Warnings()), "not absolute") {
			t.Errorf("the address %q: %d exchanges, %d lost, told %q; want it left out and named", url, len(a.Exchanges()), a.Lost(), a.Warnings())
		}
	}
	a := oddHAR(t, entry(`"status":200`, `"status":2 00`), fmt.Sprintf(oddEntry, "after", `{}`))
	if len(a.Exchanges()) != 1 || a.Lost() != 1 || !strings.Contains(fmt.Sprint(a.Warnings()), "entry 0") {
		t.Errorf("an entry that is no JSON: %d exchanges, %d lost, told %q; want it left out and named", len(a.Exchanges()), a.Lost(), a.Warnings())
	}
}

// TestHARWireBodies: proxies keep bodies with their content coding, and some write Base64 and do not say so.
func TestHARWireBodies(t *testing.T) {
	const page = "<p>a page that a proxy saw</p>"
	for coding, pack := range map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	} {
		var packed bytes.Buffer
		z := pack(&packed)
		_, _ = z.Write([]byte(page)) // to memory
		_ = z.Close()
		coded := packed.Bytes()
		for name, body := range map[string][]byte{coding: coded, "decoded": []byte(page), "decoded, no text": append([]byte("\xff\xfe"), page...)} {
			text := fmt.Sprintf(oddEntry, "coded", fmt.Sprintf(`{"size":%d,"encoding":"base64","text":%q}`, len(body), base64.StdEncoding.EncodeToString(body)))
			text = strings.Replace(text, `[{"name":"Content-Type"`, `[{"name":"Content-Encoding","value":"`+coding+`"},{"name":"Content-Type"`, 1)
			e := byURL(oddHAR(t, text))["http://h.test/coded"]
			want := ""
			if name == coding {
				want = coding
			}
			if e == nil || !bytes.Equal(e.Response.Body, body) || e.Response.Get("Content-Encoding") != want {
				t.Errorf("%s, a body that is %s: read %+v; want its bytes, with the coding %q", coding, name, e, want)
			}
		}
	}
	a := oddHAR(t, fmt.Sprintf(oddEntry, "p.png", `{"size":8,"mimeType":"image/png","text":"iVBORw0KGgo="}`),
		fmt.Sprintf(oddEntry, "text", `{"size":12,"mimeType":"text/plain","text":"iVBORw0KGgo="}`))
	if got := byURL(a); string(got["http://h.test/p.png"].Response.Body) != "\x89PNG\r\n\x1a\n" || len(got["http://h.test/text"].Response.Body) != 12 {
		t.Errorf("Base64 that is not said: %q, %q; want it decoded where the size tells it", got["http://h.test/p.png"].Response.Body, got["http://h.test/text"].Response.Body)
	}
}

// TestHARLargeCodedBodies: a body that decodes to more than a body may has its coding nevertheless.
func TestHARLargeCodedBodies(t *testing.T) {
	for coding, pack := range map[string]func(io.Writer) (io.WriteCloser, error){
		"gzip":    func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"br":      func(w io.Writer) (io.WriteCloser, error) { return brotli.NewWriterLevel(w, 0), nil },
		"deflate": func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil },
		"zstd":    func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	} {
		var packed bytes.Buffer
		z, err := pack(&packed)
		if err != nil {
			t.Fatal(err)
		}
		const size = 32 << 20
		for range size >> 20 {
			_, _ = z.Write(make([]byte, 1<<20)) // to memory
		}
		_ = z.Close()
		if most := inject.MaxDecoded(int64(packed.Len())); most >= size {
			t.Fatalf("%s: %d bytes may decode to %d; the test needs fewer than %d", coding, packed.Len(), most, size)
		}
		body := base64.StdEncoding.EncodeToString(packed.Bytes())
		text := fmt.Sprintf(oddEntry, "large", fmt.Sprintf(`{"encoding":"base64","text":%q}`, body))
		text = strings.Replace(text, `"headers":[{`, `"headers":[{"name":"Content-Encoding","value":"`+coding+`"},{`, 1)
		e := byURL(oddHAR(t, text))["http://h.test/large"]
		if e == nil {
			t.Fatalf("%s: no exchange", coding)
		}
		if got := e.Response.Get("Content-Encoding"); got != coding {
			t.Errorf("a large body in %s has the Content-Encoding %q; want %q", coding, got, coding)
		}
	}
}

// TestHARFiles: the file around the entries is odd.
func TestHARFiles(t *testing.T) {
	one := fmt.Sprintf(oddEntry, "one", `{"text":"ż"}`)
	log := `{"pages":["x",{"id":1}],"creator":{"name":5},"entries":[` + one + `,]}`
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(`{"log":` + log + `}`)
	if err != nil {
		t.Fatal(err)
	}
	har, two := `{"log":`+log+`}`, fmt.Sprintf(oddEntry, "two", `{}`)
	encode := func(e encoding.Encoding) string {
		text, err := e.NewEncoder().String(har)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	quoted, err := json.Marshal(har)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"odd parts": har, "a log alone": log, "UTF-16": wide, "a mark and line ends": "\xef\xbb\xbf\r\n\r\n\r\n" + log,
		"UTF-16 without a mark":  encode(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)),
		"the other order":        encode(unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)),
		"UTF-32":                 encode(utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)),
		"two marks":              "\xef\xbb\xbf\xef\xbb\xbf" + har,
		"zstd":                   string(z.EncodeAll([]byte(har), nil)),
		"a list":                 "[" + one + "," + two + "]",
		"an entry":               one,
		"lines of entries":       one + "\n" + two + "\n",
		"lines of HARs":          `{"log":{"entries":[` + two + "]}}\n" + har,
		"a list of HARs":         "[" + har + `,{"log":{"entries":[` + two + "]}}]",
		"entries by number":      `{"log":{"entries":{"0":` + one + `,"1":` + two + "}}}",
		"in another answer":      `{"ok":true,"data":{"har":` + har + "}}",
		"comments":               "// saved \"here\" {\n/* [ * / \" */" + strings.Replace(har, `"entries":[`, "\"entries\": // a\n[ # b \"\n /**/", 1) + " // end",
		"comments of a minifier": strings.Replace(strings.Replace(har, `"entries":[`, `"entries":/* a " */[/* b */`, 1), `"log":`, `"log"://c`+"\n", 1) + "//d",
		"a comment in an entry":  strings.Replace(har, `"time":1`, "/* ms } */ \"time\":1 // \"\n", 1),
		"commas":                 strings.Replace(har, `"entries":[`, `"entries":[,`, 1) + ",",
		"no comma":               `{"log":{"entries":[` + one + "\n" + two + "]}}",
		"a script":               "onInputData(" + har + ");",
		"a module":               "module.exports =\n" + har + ";\n",
		"a prefix":               ")]}',\n" + har,
		"a text of JSON":         string(quoted),
		"zeros behind":           har + "\x00\x00\x00",
	} {
		a := openOdd(t, text)
		e := byURL(a)["http://h.test/one"]
		if e == nil || string(e.Response.Body) != "ż" || a.Lost() != 0 {
			t.Errorf("%s: read %+v, lost %d (%q); want the entry", name, e, a.Lost(), a.Warnings())
		}
		if strings.Contains(text, "/two") && byURL(a)["http://h.test/two"] == nil {
			t.Errorf("%s: the second entry is missing", name)
		}
	}
	page := func(title string) string {
		return fmt.Sprintf(`{"log":{"pages":[{"id":"page_1","title":%q}],"entries":[{"pageref":"page_1",%s]}}`, title,
			strings.Replace(fmt.Sprintf(oddEntry, title, `{"text":"<p>","mimeType":"text/html"}`), "{", "", 1))
	}
	if a := openOdd(t, page("a")+page("b")); len(a.Pages()) != 2 || a.Pages()[0].URL != "http://h.test/a" || a.Pages()[1].URL != "http://h.test/b" {
		t.Errorf("two HARs of which each has a page_1: pages %+v; want one of each", a.Pages())
	}
}

// TestStrayQuotes: quotes that are not escaped cost their entry alone, whatever stands between them.
func TestStrayQuotes(t *testing.T) {
	for _, quoted := range []string{"https://h.test/x", "a#b", "a/*b", "//cdn.h.test", "url(#a)", "n=1//b"} {
		damaged := fmt.Sprintf(oddEntry, "odd", `{"text":"see "`+quoted+`" now"}`)
		text := `{"log":{"entries":[` + damaged + "," + fmt.Sprintf(oddEntry, "one", `{}`) + "]}}"
		a, err := OpenReader(strings.NewReader(text), int64(len(text)), Limits{})
		if err != nil {
			t.Errorf("%s between stray quotes: %v", quoted, err)
			continue
		}
		if byURL(a)["http://h.test/one"] == nil || len(a.Exchanges()) != 1 || a.Lost() != 1 {
			t.Errorf("%s between stray quotes: read %d entries, lost %d; want the other one, and one lost", quoted, len(a.Exchanges()), a.Lost())
		}
	}
}

// manyNames are fields of a JSON object.
func manyNames(n int) string {
	var fields []string
	for i := range n {
		fields = append(fields, fmt.Sprintf(`"name %d":0`, i))
	}
	return strings.Join(fields, ",")
}

// TestBodyInPieces: a body with a content coding, as Polly.JS keeps it: a list of the pieces that came, each in Base64.
func TestBodyInPieces(t *testing.T) {
	coded := gzipped(t, "body of pieces")
	b64 := base64.StdEncoding.EncodeToString
	entry := func(name, text string) string {
		return fmt.Sprintf(`{"request":{"method":"GET","url":"http://h.test/%s"},"response":{"status":200,"headers":[{"name":"content-encoding",`+
			`"value":"gzip"}],"content":{"size":%d,"encoding":"base64","text":%s}}}`, name, len(coded), marshal(text))
	}
	pieces := fmt.Sprintf(`["%s", "%s","%s"]`, b64(coded[:5]), b64(coded[5:6]), b64(coded[6:]))
	a, err := openText(t, harHead+entry("whole", pieces)+","+entry("none", "[]")+","+entry("number", "[1]")+","+entry("open", `["AA=="`)+`]}}`)
	if err != nil {
		t.Fatal(err)
	}
	got := byURL(a)
	if e := got["http://h.test/whole"]; e == nil || !bytes.Equal(e.Response.Body, coded) || e.Response.Get("Content-Encoding") != "gzip" {
		t.Errorf("the body in three pieces: got %+v; want %q with its content coding", e, coded)
	}
	if e := got["http://h.test/none"]; e == nil || len(e.Response.Body) != 0 {
		t.Errorf("the body of no piece: got %+v; want an empty one", e)
	}
	if a.Lost() != 2 {
		t.Errorf("Lost() = %d, %q; want 2: a number is no piece, and a list must end", a.Lost(), a.Warnings())
	}
}

// TestNoRecording: what is none of the formats is named, with what to do.
func TestNoRecording(t *testing.T) {
	for text, want := range map[string]string{
		`{"traceEvents":[{"ph":"X"}]}`:                                    "Performance panel",
		`{"constants":{},"events":[{"type":1}]}`:                          "network log",
		`{"constants":{` + manyNames(200) + `},"events":[{"type":1}]}`:    "network log",
		`[{"method":"Network.requestWillBeSent","params":{}}]`:            "DevTools protocol",
		`[{"info":{"url":"http://a/"},"browserScripts":[]}]`:              "browsertime.har",
		`{"meta":{"version":30},"libs":[],"threads":[]}`:                  "Firefox Profiler",
		`[{"ph":"X","ts":1,"name":"a"}]`:                                  "a trace",
		`{"resourceSpans":[]}`:                                            "--otlp",
		`{"what":"else"}`:                                                 "save a HAR",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n":                               "save a HAR",
		"== Info:   Trying 192.0.2.1:80...\n":                             "trace of curl",
		"<!DOCTYPE html> <html><!--\n Page saved with SingleFile":         "SingleFile",
		"From: \"Saved by Windows Internet Explorer 9\"":                  "MHTML",
		`{"info":{},"item":[{"request":{"method":"GET"},"response":[]}]}`: "Postman",
		"{\"type\":\"Metric\"}\n{\"metric\":\"x\",\"type\":\"Point\"}\n":  "k6",
		"5:9:websocket;0:~8:response;3:abc}":                              "its values are not those of mitmproxy",
		"<?xml version=\"1.0\"?>\n<items burpVersion=\"1\">":              "Burp",
		"<!DOCTYPE html><title>Sign in</title>":                           "HTML",
		"\xfd7zXZ\x00\x00\x04":                                            "xz -d",
		"a.har" + strings.Repeat("\x00", 252) + "ustar":                   "tar",
		"\n\r\r\n\x1c\x00\x00\x00M<+\x1a":                                 "pcap",
		"version https://git-lfs.github.com/spec/v1\n":                    "git lfs pull",
		`{"openapi":"3.1.0","paths":{}}`:                                  "OpenAPI",
		`{"swagger":"2.0","paths":{}}`:                                    "OpenAPI",
		`{"_type":"export","__export_format":4,"resources":[]}`:           "Insomnia",
		`{"lighthouseVersion":"12.0.0","audits":{}}`:                      "Lighthouse",
		`{"title":"a","steps":[{"type":"click"}]}`:                        "DevTools Recorder",
		"BZh91AY&SY":                       "bzip2",
		"7z\xbc\xaf\x27\x1c\x00\x04":       "7z file",
		"Rar!\x1a\x07\x01\x00":             "RAR",
		"\x04\x22\x4d\x18\x64\x40":         "lz4 -d",
		"\xd4\xc3\xb2\xa1\x02\x00\x04\x00": "pcap",
		"\xa1\xb2\xc3\xd4\x00\x02\x00\x04": "pcap",
		"\x4d\x3c\xb2\xa1\x02\x00\x04\x00": "pcap",
		"\xac\xed\x00\x05sr":               "a session of Charles",
		"\xa1\xb2\x3c\x4d\x00\x02\x00\x04": "pcap",
		"ZIM\x04\x06\x00\x00\x00":          "Kiwix",
		"\x86H🌐📦Db2\x00\x00":               "a Web Bundle",
		"bplist00\xd1\x01":                 "Safari",
		"From: <Saved by Blink>\r\nSnapshot-Content-Location: http://a/":   "MHTML",
		"SQLite format 3\x00\x10\x00":                                      "SQLite",
		"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n":               "one answer of a server",
		" CDX N b a m s k r M S V g\ncom,example)/ 20260101 http://a/":     "an index of WARC files",
		"com,example)/a 20260101100000 {\"url\":\"http://example.com/a\"}": "an index of WARC files",
		`{"profile":"multi-wacz-package","resources":[]}`:                  "import the WACZ",
		"<?xml version=\"1.0\"?><rss>":                                     "XML",
		"<html><title>Sign in</title>":                                     "HTML",
		"\x00\x00\x00\x00\x00":                                             "blanks",
		`{"a":{`:                                                           "unexpected EOF",
		"\n \n\t ":                                                         "blanks",
		"plain text":                                                       "starts with",
	} {
		_, err := OpenReader(strings.NewReader(text), int64(len(text)), Limits{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v; want an error with %q", text, err, want)
		}
	}
}

func TestHARTimes(t *testing.T) {
	want := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for _, text := range []string{
		"2026-03-01T10:00:00Z", "2026-03-01T15:30:00+0530", "2026-03-01 10:00:00", "2026-03-01 11:00:00.000 +0100", "2026-03-01T10:00:00,000Z",
		"Sun Mar 01 2026 11:00:00 GMT+0100 (CET)", "Sun, 01 Mar 2026 10:00:00 GMT", "/Date(1772359200000+0100)/", "1772359200", "1772359200000", " 1772359200.0 ",
	} {
		if got := harTime(text); !got.Equal(want) {
			t.Errorf("harTime(%q) = %v, want %v", text, got, want)
		}
	}
	if texts := []string{"", "soon", "01/02/2026", "/Date()/", "NaN"}; slices.ContainsFunc(texts, func(text string) bool { return !harTime(text).IsZero() }) {
		t.Error("a text that is no date has a time")
	}
}

// TestHARDatesOfAnotherCentury: an entry whose year is wrong keeps its place, and the page begins when its document does.
func TestHARDatesOfAnotherCentury(t *testing.T) {
	const at = "2026-05-01T12:00:00Z"
	for _, wrong := range []string{"1926-05-01T12:00:00Z", "2126-05-01T12:00:00Z", "1970-01-01T00:00:00Z", "9999-01-01T00:00:00Z"} {
		odd := strings.Replace(fmt.Sprintf(oddEntry, "odd", `{}`), at, wrong, 1)
		a := oddHAR(t, fmt.Sprintf(oddEntry, "before", `{}`), odd, fmt.Sprintf(oddEntry, "after", `{}`))
		for i, e := range a.Exchanges() {
			if e.Order != i || e.Start != 0 || e.Wall.Format(time.RFC3339) != at {
				t.Errorf("with a date of %s, %s is exchange %d, after %v, at %v; want %d, 0 and %s", wrong, e.URL, e.Order, e.Start, e.Wall, i, at)
			}
		}
		if told := strings.Join(a.Warnings(), " "); len(a.Exchanges()) != 3 || !strings.Contains(told, "decades from most others") {
			t.Errorf("a date of %s: %d exchanges, told %q; want 3, and that the date is not used", wrong, len(a.Exchanges()), told)
		}
	}
}
