package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"eidetic/image/debian"
)

// wifiPackages are the packages that --wifi adds. packages.lock describes the image without them. MediaTek's firmware is
// in firmware-misc-nonfree, until Debian 13 gives it a package of its own.
func wifiPackages() []string {
	return []string{"firmware-iwlwifi", "firmware-realtek", "firmware-atheros", "firmware-misc-nonfree", "wireless-regdb"}
}

// bootstrap fetches the packages, and beside the archive those that only the test build has.
func bootstrap(ctx context.Context, o options, say func(string, ...any)) (string, error) {
	list, err := debian.ReadList(filepath.Join(o.source, "packages.txt"))
	if err != nil {
		return "", err
	}
	extra, err := debian.ReadList(filepath.Join(o.source, "packages-test.txt"))
	if err != nil {
		return "", err
	}
	browsers, err := browserPackages(o)
	if err != nil {
		return "", err
	}
	components, more := "main", browsers
	if o.wifi {
		components += " non-free-firmware"
		more = slices.Concat(more, wifiPackages())
	}
	list = append(list, more...)
	return debian.Root{
		Packages: list, Components: components, Mirror: o.mirror, Out: o.out, Epoch: o.epoch, Refresh: o.refresh,
		Arguments: append(licences(more),
			// This hook runs while apt still knows the installed packages.
			`--customize-hook=APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -q -y --no-install-recommends --download-only install `+strings.Join(
				extra,
				" ",
			),
			`--customize-hook=mkdir -p "$TEST_PACKAGES" && cp "$1"/var/cache/apt/archives/*.deb "$TEST_PACKAGES"`,
		),
		Env: func(archive string) ([]string, error) {
			packages, err := filepath.Abs(testPackages(archive))
			if err != nil {
				return nil, err
			}
			return []string{"TEST_PACKAGES=" + packages}, os.RemoveAll(packages)
		},
	}.Fetch(ctx, say)
}

// testPackages is the folder of the packages that only the test build has.
func testPackages(archive string) string { return strings.TrimSuffix(archive, ".tar") + ".test" }

// checkPackages writes the list of installed packages and their differences from the lock.
func checkPackages(o options, archive string, say func(string, ...any)) error {
	lock := debian.Lock{File: filepath.Join(o.source, "packages.lock"), Out: o.out, Accept: o.accept, Target: "image-accept"}
	if o.wifi {
		lock.Also = wifiPackages()
	}
	if len(o.browsers) > 0 { // the container has the same
		more, err := debian.ReadList(filepath.Join(o.source, "oci", "packages.lock"))
		if err != nil {
			return err
		}
		lock.Also = append(lock.Also, more...)
	}
	return lock.Check(archive, say)
}
