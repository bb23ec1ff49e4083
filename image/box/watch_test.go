package box

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// When the process that watches the ports restarts, device ports keep their roles
// and addresses although they have no lease any more, and the firewall and networkd are
// configured again.
func TestPortsSurviveARestart(t *testing.T) {
	root := t.TempDir()
	device := func(name string, n int) DevicePort { return DevicePort{name, devicePrefix(n)} }
	watch := func(links ...Link) (Roles, string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		var ran []string
		p := Ports{
			Root: root, Log: slog.New(slog.DiscardHandler), Config: DefaultConfig(),
			Run: func(_ context.Context, name string, args ...string) ([]byte, error) {
				ran = append(ran, name+" "+strings.Join(args, " "))
				return nil, nil
			},
			Links: func() ([]Link, error) { cancel(); return links, nil }, // stops after one look
		}
		if err := p.Watch(ctx); err != nil {
			t.Fatal(err)
		}
		var roles Roles
		text, err := os.ReadFile(filepath.Join(root, PortsFile))
		if err == nil {
			err = json.Unmarshal(text, &roles)
		}
		if err != nil {
			t.Fatal(err)
		}
		return roles, strings.Join(ran, "\n")
	}
	uplink := Link{Name: "b", Address: netip.MustParseAddr("10.0.0.9")}
	before := Roles{Uplink: "b", Address: uplink.Address, Devices: []DevicePort{device("c", 0), device("a", 1)}}
	text, err := json.Marshal(before)
	if err == nil {
		err = writeFile(filepath.Join(root, PortsFile), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, ran := watch(Link{Name: "a"}, uplink, Link{Name: "c"})
	address := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	prefix := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	if d := cmp.Diff(before, got, address, prefix); d != "" {
		t.Errorf("roles (-before +after):\n%s", d)
	}
	for _, want := range []string{`"a"`, `"c"`, "networkctl reload"} {
		if !strings.Contains(ran, want) {
			t.Errorf("programs run:\n%s\nwant %s among them", ran, want)
		}
	}
	if err := os.WriteFile(filepath.Join(root, PortsFile), []byte(`{"devices": [{`), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, _ := watch(Link{Name: "a"}, uplink); got.Uplink != "b" || len(got.Devices) != 0 {
		t.Errorf("roles with an incomplete file: %+v; want uplink b and no device ports", got)
	}
}
