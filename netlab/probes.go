package netlab

import (
	"net/http"
	"net/netip"
	"strings"
)

// boxNames returns the names that the box answers itself: its own, and, when
// an archive does not have them, those that devices ask to see whether they
// are on the internet. A phone leaves a network that does not answer.
func boxNames(gateway netip.Addr) (box, fallback map[string]netip.Addr) {
	fallback = map[string]netip.Addr{
		// Windows compares the address with this one.
		"dns.msftncsi.com": netip.AddrFrom4([4]byte{131, 107, 255, 255}),
	}
	for name := range strings.FieldsSeq(`
		connectivitycheck.gstatic.com connectivitycheck.android.com www.gstatic.com clients3.google.com www.google.com
		captive.apple.com www.apple.com gsp1.apple.com
		www.msftconnecttest.com ipv6.msftconnecttest.com www.msftncsi.com
		detectportal.firefox.com nmcheck.gnome.org network-test.debian.org connectivity-check.ubuntu.com
		connectivitycheck.platform.hicloud.com connect.rom.miui.com connectivity.samsung.com.cn`) {
		fallback[name] = gateway
	}
	return map[string]netip.Addr{BoxHost: gateway}, fallback
}

// answerProbe answers a device's question whether it is on the internet, as
// the servers that it knows would, and reports whether it was one.
func answerProbe(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	text := func(contentType, body string) bool {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte(body)) // the device went away
		return true
	}
	host, path := r.URL.Hostname(), r.URL.Path
	switch {
	case path == "/generate_204" && googleProbe(host), path == "/gen_204" && googleProbe(host) && r.URL.RawQuery == "":
		w.WriteHeader(http.StatusNoContent)
		return true
	case host == "captive.apple.com", path == "/library/test/success.html" && strings.HasSuffix(host, ".apple.com"):
		return text("text/html", "<HTML><HEAD><TITLE>Success</TITLE></HEAD><BODY>Success</BODY></HTML>")
	case strings.HasSuffix(host, ".msftconnecttest.com") && path == "/connecttest.txt":
		return text("text/plain", "Microsoft Connect Test")
	case host == "www.msftncsi.com" && path == "/ncsi.txt":
		return text("text/plain", "Microsoft NCSI")
	case host == "detectportal.firefox.com" && path == "/success.txt":
		return text("text/plain", "success\n")
	case host == "detectportal.firefox.com" && path == "/canonical.html":
		return text("text/html", `<meta http-equiv="refresh" content="0;url=https://support.mozilla.org/kb/captive-portal"/>`)
	case host == "nmcheck.gnome.org" && path == "/check_network_status.txt", host == "network-test.debian.org" && path == "/nm":
		return text("text/plain", "NetworkManager is online\n")
	case host == "connectivity-check.ubuntu.com":
		w.Header().Set("X-NetworkManager-Status", "online")
		w.WriteHeader(http.StatusNoContent)
		return true
	}
	return false
}

func googleProbe(host string) bool {
	switch host {
	case "connectivitycheck.gstatic.com", "connectivitycheck.android.com", "www.gstatic.com", "clients3.google.com", "www.google.com",
		"connectivitycheck.platform.hicloud.com", "connect.rom.miui.com", "connectivity.samsung.com.cn":
		return true
	}
	return false
}
