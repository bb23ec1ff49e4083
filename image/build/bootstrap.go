package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"eidetic/image/pack"
)

// wifiPackages are the packages that --wifi adds. packages.lock describes the image without them.
func wifiPackages() []string {
	return []string{"firmware-iwlwifi", "firmware-realtek", "firmware-atheros", "wireless-regdb"}
}

// bootstrap runs mmdebstrap, unless its result for the same lists already exists.
func bootstrap(ctx context.Context, o options, say func(string, ...any)) (string, error) {
	list, err := readList(filepath.Join(o.source, "packages.txt"))
	if err != nil {
		return "", err
	}
	extra, err := readList(filepath.Join(o.source, "packages-test.txt"))
	if err != nil {
		return "", err
	}
	components := "main"
	if o.wifi {
		components += " non-free-firmware"
		list = append(list, wifiPackages()...)
	}
	args := []string{"--variant=essential", "--architectures=amd64", "--format=tar",
		"--aptopt=Apt::Install-Recommends \"false\"",
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		// This hook runs while apt still knows the installed packages.
		`--customize-hook=APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -q -y --no-install-recommends --download-only install ` + strings.Join(
			extra,
			" ",
		),
		`--customize-hook=mkdir -p "$TEST_PACKAGES" && cp "$1"/var/cache/apt/archives/*.deb "$TEST_PACKAGES"`,
		// The tar archive keeps dpkg's status file, which lists the installed packages.
		"--include=" + strings.Join(list, ","), "bookworm"}
	sources := []string{
		"deb " + o.mirror + "/debian bookworm " + components,
		"deb " + o.mirror + "/debian bookworm-updates " + components,
		"deb " + o.mirror + "/debian-security bookworm-security " + components,
	}
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(append(args, sources...), "\n"))))
	archive := filepath.Join(o.out, "root-"+key[:16]+".tar")
	if _, err := os.Stat(archive); err == nil && !o.refresh {
		say("packages: as fetched before (%s)", archive)
		return archive, nil
	}
	say("packages: fetching %d and what they need", len(list))
	partial := archive + ".part"
	cmd := exec.CommandContext(ctx, "mmdebstrap", append(append(args, partial), sources...)...)
	packages, err := filepath.Abs(testPackages(archive))
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(packages); err != nil {
		return "", err
	}
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", o.epoch), "TEST_PACKAGES="+packages)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mmdebstrap: %w\n%s", err, tail(out, 20))
	}
	return archive, os.Rename(partial, archive)
}

// testPackages is the folder of the packages that only the test build has.
func testPackages(archive string) string { return strings.TrimSuffix(archive, ".tar") + ".test" }

// load reads the archive without the files that the list prunes.
func load(archive, list string) (pack.Tree, error) {
	patterns, err := readList(list)
	if err != nil {
		return nil, err
	}
	globs, err := pack.NewGlobs(patterns)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return pack.ReadTar(f, globs.Match)
}

// checkPackages writes the list of installed packages and their differences from the lock.
func checkPackages(o options, archive string, say func(string, ...any)) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	const status = "var/lib/dpkg/status"
	tree, err := pack.ReadTar(f, func(name string) bool { return name != status })
	if err != nil {
		return err
	}
	if tree[status] == nil {
		return fmt.Errorf("%s: no %s", archive, status)
	}
	installed, err := pack.Installed(tree[status].Data)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range installed {
		fmt.Fprintln(&text, p)
	}
	if err := os.WriteFile(filepath.Join(o.out, "packages.txt"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	lock := filepath.Join(o.source, "packages.lock")
	if o.accept {
		head := "# Name, version and architecture of every package in the image; make image-accept writes it.\n"
		return os.WriteFile(lock, []byte(head+text.String()), 0o644)
	}
	locked, err := readList(lock)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	drift := pack.Drift(locked, installed)
	if o.wifi {
		drift = slices.DeleteFunc(drift, func(line string) bool {
			fields := strings.Fields(line)
			return len(fields) > 1 && fields[0] == "+" && slices.Contains(wifiPackages(), fields[1])
		})
	}
	report := strings.Join(drift, "\n")
	if len(drift) > 0 {
		report += "\n"
		say("packages: %d differ from %s; %s has all, make image-accept takes them", len(drift), lock, filepath.Join(o.out, "drift.txt"))
		for _, line := range drift[:min(len(drift), 10)] {
			say("  %s", line)
		}
	} else {
		say("packages: %d, all as locked", len(installed))
	}
	return os.WriteFile(filepath.Join(o.out, "drift.txt"), []byte(report), 0o644)
}
