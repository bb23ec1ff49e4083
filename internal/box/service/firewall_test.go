package service

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/nstest"
)

// The box's firewall opens the panel on the uplink, and not on a port that waits for its
// role, whatever runs behind that.
func TestPanelIsOpenOnTheUplinkOnly(t *testing.T) {
	nft := testlab.NeedProgram(t, "nft")
	if !nstest.Inside(t) {
		return
	}
	here := nstest.Here(t)
	sides := map[string]*nstest.Namespace{"up": nstest.New(t), "waits": nstest.New(t), "dev": nstest.New(t)}
	n := 0
	for name, side := range sides {
		n++
		nstest.Veth(t, here, name, side, "out")
		here.Address(t, name, "10.9."+strconv.Itoa(n)+".1/24")
		side.Address(t, "out", "10.9."+strconv.Itoa(n)+".2/24")
	}
	rules, err := os.ReadFile("../../../image/root/etc/nftables.conf")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nftables.conf")
	if err := os.WriteFile(file, rules, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-f", file}, {"flush", "set", "inet", "box", "uplink"}, {"add", "element", "inet", "box", "uplink", "{", `"up"`, "}"},
		{"add", "element", "inet", "box", "device_ports", "{", `"dev"`, "}"},
	} {
		if out, err := here.Output(nft, args...); err != nil {
			t.Fatalf("nft %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	l, err := net.Listen("tcp", ":8080")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, side := range sides {
		address := addressOf(t, name)
		err := side.Do(func() error {
			// A port that drops does not answer at all; one that is open does at once.
			wait := 300 * time.Millisecond
			if name == "up" {
				wait = testlab.Hang
			}
			c, err := net.DialTimeout("tcp", net.JoinHostPort(address, "8080"), wait)
			if err == nil {
				_ = c.Close()
			}
			return err
		})
		if open := err == nil; open != (name == "up") {
			t.Errorf("port 8080 is open on %q: %v (%v)", name, open, err)
		}
	}
}

// addressOf is the IPv4 address of an interface here.
func addressOf(t *testing.T, name string) string {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := i.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	t.Fatalf("%s has no address", name)
	return ""
}
