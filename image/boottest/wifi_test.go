package boottest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/storytest"
)

// testWiFi tells the story of a device that joins the box's own network by Wi-Fi: the service makes a simulated radio of
// the kernel (mac80211_hwsim) an access point, in its own sandbox; a second radio, in a namespace of its own, joins with the
// passphrase that the panel shows, and what it hears and sends are the frames of a device on this machine. The device asks
// what phones ask of a new network, and is recorded and replayed through the radio.
func testWiFi(t *testing.T, b *Box) {
	storytest.NeedDevice(t)
	roots, leave := startSite(t, b)
	program := b.Build(t, "./image/boottest/laptop")
	b.Run(t, "modprobe mac80211_hwsim radios=2 && udevadm settle")
	defer b.Until(t, "modprobe -r mac80211_hwsim")
	radios := strings.Fields(b.Run(t, "for p in /sys/class/mac80211_hwsim/*/ieee80211/*; do echo ${p##*/} $(ls $p/device/net); done"))
	if len(radios) != 4 {
		t.Fatalf("the simulated radios are %q; want two, each with an interface", radios)
	}
	point, phy, station := radios[1], radios[2], radios[3]
	port := stationPort(t, b.Run(t, "cat /sys/class/net/"+station+"/address"))
	// The device has the station's address, by IPv6 too, so the station's own kernel must have none.
	b.Run(t, "ip netns add station && /usr/sbin/iw phy "+phy+" set netns name station && "+
		"ip netns exec station sh -c 'echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6'")
	defer b.Run(t, "systemctl stop air station; ip netns del station")

	before := b.Run(t, "cat /etc/appliance/appliance.yaml")
	configure := func(text string) {
		b.Run(t, "cat > /etc/appliance/appliance.yaml <<'END'\n"+text+"\nEND\nsystemctl restart appliance.service")
		b.Healthy(t)
	}
	configure(before + "\nnetwork:\n  trust: |\n    " + strings.ReplaceAll(strings.TrimSpace(roots), "\n", "\n    ") +
		fmt.Sprintf("\ndevices: [{name: phone, port: %s, wifi: {}, rate: 10}]\n", point))
	defer configure(before)
	defer func() { // a cleanup would be too late to ask the box
		if t.Failed() {
			out, _ := b.Try(t, "journalctl --no-pager -u station -u air | tail -n 30; journalctl --no-pager -u appliance | tail -n 30; "+
				"ip netns exec station /usr/sbin/iw dev "+station+" link; cat /proc/loadavg")
			t.Log(out)
		}
	}()
	panel := &storytest.Panel{URL: "https://" + Panel, Token: b.Run(t, "cat /etc/appliance/token"), Client: b.Uplink.Client(0)}
	join(t, b, panel, station)
	carry(t, b, port, program, station)

	device := storytest.Plug(t, port, tapName, 640, 480)
	signIn(t, port, device.Lease.ACK.DNS()[0])
	story := storytest.Story{
		Panel: panel, Page: samplesite.Home, Leave: leave,
		Trials: 1, Still: 10 * time.Second, Limit: 5 * time.Minute, Patience: Patience,
	}
	began := time.Now()
	_, replayed := story.Tell(t)
	t.Logf("the story took %.0f s", time.Since(began).Seconds())
	run := panel.Run(t, replayed)
	if e := run.Environment.Port; e == nil || e.Interface != point {
		t.Errorf("the run was made at the port %+v; want the radio %s", e, point)
	}
	for _, trial := range run.Trials {
		c := trial.Conditions
		if c == nil || c.Air == nil || len(c.Air.Stations) != 1 || c.Air.Channel != 6 {
			t.Errorf("trial %d tells of the air %+v; want one station on channel 6", trial.Number, c)
			continue
		}
		t.Logf("trial %d: %s", trial.Number, lab.TellAir(c, trial.ConditionsAfter))
	}
}

// stationPort makes a port whose end of the cable has the hardware address of a station.
func stationPort(t *testing.T, address string) *Port {
	t.Helper()
	mac, err := net.ParseMAC(address)
	if err != nil {
		t.Fatal(err)
	}
	mac[len(mac)-2] ^= 1 // the machine's, of which a port's own follows
	port, err := NewPort(mac.String(), netip.Prefix{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Close)
	return port
}

// join has a station join the network that the panel shows.
func join(t *testing.T, b *Box, panel *storytest.Panel, station string) {
	t.Helper()
	var network struct{ SSID, Passphrase string }
	for deadline := time.Now().Add(Patience); network.Passphrase == ""; b.Run(t, "sleep 0.5") {
		var list struct {
			Devices []struct {
				Name string
				WiFi struct{ SSID, Passphrase string }
			}
		}
		if err := json.Unmarshal(panel.Get(t, "/api/v1/devices"), &list); err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Devices {
			if d.Name == "phone" {
				network = d.WiFi
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the panel shows no network to join: %+v", list)
		}
	}
	b.Run(t, fmt.Sprintf("cat > /run/station.conf <<'END'\nnetwork={\n\tssid=\"%s\"\n\tpsk=\"%s\"\n\tkey_mgmt=WPA-PSK\n}\nEND\n"+
		"systemd-run --unit station ip netns exec station /usr/sbin/wpa_supplicant -D nl80211 -i %s -c /run/station.conf",
		network.SSID, network.Passphrase, station))
	b.Until(t, "journalctl --no-pager -u station | grep CTRL-EVENT-CONNECTED")
}

// carry makes the station's frames those of a port.
func carry(t *testing.T, b *Box, port *Port, program, station string) {
	t.Helper()
	l := listen(t, b)
	var serving sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		port.Close() // what reads its frames ends
		serving.Wait()
	})
	serving.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return // the test is over
		}
		defer context.AfterFunc(t.Context(), func() { conn.Close() })()
		_ = port.Carry(conn) // it ends with the test
	})
	b.Run(t, "systemd-run --unit air "+program+" -air "+l.Addr().String()+" -radio "+station+" -netns station")
	b.Until(t, "journalctl --no-pager -u air | grep ready")
}

// signIn asks what phones and computers ask of a network that they have joined, by names that the box resolves.
func signIn(t *testing.T, port *Port, resolver net.IP) {
	t.Helper()
	names := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return port.Dial(ctx, network, net.JoinHostPort(resolver.String(), "53"))
	}}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, number, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			found, err := names.LookupNetIP(ctx, "ip4", host)
			if err != nil {
				return nil, err
			}
			return port.Dial(ctx, network, net.JoinHostPort(found[0].String(), number))
		},
	}}
	ctx, cancel := timeout(t)
	defer cancel()
	for _, probe := range []struct {
		url    string
		status int
		says   string
	}{
		{"http://connectivitycheck.gstatic.com/generate_204", http.StatusNoContent, ""},
		{"http://captive.apple.com/hotspot-detect.html", http.StatusOK, "Success"},
		{"http://www.msftconnecttest.com/connecttest.txt", http.StatusOK, "Microsoft Connect Test"},
		{"http://detectportal.firefox.com/success.txt", http.StatusOK, "success"},
	} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, probe.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Errorf("%s: %v", probe.url, err)
			continue
		}
		body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
		answer.Body.Close()
		if err != nil || answer.StatusCode != probe.status || !strings.Contains(string(body), probe.says) {
			t.Errorf("%s: %d %q (%v); want %d with %q", probe.url, answer.StatusCode, body, err, probe.status, probe.says)
		}
	}
}
