package netlab

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
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
		{"/", "text/html; charset=utf-8", 200, []string{`href="/ca.crt"`, `href="/ca.mobileconfig"`,
			`src="data:image/png;base64,`, authority.Certificate().Subject.CommonName}},
		{"/ca.crt", "application/x-x509-ca-cert", 200, []string{string(authority.DER())}},
		{"/ca.pem", "application/x-pem-file", 200, []string{"BEGIN CERTIFICATE"}},
		{"/ca.mobileconfig", "application/x-apple-aspen-config", 200, []string{"com.apple.security.root"}},
		{"/trusted", "", 404, nil},
		{"/red", "text/html; charset=utf-8", 200, []string{"background:#ff0000", "cursor:none"}},
		{"/sync", "text/html; charset=utf-8", 200, []string{"background:#00ff00", "cursor:none", "<title>sync</title>"}},
		{"/sync?next=https://www.shop.test/?a=1%26b=%3Cx%3E", "text/html; charset=utf-8", 200,
			[]string{`location.replace("https://www.shop.test/?a=1`, `e.key==="Enter"`}},
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
			t.Errorf("%s: status %s, type %s; want %d, %s", c.path, r.Status, r.Header.Get("Content-Type"), c.status, c.contentType)
		}
		for _, s := range c.has {
			if !bytes.Contains(body, []byte(s)) {
				t.Errorf("%s lacks %q:\n%s", c.path, s, body)
			}
		}
	}
}

// TestSyncEscapes passes a URL with characters that would end the script or its string.
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
	if strings.Count(string(body), "<script>") != 1 || strings.Contains(string(body), `");alert`) ||
		!strings.Contains(string(body), "location.replace") {
		t.Errorf("the URL ends its string in the page:\n%s", body)
	}
}

// TestProbes makes the requests with which devices check that they are on the
// internet, as their makers publish them, and compares the answers with those that
// devices expect.
func TestProbes(t *testing.T) {
	const apple = "200 <HTML><HEAD><TITLE>Success</TITLE></HEAD><BODY>Success</BODY></HTML>"
	_, fallback := boxNames(netip.MustParseAddr("192.168.77.1"), netip.Addr{})
	for _, c := range []struct{ who, url, want string }{
		{"Android", "http://connectivitycheck.gstatic.com/generate_204", "204 "},
		{"Android", "https://www.google.com/generate_204", "204 "},
		{"Android", "http://www.google.com/gen_204", "204 "},
		{"Android", "http://play.googleapis.com/generate_204", "204 "},
		{"Android, Huawei", "http://connectivitycheck.platform.hicloud.com/generate_204", "204 "},
		{"Android, Xiaomi", "http://connect.rom.miui.com/generate_204", "204 "},
		{"Android, Samsung in China", "http://connectivity.samsung.com.cn/generate_204", "204 "},
		{"Android, Honor", "http://connectivitycheck.platform.hihonorcloud.com/generate_204", "204 "},
		{"Android, Oppo", "http://conn2.coloros.com/generate_204", "204 "},
		{"Android, vivo", "https://wifi.vivo.com.cn/generate_204", "204 "},
		{"Android in China", "http://www.google.cn/generate_204", "204 "},
		{"GrapheneOS", "https://connectivitycheck.grapheneos.network/generate_204", "204 "},
		{"Fire OS", "http://fireoscaptiveportal.com/generate_204", "204 "},
		{"Edge", "http://edge-http.microsoft.com/captiveportal/generate_204", "204 "},
		{"OnePlus", "http://open.oneplus.net/generate_204", "204 "},
		{"Steam", "http://test.steampowered.com/204", "204 "},
		{"Switch", "http://ctest.cdn.nintendo.net/", "200 ok"},
		{"NetworkManager, openSUSE", "http://conncheck.opensuse.org/", "200 NetworkManager is online\n"},
		{"iOS, macOS", "http://captive.apple.com/hotspot-detect.html", apple},
		{"iOS, macOS", "http://captive.apple.com/", apple},
		{"iOS, macOS, before", "http://www.apple.com/library/test/success.html", apple},
		{"iOS, macOS", "http://netcts.cdn-apple.com/", apple},
		{"iOS 8", "http://www.thinkdifferent.us/a/Wx3.html", apple},
		{"Linux", "http://cp.cloudflare.com/", "204 "},
		{"Windows 10, 11", "http://www.msftconnecttest.com/connecttest.txt", "200 Microsoft Connect Test"},
		{"Windows 10, 11", "http://ipv6.msftconnecttest.com/connecttest.txt", "200 Microsoft Connect Test"},
		{"Windows 7, 8", "http://www.msftncsi.com/ncsi.txt", "200 Microsoft NCSI"},
		{"Windows 7, 8", "http://ipv6.msftncsi.com/ncsi.txt", "200 Microsoft NCSI"},
		{"Firefox", "http://detectportal.firefox.com/success.txt?ipv4", "200 success\n"},
		{"Firefox", "http://detectportal.firefox.com/canonical.html",
			`200 <meta http-equiv="refresh" content="0;url=https://support.mozilla.org/kb/captive-portal"/>`},
		{"Chrome, ChromeOS", "http://www.gstatic.com/generate_204", "204 "},
		{"Chrome, ChromeOS", "http://clients3.google.com/generate_204", "204 "},
		{"ChromeOS, at last", "http://www.play.googleapis.com/generate_204", "204 "},
		{"Chrome on Android", "https://clients4.google.com/generate_204", "204 "},
		{"Android, Oppo, before", "http://connectivitycheck.oppomobile.com/generate_204", "204 "},
		{"ChromeOS, at last", "http://mtalk.google.com/generate_204", "204 "},
		{"ChromeOS, at last", "http://safebrowsing.google.com/generate_204", "204 "},
		{"ChromeOS, at last", "https://accounts.google.com/generate_204", "204 "},
		{"ChromeOS, at last", "https://www.googleapis.com/generate_204", "204 "},
		{"Huawei", "http://connectivitycheck.platform.hicloud.com/generate_204_0b5d0f4c-4cf0-4b6f-8f58-6d1c5f3c2a10", "204 "},
		{"NetworkManager, GNOME", "http://nmcheck.gnome.org/check_network_status.txt", "200 NetworkManager is online\n"},
		{"NetworkManager, Debian", "http://network-test.debian.org/nm", "200 NetworkManager is online\n"},
		{"NetworkManager, Arch", "http://ping.archlinux.org/nm-check.txt", "200 NetworkManager is online\n"},
		{"NetworkManager, Ubuntu", "http://connectivity-check.ubuntu.com/", "204 "},
		{"NetworkManager, Ubuntu since 22.10", "http://connectivity-check.ubuntu.com./", "204 "},
		{"NetworkManager, Pop!_OS", "http://204.pop-os.org/", "204 "},
		{"ConnMan", "http://ipv4.connman.net/online/status.html", "200 <html><body>online</body></html>"},
		{"NetworkManager, Fedora", "http://fedoraproject.org/static/hotspot.txt", "200 OK\n"},
		{"NetworkManager, Manjaro", "http://ping.manjaro.org/check_network_status.txt", "200 NetworkManager is online\n"},
		{"NetworkManager, Red Hat", "http://static.redhat.com/test/rhel-networkmanager.txt", "200 OK\n"},
		{"KDE", "http://networkcheck.kde.org/", "200 OK\n"},
		{"Kindle", "http://spectrum.s3.amazonaws.com/kindle-wifi/wifistub.html",
			"200 <html><body>81ce4465-7167-4dcb-835b-dcc9e44c112a</body></html>"},
		// These are no probes, and belong to the archive.
		{"", "https://www.google.com/search", ""},
		{"", "https://www.google.com/gen_204?atyp=i", ""},
		{"", "https://www.apple.com/", ""},
		{"", "https://www.shop.test/generate_204", ""},
		{"", "http://fedoraproject.org/", ""},
	} {
		w := httptest.NewRecorder()
		got := ""
		r := httptest.NewRequest("GET", c.url, nil)
		if answerProbe(w, r) {
			got = w.Result().Status[:4] + w.Body.String()
			if n := w.Header().Get("Content-Length"); w.Body.Len() > 0 && n != strconv.Itoa(w.Body.Len()) {
				t.Errorf("%s: %s has the length %q; small devices read no chunks", c.who, c.url, n)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s: %q, want %q", c.who, c.url, got, c.want)
		}
		if c.who != "" && len(fallback[strings.TrimSuffix(r.URL.Hostname(), ".")]) == 0 {
			t.Errorf("%s: %s has no address, want the box's when it was not recorded", c.who, r.URL.Hostname())
		}
	}
	if a := fallback["dns.msftncsi.com"]; len(a) != 2 || a[0].String() != "131.107.255.255" || a[1].String() != "fd3e:4f5a:5b81::1" {
		t.Errorf("dns.msftncsi.com has %v, want the addresses that Windows expects", a)
	}
}

func TestCodeIsAPicture(t *testing.T) {
	text, ok := strings.CutPrefix(string(pictureOf("http://box.test/")), "data:image/png;base64,")
	if !ok {
		t.Fatalf("%q", text)
	}
	picture, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil || picture.Bounds().Dx() < 21 {
		t.Errorf("the QR code is no PNG picture: %v", err)
	}
	if got := pictureOf(strings.Repeat("x", 5000)); got != "" {
		t.Error("a text that is too long for a QR code has one")
	}
}
