package boottest

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// restartCases restart a box: through the service, by its watchdog, and to factory settings.
var restartCases = []guestCase{
	{"configuration from the service", "", testConfiguration},
	{"backup and restore", "", testBackup},
	{"hung system", "", testHungSystem},
	{"device with a DHCP server", "", testStrangeLease}, // the case below brings the device's port back
	{"factory reset", "", testFactoryReset},
}

// systemWatchdog is where systemd keeps the time after which the machine's watchdog resets it.
const systemWatchdog = "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager RuntimeWatchdogUSec"

func testConfiguration(t *testing.T, b *Box) {
	b.restarts(t, func() {
		b.Run(
			t,
			`printf 'box:\n  hostname: lab9\n' > /run/appliance/requests/.new && mv /run/appliance/requests/.new /run/appliance/requests/config`,
		)
	})
	b.expect(t, "the configured host name", "hostname", "lab9")
}

func testBackup(t *testing.T, b *Box) {
	token := b.Run(t, "cat /etc/appliance/token")
	const workflow = "/api/v1/workflows/kept"
	must := func(want int, method, path, contentType, body string) string {
		status, text := b.REST(t, method, path, contentType, strings.NewReader(body))
		if status != want {
			t.Fatalf("%s %s = %d %.500s; want %d", method, path, status, text, want)
		}
		return text
	}
	must(http.StatusOK, http.MethodPut, workflow, "application/json", `{"plan":{"page":"https://www.shop.example/","trials":3}}`)
	file := must(http.StatusOK, http.MethodGet, "/api/v1/backup", "", "")
	must(http.StatusNoContent, http.MethodDelete, workflow, "", "")
	before := b.Run(t, "systemctl show --property MainPID --value appliance.service")
	must(http.StatusAccepted, http.MethodPost, "/api/v1/restore?replace=everything", "application/x-tar", file)
	// The service starts again by itself.
	b.Run(t, fmt.Sprintf("timeout 300 sh -c 'while [ $(systemctl show --property MainPID --value appliance.service) = %s ]; do sleep 0.2; done'", before))
	b.Healthy(t)
	must(http.StatusOK, http.MethodGet, workflow, "", "")
	b.expect(t, "the token", "cat /etc/appliance/token", token)
}

// testHungSystem hangs process 1, which then no longer resets the machine's own watchdog. The test waits for a
// shorter time than the product does, which testSettings checks.
func testHungSystem(t *testing.T, b *Box) {
	hung := time.Now()
	// systemd's crash handler freezes it.
	b.restarts(t, func() { b.Run(t, "busctl set-property "+systemWatchdog+" t 10000000 && kill -SEGV 1") })
	t.Logf("healthy again %.1f s after the system hung", time.Since(hung).Seconds())
}

// testStrangeLease restarts a box whose device has a DHCP server: the uplink is known, and the device's lease leads nowhere.
func testStrangeLease(t *testing.T, b *Box) {
	router := netip.MustParseAddr("10.66.0.1")
	if err := b.Device.ServeLease(netip.MustParsePrefix("10.66.0.9/1"), router); err != nil {
		t.Fatal(err)
	}
	defer b.Device.Stop()
	b.restarts(t, func() { b.Run(t, "systemctl --no-block reboot") })
	b.Until(t, "ip -br -4 addr | grep 10.66.0.9/1")
	const ways = "ip route; ip route get 9.9.9.9; cat /run/systemd/resolve/resolv.conf"
	found, to := b.Run(t, ways), "9.9.9.9 via "+Router.Addr().String()
	if strings.Contains(found, router.String()) || strings.Contains(found, "10.66.0.9") || !strings.Contains(found, to) {
		t.Errorf("the box goes by a device's lease, or not by the uplink's:\n%s", found)
	}
}

func testFactoryReset(t *testing.T, b *Box) {
	token := b.keepWhole(t)
	b.restarts(t, func() {
		status, text := b.REST(t, http.MethodPost, "/api/v1/reset", "application/json", strings.NewReader(`{"delete":"everything"}`))
		if status != http.StatusAccepted {
			t.Fatalf("asked for a factory reset: %d %s", status, text)
		}
	})
	b.expect(t, "the host name", "hostname", "box")
	if now := b.Run(t, "cat /etc/appliance/token"); now == token || now == "" {
		t.Errorf("token %q after a factory reset, %q before; want another one", now, token)
	}
	b.expect(
		t,
		"nothing kept",
		"ls /var/lib/appliance/kept 2>&1 || true",
		"ls: cannot access '/var/lib/appliance/kept': No such file or directory",
	)
}

// restarts calls do, after which the box resets itself one or more times, and waits until
// the box is healthy again. At each reset it switches the emulator off and on: for the box
// that is the same, since its memory is lost either way, and the emulator starts twice as fast.
func (b *Box) restarts(t *testing.T, do func()) {
	t.Helper()
	b.QMP.Forget()
	do()
	b.await(t, "RESET")
	for {
		b.cut(t)
		if err := b.Boot(t.Context()); err != nil {
			t.Fatal(err)
		}
		healthy, stop := timeout(t) // for each start: a bad update takes four
		reset := make(chan bool, 1)
		go func(q *QMP) {
			reset <- q.Wait(healthy, "RESET") == nil
			stop()
		}(b.QMP)
		_, err := b.Uplink.WaitHealthy(healthy, Panel)
		stop()
		if again := <-reset; err == nil {
			return
		} else if !again {
			b.Explain(t)
			t.Fatal(err)
		}
	}
}
