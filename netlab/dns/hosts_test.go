package dns

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"eidetic/internal/rigs/testlab"
)

func TestReadHosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	text := "# own servers\n10.0.0.7 App.Test app # two names\nfd00::7%eth0 app.test\n\nnonsense line\n10.0.0.8\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	hosts, err := ReadHosts(file)
	if err != nil {
		t.Fatal(err)
	}
	four, six := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::7")
	if len(hosts) != 2 || !slices.Equal(hosts["app.test"], []netip.Addr{four, six}) || !slices.Equal(hosts["app"], []netip.Addr{four}) {
		t.Errorf("ReadHosts() = %v; want app.test at both addresses and app at one", hosts)
	}
	if hosts, err := ReadHosts(file + ".none"); hosts != nil || err != nil {
		t.Errorf("ReadHosts(a missing file) = %v, %v; want nil, nil", hosts, err)
	}
}

// Names of the hosts file and localhost are answered without a name server, and recorded.
func TestLocalNames(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::7")
	var recorded []string
	f := NewForwarder(netip.AddrPort{}, nil, func(r Recorded) { recorded = append(recorded, r.Name+" "+r.Type+" "+strings.Join(r.Records, ";")) })
	f.Hosts = Hosts{"app.test": {four, six}}
	for _, c := range []struct {
		name  string
		qtype uint16
		want  []netip.Addr
	}{
		{"app.test", dns.TypeA, []netip.Addr{four}}, {"app.test", dns.TypeAAAA, []netip.Addr{six}}, {"app.test", dns.TypeA, []netip.Addr{four}},
		{"app.test", dns.TypeHTTPS, nil}, {"x.localhost", dns.TypeA, []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
	} {
		a, err := f.Lookup(t.Context(), c.name, c.qtype)
		if err != nil || a.RCode != dns.RcodeSuccess || !slices.Equal(a.Origins, c.want) {
			t.Errorf("Lookup(%s, %d) = %+v, %v; want %v", c.name, c.qtype, a, err, c.want)
		}
	}
	want := []string{"app.test A app.test.\t60\tIN\tA\t10.0.0.7", "app.test AAAA app.test.\t60\tIN\tAAAA\tfd00::7", "app.test HTTPS ",
		"x.localhost A x.localhost.\t60\tIN\tA\t127.0.0.1"}
	if !slices.Equal(recorded, want) {
		t.Errorf("recorded %q; want each answer once: %q", recorded, want)
	}
	if addrs, err := f.Addrs(t.Context(), "localhost"); err != nil || len(addrs) != 2 {
		t.Errorf("Addrs(localhost) = %v, %v; want the loopback of both families, since a server may listen on one alone", addrs, err)
	}
	if _, err := f.Addrs(t.Context(), "other.test"); err == nil || !strings.Contains(err.Error(), "--resolver") {
		t.Errorf("Addrs() without a name server = %v; want what to do", err)
	}
}

func FuzzParseHosts(f *testing.F) {
	f.Add("127.0.0.1 localhost\n::1 ip6-localhost # x\n")
	f.Add("10.0.0.7\tapp.test app\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		hosts, err := parseHosts(strings.NewReader(text))
		if err != nil {
			return
		}
		for name, addrs := range hosts {
			if len(addrs) == 0 {
				t.Errorf("parseHosts(%q) has %q without an address", text, name)
			}
		}
	})
}
