package port

import (
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/nstest"
	"eidetic/netlab/replay"
)

// TestChromium: a real browser on a device with a real lease browses a recording over
// IPv4, with both families, and of origins with only IPv6.
func TestChromium(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	for name, c := range map[string]struct {
		v4only bool
		server string
	}{
		"IPv4 alone":         {true, "93.184.216.34:443"},
		"both":               {false, "93.184.216.34:443"},
		"an origin of IPv6":  {false, "[2606:2800::1]:443"},
		"IPv6 without the 6": {true, "[2606:2800::1]:443"},
	} {
		t.Run(name, func(t *testing.T) {
			device := newPhone(t, w, "dev0")
			p := w.port(t, "dev0", func(pc *Config) { pc.IPv4Only = c.v4only })
			device.lease(t)
			device.awaitOwnAddress(t)
			if !c.v4only {
				device.awaitIPv6(t)
			}
			// The page makes this request before it ends; nobody waits for later ones.
			script := `document.body.append("made " + "by script"); const r = new XMLHttpRequest(); r.open("GET", "/late", false);
r.send(); document.title = r.responseText`
			a := shop(c.server, map[string]string{
				"https://www.shop.test/":     "<!doctype html><title>early</title><body><h1>The shop</h1><script src=//cdn.shop.test/a.js></script>",
				"https://cdn.shop.test/a.js": script, "https://www.shop.test/late": "late title",
			})
			s, err := p.Network().Replay(t.Context(), a, replay.Options{Wall: time.Now(), Timing: replay.Timing{Mode: replay.TimingNone}})
			if err != nil {
				t.Fatal(err)
			}
			dom := device.chromium(t, "https://www.shop.test/")
			if !strings.Contains(dom, "The shop") || !strings.Contains(dom, "made by script") ||
				!strings.Contains(dom, "<title>late title") {
				t.Errorf("the page's document is\n%s", dom)
			}
			if st := s.Stats(); st.Requests < 3 {
				t.Errorf("the replay has %+v", st)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if out, err := w.box.Output(testlab.NeedProgram(t, "ip"), "link", "del", "dev0"); err != nil {
				t.Error(err, out)
			}
		})
	}
	if got := w.reached(); len(got) > 0 {
		t.Errorf("the site got the requests %q, want none", got)
	}
}

// shop returns an archive of pages from one server.
func shop(server string, pages map[string]string) *archive.Archive {
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var list []*lab.Exchange
	for url, body := range pages {
		kind := "text/html; charset=utf-8"
		if strings.HasSuffix(url, ".js") {
			kind = "text/javascript"
		}
		list = append(list, &lab.Exchange{
			ID: url, Order: len(list), Wall: wall, Method: "GET", URL: url, Protocol: "h2", TLS: "tls/1.3", Status: 200,
			Server:   netip.MustParseAddrPort(server),
			Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: kind}}, Body: []byte(body)},
			Chunks:   []lab.Chunk{{Bytes: len(body)}},
		})
	}
	return archive.New(list, nil, nil, archive.CreateOptions{Wall: wall})
}

// linkLocal returns the device's link-local address.
func (p *phone) linkLocal(t *testing.T) (a netip.Addr) {
	t.Helper()
	err := p.Do(func() error {
		ifi, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		addrs, err := ifi.Addrs()
		for _, x := range addrs {
			if prefix, perr := netip.ParsePrefix(x.String()); perr == nil && prefix.Addr().IsLinkLocalUnicast() {
				a = prefix.Addr()
			}
		}
		return err
	})
	if err != nil || !a.IsValid() {
		t.Fatalf("the device has no link-local address (%v)", err)
	}
	return a
}

// awaitOwnAddress waits until duplicate address detection of the device's link-local
// address has ended. A browser drops its connections when that happens later.
func (p *phone) awaitOwnAddress(t *testing.T) {
	t.Helper()
	ip := testlab.NeedProgram(t, "ip")
	testlab.Await(t, "the device's link-local address", func() bool {
		out, err := p.Output(ip, "-6", "address", "show", "dev", "eth0", "scope", "link", "-tentative")
		if err != nil {
			t.Fatal(err, out)
		}
		return strings.Contains(out, "fe80::")
	})
}

// awaitIPv6 waits until the device has made an address and a route.
func (p *phone) awaitIPv6(t *testing.T) {
	t.Helper()
	ip := testlab.NeedProgram(t, "ip")
	var addrs, routes string
	testlab.Await(t, "an IPv6 address and a route of the device", func() bool {
		var err error
		if addrs, err = p.Output(ip, "-6", "address", "show", "dev", "eth0", "scope", "global", "-tentative"); err != nil {
			t.Fatal(err, addrs)
		}
		if routes, err = p.Output(ip, "-6", "route"); err != nil {
			t.Fatal(err, routes)
		}
		return strings.Contains(addrs, "fd00:77:") && strings.Contains(routes, "default via fe80::1")
	}, func() any { return addrs + routes })
}

// chromium loads a page in a new profile that trusts the box, as a user would set it
// up, and returns the page's document.
func (p *phone) chromium(t *testing.T, url string) string {
	t.Helper()
	program, certutil := testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome"), testlab.NeedProgram(t, "certutil")
	home := testlab.TempDir(t)
	db := "sql:" + filepath.Join(home, ".pki/nssdb")
	sh := `mkdir -p "$HOME/.pki/nssdb" && ` + certutil + ` -d ` + db + ` -N --empty-password && ` +
		certutil + ` -d ` + db + ` -A -t C,, -n box -i ` + p.caFile + ` && ` +
		`exec timeout 150 ` + program + ` --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --user-data-dir="$HOME/profile" ` +
		`--dump-dom ` + url
	out, err := p.run("env", "HOME="+home, "sh", "-c", sh)
	if err != nil {
		t.Fatalf("chromium: %v\n%s", err, out)
	}
	return out
}
