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
)

// Phone runs commands on one phone.
type Phone struct {
	Client Client
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
	return p.Client.Shell(ctx, p.Serial, strings.Join(words, " "))
}

// said returns an error if a command that ends with status 0 whatever happens says that it failed.
func said(out string, err error) error {
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
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

// Open opens a URL; in a package, or in whatever the phone uses for it if name is "".
func (p Phone) Open(ctx context.Context, to, name string) error {
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

// Rotation is by how many quarter turns the screen's content is turned.
func (p Phone) Rotation(ctx context.Context) (int, error) {
	out, err := p.run(ctx, "settings", "get", "system", "user_rotation")
	if err != nil {
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
