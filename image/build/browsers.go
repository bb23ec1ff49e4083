package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"eidetic/image/debian"
)

// The browsers that an image can carry, by their packages of Debian. The first is what plans use that name none.
const (
	chromium = "chromium"
	firefox  = "firefox-esr"
)

// checkBrowsers says what is wrong with the browsers that are asked for.
func checkBrowsers(browsers []string) error {
	for i, b := range browsers {
		if b != chromium && b != firefox {
			return fmt.Errorf("--browsers: %q is none of %s and %s", b, chromium, firefox)
		}
		if slices.Contains(browsers[:i], b) {
			return fmt.Errorf("--browsers: %s is there twice", b)
		}
	}
	if len(browsers) > 0 && !slices.Contains(browsers, chromium) {
		return fmt.Errorf("--browsers: %s is needed, too: plans that name no browser use it", chromium)
	}
	return nil
}

// browserPackages are the packages of the browsers and of what the virtual device needs besides.
func browserPackages(o options) ([]string, error) {
	if len(o.browsers) == 0 {
		return nil, nil
	}
	more, err := debian.ReadList(filepath.Join(o.source, "packages-browsers.txt"))
	return slices.Concat(o.browsers, more), err
}

// licences are mmdebstrap's arguments by which packages keep their licence: the rest of /usr/share/doc is left out. Only
// where a pattern has a wildcard does dpkg make the folder for it (dpkg(1), path-include).
func licences(packages []string) (args []string) {
	for _, p := range packages {
		args = append(args, "--dpkgopt=path-include=/usr/share/doc/"+p+"*/copyright")
	}
	return args
}

// sizes are what is made, at most, in bytes; docs/box.md promises them.
type sizes struct {
	esp        int64 // of the EFI partition: room for two versions and the one that is being written
	efi, image int64
}

func sizesOf(o options) sizes {
	if len(o.browsers) > 0 {
		return sizes{esp: 1216 << 20, efi: 410_000_000, image: 1_300_000_000}
	}
	return sizes{esp: 368 << 20, efi: 150_000_000, image: 400_000_000}
}

// browsersOf reads the value of --browsers.
func browsersOf(text string) []string { return strings.Fields(strings.ReplaceAll(text, ",", " ")) }
