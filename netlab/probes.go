package netlab

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"eidetic/netlab/dns"
)

// boxNames returns the names that the box answers itself: its own, and, when an
// archive does not have them, those of time servers and those with which devices
// check that they are on the internet. A phone leaves a network where that check
// fails, and a phone with a wrong clock accepts no certificate.
func boxNames(gateway, gateway6 netip.Addr) (box, fallback map[string][]netip.Addr) {
	own := []netip.Addr{gateway}
	if gateway6.IsValid() {
		own = append(own, gateway6)
	}
	fallback = map[string][]netip.Addr{
		// Windows compares the addresses with these.
		"dns.msftncsi.com": {netip.AddrFrom4([4]byte{131, 107, 255, 255}), netip.MustParseAddr("fd3e:4f5a:5b81::1")},
	}
	for name := range strings.FieldsSeq(probeHosts + timeHosts) {
		fallback[name] = own
	}
	return map[string][]netip.Addr{BoxHost: own}, fallback
}

// noContentHosts answer their probe with 204 and nothing else: of Android (AOSP), the makers of phones, alternative
// Androids, and programs.
const noContentHosts = `
	connectivitycheck.gstatic.com connectivitycheck.android.com www.gstatic.com clients1.google.com clients3.google.com www.google.com
	clients4.google.com gstatic.com mtalk.google.com android.clients.google.com connectivity.samsung.com
	play.googleapis.com www.play.googleapis.com www.googleapis.com safebrowsing.google.com accounts.google.com
	www.google.cn g.cn developers.google.cn
	connectivitycheck.platform.hicloud.com connectivitycheck.cbg-app.huawei.com connectivitycheck.platform.hihonorcloud.com
	connect.rom.miui.com connectivity.samsung.com.cn connectivitycheck.oppomobile.com conn1.oppomobile.com conn2.oppomobile.com conn1.coloros.com conn2.coloros.com
	wifi.vivo.com.cn open.oneplus.net www.qualcomm.cn connectivitycheck.grapheneos.network grapheneos.online 204.ecloud.global fireoscaptiveportal.com
	edge-http.microsoft.com cp.cloudflare.com test.steampowered.com capnet.elementary.io ipv4.jolla.com ipv6.jolla.com 204.pop-os.org
`

const (
	probeHosts = noContentHosts + `
		captive.apple.com www.apple.com gsp1.apple.com www.appleiphonecell.com www.airport.us www.ibook.info
		www.itools.info www.thinkdifferent.us netcts.cdn-apple.com
		www.msftconnecttest.com ipv6.msftconnecttest.com www.msftncsi.com ipv6.msftncsi.com
		detectportal.firefox.com detectportal.brave-http-only.com
		nmcheck.gnome.org network-test.debian.org connectivity-check.ubuntu.com ping.archlinux.org ping.manjaro.org
		networkcheck.kde.org fedoraproject.org static.redhat.com
		conncheck.opensuse.org ipv4.connman.net ipv6.connman.net spectrum.s3.amazonaws.com ctest.cdn.nintendo.net conntest.nintendowifi.net
		`
	timeHosts = `
		pool.ntp.org *.pool.ntp.org time.android.com time.google.com time1.google.com time2.google.com time3.google.com time4.google.com
		time.apple.com time.euro.apple.com time.asia.apple.com time-ios.apple.com time-macos.apple.com time.windows.com time.nist.gov time.cloudflare.com ntp.ubuntu.com`
)

// answerProbe answers a device's question whether it is on the internet, as
// the servers that it knows would, and reports whether it was one.
func answerProbe(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	text := func(contentType, body string) bool {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Length", strconv.Itoa(len(body))) // small devices read no chunks
		_, _ = w.Write([]byte(body))                              // the device went away
		return true
	}
	host, path := dns.Canonical(r.URL.Hostname()), r.URL.Path // Ubuntu writes the name with a dot at its end
	switch {
	case asksNoContent(path, r.URL.RawQuery) && slices.Contains(strings.Fields(noContentHosts), host):
		w.WriteHeader(http.StatusNoContent)
		return true
	case host == "captive.apple.com", host == "netcts.cdn-apple.com", isOldAppleProbe(host), path == "/library/test/success.html" && appleProbe(host):
		return text("text/html", "<HTML><HEAD><TITLE>Success</TITLE></HEAD><BODY>Success</BODY></HTML>")
	case (host == "www.msftconnecttest.com" || host == "ipv6.msftconnecttest.com") && path == "/connecttest.txt":
		return text("text/plain", "Microsoft Connect Test")
	case host == "www.msftconnecttest.com" && path == "/redirect":
		http.Redirect(w, r, "http://go.microsoft.com/fwlink/?LinkID=219472&clcid=0x409", http.StatusFound)
		return true
	case (host == "www.msftncsi.com" || host == "ipv6.msftncsi.com") && path == "/ncsi.txt":
		return text("text/plain", "Microsoft NCSI")
	case host == "detectportal.firefox.com" && path == "/success.txt":
		return text("text/plain", "success\n")
	case host == "detectportal.firefox.com" && path == "/canonical.html":
		return text("text/html", `<meta http-equiv="refresh" content="0;url=https://support.mozilla.org/kb/captive-portal"/>`)
	case host == "nmcheck.gnome.org" && path == "/check_network_status.txt", host == "network-test.debian.org" && path == "/nm",
		host == "ping.archlinux.org" && path == "/nm-check.txt",
		host == "ping.manjaro.org" && path == "/check_network_status.txt", host == "conncheck.opensuse.org" && path == "/":
		return text("text/plain", "NetworkManager is online\n")
	case host == "fedoraproject.org" && path == "/static/hotspot.txt",
		host == "static.redhat.com" && path == "/test/rhel-networkmanager.txt", host == "networkcheck.kde.org" && path == "/":
		return text("text/plain", "OK\n")
	case (host == "cp.cloudflare.com" || host == "capnet.elementary.io" || host == "204.pop-os.org") && path == "/":
		w.WriteHeader(http.StatusNoContent)
		return true
	case host == "connectivity-check.ubuntu.com" && path == "/":
		w.Header().Set("X-NetworkManager-Status", "online")
		w.WriteHeader(http.StatusNoContent)
		return true
	case (host == "ipv4.connman.net" || host == "ipv6.connman.net") && path == "/online/status.html":
		w.Header().Set("X-ConnMan-Status", "online")
		return text("text/html", "<html><body>online</body></html>")
	case host == "detectportal.brave-http-only.com":
		return text("text/plain", "success\n")
	case host == "ctest.cdn.nintendo.net" && path == "/":
		w.Header().Set("X-Organization", "Nintendo")
		return text("text/plain", "ok")
	case host == "conntest.nintendowifi.net" && path == "/":
		w.Header().Set("X-Organization", "Nintendo")
		return text("text/html", "<html><head><title>HTML Page</title></head><body bgcolor=\"#FFFFFF\">This is test.html page</body></html>\n")
	case host == "spectrum.s3.amazonaws.com" && path == "/kindle-wifi/wifistub.html":
		return text("text/html", "<html><body>81ce4465-7167-4dcb-835b-dcc9e44c112a</body></html>")
	}
	return false
}

// asksNoContent tells the paths of probes that are answered with 204. Google's web search reports to /gen_204, too,
// with a query.
func asksNoContent(path, query string) bool {
	switch path {
	case "/generate_204", "/generate204", "/captiveportal/generate_204", "/return_204", "/204":
		return true
	}
	return path == "/gen_204" && query == "" || strings.HasPrefix(path, "/generate_204_") // Huawei appends a UUID
}

func appleProbe(host string) bool { return host == "www.apple.com" || host == "gsp1.apple.com" }

// isOldAppleProbe tells hosts that have nothing but the answer: iOS 7 and 8 ask them for paths that they make up.
func isOldAppleProbe(host string) bool {
	switch host {
	case "www.appleiphonecell.com", "www.airport.us", "www.ibook.info", "www.itools.info", "www.thinkdifferent.us":
		return true
	}
	return false
}
