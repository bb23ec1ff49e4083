package device

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/base/programs"
	"eidetic/internal/lab"
	"eidetic/internal/run/counters"
	"eidetic/internal/run/isolate"
)

// Chromium starts browsers, each with a fresh profile in RAM.
type Chromium struct {
	// Program is the browser's path; Version is its own version text.
	Program, Version string
	template         string // a home folder whose browser trusts the box; copied for each trial
	dir              string // where the trials' homes go
}

// NewChromium finds the browser and prepares a home folder in the workshop.
func NewChromium(ctx context.Context, w Workshop) (*Chromium, error) {
	program, err := programs.Chromium().Find()
	if err != nil {
		return nil, err
	}
	c := &Chromium{Program: program, template: filepath.Join(w.Dir, "template"), dir: w.Dir}
	if c.Version, err = w.version(ctx, program, nil); err != nil {
		return nil, err
	}
	if err := writeChromiumPreferences(c.template); err != nil {
		return nil, err
	}
	return c, w.trust(ctx, c.template, filepath.Join(c.template, ".pki", "nssdb"))
}

// Options configure one browser.
type Options struct {
	Namespace *Namespace // network namespace of the browser
	Display   string     // ":0"
	Screen    Screen
	Touch     bool   // the screen is a touch screen
	URL       string // page to open
	// Proxy is an explicit proxy, "192.168.77.1:3128", or "" for none.
	Proxy string
	// HTTP3 are the hosts that the browser must use HTTP/3 for. For other hosts it refuses
	// QUIC, as the certificate authority is one that a person installed.
	HTTP3 []string
	// Niceness is added to the browser's processes, so that filming keeps time on a machine
	// with few cores.
	Niceness int
	// Extra are flags for benchmarks, to trace a browser or to try out a flag.
	Extra []string
	// Files become descriptors 3, 4, …; with --remote-debugging-pipe they carry the DevTools protocol.
	Files []*os.File
	// Home is a folder that Keep returned: the browser starts with a copy of it, and not with an
	// empty profile.
	Home string
	// Sandbox is what keeps the browser from the machine.
	Sandbox isolate.Sandbox

	words []string // of a plan's command, which may name files
	// Locale is what the browser tells pages; what it does not say is UTC, and British English.
	Locale lab.Locale
	// Again lets the program be started again for this browser (Launch): its socket is then in the home,
	// which both starts see, and not in a /tmp that each has for itself.
	Again bool
	// Chosen are files for file dialogues, by their names; see ChosenPath.
	Chosen map[string][]byte
	// Counters count the browser's events; nil for none.
	Counters *counters.Counters

	profiled    bool   // Firefox samples itself
	inputMethod string // "" for none
}

// Browser is a running browser.
type Browser struct {
	process  *process
	home     string
	devtools *devtools // nil where the browser cannot be asked
	started  started
	launched []*Browser // by Launch; they end by themselves
	execed   lab.Event  // the start of the program
	kills    int        // isolate.MemoryKills before it
}

// flags returns the command line of a browser on a virtual screen.
func flags(profile string, o Options) []string {
	f := append(quietFlags(), "--user-data-dir="+profile)
	if o.Sandbox != isolate.SandboxFull {
		f = append(f, "--no-sandbox")
	}
	f = append(f, windowFlags(fmt.Sprint(o.Screen.Width), fmt.Sprint(o.Screen.Height), fmt.Sprint(o.Screen.Width+1),
		fmt.Sprint(o.Screen.Height+1))...)
	f = append(f, quicFlag(o.HTTP3))
	if o.Proxy != "" {
		f = append(f, "--proxy-server=http://"+o.Proxy)
	}
	return append(append(append(f, languageFlags(o.Locale)...), o.Extra...), o.URL)
}

// quicFlag forces HTTP/3 for these hosts and no others.
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

// softwareFlag keeps Chromium from OpenGL and Vulkan.
const softwareFlag = "--disable-gpu"

// quietFlags keep a browser from requests that the page did not cause, and from rendering
// that depends on the machine.
func quietFlags() []string {
	return []string{
		"--no-first-run", "--no-default-browser-check", "--no-pings",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps", "--disable-extensions", "--disable-breakpad",
		"--disable-domain-reliability", "--disable-client-side-phishing-detection",
		"--disable-search-engine-choice-screen",
		"--disable-infobars", "--disable-session-crashed-bubble", "--test-type",
		"--metrics-recording-only", "--password-store=basic", "--use-mock-keychain",
		"--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,HttpsUpgrades," +
			"HttpsFirstBalancedMode,HttpsFirstBalancedModeAutoEnable,DnsOverHttps,AutofillServerCommunication," +
			"CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,NetworkTimeServiceQuerying",
		softwareFlag, // software drawing is the same on every machine
		"--disable-partial-raster",
		"--force-color-profile=srgb", "--force-device-scale-factor=1",
		"--lang=" + ownLanguage, "--accept-lang=" + ownLanguage + ",en", // also where Chromium has no texts in it
		"--host-resolver-rules=" + blockOwnServices(),
	}
}

// windowFlags fill a screen with one window. The sizes may be shell variables.
//
// Redrawing over remains of an earlier picture, or keeping a small tile that a later picture
// only touches, changes antialiased edges by a shade, so the last picture would depend on
// how often it was drawn. A single tile of the screen's size, drawn completely, depends only
// on its content. Drawing by a graphics processor uses large tiles too.
//
// Chromium makes a window of exactly the screen's size one pixel smaller, so that window
// managers do not take it for full-screen; a virtual screen has no window manager.
func windowFlags(width, height, wider, higher string) []string {
	return []string{
		"--default-tile-width=" + width, "--default-tile-height=" + height,
		"--kiosk", "--window-position=0,0", "--window-size=" + wider + "," + higher,
	}
}

// ownServices are hosts that the browser contacts for itself in spite of its flags. A page's
// requests to other hosts of the same company still work.
var ownServices = [...]string{
	"update.googleapis.com", "accounts.google.com", "clients2.google.com", "clientservices.googleapis.com",
	"optimizationguide-pa.googleapis.com", "safebrowsing.googleapis.com", "safebrowsingohttpgateway.googleapis.com",
	"content-autofill.googleapis.com", "edgedl.me.gvt1.com", "redirector.gvt1.com", "android.clients.google.com",
	"mtalk.google.com",
}

// blockOwnServices makes the browser's resolver fail for ownServices. Of a loopback
// address only that of IPv4 leads to the box.
func blockOwnServices() string {
	rules := []string{"MAP [::1]:* 127.0.0.1"}
	for _, host := range ownServices {
		rules = append(rules, "MAP "+host+" ~NOTFOUND")
	}
	return strings.Join(rules, ",")
}

// Start makes a fresh home and starts a browser in it.
func (c *Chromium) Start(o Options) (*Browser, error) {
	if lab.NetURL(o.URL).Scheme == "" {
		return nil, fmt.Errorf("starting the browser: %q is no absolute URL", o.URL)
	}
	args := func(home string) []string { return flags(filepath.Join(home, profileName), o) }
	return startIn(c.dir, c.template, c.Program, "chromium", args, o)
}

// homePrefix begins the name of a trial's home.
const homePrefix = "trial-"

// startIn makes a fresh home below dir, a copy of the template, and starts a browser in it.
func startIn(dir, template, program, name string, args func(home string) []string, o Options) (*Browser, error) {
	home, err := os.MkdirTemp(dir, homePrefix)
	if err != nil {
		return nil, fmt.Errorf("making a fresh profile: %w", err)
	}
	if o.Home != "" {
		template = o.Home
	}
	if err := copyFolder(home, template, ofProfile()); err != nil {
		os.RemoveAll(home)
		return nil, fmt.Errorf("making a fresh profile: %w", err)
	}
	err = errors.Join(forgetDumps(home), steadyCaret(home), writeLanguages(home, o.Locale), unpackChosen(home, o.Chosen))
	if err != nil {
		os.RemoveAll(home)
		return nil, fmt.Errorf("making a fresh profile: %w", err)
	}
	b := &Browser{home: home, started: started{program, name, args(home), o}, kills: isolate.MemoryKills()}
	if err := b.begin(exec.Command(program, b.started.args...), name, o); err != nil {
		os.RemoveAll(home)
		return nil, err
	}
	return b, nil
}

// begin starts the browser in its home.
func (b *Browser) begin(cmd *exec.Cmd, name string, o Options) error {
	cmd.Dir = b.home
	cmd.Env = append(environment(b.home, o.Display), zoneEnvironment(o.Locale)...) // the last value of a name counts
	if o.Again {
		cmd.Env = append(cmd.Env, "TMPDIR="+b.home)
	}
	if o.profiled {
		if err := os.MkdirAll(filepath.Join(b.home, profileFolder), 0o700); err != nil {
			return err
		}
		cmd.Env = append(cmd.Env, profilerEnvironment(b.home)...)
	}
	if o.Touch {
		cmd.Env = append(cmd.Env, "MOZ_USE_XINPUT2=1") // without it Firefox makes a mouse of the first finger
	}
	input, err := engineEnvironment(b.home, o.inputMethod, o.Sandbox)
	if err != nil {
		return err
	}
	cmd.Env = append(cmd.Env, input...)
	cmd.ExtraFiles = o.Files
	readable := append(programFiles(cmd.Path, o.words), socket(o.Display))
	if o.inputMethod != "" {
		readable = append(readable, engineFiles)
	}
	if b.process, b.execed, err = startConfined(cmd, name, b.home, o.Namespace, o.Sandbox, readable, o.Counters); err != nil {
		return err
	}
	if o.Niceness != 0 {
		// An error is harmless: filming is less smooth, and lost frames are counted anyway.
		_ = renice(b.process.cmd.Process.Pid, o.Niceness)
	}
	return nil
}

// environment is the browser's whole environment: the user's own settings must not change
// what a page looks like.
func environment(home, display string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"DISPLAY=" + display,
		"XDG_RUNTIME_DIR=" + home,
		"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "LANGUAGE=en",
		"TZ=" + ownZone,
		"TMPDIR=/tmp",
		// No message bus: the browser must not start desktop services.
		"DBUS_SESSION_BUS_ADDRESS=disabled:", "DBUS_SYSTEM_BUS_ADDRESS=disabled:",
		"GTK_THEME=Adwaita",
		"GTK_IM_MODULE=gtk-im-context-simple", // and not what the machine has: some declare themselves everybody's default
		"MOZ_CRASHREPORTER_DISABLE=1", "MOZ_LEGACY_PROFILES=1",
	}
}

// Done is closed when the browser has ended, by itself or by Stop.
func (b *Browser) Done() <-chan struct{} { return b.process.done }

// Err says why the browser ended, once Done is closed.
func (b *Browser) Err() error {
	err := b.process.ended()
	if b.process.err == nil {
		return fmt.Errorf("the page may have closed its window (window.close): %w", err)
	}
	return err
}

// Stop ends the browser with all its helper processes and removes its home.
func (b *Browser) Stop() error {
	b.end()
	return removeAll(b.home)
}

// end ends the browser and what it was started again by.
func (b *Browser) end() {
	b.process.stop(0)
	for _, one := range b.launched {
		one.process.stop(0)
	}
	b.devtools.close()
	reapOrphans("chrome_crashpad_handler")
}

// removeAll removes a folder to which ending processes may still write for seconds on a
// busy machine.
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
