package netlab

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"eidetic/netlab/ca"
)

func boxAnswer(t *testing.T, authority *ca.Authority, path string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	NewBox(authority).ServeHTTP(w, httptest.NewRequest("GET", "http://box.test"+path, nil))
	return w.Result()
}

func TestBoxPages(t *testing.T) {
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, contentType string
		status            int
		has               []string
	}{
		{"/", "text/html; charset=utf-8", 200, []string{`href="/ca.crt"`, `href="/ca.mobileconfig"`, `src="data:image/png;base64,`, authority.Certificate().Subject.CommonName}},
		{"/ca.crt", "application/x-x509-ca-cert", 200, []string{string(authority.DER())}},
		{"/ca.pem", "application/x-pem-file", 200, []string{"BEGIN CERTIFICATE"}},
		{"/ca.mobileconfig", "application/x-apple-aspen-config", 200, []string{"com.apple.security.root"}},
		{"/red", "text/html; charset=utf-8", 200, []string{"background:#ff0000", "cursor:none"}},
		{"/sync", "text/html; charset=utf-8", 200, []string{"background:#00ff00", "cursor:none", "<title>sync</title>"}},
		{"/sync?next=https://www.shop.test/?a=1%26b=%3Cx%3E", "text/html; charset=utf-8", 200, []string{`location.replace("https://www.shop.test/?a=1`, `e.key==="Enter"`}},
		{"/sync?next=javascript:alert(1)", "", 400, nil},
		{"/sync?next=/relative", "", 400, nil},
		{"/sync?next=https://", "", 400, nil},
		{"/sync?next=https://x.test/;a", "", 400, nil},
		{"/favicon.ico", "", 204, nil},
		{"/other", "", 404, nil},
	} {
		r := boxAnswer(t, authority, c.path)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != c.status || c.contentType != "" && r.Header.Get("Content-Type") != c.contentType {
			t.Errorf("%s: %s, %s", c.path, r.Status, r.Header.Get("Content-Type"))
		}
		for _, s := range c.has {
			if !bytes.Contains(body, []byte(s)) {
				t.Errorf("%s lacks %q:\n%s", c.path, s, body)
			}
		}
	}
}

// TestSyncEscapes puts in what would end the script or the string.
func TestSyncEscapes(t *testing.T) {
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := boxAnswer(t, authority, "/sync?next=https://x.test/%22)%3Balert(1)//%3C/script%3E%3Cscript%3E")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(body), "<script>") != 1 || strings.Contains(string(body), `");alert`) || !strings.Contains(string(body), "location.replace") {
		t.Errorf("the page lets a URL out of its string:\n%s", body)
	}
}

func TestProbes(t *testing.T) {
	for url, want := range map[string]string{
		"http://connectivitycheck.gstatic.com/generate_204": "204 ",
		"https://www.google.com/generate_204":               "204 ",
		"http://captive.apple.com/hotspot-detect.html":      "200 <HTML><HEAD><TITLE>Success</TITLE></HEAD><BODY>Success</BODY></HTML>",
		"http://www.msftconnecttest.com/connecttest.txt":    "200 Microsoft Connect Test",
		"http://www.msftncsi.com/ncsi.txt":                  "200 Microsoft NCSI",
		"http://detectportal.firefox.com/success.txt?ipv4":  "200 success\n",
		"http://nmcheck.gnome.org/check_network_status.txt": "200 NetworkManager is online\n",
		"https://www.google.com/search":                     "",
		"https://www.shop.test/generate_204":                "",
	} {
		w := httptest.NewRecorder()
		got := ""
		if answerProbe(w, httptest.NewRequest("GET", url, nil)) {
			got = w.Result().Status[:4] + w.Body.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func TestCodeIsAPicture(t *testing.T) {
	text, ok := strings.CutPrefix(string(pictureOf("http://box.test/")), "data:image/png;base64,")
	if !ok {
		t.Fatalf("%q", text)
	}
	picture, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil || picture.Bounds().Dx() < 21 {
		t.Errorf("the code is no picture: %v", err)
	}
	if got := pictureOf(strings.Repeat("x", 5000)); got != "" {
		t.Error("a text that is too long has a code")
	}
}
