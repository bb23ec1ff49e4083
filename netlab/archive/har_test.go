package archive

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const harHead = `{"log":{"version":"1.2","creator":{"name":"WebInspector","version":"537.36"},"entries":[`

func openText(t testing.TB, text string) (*Archive, error) {
	t.Helper()
	return OpenReader(strings.NewReader(text), int64(len(text)), Limits{Exchanges: 100})
}

// TestHARLongBodies: a body that is written piece by piece is written as one that is marshalled.
func TestHARLongBodies(t *testing.T) {
	a := everything(t)
	text := strings.Repeat("größer \"als\" <64> & \u2028 Ki\x7fB\n", 10_000)
	for i, kind := range []string{"text/plain", "text/html; charset=utf-16", "application/json"} {
		a.exchanges = append(a.exchanges, &lab.Exchange{ID: fmt.Sprint("urn:x:long", i), Method: "POST", URL: "https://a.test/long", Status: 200, Wall: wall,
			Request:  lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: kind}}, Body: []byte(text[i:])},
			Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: kind}}, Body: []byte(text)}})
	}
	var whole, pieces bytes.Buffer
	if err := writeHAR(&whole, a, harBody, 1<<40, new([]string)); err != nil {
		t.Fatal(err)
	}
	if err := writeHAR(&pieces, a, harBody, 0, new([]string)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(whole.String(), "\n"), strings.Split(pieces.String(), "\n")); diff != "" {
		t.Errorf("written piece by piece, the HAR differs (-whole +pieces):\n%.3000s", diff)
	}
}

func TestHARDialects(t *testing.T) {
	entry := func(request, response string) string {
		return harHead + `{"startedDateTime":"2026-01-02T03:04:05.678Z","time":12.5,"request":{"method":"GET","url":"https://a.example/x#frag","httpVersion":"h2",` + request +
			`},"response":{"status":200,"statusText":"",` + response + `},"timings":{"blocked":-1,"send":0.1,"wait":10.5,"receive":2},"serverIPAddress":"[2001:db8::1]"}]}}`
	}
	tests := []struct{ name, text, want, warns string }{
		{
			"Chrome",
			entry(
				`"headers":[{"name":":authority","value":"a.example"},{"name":"accept","value":"*/*"}]`,
				`"httpVersion":"http/2.0","headers":[{"name":"content-encoding","value":"br"},{"name":"content-length","value":"3"},{"name":"set-cookie","value":"a=1\nb=2"}],"content":{"size":5,"mimeType":"text/plain","text":"hello"}`,
			),
			"GET https://a.example/x h2 [{accept */*}] 200 [{content-length 5} {set-cookie a=1} {set-cookie b=2}] hello",
			"",
		},
		{
			"Firefox with a BOM",
			"\xef\xbb\xbf" + entry(
				`"headers":[]`,
				`"httpVersion":"HTTP/3","headers":[{"name":"content-type","value":"text/html; charset=koi8-r"}],"content":{"size":2,"mimeType":"text/html","text":"é"}`,
			),
			"GET https://a.example/x h3 [] 200 [{content-type text/html; charset=utf-8}] é",
			"",
		},
		{
			"base64",
			entry(
				`"headers":[]`,
				`"httpVersion":"HTTP/1.1","headers":[],"content":{"size":3,"mimeType":"image/png","text":"/wD+","encoding":"base64"}`,
			),
			"GET https://a.example/x http/1.1 [] 200 [{Content-Type image/png}] \xff\x00\xfe",
			"content.mimeType",
		},
		{"missing body", entry(`"headers":[]`, `"httpVersion":"HTTP/1.1","headers":[],"content":{"size":3,"mimeType":"image/png"}`),
			"GET https://a.example/x http/1.1 [] 200 [{Content-Type image/png}] ", "without a body"},
		{
			"Charles' form",
			entry(
				`"headers":[],"postData":{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"a","value":"1"},{"name":"b","value":"2"}]}`,
				`"httpVersion":"HTTP/1.1","headers":[],"content":{"size":0}`,
			),
			"GET https://a.example/x http/1.1 [] 200 [] ",
			"",
		},
		{
			"numbers with a point",
			entry(
				`"headers":[],"headersSize":12.0,"bodySize":-1.0`,
				`"httpVersion":"HTTP/1.1","headers":[],"bodySize":1e3,"content":{"size":2.0,"text":"hi"}`,
			),
			"GET https://a.example/x http/1.1 [] 200 [] hi",
			"",
		},
		{"aborted", strings.Replace(entry(`"headers":[]`, `"headers":[],"content":{}`), `"status":200`, `"status":0`, 1), "", "no answer"},
		{"failed", entry(`"headers":[]`, `"headers":[],"_error":"net::ERR_ABORTED","content":{}`), "", "ERR_ABORTED"},
		{
			"data URL",
			strings.Replace(entry(`"headers":[]`, `"headers":[],"content":{}`), "https://a.example/x#frag", "data:,x", 1),
			"",
			"scheme",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := openText(t, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, e := range a.Exchanges() {
				got = strings.Join(
					[]string{e.Method, e.URL, e.Protocol, list(e.Request.Header), "200", list(e.Response.Header), string(e.Response.Body)},
					" ",
				)
				if e.FirstByte.String() != "10.5ms" || e.Server.String() != "[2001:db8::1]:443" {
					t.Errorf("first byte %v, server %v; want 10.5ms, [2001:db8::1]:443", e.FirstByte, e.Server)
				}
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if warns := strings.Join(a.Warnings(), "\n"); tt.warns == "" && warns != "" || !strings.Contains(warns, tt.warns) {
				t.Errorf("Warnings() = %q, want %q", warns, tt.warns)
			}
		})
	}
	for text, says := range map[string]string{`{"a":1}`: "not a HAR", `{"log":`: "HAR", `{  }`: "not a HAR"} {
		if _, err := openText(t, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("open %s: %v, want an error with %q", text, err, says)
		}
	}
}

// withoutOwn is the HAR as tools see it that do not know our extensions.
func withoutOwn(text string) string { return strings.ReplaceAll(text, `"_eidetic":`, `"_unknown":`) }

func list(fields []lab.HeaderField) string {
	var out []string
	for _, f := range fields {
		out = append(out, "{"+f.Name+" "+f.Value+"}")
	}
	return "[" + strings.Join(out, " ") + "]"
}

// TestFormats: what is exported and imported again is the same, as far as the format goes.
func TestFormats(t *testing.T) {
	dir := t.TempDir()
	want := sample()
	a := New(want, sampleDNS(), nil, CreateOptions{Wall: wall, Title: "A title", Seed: 4})
	for i := range want {
		want[i].ID = "urn:x:" + want[i].URL
	}
	warc := filepath.Join(dir, "a.warc.gz")
	if err := WriteWARC(warc, a); err != nil {
		t.Fatal(err)
	}
	if err := WriteWARC(warc, a); err == nil {
		t.Error("WriteWARC over an existing file = nil error, want one")
	}
	wacz := filepath.Join(dir, "a.wacz")
	if err := os.WriteFile(wacz, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Save(wacz, a); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{warc, wacz} {
		got, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Exchanges(), addrEqual, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	var har bytes.Buffer
	if err := WriteHAR(&har, a); err != nil {
		t.Fatal(err)
	}
	own, err := openText(t, har.String())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, own.Exchanges(), addrEqual, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("HAR (-want +got):\n%s", diff)
	}
	got, err := openText(t, withoutOwn(har.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range got.Exchanges() {
		w := want[i]
		if w.Truncated != "" { // the half of a body that there is, is not the body
			if e.Truncated != w.Truncated || e.Response.Body != nil {
				t.Errorf("HAR entry %d, cut off: truncated %q, body %q; want %q, none", i, e.Truncated, e.Response.Body, w.Truncated)
			}
			continue
		}
		if e.Method != w.Method || e.URL != w.URL || e.Status != w.Status || !bytes.Equal(e.Response.Body, w.Response.Body) ||
			!bytes.Equal(e.Request.Body, w.Request.Body) ||
			e.Protocol != w.Protocol {
			t.Errorf("HAR entry %d is %+v, want %+v", i, e, w)
		}
	}
	if names := dirNames(t, dir); len(names) != 2 {
		t.Errorf("the files %q are left, want 2", names)
	}
}

func TestMerge(t *testing.T) {
	one, two := sample(), sample()
	for i := range one {
		one[i].ID, two[i].ID = "one"+one[i].URL, "two"+two[i].URL
	}
	a := Merge(
		New(one, nil, nil, CreateOptions{Seed: 1}),
		New(two, nil, nil, CreateOptions{Seed: 2}),
		New(one[:1], nil, nil, CreateOptions{}),
	)
	if n := len(a.Exchanges()); n != 8 || a.Options().Seed != 1 || a.Exchanges()[4].ID != two[0].ID || a.Exchanges()[7].Order != 7 ||
		two[0].Order != 0 {
		t.Errorf("Merge gives %d exchanges with %+v; want 8, in the order of the recordings, with the first one's seed", n, a.Options())
	}
}

// The exchanges of two imports have equal places in their files, and are others.
func TestMergeImports(t *testing.T) {
	entry := func(path, second, text string) string {
		return `{"startedDateTime":"2026-01-02T03:04:` + second + `Z","request":{"method":"GET","url":"https://a.example/` + path +
			`","httpVersion":"h2"},"response":{"status":200,"content":{"text":"` + text + `"}},"timings":{"wait":1,"receive":1}}`
	}
	dir := t.TempDir()
	list := make([]*Archive, 3)
	for i, text := range []string{
		harHead + entry("one", "05", "1") + `,` + entry("same", "07", "same") + `]}}`,
		harHead + entry("two", "05", "2") + `]}}`,
		harHead + entry("one", "05", "1") + `,` + entry("same", "07", "other") + `]}}`,
	} {
		a, err := openText(t, text)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := Save(path, a); err != nil {
			t.Fatal(err)
		}
		if list[i], err = Open(path); err != nil {
			t.Fatal(err)
		}
	}
	list[0] = list[0].WithRules([]Rule{{URL: "a", Ignore: []string{"x"}}})
	list[1] = list[1].WithRules([]Rule{{URL: "b", Ignore: []string{"y"}}, {URL: "a", Ignore: []string{"x"}}})
	a := Merge(list...)
	ids := map[string]bool{}
	var got []string
	for _, e := range a.Exchanges() {
		ids[e.ID] = true
		got = append(got, fmt.Sprint(e.URL[len("https://a.example/"):], " ", string(e.Response.Body), " ", e.Order, " ", e.Start))
	}
	want := []string{"one 1 0 0s", "same same 1 2s", "two 2 2 2.002s", "same other 4 4.004s"}
	if d := cmp.Diff(want, got); d != "" || len(ids) != len(got) {
		t.Errorf("%d IDs (-want +got):\n%s", len(ids), d)
	}
	if d := cmp.Diff([]Rule{{URL: "a", Ignore: []string{"x"}}, {URL: "b", Ignore: []string{"y"}}}, a.Options().Rules); d != "" {
		t.Errorf("rules (-want +got):\n%s", d)
	}
	path := filepath.Join(dir, "merged")
	if err := Save(path, a); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(path); err != nil || len(again.Exchanges()) != len(got) || len(again.Warnings()) > 0 {
		t.Errorf("open the merged archive again: %v, %v; want %d exchanges, no warning", err, again, len(got))
	}
}

// countedWrites counts the calls of Write.
type countedWrites struct {
	bytes.Buffer
	n int
}

func (c *countedWrites) Write(b []byte) (int, error) {
	c.n++
	return c.Buffer.Write(b)
}

// A body that decodes to more than is sensible is left out, and each exchange is
// written before the next one is decoded.
func TestHARBounds(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 1001)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	get := func(url, coding string, body []byte) *lab.Exchange {
		return &lab.Exchange{ID: url, Method: "GET", URL: url, Status: 200, Wall: wall, Protocol: "h2",
			Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Encoding", Value: coding}}, Body: body}}
	}
	list := []*lab.Exchange{
		get("http://a/bomb", "gzip", bomb.Bytes()),
		get("http://a/broken", "gzip", []byte("broken")),
		get("http://a/long", "identity", make([]byte, 2000)),
	}
	var out countedWrites
	if err := writeHAR(&out, New(list, nil, []Page{{URL: "http://a/", Title: `"entries": []`}}, CreateOptions{}), 1000, harLong, new([]string)); err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, out.Bytes(), "", "  "); err != nil || indented.String() != out.String() {
		t.Errorf("the JSON is not indented as encoding/json does it (%v):\n%s", err, out.String())
	}
	if out.n < len(list) {
		t.Errorf("%d writes for %d exchanges, want at least one for each", out.n, len(list))
	}
	got, err := openText(t, withoutOwn(out.String()))
	if err != nil {
		t.Fatalf("open the export: %v in %s", err, out.String())
	}
	for i, e := range got.Exchanges() {
		if gone := i < 2; len(got.Exchanges()) != 3 || gone != (e.Truncated != "") || gone != (len(e.Response.Body) == 0) {
			t.Errorf("%s: truncated %q, %d bytes; want the first two of three truncated, without bytes",
				e.URL, e.Truncated, len(e.Response.Body))
		}
	}

	var packed bytes.Buffer
	zhar := zlib.NewWriter(&packed)
	for range 100 {
		if _, err := zhar.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := zhar.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openText(t, packed.String()); !errors.Is(err, errLimit) {
		t.Errorf("%d bytes that decode to 100 MiB: %v, want %v", packed.Len(), err, errLimit)
	}
}

func FuzzHAR(f *testing.F) {
	const entry = `{"request":{"method":"GET","url":"http://a/"},"response":{"status":200,"content":{"text":"x"}}}`
	for _, text := range []string{
		"[" + entry + ",,{}]", entry + "\n" + entry, `{"a":{"log":{"entries":{"0":` + entry + "}}}}", `"{\"entries\":[]}"`, "// a\n{/* \" */\"entries\":[#]\n" + entry + "]}",
		"f(" + entry + ");\x00", ")]}'\n[" + entry + "]", "\xff\xfe[\x00]\x00", "\x00[\x00 \x00]",
	} {
		f.Add(text)
	}
	f.Add(harHead + `]}}`)
	f.Add(
		harHead + `{"request":{"method":"GET","url":"http://a/"},"response":{"status":200,"content":{"text":"x"}},"timings":{"wait":1e300}}]}}`,
	)
	f.Add(
		harHead + `{"request":{"method":"GET","url":"http://a/"},"response":{"status":200,"cookies":[{},{}],"headers":[{"name":"Set-Cookie","value":"a=1, b=2"}],"content":{"size":1,"text":"\udcff"}}}]}}`,
	)
	f.Add(
		harHead + `{"_resourceType":"websocket","_webSocketMessages":[{"type":"send","time":1e9,"opcode":1,"data":"x"},{"type":"receive","time":-5,"opcode":8,"data":"A+g="}],` +
			`"request":{"method":"GET","url":"wss://a/?a=1"},"response":{"status":101}}]}}`,
	)
	f.Add(
		harHead + `{"_eventSourceMessages":[{"time":1e9,"eventName":"a","eventId":7,"data":"x\ny"},{"time":-5}],"request":{"method":"POST","url":"http://a/","_content":{"text":"/w==","encoding":"base64"}},` +
			`"response":{"status":200,"headers":[{"name":"Content-Type","value":"text/event-stream"},{"name":"Set-Cookie","value":"a=1; x,b=2"}]}}]}}`,
	)
	f.Add(
		harHead + `{"pageref":"p","_eidetic":{"v":1,"id":"urn:x:1","order":3,"wall":"2026-01-02T03:04:05Z","chunks":[[5,1]],"socket":[{"data":"gQE="},{"data":"eA=="}]},` +
			`"request":{"method":"GET","url":"http://a/"},"response":{"status":200,"content":{"size":1,"text":"x"}}}],"pages":[{"id":"p","title":"http://a/"}],` +
			`"_eidetic":{"v":1,"seed":"5","rules":[{"url":"a","ignore":["b"]}],"dns":[{"name":"a"}],"imported":["x"]}}}`,
	)
	f.Add(
		harHead + `{"startedDateTime":"2026-01-02T03:04:05.678+0100","request":{"method":"GET","url":"http://a/","headers":[{"name":"If-None-Match","value":"x"}]},"response":{"status":304,"content":{"text":"x","mimeType":"text/html"}}}]}}`,
	)
	f.Add(`{"log":{"entries":[{"pageref":"p","request":{"method":"0","url":"http:"},"response":{"status":100}}],"pages":[{"id":"p"}]}}`)
	f.Add(
		harHead + `{"request":{"method":"GET","url":"http://a/"},"response":{"status":304,"content":{"text":"x","mimeType":" text/html"}}}]}}`,
	)
	f.Add("\x78\x9c\x03\x00\x00\x00\x00\x01")
	f.Fuzz(func(t *testing.T, text string) {
		var a *Archive
		var err error
		testlab.Bounded(t, 512<<20, func() {
			if a, err = openText(t, text); err == nil {
				Assess(a)
			}
		})
		if err != nil {
			return
		}
		first := exported(t, a)
		again, err := openText(t, first)
		if err != nil {
			t.Fatalf("open the export: %v", err)
		}
		if second := exported(t, again); second != first {
			t.Errorf("the second export differs (-first +second):\n%s", cmp.Diff(first, second))
		}
	})
}

// exported is the HAR of an archive.
func exported(t testing.TB, a *Archive) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHAR(&b, a); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// FuzzHARText: but for bytes that are no text, strings are those of encoding/json.
func FuzzHARText(f *testing.F) {
	for _, s := range []string{`x`, `\udcff`, `a\ud834\udd1eb`, `\\udcff`, `\ud834\udcff`, `\ud834\ud834\udc80\"`, `ö\n\u00f6`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		defer testlab.Input(t)()
		var want string
		var got harString
		err := json.Unmarshal([]byte(`"`+escaped+`"`), &want)
		if err2 := json.Unmarshal([]byte(`"`+escaped+`"`), &got); (err == nil) != (err2 == nil) {
			t.Fatalf("encoding/json: %v, harString: %v; want both or neither to fail", err, err2)
		}
		if !strings.Contains(want, "\ufffd") && want != string(got) {
			t.Errorf("harString = %q, want %q", got, want)
		}
	})
}

func TestHARText(t *testing.T) {
	for escaped, want := range map[string]string{
		`a\udcf6b`: "a\xf6b", `\udc80\udcff`: "\x80\xff", `\ud834\udd1e`: "𝄞", `\ud834\udcf6`: "\U0001d0f6", `\\udcf6`: `\udcf6`, `\ud834`: "\ufffd", `\udc7f`: "\ufffd",
	} {
		var got harString
		if err := json.Unmarshal([]byte(`"`+escaped+`"`), &got); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", escaped, got, err, want)
		}
	}
	for _, x := range []struct {
		text          string
		size          int64
		want          string
		recoded, same bool
	}{
		{"ö", 2, "ö", true, true}, {"ö", 1, "\xf6", false, true}, {"ö", 7, "ö", true, false}, {"☃ö", 2, "☃ö", true, false}, {"☃ö", 5, "☃ö", true, true},
		{"abc", 3, "abc", true, true}, {"abc", 6, "abc", true, true}, {"\xf6", 1, "\xf6", false, true}, {"", 0, "", false, true},
	} {
		if got := harString(x.text).wire(x.size); string(got.bytes) != x.want || got.recoded != x.recoded || got.same != x.same {
			t.Errorf("wire(%q, %d bytes) = %q, recoded %t, same %t; want %q, %t, %t",
				x.text, x.size, got.bytes, got.recoded, got.same, x.want, x.recoded, x.same)
		}
	}
}

// TestHARCharsets: a text that an exporter turned into Unicode is said to be
// UTF-8, against whatever the page names, and else its header stays.
func TestHARCharsets(t *testing.T) {
	for _, x := range []struct {
		kind, text string
		size       int
		want       string
	}{
		{"text/html", "<meta charset=shift_jis>日本", 28, "text/html; charset=utf-8"},
		{"text/html", "<meta charset=utf-8>日本", 26, "text/html"},
		{"text/html", "<meta charset=shift_jis>ASCII", 0, "text/html"},
		{"text/html; charset=\"Shift_JIS\"", "日本", 4, "text/html; charset=utf-8"},
		{"application/xhtml+xml", "<?xml version='1.0' encoding='shift_jis'?><p>日本</p>", 53, "application/xhtml+xml; charset=utf-8"},
		{"application/json", "\"日本\"", 0, "application/json"},
	} {
		text := harString(x.text)
		e := &lab.Exchange{
			Method:   "GET",
			Status:   200,
			Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: x.kind}}},
		}
		if err := (&harContent{Size: harInt(x.size), Text: &text}).fill(e); err != nil {
			t.Fatal(err)
		}
		if got := e.Response.Get("Content-Type"); got != x.want || string(e.Response.Body) != x.text {
			t.Errorf("%s %q: Content-Type %s, body %q; want %s, the text", x.kind, x.text, got, e.Response.Body, x.want)
		}
	}
}

// TestHARKeepsCharsets: what is exported and read again is the same bytes, of
// the same charset.
func TestHARKeepsCharsets(t *testing.T) {
	for kind, body := range map[string]string{
		"text/html; charset=iso-2022-jp":   "\x1b$BF|K\\\x1b(B", // 日本, all of it ASCII
		"text/html; charset=iso-8859-1":    "\xc3\xa9",          // two letters, and UTF-8 by chance
		"text/html; charset=utf-16le":      "a\x00b\x00",
		"text/html; charset=UTF-8":         "é",
		"text/html":                        "<meta charset=iso-2022-jp>\x1b$BF|K\\\x1b(B",
		"text/plain; charset=\"us-ascii\"": "ASCII",
	} {
		e := &lab.Exchange{ID: "x", Method: "GET", URL: "https://a.example/", Protocol: "h2", Status: 200, Wall: wall,
			Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: kind}}, Body: []byte(body)}}
		var har bytes.Buffer
		if err := WriteHAR(&har, New([]*lab.Exchange{e}, nil, nil, CreateOptions{})); err != nil {
			t.Fatal(err)
		}
		a, err := openText(t, har.String())
		if err != nil {
			t.Fatal(err)
		}
		got := a.Exchanges()[0].Response
		if string(got.Body) != body || !strings.EqualFold(got.Get("Content-Type"), kind) {
			t.Errorf("%s %q: Content-Type %s, body %q; want them unchanged", kind, body, got.Get("Content-Type"), got.Body)
		}
	}
}

// TestHARBroken: what an origin refused or broke is kept, and fails in a replay too; what the page gave up is left out.
func TestHARBroken(t *testing.T) {
	const head = `{"log":{"entries":[`
	entry := func(n int, fields string) string {
		return fmt.Sprintf(`{"startedDateTime":"2026-01-02T03:04:05Z","time":12.5,"request":{"method":"POST","url":"https://a.test/%d","headers":[{"name":"x","value":"y"}]},`+
			`"response":{"status":0,"headers":[],"content":{},%s}},`, n, fields)
	}
	whole := entry(9, `"status":200`)
	text := head + entry(0, `"_error":"net::ERR_CONNECTION_REFUSED"`) + entry(1, `"_failureText":"net::ERR_EMPTY_RESPONSE"`) +
		entry(2, `"_error":"net::ERR_ABORTED"`) + entry(3, `"_error":"net::ERR_BLOCKED_BY_CLIENT"`) +
		entry(4, `"status":200,"_error":"net::ERR_CONNECTION_RESET"`) + strings.TrimSuffix(whole, ",") + `]}}`
	a, err := openText(t, text)
	if err != nil {
		t.Fatal(err)
	}
	look := func(a *Archive) (got string) {
		for _, e := range a.Exchanges() {
			got += fmt.Sprintln(e.Method, e.URL, e.Status, e.IsFailed(), e.FirstByte, e.Request.Get("x"))
		}
		return got
	}
	want := "POST https://a.test/0 0 true 12.5ms y\nPOST https://a.test/1 0 true 12.5ms y\nPOST https://a.test/9 200 false 0s y\n"
	if got := look(a); got != want {
		t.Errorf("the exchanges are\n%swant\n%s", got, want)
	}
	if says := strings.Join(a.Warnings(), "\n"); !strings.Contains(says, "1 × failed (net::ERR_EMPTY_RESPONSE), and so in replays") ||
		!strings.Contains(says, "it failed: net::ERR_CONNECTION_RESET") {
		t.Errorf("it warns %q", says)
	}
	var har bytes.Buffer
	if err := WriteHAR(&har, a); err != nil {
		t.Fatal(err)
	}
	again, err := openText(t, har.String())
	if err != nil || look(again) != want || !strings.Contains(har.String(), brokenOrigin) {
		t.Errorf("written and read again (%v):\n%s", err, look(again))
	}
}

// TestHARCodedSize: Firefox states how many bytes of a small body came, which is more than the text has if the coding
// made it longer.
func TestHARCodedSize(t *testing.T) {
	entry := func(fields, size string) string {
		return `{"startedDateTime":"2026-01-02T03:04:05Z","request":{"method":"POST","url":"https://a.test/quote","headers":[],"bodySize":94},` +
			`"response":{"status":200,"headers":[` + fields + `],"bodySize":300,"content":{"mimeType":"application/json","size":` + size + `,"text":"{\"accepted_bytes\":94}"}}}`
	}
	const length, gzip = `{"name":"content-length","value":"84"}`, `{"name":"content-encoding","value":"gzip"},`
	for _, c := range []struct{ fields, size, truncated string }{
		{gzip + length, "84", ""}, {length, "84", "length"}, {gzip + length, "200", "length"},
	} {
		a, err := openText(t, `{"log":{"entries":[`+entry(c.fields, c.size)+`]}}`)
		if err != nil {
			t.Fatal(err)
		}
		e := a.Exchanges()[0]
		if e.Truncated != c.truncated || c.truncated == "" && e.Response.Get("Content-Length") != "21" {
			t.Errorf("%s, size %s: truncated %q, Content-Length %q; want %q", c.fields, c.size, e.Truncated, e.Response.Get("Content-Length"), c.truncated)
		}
	}
}
