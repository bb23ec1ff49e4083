package adb

import (
	"context"
	"errors"
	"fmt"
	"image"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/base/adbserver"
)

// Phone runs commands on one phone.
type Phone struct {
	Client adbserver.Client
	Serial string
}

// packageName is an Android package (Java's rules for package names).
var packageName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$`) // constant

func checkPackage(name string) error {
	if len(name) > 255 || !packageName.MatchString(name) {
		return fmt.Errorf("adb: %.60q is no package of Android, such as com.android.chrome", name)
	}
	return nil
}

// quote makes one word of the phone's shell of any text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func (p Phone) run(ctx context.Context, words ...string) (string, error) {
	out, err := p.Client.Shell(ctx, p.Serial, strings.Join(words, " "))
	var failed *adbserver.CommandError
	if errors.As(err, &failed) && strings.Contains(failed.Output, "SecurityException") {
		err = fmt.Errorf("%w (on a Xiaomi phone, switch on \"USB debugging (Security settings)\" in the developer options)", err)
	}
	return out, err
}

// said returns an error if a command that ends with status 0 whatever happens says that it failed.
func said(out string, err error) error {
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Error type") { // the next line says it in words
			continue
		}
		if strings.HasPrefix(line, "Error") || strings.HasPrefix(line, "Failed") || strings.HasPrefix(line, "Exception") {
			return fmt.Errorf("adb: the phone says: %.300s", line)
		}
	}
	return nil
}

// ForceStop ends a package.
func (p Phone) ForceStop(ctx context.Context, name string) error {
	if err := checkPackage(name); err != nil {
		return err
	}
	return said(p.run(ctx, "am", "force-stop", name))
}

// Clear ends a package and removes all that it has stored, as if it were just installed: its owner's bookmarks and
// log-ins, too, and the permissions that it was given.
func (p Phone) Clear(ctx context.Context, name string) error {
	if err := checkPackage(name); err != nil {
		return err
	}
	return said(p.run(ctx, "pm", "clear", name))
}

// Settings are what a browser reads from a file when it starts, so that it asks its owner nothing.
type Settings struct {
	File string `json:"file"` // absolute, in /data/local/tmp
	Text string `json:"text"`
}

// settingsFolder is where adb may write and every package may read.
const settingsFolder = "/data/local/tmp/"

// Configure makes a package read its settings: browsers do so only while they are the app that is being debugged.
func (p Phone) Configure(ctx context.Context, name string, s Settings) error {
	if err := checkSettings(name, s); err != nil {
		return err
	}
	_, err := p.run(ctx, "printf", "%s", quote(s.Text), ">", quote(s.File), "&&", "am", "set-debug-app", "--persistent", name)
	return err
}

// Unconfigure takes back what Configure did.
func (p Phone) Unconfigure(ctx context.Context, name string, s Settings) error {
	if err := checkSettings(name, s); err != nil {
		return err
	}
	_, err := p.run(ctx, "rm", "-f", quote(s.File), "&&", "am", "clear-debug-app")
	return err
}

func checkSettings(name string, s Settings) error {
	if !strings.HasPrefix(s.File, settingsFolder) || strings.Contains(s.File, "..") || len(s.Text) > 8<<10 {
		return fmt.Errorf("adb: %.100q: settings are a file in %s, of at most 8 KiB", s.File, settingsFolder)
	}
	return checkPackage(name)
}

// Grant gives a package a permission, so that it does not ask its owner for it.
func (p Phone) Grant(ctx context.Context, name, permission string) error {
	if err := checkPackage(name); err != nil {
		return err
	}
	if err := checkPackage(permission); err != nil { // it has the same form
		return err
	}
	return said(p.run(ctx, "pm", "grant", name, permission))
}

// bootPoll is how often a phone that starts is asked whether it is ready.
const bootPoll = time.Second

// Reboot starts the phone again, and waits until it can be used.
func (p Phone) Reboot(ctx context.Context) error {
	was, err := p.boot(ctx)
	if err != nil {
		return err
	}
	conn, err := p.Client.Open(ctx, "host:transport:"+p.Serial, "reboot:")
	var closed *adbserver.FailError // the phone went down before it answered
	if err != nil && !errors.As(err, &closed) {
		return fmt.Errorf("rebooting: %w", err)
	}
	if err == nil {
		_ = conn.Close()
	}
	ticker := time.NewTicker(bootPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("adb: %s did not come back after it was told to restart: %w", p.Serial, ctx.Err())
		case <-ticker.C:
		}
		if now, err := p.boot(ctx); err == nil && now.id != was.id && now.ready {
			// A swipe up or the menu key opens a screen without a password; one with a password stays closed.
			_, err := p.run(ctx, "input", "keyevent", "82")
			return err
		}
	}
}

// boot is one start of the phone's system.
type boot struct {
	id    string
	ready bool
}

func (p Phone) boot(ctx context.Context) (b boot, err error) {
	out, err := p.run(ctx, "cat", "/proc/sys/kernel/random/boot_id;", "getprop", "sys.boot_completed")
	if err != nil {
		return b, err
	}
	id, ready, _ := strings.Cut(out, "\n")
	b = boot{strings.TrimSpace(id), strings.TrimSpace(ready) == "1"}
	if b.id == "" || len(b.id) > 100 {
		return b, fmt.Errorf("adb: %.60q names no start of the phone", out)
	}
	return b, nil
}

// Open opens a URL; in a package, or in whatever the phone uses for it if name is "". Extras are words of the intent,
// such as --ez performancetest true.
func (p Phone) Open(ctx context.Context, to, name string, extras ...string) error {
	if u, err := url.Parse(to); err != nil || u.Scheme == "" || len(to) > 8<<10 {
		return fmt.Errorf("adb: %.60q is no absolute URL", to)
	}
	words := []string{"am", "start", "-a", "android.intent.action.VIEW", "-d", quote(to)}
	if name != "" {
		if err := checkPackage(name); err != nil {
			return err
		}
		words = append(words, "-p", name)
	}
	for _, e := range extras {
		words = append(words, quote(e))
	}
	return said(p.run(ctx, words...))
}

// Size is the size of the screen in pixels, as the phone is held at rotation 0.
func (p Phone) Size(ctx context.Context) (image.Point, error) {
	out, err := p.run(ctx, "wm", "size")
	if err != nil {
		return image.Point{}, err
	}
	return parseSize(out)
}

// parseSize reads "Physical size: 1080x2400", and the size that overrides it.
func parseSize(out string) (size image.Point, err error) {
	for line := range strings.Lines(out) {
		_, value, ok := strings.Cut(line, "size:")
		if !ok {
			continue
		}
		x, y, _ := strings.Cut(strings.TrimSpace(value), "x")
		w, errW := strconv.Atoi(x)
		h, errH := strconv.Atoi(y)
		if errW != nil || errH != nil || w < 1 || h < 1 || w > 1<<14 || h > 1<<14 {
			return size, fmt.Errorf("adb: %.60q is no size of a screen", strings.TrimSpace(line))
		}
		size = image.Pt(w, h) // the override comes last
	}
	if size == (image.Point{}) {
		return size, errors.New("adb: the phone does not say how large its screen is")
	}
	return size, nil
}

// Rotation is by how many quarter turns the screen's content is turned. The setting user_rotation is right only while
// auto-rotate is off.
func (p Phone) Rotation(ctx context.Context) (int, error) {
	out, err := p.run(ctx, "dumpsys", "input", "|", "grep", "-E", quote("Viewport INTERNAL|SurfaceOrientation"))
	if n, ok := rotationIn(out); err == nil && ok {
		return n, nil
	}
	if out, err = p.run(ctx, "settings", "get", "system", "user_rotation"); err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if strings.TrimSpace(out) == "null" { // it was never set
		n, err = 0, nil
	}
	if err != nil || n < 0 || n > 3 {
		return 0, fmt.Errorf("adb: %.20q is no rotation", strings.TrimSpace(out))
	}
	return n, nil
}

var (
	viewport = regexp.MustCompile(`Viewport INTERNAL: displayId=0\b.*[ ,]orientation=([0-3])\b`) // constant
	surface  = regexp.MustCompile(`SurfaceOrientation: ([0-3])\b`)                               // constant
)

// rotationIn reads the rotation of the first display in what dumpsys input prints, before Android 9 that of its touch
// screen. A foldable phone lists both of its displays as the first; one of them is active.
func rotationIn(out string) (turns int, ok bool) {
	inactive := 0
	for line := range strings.Lines(out) {
		if m := viewport.FindStringSubmatch(line); m != nil {
			if !strings.Contains(line, "isActive=[0]") {
				return int(m[1][0] - '0'), true
			}
			inactive++
		}
	}
	if m := surface.FindStringSubmatch(out); m != nil && inactive == 0 {
		return int(m[1][0] - '0'), true
	}
	return 0, false
}

// activityName is an activity of a package, its name whole or, from a point on, as within the package.
var activityName = regexp.MustCompile(`^\.?[A-Za-z][A-Za-z0-9_$]*(\.[A-Za-z][A-Za-z0-9_$]*)*$`) // constant

// CheckStart returns an error for what names neither a package, org.example.notes, nor an activity of one,
// org.example.notes/.Main.
func CheckStart(name string) error {
	in, activity, named := strings.Cut(name, "/")
	if err := checkPackage(in); err != nil {
		return err
	}
	if named && (len(name) > 255 || !activityName.MatchString(activity)) {
		return fmt.Errorf("adb: %.60q is no activity of Android, such as org.example.notes/.Main", name)
	}
	return nil
}

// Component is the activity that a package's icon starts, as PACKAGE/ACTIVITY.
func (p Phone) Component(ctx context.Context, name string) (string, error) {
	if err := checkPackage(name); err != nil {
		return "", err
	}
	out, err := p.run(ctx, "cmd", "package", "resolve-activity", "--brief", "-c", "android.intent.category.LAUNCHER", name)
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := strings.TrimSpace(lines[len(lines)-1]) // after a line on the intent
	if CheckStart(last) != nil || !strings.HasPrefix(last, name+"/") {
		return "", fmt.Errorf("adb: the phone has no program of the package %s that can be started (%.100q)", name, last)
	}
	return last, nil
}

// Start starts an activity, PACKAGE/ACTIVITY.
func (p Phone) Start(ctx context.Context, component string) error {
	if err := CheckStart(component); err != nil {
		return err
	}
	return said(p.run(ctx, "am", "start", "-n", quote(component)))
}
