package archive

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const harHead = `{"log":{"version":"1.2","creator":{"name":"WebInspector","version":"537.36"},"entries":[`

func openText(t testing.TB, text string) (*Archive, error) {
	t.Helper()
	return OpenReader(strings.NewReader(text), int64(len(text)), Limits{Exchanges: 100})
}

func TestHARDialects(t *testing.T) {
	entry := func(request, response string) string {
		return harHead + `{"startedDateTime":"2026-01-02T03:04:05.678Z","time":12.5,"request":{"method":"GET","url":"https://a.example/x#frag","httpVersion":"h2",` + request +
			`},"response":{"status":200,"statusText":"",` + response + `},"timings":{"blocked":-1,"send":0.1,"wait":10.5,"receive":2},"serverIPAddress":"[2001:db8::1]"}]}}`
	}
	tests := []struct{ name, text, want, warns string }{
		{"Chrome", entry(`"headers":[{"name":":authority","value":"a.example"},{"name":"accept","value":"*/*"}]`, `"httpVersion":"http/2.0","headers":[{"name":"content-encoding","value":"br"},{"name":"content-length","value":"3"},{"name":"set-cookie","value":"a=1\nb=2"}],"content":{"size":5,"mimeType":"text/plain","text":"hello"}`),
			"GET https://a.example/x h2 [{accept */*}] 200 [{content-length 5} {set-cookie a=1} {set-cookie b=2}] hello", ""},
		{"Firefox with a BOM", "\xef\xbb\xbf" + entry(`"headers":[]`, `"httpVersion":"HTTP/3","headers":[{"name":"content-type","value":"text/html; charset=koi8-r"}],"content":{"size":2,"mimeType":"text/html","text":"é"}`),
			"GET https://a.example/x h3 [] 200 [{content-type text/html; charset=utf-8}] é", ""},
		{"base64", entry(`"headers":[]`, `"httpVersion":"HTTP/1.1","headers":[],"content":{"size":3,"mimeType":"image/png","text":"/wD+","encoding":"base64"}`),
			"GET https://a.example/x http/1.1 [] 200 [] \xff\x00\xfe", ""},
		{"missing body", entry(`"headers":[]`, `"httpVersion":"HTTP/1.1","headers":[],"content":{"size":3,"mimeType":"image/png"}`),
			"GET https://a.example/x http/1.1 [] 200 [] ", "has no body"},
		{"Charles' form", entry(`"headers":[],"postData":{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"a","value":"1"},{"name":"b","value":"2"}]}`, `"httpVersion":"HTTP/1.1","headers":[],"content":{"size":0}`),
			"GET https://a.example/x http/1.1 [] 200 [] ", ""},
		{"aborted", strings.Replace(entry(`"headers":[]`, `"headers":[],"content":{}`), `"status":200`, `"status":0`, 1), "", "no answer"},
		{"failed", entry(`"headers":[]`, `"headers":[],"_error":"net::ERR_ABORTED","content":{}`), "", "ERR_ABORTED"},
		{"data URL", strings.Replace(entry(`"headers":[]`, `"headers":[],"content":{}`), "https://a.example/x#frag", "data:,x", 1), "", "scheme"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := openText(t, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, e := range a.Exchanges() {
				got = strings.Join([]string{e.Method, e.URL, e.Protocol, list(e.Request.Header), "200", list(e.Response.Header), string(e.Response.Body)}, " ")
				if e.FirstByte.String() != "10.5ms" || e.Server.String() != "[2001:db8::1]:443" {
					t.Errorf("first byte %v, server %v", e.FirstByte, e.Server)
				}
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if warns := strings.Join(a.Warnings(), "\n"); tt.warns == "" && warns != "" || !strings.Contains(warns, tt.warns) {
				t.Errorf("warnings %q", warns)
			}
		})
	}
	for text, says := range map[string]string{`{"a":1}`: "not a HAR", `{"log":`: "HAR", `{  }`: "not a HAR"} {
		if _, err := openText(t, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

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
		t.Error("an export went over a file that was there")
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
	got, err := openText(t, har.String())
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range got.Exchanges() {
		w := want[i]
		if e.Method != w.Method || e.URL != w.URL || e.Status != w.Status || !bytes.Equal(e.Response.Body, w.Response.Body) || !bytes.Equal(e.Request.Body, w.Request.Body) || e.Protocol != w.Protocol {
			t.Errorf("HAR entry %d: %+v", i, e)
		}
	}
	if names := dirNames(t, dir); len(names) != 2 {
		t.Errorf("files left: %q", names)
	}
}

func TestMerge(t *testing.T) {
	one, two := sample(), sample()
	for i := range one {
		one[i].ID, two[i].ID = "one"+one[i].URL, "two"+two[i].URL
	}
	a := Merge(New(one, nil, nil, CreateOptions{Seed: 1}), New(two, nil, nil, CreateOptions{Seed: 2}), New(one[:1], nil, nil, CreateOptions{}))
	if n := len(a.Exchanges()); n != 8 || a.Options().Seed != 1 || a.Exchanges()[4].ID != two[0].ID || a.Exchanges()[7].Order != 7 || two[0].Order != 0 {
		t.Errorf("%d exchanges, %+v", n, a.Options())
	}
}

func TestAssess(t *testing.T) {
	get := func(url string, status int, kind, body string) *lab.Exchange {
		return &lab.Exchange{ID: url, Method: "GET", URL: url, Status: status, Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: kind}}, Body: []byte(body)}}
	}
	page := get("https://a.example/", 200, "text/html", `<base href="/b/"><script src=x.js></script><link rel=stylesheet href="/y.css"><img src="data:,x"><img src=lazy.png loading=lazy>`)
	cut := get("https://a.example/cut", 200, "image/png", "half")
	cut.Truncated = "disconnect"
	zip := get("https://a.example/z", 200, "text/plain", "not gzip")
	zip.Response.Header = append(zip.Response.Header, lab.HeaderField{Name: "Content-Encoding", Value: "gzip"})
	gone := get("https://a.example/gone", 404, "text/html", "x")
	pages := []Page{{URL: page.URL}}
	tests := []struct {
		name  string
		list  []*lab.Exchange
		score float64
		kinds string
	}{
		{"good", []*lab.Exchange{page, get("https://a.example/b/x.js", 200, "text/javascript", ""), get("https://a.example/y.css", 200, "text/css", "")}, 1, ""},
		{"two missing", []*lab.Exchange{page}, 1.0 / 3, "missing missing"},
		{"cut, broken, gone", []*lab.Exchange{cut, zip, gone, get("https://a.example/ok", 200, "text/plain", "ok")}, 0.25, "truncated undecodable error"},
		{"the page failed", []*lab.Exchange{get("https://a.example/", 500, "text/html", "")}, 0, "main-document"},
		{"empty", nil, 0, "missing"},
	}
	for _, tt := range tests {
		q := Assess(New(tt.list, nil, pages, CreateOptions{}))
		var kinds []string
		for _, p := range q.Problems {
			kinds = append(kinds, p.Kind)
		}
		if q.Score != tt.score || strings.Join(kinds, " ") != tt.kinds {
			t.Errorf("%s: %+v", tt.name, q)
		}
	}
}

func FuzzHAR(f *testing.F) {
	f.Add(harHead + `]}}`)
	f.Add(harHead + `{"request":{"method":"GET","url":"http://a/"},"response":{"status":200,"content":{"text":"x"}},"timings":{"wait":1e300}}]}}`)
	f.Add(harHead + `{"request":{"method":"GET","url":"http://a/"},"response":{"status":200,"cookies":[{},{}],"headers":[{"name":"Set-Cookie","value":"a=1, b=2"}],"content":{"size":1,"text":"\udcff"}}}]}}`)
	f.Add("\x78\x9c\x03\x00\x00\x00\x00\x01")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := openText(t, text)
		if err != nil {
			return
		}
		Assess(a)
		if err := WriteHAR(new(bytes.Buffer), a); err != nil {
			t.Error(err)
		}
	})
}

// FuzzHARText: but for bytes that are no text, strings are those of encoding/json.
func FuzzHARText(f *testing.F) {
	for _, s := range []string{`x`, `\udcff`, `a\ud834\udd1eb`, `\\udcff`, `\ud834\udcff`, `\ud834\ud834\udc80\"`, `ö\n\u00f6`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		var want string
		var got harString
		err := json.Unmarshal([]byte(`"`+escaped+`"`), &want)
		if err2 := json.Unmarshal([]byte(`"`+escaped+`"`), &got); (err == nil) != (err2 == nil) {
			t.Fatalf("%v and %v", err, err2)
		}
		if !strings.Contains(want, "\ufffd") && want != string(got) {
			t.Errorf("%q instead of %q", got, want)
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
		text    string
		size    int64
		want    string
		recoded bool
	}{{"ö", 2, "ö", true}, {"ö", 1, "\xf6", false}, {"ö", 7, "ö", true}, {"☃ö", 2, "☃ö", true}, {"abc", 3, "abc", true}, {"\xf6", 1, "\xf6", false}, {"", 0, "", false}} {
		if got, recoded := harString(x.text).bytes(x.size); string(got) != x.want || recoded != x.recoded {
			t.Errorf("%q of %d bytes: %q, %t", x.text, x.size, got, recoded)
		}
	}
}
