package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/image/debian"
	"eidetic/image/update"
)

// TestBrowsers: an image carries Chromium, and Firefox beside it; another choice is refused.
func TestBrowsers(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "chromium": "", "chromium firefox-esr": "", "firefox-esr,chromium": "",
		"firefox-esr":       "chromium is needed, too",
		"1":                 `"1" is none of chromium and firefox-esr`,
		"chromium chromium": "there twice",
	} {
		err := checkBrowsers(browsersOf(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("--browsers %q: %v; want an error with %q", text, err, want)
		}
	}
}

// TestPackagesOfBrowsers: what an image with browsers has besides is locked with the container's packages, and keeps its
// licences, and an update with it fits.
func TestPackagesOfBrowsers(t *testing.T) {
	o := options{source: "..", browsers: []string{chromium, firefox}}
	packages, err := browserPackages(o)
	if err != nil || len(packages) != 5 {
		t.Fatalf("browserPackages() = %q, %v; want both browsers and three more", packages, err)
	}
	locked, err := debian.ReadList(filepath.Join(o.source, "oci", "packages.lock"))
	if err != nil {
		t.Fatal(err)
	}
	gone := leftOut(t)
	for _, p := range packages {
		if !slices.ContainsFunc(locked, func(line string) bool { return strings.HasPrefix(line, p+" ") }) {
			t.Errorf("oci/packages.lock has no %s", p)
		}
		if gone.Match("usr/share/doc/" + p + "/copyright") {
			t.Errorf("the image leaves out the licence of %s", p)
		}
	}
	for _, file := range []string{"usr/lib/chromium/chromium", "usr/lib/firefox-esr/firefox-esr", "usr/bin/Xvfb", "usr/bin/certutil"} {
		if gone.Match(file) {
			t.Errorf("the image leaves out %s", file)
		}
	}
	if none, err := browserPackages(options{source: ".."}); err != nil || len(none) != 0 {
		t.Errorf("browserPackages() without browsers = %q, %v; want none", none, err)
	}
	for _, o := range []options{{}, o} {
		if s := sizesOf(o); s.efi > update.MaxSize || 2*s.efi > s.esp || s.esp > s.image {
			t.Errorf("with the browsers %q the sizes are %+v; want that an update fits beside the running system", o.browsers, s)
		}
	}
}
