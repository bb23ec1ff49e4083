package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/ca"
)

// trusting makes a home folder in which Chromium trusts an authority.
func trusting(t *testing.T, authority *ca.Authority) (home string) {
	home = testlab.TempDir(t)
	trust(t, authority, filepath.Join(home, ".pki", "nssdb"))
	return home
}

// trust makes an NSS database in dir that trusts an authority.
func trust(t *testing.T, authority *ca.Authority, dir string) {
	certutil := testlab.NeedProgram(t, "certutil")
	pem := filepath.Join(t.TempDir(), "ca.pem")
	check(t, os.MkdirAll(dir, 0o700))
	check(t, os.WriteFile(pem, authority.PEM(), 0o644))
	for _, args := range [][]string{{"-N", "--empty-password"}, {"-A", "-n", "box", "-t", "C,,", "-i", pem}} {
		if out, err := exec.Command(certutil, append([]string{"-d", "sql:" + dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("certutil: %v\n%s", err, out)
		}
	}
}

// chromium is a Chromium that resolves all host names to the box.
type chromium struct{ context.Context }

func newChromium(t *testing.T, s *stand, more ...chromedp.ExecAllocatorOption) *chromium {
	program := testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome")
	home := trusting(t, s.authority)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(home, "profile")), chromedp.Env("HOME="+home),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", fmt.Sprintf("MAP *:443 %s, MAP *:80 %s", s.https, s.http)),
		chromedp.WSURLReadTimeout(testlab.Hang),
	)
	alloc, stop := chromedp.NewExecAllocator(t.Context(), append(options, more...)...)
	browser, stopBrowser := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		_ = chromedp.Cancel(browser) // waits for the process to end
		stopBrowser()
		stop()
	})
	if _, err := chromedp.Run(browser, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return &chromium{browser}
}

// oneTile: the content of a picture that is drawn in one tile depends on the page alone, see
// package device.
func oneTile() []chromedp.ExecAllocatorOption {
	return []chromedp.ExecAllocatorOption{
		chromedp.Flag(
			"disable-partial-raster",
			true,
		), chromedp.Flag("default-tile-width", "1024"), chromedp.Flag("default-tile-height", "1024"),
	}
}

// navigate opens a page. A browser that has just started still reads the name resolution
// settings, and then drops the navigations before that.
func navigate(ctx context.Context, address string) error {
	for try := 1; ; try++ {
		err := chromedp.Do(ctx, chromedp.Navigate(address))
		if err == nil || try == 5 || !strings.Contains(err.Error(), "ERR_NETWORK_CHANGED") {
			return err
		}
	}
}

func (c *chromium) load(t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := chromedp.NewContext(c.Context, chromedp.WithNewBrowserContext())
	defer cancel()
	if err := navigate(ctx, address); err != nil {
		t.Fatalf("load %s: %v", address, err)
	}
	result, err := chromedp.Run(
		ctx,
		chromedp.Poll[string](
			`window.result === undefined ? "" : "=" + window.result`,
			chromedp.WithPollingInterval(20*time.Millisecond),
			chromedp.WithPollingTimeout(testlab.Hang),
		),
	)
	if err != nil {
		t.Fatalf("load %s: the page has no result: %v", address, err)
	}
	return result[1:]
}
