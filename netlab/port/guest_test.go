//go:build guest

package port

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/netspace"
	"eidetic/netlab/replay"
	"eidetic/netlab/wifi"
	"eidetic/netlab/wifi/radio"
)

// TestAccessPoint: a station (a simulated radio of the kernel, with wpa_supplicant in
// a namespace of its own) joins the box's network with the generated passphrase, gets
// a lease, and browses a recording. With another passphrase it cannot join.
func TestAccessPoint(t *testing.T) {
	const iw, supplicant = "/usr/sbin/iw", "/usr/sbin/wpa_supplicant" // of the test build
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	run("modprobe", "mac80211_hwsim", "radios=2")
	t.Cleanup(func() { _ = exec.Command("modprobe", "-r", "mac80211_hwsim").Run() }) // the machine ends soon
	radios := radios(t)
	if len(radios) < 2 {
		t.Fatalf("the simulated radios are %v, want two", radios)
	}
	ap, sta := radios[0], radios[1]
	asksRadios(t, ap.name)
	// iw and ip find a namespace by its file in /run/netns.
	run("ip", "netns", "add", "station")
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", "station").Run() })
	run(iw, "phy", sta.phy, "set", "netns", "name", "station")

	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	network, _, err := wifi.LoadOrCreate(filepath.Join(t.TempDir(), "wifi.json"))
	if err != nil {
		t.Fatal(err)
	}
	point, err := wifi.Start(t.Context(), wifi.Config{Interface: ap.name, Network: network, Dir: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := point.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := Start(t.Context(), Config{Interface: ap.name, Gateway: gateway79, CA: authority, Clock: lab.Monotonic, Wall: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})

	wrong := network
	wrong.Passphrase = lab.NewSecret("not-the-passphrase")
	if joins(t, supplicant, sta.name, wrong, 15*time.Second) {
		t.Fatal("a station joined with another passphrase")
	}
	if !joins(t, supplicant, sta.name, network, time.Minute) {
		t.Fatal("the station did not join")
	}
	before := heard(t, ap.name)
	a := shop("93.184.216.34:443", map[string]string{"https://www.shop.test/": "<!doctype html><h1>The shop</h1>"})
	s, err := p.Network().Replay(t.Context(), a, replay.Options{Wall: time.Now(), Timing: replay.Timing{Mode: replay.TimingNone}})
	if err != nil {
		t.Fatal(err)
	}
	station, err := netspace.Named("station")
	if err != nil {
		t.Fatal(err)
	}
	defer station.Close()
	err = station.Do(func() error { return browse(sta.name, authority) })
	if err != nil {
		t.Error(err)
	}
	if st := s.Stats(); st.Requests != 1 || st.Misses != 0 {
		t.Errorf("the replay or the port has %+v", st)
	}
	after := heard(t, ap.name)
	if len(before.Stations) != 1 || len(after.Stations) != 1 || after.Stations[0].Packets <= before.Stations[0].Packets || after.Channel != 6 {
		t.Errorf("the radio told of %+v before a page was loaded, and of %+v afterwards; want one station that got packets, on channel 6", before, after)
	}
	t.Log(lab.TellAir(&lab.Conditions{Air: before}, &lab.Conditions{Air: after}))
	testlab.Await(t, "the lease to be seen", func() bool { return len(p.mustStatus(t).Leases) > 0 })
	if st := p.mustStatus(t); len(st.Leases) != 1 || !st.Carrier {
		t.Errorf("the replay or the port has %+v", st)
	}
}

// heard is what an access point's radio tells of its channel.
func heard(t *testing.T, name string) *lab.Air {
	t.Helper()
	air, err := radio.Now(name)
	if err != nil {
		t.Fatal(err)
	}
	return air
}

// asksRadios looks at what the kernel says that simulated radios can do.
func asksRadios(t *testing.T, name string) {
	t.Helper()
	all, country, err := radio.All()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(r radio.Radio) bool { return slices.Contains(r.Interfaces, name) })
	if at < 0 {
		t.Fatalf("the radios are %+v; want one with the interface %s", all, name)
	}
	if r := all[at]; !r.AccessPoint || !slices.Contains(r.Open(radio.Low2, radio.High2), 6) || !r.Has5GHz() || country == "" {
		t.Errorf("the radio is %+v in the country %q; want an access point on channel 6, and the 5 GHz band", r, country)
	}
}

type simulated struct{ phy, name string }

// radios lists the simulated radios.
func radios(t *testing.T) (list []simulated) {
	phys, err := filepath.Glob("/sys/class/mac80211_hwsim/*/ieee80211/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, phy := range phys {
		names, err := filepath.Glob(phy + "/device/net/*")
		if err != nil || len(names) == 0 {
			t.Fatalf("the radio %s has no interface (%v)", phy, err)
		}
		list = append(list, simulated{filepath.Base(phy), filepath.Base(names[0])})
	}
	return list
}

// joins runs wpa_supplicant in the station until it has joined, or for a time. After
// joining it runs until the end of the test.
func joins(t *testing.T, supplicant, name string, n wifi.Network, within time.Duration) bool {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "wpa.conf")
	text := fmt.Sprintf("network={\n\tssid=\"%s\"\n\tpsk=\"%s\"\n\tkey_mgmt=WPA-PSK\n}\n", n.SSID, n.Passphrase.Reveal())
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := conf + ".log"
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ip", "netns", "exec", "station", supplicant, "-D", "nl80211", "-i", name, "-c", conf)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = cmd.Process.Kill() // ip exec'd the supplicant: it is the process
		_ = cmd.Wait()         // killed
		_ = out.Close()        // only a log
	}
	deadline := time.Now().Add(within)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "CTRL-EVENT-CONNECTED") {
			t.Cleanup(end)
			return true
		}
		if time.Now().After(deadline) || strings.Contains(string(b), "WRONG_KEY") {
			end()
			t.Logf("wpa_supplicant printed\n%s", b)
			return false
		}
		<-tick.C
	}
}

// browse takes a lease and fetches a page by name and over TLS. It runs on a thread
// in the station.
func browse(name string, authority *ca.Authority) error {
	c, err := nclient4.New(name, nclient4.WithTimeout(5*time.Second), nclient4.WithRetry(6))
	if err != nil {
		return err
	}
	defer c.Close()
	lease, err := c.Request(context.Background())
	if err != nil {
		return fmt.Errorf("no lease: %w", err)
	}
	for _, args := range [][]string{
		{"addr", "add", lease.ACK.YourIPAddr.String() + "/24", "dev", name}, {"route", "add", "default", "via", lease.ACK.Router()[0].String()},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	resolver := net.JoinHostPort(lease.ACK.DNS()[0].String(), "53")
	ns, err := netspace.Here() // sockets are opened by other threads
	if err != nil {
		return err
	}
	defer ns.Close()
	dial := func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		doErr := ns.Do(func() error {
			conn, err = new(net.Dialer).DialContext(ctx, network, addr)
			return err
		})
		return conn, doErr
	}
	names := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn,
		error) {
		return dial(ctx, network, resolver)
	}}
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority.Pool()},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			addrs, err := names.LookupNetIP(ctx, "ip4", host)
			if err != nil {
				return nil, err
			}
			return dial(ctx, network, net.JoinHostPort(addrs[0].String(), port))
		},
	}
	defer tr.CloseIdleConnections()
	r, err := (&http.Client{Transport: tr, Timeout: testlab.Hang}).Get("https://www.shop.test/")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || !strings.Contains(string(b), "The shop") {
		return fmt.Errorf("the page is %q: %w", b, err)
	}
	return nil
}
