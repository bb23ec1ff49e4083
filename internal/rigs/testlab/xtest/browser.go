package xtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// firefoxPrefs keep Firefox from showing or fetching anything but the page.
const firefoxPrefs = `user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionPolicyBypassNotification", true);
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
user_pref("browser.sessionstore.resume_from_crash", false);
user_pref("browser.fullscreen.autohide", true);
user_pref("full-screen-api.warning.timeout", 0);
user_pref("general.smoothScroll", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
`

// Browser shows a URL on the whole of a display, of 800 × 600 pixels or less, with a fresh profile, until the
// test ends. program is Chromium's or Firefox's.
func Browser(t testing.TB, display, program, url string) {
	t.Helper()
	home := testlab.TempDir(t)
	profile := filepath.Join(home, "profile")
	args := []string{"--no-sandbox", "--disable-gpu", "--kiosk", "--no-first-run", "--test-type", "--disable-background-networking",
		"--window-position=0,0", "--window-size=801,601", "--user-data-dir=" + profile, url}
	if strings.Contains(filepath.Base(program), "firefox") {
		if err := os.MkdirAll(profile, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(firefoxPrefs), 0o644); err != nil {
			t.Fatal(err)
		}
		args = []string{"--no-remote", "--kiosk", "--width", "800", "--height", "600", "--profile", profile, url}
	}
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home, "DISPLAY=" + display, "XAUTHORITY=" + File(t, display),
		"XDG_RUNTIME_DIR=" + home, "LANG=C.UTF-8", "GTK_IM_MODULE=gtk-im-context-simple"}
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}
