package dns

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestSystemResolver(t *testing.T) {
	for content, want := range map[string]string{
		"# by hand\nsearch a.test\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n": "[192.0.2.1:53 192.0.2.2:53]",
		"nameserver nonsense\nnameserver 2001:db8::1\n":                          "[[2001:db8::1]:53]",
		"nameserver fe80::1%eth0\n":                                              "[[fe80::1%eth0]:53]",
		strings.Repeat("nameserver 192.0.2.1\n", 9):                              "[192.0.2.1:53 192.0.2.1:53 192.0.2.1:53]",
		"search a.test\n": "",
	} {
		file := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := serversOf(file)
		if want == "" {
			if _, err := SystemResolver(file); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("SystemResolver() of %q = %v; want an error that names the file", content, err)
			}
			continue
		}
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("serversOf() of %q = %v, %v; want %s, nil", content, got, err, want)
		}
	}
	if got, err := SystemResolver(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Errorf("SystemResolver() of a missing file = %v, want an error", got)
	}
}

// TestFirstToAnswer: of several name servers the first one that answers is used.
func TestFirstToAnswer(t *testing.T) {
	dead := oddResolver(t, nil)
	refuses := oddResolver(t, func(m *dns.Msg) []byte { return packed(t, new(dns.Msg).SetRcode(m, dns.RcodeRefused)) })
	good := oddResolver(t, func(m *dns.Msg) []byte { return packed(t, new(dns.Msg).SetReply(m)) })
	closed := netip.MustParseAddrPort("127.0.0.1:1")
	for _, c := range []struct {
		servers []netip.AddrPort
		want    netip.AddrPort
	}{
		{[]netip.AddrPort{dead}, dead},
		{[]netip.AddrPort{dead, good}, good},
		{[]netip.AddrPort{closed, refuses, good}, good},
		{[]netip.AddrPort{closed, refuses, dead}, refuses},
		{[]netip.AddrPort{closed, dead}, closed},
	} {
		if got := firstToAnswer(c.servers, 200*time.Millisecond); got != c.want {
			t.Errorf("firstToAnswer(%v) = %v, want %v (dead %v, refuses %v, good %v)", c.servers, got, c.want, dead, refuses, good)
		}
	}
}
