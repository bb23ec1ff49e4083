package boottest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/rigs/testlab"
)

// Addresses of the box that Start makes, and of its neighbours.
var (
	// Router is the test's address on the uplink: it serves the box's lease.
	Router = netip.MustParsePrefix("10.77.0.1/24")
	// Lease is the box's address on the uplink.
	Lease = netip.MustParsePrefix("10.77.0.2/24")
	// Gateway is the box's address on its first device port.
	Gateway = netip.MustParseAddr("192.168.77.1")
	// Device is the test's own address on the first device port.
	Device = netip.MustParsePrefix("192.168.77.2/24")
	// Panel is host and port of the box's panel, from the uplink.
	Panel = netip.AddrPortFrom(Lease.Addr(), 8080).String()
)

// testImage is the test build.
const testImage = "appliance-test.img"

// Patience bounds steps that end within a minute on a machine that does nothing else.
// Tests wait for events, and a test machine may be busy.
const Patience = 15 * time.Minute

// Box is a machine with our image, an uplink whose namespace serves leases, a
// device port and a free slot for a third network card. Its namespaces are not
// connected to any other network.
type Box struct {
	*Machine
	Uplink, Device, Third *Port

	typed int // length of the console's output when something was last typed
}

// BoxOptions change what Start makes; the zero value is a box of the test build.
type BoxOptions struct {
	Image  string // file name in out/image, or an absolute path; appliance-test.img when empty
	Memory int    // MiB; 2048 when 0
	Disk   int64  // size of the disk in bytes; 2 GiB when 0
	Second int64  // size of a second, empty disk; none when 0

	saved string // folder of a saved machine to go on from
}

// NewBox creates a box for a test and leaves it switched off. It skips the test if there
// is no image or no QEMU. Everything is removed when the test ends.
func NewBox(t *testing.T, o BoxOptions) *Box {
	t.Helper()
	testlab.NeedRoot(t)
	testlab.NeedProgram(t, "qemu-system-x86_64")
	image := ImagePath(t, cmp.Or(o.Image, testImage))
	b := boxOf(func(mac string, address netip.Prefix) *Port {
		p, err := NewPort(mac, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	})
	if err := b.Uplink.ServeLease(Lease, Router.Addr()); err != nil {
		t.Fatal(err)
	}
	m, err := New(t.TempDir(), b.machine(image, o))
	if err != nil {
		t.Fatal(err)
	}
	b.Machine = m
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the machine's console ended with:\n%s", last(m.Console(), 4000))
		}
		_ = m.CutPower()
	})
	return b
}

// boxOf returns a box with its ports.
func boxOf(port func(mac string, address netip.Prefix) *Port) *Box {
	return &Box{
		Uplink: port("52:54:00:00:00:01", Router),
		Device: port("52:54:00:00:00:02", Device),
		Third:  port("52:54:00:00:00:03", netip.MustParsePrefix("192.168.78.2/24")),
	}
}

// machine returns the options of a box's machine, whose disk begins as the image at a path.
func (b *Box) machine(image string, o BoxOptions) Options {
	return Options{
		Disk: image, Size: cmp.Or(o.Disk, 2<<30), Second: o.Second, Memory: o.Memory, Saved: o.saved,
		Ports: []*Port{b.Uplink, b.Device}, Spare: []*Port{b.Third},
	}
}

// ImagePath returns the path of a file of the built image; it skips the test if the
// image was not built.
func ImagePath(t *testing.T, name string) string {
	t.Helper()
	file := name
	if !filepath.IsAbs(name) {
		file = filepath.Join(Root(t), "out", "image", name)
	}
	_, err := os.Stat(file)
	testlab.Need(t, err == nil, name+" in out/image; make it with: make image-test")
	return file
}

// HealthyBox returns a box of the test build that was booted before and is healthy: it goes on from a machine that
// was saved when each of its parts worked, which takes seconds. The machine is booted and saved in out/image when
// there is none of this image and this QEMU. A test of how a box starts makes a NewBox.
func HealthyBox(t *testing.T) *Box {
	t.Helper()
	b := NewBox(t, BoxOptions{saved: savedBox(t)})
	if err := b.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Run(t, "date -u -s @$(cat /sys/class/rtc/rtc0/since_epoch)") // the emulator's clock has gone on
	b.Healthy(t)
	return b
}

// savedBox returns the folder of the saved healthy box. Tests that run side by side make it once.
func savedBox(t *testing.T) string {
	t.Helper()
	testlab.NeedRoot(t)
	testlab.NeedProgram(t, "qemu-system-x86_64")
	images := filepath.Dir(ImagePath(t, testImage))
	lock, err := os.Create(filepath.Join(images, "healthy.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	planned := boxOf(func(mac string, _ netip.Prefix) *Port { return &Port{MAC: mac} })
	key, err := savedKey(t.Context(), planned.machine(ImagePath(t, testImage), BoxOptions{}), Router, Lease)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := keep(images, "healthy-", key, func(dir string) error {
		b := NewBox(t, BoxOptions{})
		t.Logf("no saved box of this image and this QEMU: healthy %.1f s after power-on", b.On(t).Seconds())
		b.Run(t, "systemctl is-system-running --wait; sync")
		b.awaitBanner(t, "Device   ", "Health   ok")
		return b.Save(t.Context(), dir)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// On switches the box on and waits until it is healthy; it returns how long that took.
func (b *Box) On(t *testing.T) time.Duration {
	t.Helper()
	if err := b.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Healthy(t)
	return b.Since()
}

// Healthy waits until the box's panel reports, on the uplink, that every part works.
func (b *Box) Healthy(t *testing.T) {
	t.Helper()
	ctx, cancel := timeout(t)
	defer cancel()
	if _, err := b.Uplink.WaitHealthy(ctx, Panel); err != nil {
		b.Explain(t)
		t.Fatal(err)
	}
}

// REST sends a request with the token to the box's panel from the uplink and returns the
// status and the body of the answer.
func (b *Box) REST(t *testing.T, method, path, contentType string, body io.Reader) (int, string) {
	t.Helper()
	return b.ask(t, Panel, b.Run(t, "cat /etc/appliance/token"), method, path, contentType, body)
}

// ask sends a request with a token to a panel on the uplink, and returns the status and the body of the answer.
func (b *Box) ask(t *testing.T, panel, token, method, path, contentType string, body io.Reader) (int, string) {
	t.Helper()
	ctx, cancel := timeout(t)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "https://"+panel+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := b.Uplink.Client(Patience).Do(request)
	if err != nil {
		b.Explain(t)
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// timeout returns a context for a step that ends by itself.
func timeout(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), Patience)
}

// Explain logs the box's own view of what is wrong.
func (b *Box) Explain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	out, err := b.Shell.Run(
		ctx,
		"systemctl --no-pager --failed; systemctl --no-pager list-jobs; ip -br addr; journalctl --no-pager -b -u 'appliance*' | tail -n 40; journalctl --no-pager -b -p warning | tail -n 20",
	)
	t.Logf("the state of the box (%v):\n%s", err, out)
}

// Run runs a line of bash on the box as root and returns what it printed,
// without spaces around it. Another exit status than 0 fails the test.
func (b *Box) Run(t *testing.T, command string) string {
	t.Helper()
	out, err := b.Try(t, command)
	if err != nil {
		t.Error(err)
	}
	return out
}

// Try is Run for a command that may fail: with an *ExitError.
func (b *Box) Try(t *testing.T, command string) (string, error) {
	t.Helper()
	ctx, cancel := timeout(t)
	defer cancel()
	out, err := b.Shell.Run(ctx, command)
	return strings.TrimSpace(out), err
}

// Until repeats a command of the box until it succeeds, and fails the test
// when it does not in time.
func (b *Box) Until(t *testing.T, command string) string {
	t.Helper()
	return b.Run(
		t,
		fmt.Sprintf("for i in $(seq 600); do if out=$(%s); then echo \"$out\"; break; fi; sleep 0.2; done; [ $i -lt 600 ]", command),
	)
}

// awaitBanner waits until the console's newest banner contains all words, and returns it.
func (b *Box) awaitBanner(t *testing.T, words ...string) string {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		_, banner, _ := cutLast(b.Console(), "Eidetic ")
		missing := ""
		for _, w := range words {
			if !strings.Contains(banner, w) {
				missing = w
			}
		}
		if missing == "" {
			return banner
		}
		if time.Now().After(deadline) {
			b.Explain(t)
			t.Fatalf("the console does not show %q:\n%s", missing, banner)
		}
		b.Run(t, "sleep 0.5")
	}
}

func cutLast(text, mark string) (before, after string, found bool) {
	if at := strings.LastIndex(text, mark); at >= 0 {
		return text[:at], text[at+len(mark):], true
	}
	return text, "", false
}
