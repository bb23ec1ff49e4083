package archive

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"

	"github.com/klauspost/compress/gzip"
)

func gzipText(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, text)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wprText is an entry of a request and an answer, of which LF stands for CRLF in the heads.
func wprText(request, response string) string {
	code := func(s string) string {
		head, body, _ := strings.Cut(s, "\n\n")
		return base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body))
	}
	return fmt.Sprintf(`{"SerializedRequest":%q,"SerializedResponse":%q,"LastServedSessionId":1}`, code(request), code(response))
}

const wprPage = "HTTP/1.1 200 OK\nContent-Type: text/html\nDate: Sat, 21 Nov 2026 09:00:00 GMT\nContent-Length: 3\n\n<p>"

// TestWPR: what Web Page Replay records is read, and an odd entry costs itself.
func TestWPR(t *testing.T) {
	get := func(target, host string) string { return "GET " + target + " HTTP/1.1\nHost: " + host + "\n\n" }
	text := `{"Certs":{"a.test":"MIIB"},"Requests":{"a.test":{` +
		`"https://a.test/":[` + wprText(get("/", "a.test"), wprPage) + `],` +
		`"https://a.test/list":[` + wprText(get("/list", "a.test"), "HTTP/2.0 200 OK\nContent-Length: 5\n\nfirst") + `,` +
		wprText(get("/list", "a.test"), "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n6\r\nsecond\r\n0\r\n\r\n") + `],` +
		`"https://a.test/cut":[` + wprText(get("/cut", "a.test"), "HTTP/1.1 200 OK\nContent-Length: 50\n\nonly this") + `],` +
		`"https://a.test/failed":[{"SerializedRequest":"R0VUIC8=","SerializedResponse":null}],` +
		`"https://a.test/odd":[{"SerializedRequest":5},null,{"SerializedRequest":"!!","SerializedResponse":"!!"},"x",` +
		wprText("nonsense", wprPage) + `],"https://a.test/null":null,"nowhere":[` + wprText(get("/", "a.test"), wprPage) + `]},` +
		`"b.test:8080":{"http://b.test:8080/é?q=%":[` + wprText("POST /x HTTP/1.1\nHost: b.test:8080\nContent-Length: 4\n\nbody", wprPage) + `]},"none":7},` +
		`"NegotiatedProtocol":{"a.test":"h2","b.test":5},"DeterministicTimeSeedMs":"1764192340000","DisableFuzzyURLMatching":false}`
	for name, file := range map[string]string{"gzip": gzipText(t, text), "plain": text} {
		a, err := openText(t, file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, e := range a.Exchanges() {
			got = append(got, strings.Join([]string{e.Method, e.URL, e.Protocol, fmt.Sprint(e.Status), string(e.Response.Body), string(e.Request.Body), e.Truncated}, " "))
		}
		want := []string{
			"GET https://a.test/ h2 200 <p>  ", "GET https://a.test/list h2 200 first  ", "GET https://a.test/list h2 200 second  ",
			"GET https://a.test/cut h2 200 only this  disconnect", "POST http://b.test:8080/%C3%A9?q=% http/1.1 200 <p> body ",
			"GET https://a.test/favicon.ico h2 204   ",
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%s: exchanges\n%q, want\n%q", name, got, want)
		}
		// Two of "odd", the text and the nonsense, and the entry without a URL; null has no answer.
		if a.Lost() != 5 || !strings.Contains(fmt.Sprint(a.Warnings()), "it failed when it was recorded") {
			t.Errorf("%s: lost %d, told %q", name, a.Lost(), a.Warnings())
		}
		if o := a.Options(); !o.Wall.Equal(time.UnixMilli(1764192340000)) || a.IsSeeded() || len(a.Pages()) != 1 || a.Pages()[0].URL != "https://a.test/" {
			t.Errorf("%s: wall %v, seeded %v, pages %v", name, o.Wall, a.IsSeeded(), a.Pages())
		}
	}
	if _, err := openText(t, `{"a":1}`); err == nil || !strings.Contains(err.Error(), "neither log.entries nor Requests") {
		t.Errorf("another JSON: %v", err)
	}
	cut := text[:strings.Index(text, `"https://a.test/cut"`)+40]
	if a, err := openText(t, gzipText(t, cut)); err != nil || len(a.Exchanges()) != 4 || a.Lost() != 1 { // with the icon
		t.Errorf("cut off: %v, %v", a, err)
	}
	if _, err := openText(t, gzipText(t, `{"Requests":`+strings.Repeat(" ", 100<<20))); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("100 MB of blanks: %v", err)
	}
}

// TestWPRRoundTrip: an export is read again, and by what Web Page Replay reads its archives with.
func TestWPRRoundTrip(t *testing.T) {
	exchanges := sample()
	exchanges = append(exchanges, &lab.Exchange{Order: 9, Method: "GET", URL: "https://www.example.com/pending", Wall: wall})
	var out bytes.Buffer
	lost, err := ExportWPR(&out, New(exchanges, nil, nil, CreateOptions{Wall: wall, PageDate: pageDate}))
	if err != nil || len(lost) != 2 {
		t.Fatalf("ExportWPR: lost %q, %v; want what is pending and what was cut off", lost, err)
	}
	a, err := openText(t, out.String())
	if err != nil {
		t.Fatal(err)
	}
	got := byURL(a)
	for _, want := range exchanges[:4] {
		e := got[want.URL]
		if e == nil || e.Method != want.Method || e.Status != want.Status || e.Reason != want.Reason || !bytes.Equal(e.Response.Body, want.Response.Body) ||
			!bytes.Equal(e.Request.Body, want.Request.Body) || e.Response.Get("Content-Type") != want.Response.Get("Content-Type") ||
			e.Request.Get("X-OdD-CaSe") != want.Request.Get("X-OdD-CaSe") || len(e.Request.Header) < len(want.Request.Header) {
			t.Errorf("%s came back as %+v", want.URL, e)
		}
	}
	if e := got["https://www.example.com/a?id=5&cb=9"]; e == nil || e.Protocol != "h2" || len(a.Exchanges()) != 4+1 || !a.Options().Wall.Equal(pageDate) {
		t.Errorf("%+v among %d exchanges from %v", e, len(a.Exchanges()), a.Options().Wall)
	}
	z, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	var theirs struct {
		Requests map[string]map[string][]struct{ SerializedRequest, SerializedResponse []byte }
		Certs    map[string][]byte
	}
	if err := json.NewDecoder(z).Decode(&theirs); err != nil {
		t.Fatal(err)
	}
	one := theirs.Requests["api.example.com:8080"]["http://api.example.com:8080/q"]
	if len(one) != 1 {
		t.Fatalf("requests %v", theirs.Requests)
	}
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(one[0].SerializedRequest)))
	if err != nil || request.Host != "api.example.com:8080" {
		t.Fatalf("the request is %+v, %v", request, err)
	}
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(one[0].SerializedResponse)), request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 404 || len(body) != 6000 {
		t.Errorf("the answer is %d with %d bytes, %v", response.StatusCode, len(body), err)
	}
}

func FuzzWPR(f *testing.F) {
	f.Add(`{"Requests":{"a":{"http://a/":[`+wprText("GET / HTTP/1.1\nHost: a\n\n", wprPage)+`]}},"NegotiatedProtocol":{"a":"h2"}}`, true)
	f.Add(`{"Requests":{"a":{"/x":[{"SerializedRequest":"R0VUIC8gSA==","SerializedResponse":"SFRUUC8xLjEgMjAw"}]}},"DeterministicTimeSeedMs":9e99}`, false)
	f.Add(`{"requests":null,"log":{"entries":[]}}`, false)
	f.Fuzz(func(t *testing.T, text string, packed bool) {
		if packed {
			text = gzipText(t, text)
		}
		export := func(text string) (out string, n int) {
			var a *Archive
			var err error
			testlab.Bounded(t, 512<<20, func() {
				if a, err = openText(t, text); err == nil {
					Assess(a)
				}
			})
			if err != nil {
				return "", -1
			}
			var b bytes.Buffer
			if _, err := ExportWPR(&b, a); err != nil {
				t.Fatal(err)
			}
			return b.String(), len(a.Exchanges())
		}
		first, n := export(text)
		if n < 0 {
			return
		}
		// What is added for a reader (icons) and what the format cannot keep is done with the first time.
		second, n := export(first)
		if n < 0 {
			t.Fatal("the export cannot be opened")
		}
		third, again := export(second)
		if again != n || n > 0 && third != second {
			t.Errorf("%d exchanges, then %d; the exports differ: %v", n, again, third != second)
		}
	})
}
