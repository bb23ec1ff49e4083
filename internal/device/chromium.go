package device

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/programs"
)

// Chromium starts browsers whose profile is born fresh, in RAM, for each trial.
type Chromium struct {
	// Program is the browser's path; Version is what it says of itself.
	Program, Version string
	template         string // a home folder that trusts the box, copied for each trial
	dir              string // where the trials' homes go
}

// NewChromium finds the browser and prepares, below dir (which should be a RAM
// file system), a home folder in which it trusts the certificate authority
// whose certificate is the PEM file authority.
func NewChromium(ctx context.Context, dir, authority string) (*Chromium, error) {
	program, err := programs.Chromium().Find()
	if err != nil {
		return nil, err
	}
	certutil, err := programs.Certutil().Find()
	if err != nil {
		return nil, err
	}
	version, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", program, err)
	}
	c := &Chromium{
		Program:  program,
		Version:  strings.TrimSpace(string(version)),
		template: filepath.Join(dir, "template"),
		dir:      dir,
	}
	store := filepath.Join(c.template, ".pki", "nssdb")
	if err := os.MkdirAll(store, 0o700); err != nil {
		return nil, fmt.Errorf("preparing the browser's home: %w", err)
	}
	for _, args := range [][]string{
		{"-N", "--empty-password"},
		{"-A", "-n", "box", "-t", "C,,", "-i", authority},
	} {
		args = append([]string{"-d", "sql:" + store}, args...)
		if out, err := exec.CommandContext(ctx, certutil, args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("putting %s among the browser's authorities: %w: %s", authority, err, strings.TrimSpace(string(out)))
		}
	}
	return c, nil
}

// Options of one browser.
type Options struct {
	Namespace *Namespace // whose network it has
	Display   string     // ":0"
	Screen    Screen
	URL       string // what it opens
	// Proxy is an explicit proxy, "192.168.77.1:3128", or "" for none.
	Proxy string
	// HTTP3 are the hosts that it speaks HTTP/3 with, and nothing else:
	// otherwise it refuses QUIC from roots that a person installed.
	HTTP3 []string
	// Niceness is added to the browser's processes, so that on a machine of few
	// cores the screen is still filmed on time.
	Niceness int
	// Extra are flags that a benchmark adds, to trace a browser or to try what a flag does.
	Extra []string
	// Files are its descriptors 3, 4 …: with --remote-debugging-pipe it is asked and answers over them.
	Files []*os.File
}

// Browser is a running browser.
type Browser struct {
	process *process
	home    string
}

// flags are those of a browser on a virtual screen.
func flags(profile string, o Options) []string {
	f := append(quiet(),
		"--user-data-dir="+profile,
		"--no-sandbox", // it is root of its namespaces; the namespaces are the sandbox
	)
	f = append(f, window(fmt.Sprint(o.Screen.Width), fmt.Sprint(o.Screen.Height), fmt.Sprint(o.Screen.Width+1), fmt.Sprint(o.Screen.Height+1))...)
	f = append(f, quicFlag(o.HTTP3))
	if o.Proxy != "" {
		f = append(f, "--proxy-server=http://"+o.Proxy)
	}
	return append(append(f, o.Extra...), o.URL)
}

// quicFlag lets it speak QUIC with these hosts, and with no other.
func quicFlag(hosts []string) string {
	if len(hosts) == 0 {
		return "--disable-quic"
	}
	origins := make([]string, 0, len(hosts))
	for _, h := range hosts {
		origins = append(origins, net.JoinHostPort(h, "443"))
	}
	return "--origin-to-force-quic-on=" + strings.Join(origins, ",")
}

// quiet are flags that keep a browser from doing anything that the page did not
// ask for, and from drawing anything that depends on the machine.
func quiet() []string {
	return []string{
		"--no-first-run", "--no-default-browser-check", "--no-pings",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps", "--disable-extensions", "--disable-breakpad",
		"--disable-domain-reliability", "--disable-client-side-phishing-detection",
		"--disable-search-engine-choice-screen", "--disable-notifications",
		"--disable-infobars", "--disable-session-crashed-bubble", "--test-type",
		"--metrics-recording-only", "--password-store=basic", "--use-mock-keychain",
		"--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,HttpsUpgrades," +
			"HttpsFirstBalancedMode,HttpsFirstBalancedModeAutoEnable,DnsOverHttps,AutofillServerCommunication," +
			"CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,NetworkTimeServiceQuerying",
		"--disable-gpu", // software drawing is the same on every machine
		"--disable-partial-raster",
		"--force-color-profile=srgb", "--force-device-scale-factor=1",
		"--lang=en-GB",
		"--host-resolver-rules=" + nowhere(),
	}
}

// window are flags that fill a screen, whose sizes may be names of a shell.
//
// Drawing over what is left of an earlier picture, or keeping a small tile that a
// later picture only touches, changes the smoothing of edges by a shade: the last
// picture would depend on how often it was drawn. One tile of the screen's size
// (drawing on a graphics processor has large ones too) that is drawn whole
// depends on its content alone.
//
// A window of exactly the screen's size is made one pixel smaller, so that no
// window manager takes it for full-screen; on a virtual screen there is none.
func window(width, height, wider, higher string) []string {
	return []string{
		"--default-tile-width=" + width, "--default-tile-height=" + height,
		"--kiosk", "--window-position=0,0", "--window-size=" + wider + "," + higher,
	}
}

// ownServices are hosts that a browser asks for itself although it was told
// not to; a page's requests to anybody else of the same company still go through.
var ownServices = [...]string{
	"update.googleapis.com", "accounts.google.com", "clients2.google.com", "clientservices.googleapis.com",
	"optimizationguide-pa.googleapis.com", "safebrowsing.googleapis.com", "safebrowsingohttpgateway.googleapis.com",
	"content-autofill.googleapis.com", "edgedl.me.gvt1.com", "redirector.gvt1.com", "android.clients.google.com",
	"mtalk.google.com",
}

// nowhere makes the browser's resolver know nothing of them.
func nowhere() string {
	rules := make([]string, 0, len(ownServices))
	for _, host := range ownServices {
		rules = append(rules, "MAP "+host+" ~NOTFOUND")
	}
	return strings.Join(rules, ",")
}

// Start makes a fresh home and starts a browser in it.
func (c *Chromium) Start(o Options) (*Browser, error) {
	if u, err := url.Parse(o.URL); err != nil || u.Scheme == "" {
		return nil, fmt.Errorf("starting the browser: %q is no absolute URL", o.URL)
	}
	home, err := os.MkdirTemp(c.dir, "trial-")
	if err != nil {
		return nil, fmt.Errorf("making a fresh profile: %w", err)
	}
	if err := os.CopyFS(home, os.DirFS(c.template)); err != nil {
		os.RemoveAll(home)
		return nil, fmt.Errorf("making a fresh profile: %w", err)
	}
	cmd := exec.Command(c.Program, flags(filepath.Join(home, "profile"), o)...)
	cmd.Dir = home
	cmd.Env = environment(home, o.Display)
	cmd.ExtraFiles = o.Files
	b := &Browser{home: home}
	err = o.Namespace.Do(func() error {
		b.process, err = start(cmd, "chromium")
		return err
	})
	if err != nil {
		os.RemoveAll(home)
		return nil, err
	}
	if o.Niceness != 0 {
		// Without it the device is only less smooth to film, and lost frames are counted anyway.
		_ = renice(b.process.cmd.Process.Pid, o.Niceness)
	}
	return b, nil
}

// environment is all that a browser gets of ours: nothing of the person's own
// settings may change what a page looks like.
func environment(home, display string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"DISPLAY=" + display,
		"XDG_RUNTIME_DIR=" + home,
		"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "LANGUAGE=en",
		"TZ=UTC",
		"TMPDIR=/tmp",
		// No message bus: desktop services must not be woken.
		"DBUS_SESSION_BUS_ADDRESS=disabled:", "DBUS_SYSTEM_BUS_ADDRESS=disabled:",
		"GTK_THEME=Adwaita",
	}
}

// Done is closed when the browser has ended by itself or was stopped.
func (b *Browser) Done() <-chan struct{} { return b.process.done }

// Err says why the browser ended, once Done is closed.
func (b *Browser) Err() error { return b.process.ended() }

// Stop ends the browser with all its helpers and removes its home. Nothing is
// written back: there is nothing to be kept of a trial's profile.
func (b *Browser) Stop() error {
	b.process.stop(0)
	reapOrphans("chrome_crashpad_handler")
	return removeAll(b.home)
}

// removeAll removes a folder that dying processes may still be writing to, for
// seconds on a machine that is busy.
func removeAll(dir string) error {
	var err error
	for range 1000 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("removing the trial's profile: %w", err)
}

// ProfileBytes tells how much RAM the profile takes.
func (b *Browser) ProfileBytes() (n int64) {
	_ = filepath.WalkDir(b.home, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
