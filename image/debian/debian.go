// Package debian fetches a Debian 12 file system as a tar archive, with mmdebstrap, and holds
// its packages against a lock file. The bootable image and the container image are made of
// such archives.
//
// In flow the names of packages and a mirror; out flow the archive, which is kept for as long
// as the same is asked for, packages.txt (the packages inside) and drift.txt (their
// differences from the lock).
package debian

import (
	"bytes"
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

// Mirror is the mirror unless another one is named.
const Mirror = "http://deb.debian.org"

// Root is a file system that is to be fetched.
type Root struct {
	Packages []string // besides the essential ones; recommended packages are left out
	// Components of Debian's archive, such as "main".
	Components string
	Mirror     string
	Arguments  []string // of mmdebstrap, besides
	Env        func(archive string) ([]string, error)
	Out        string // folder that keeps the archive
	Epoch      int64  // time of every file, in seconds since 1970
	Refresh    bool   // fetch again what was fetched before
}

// Fetch runs mmdebstrap, unless its result for the same Root already exists, and returns the archive.
func (r Root) Fetch(ctx context.Context, say func(string, ...any)) (string, error) {
	args := []string{"--variant=essential", "--architectures=amd64", "--format=tar",
		"--aptopt=Apt::Install-Recommends \"false\"",
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
	}
	// The tar archive keeps dpkg's status file, which lists the installed packages.
	args = append(append(args, r.Arguments...), "--include="+strings.Join(r.Packages, ","), "bookworm")
	sources := []string{
		"deb " + r.Mirror + "/debian bookworm " + r.Components,
		"deb " + r.Mirror + "/debian bookworm-updates " + r.Components,
		"deb " + r.Mirror + "/debian-security bookworm-security " + r.Components,
	}
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(append(args, sources...), "\n"))))
	archive := filepath.Join(r.Out, "root-"+key[:16]+".tar")
	if _, err := os.Stat(archive); err == nil && !r.Refresh {
		say("packages: as fetched before (%s)", archive)
		return archive, nil
	}
	say("packages: fetching %d and what they need", len(r.Packages))
	partial := archive + ".part"
	cmd := exec.CommandContext(ctx, "mmdebstrap", append(append(args, partial), sources...)...)
	// The kernel's package would have a rescue system made, which takes longer than all the rest and which no image
	// has.
	cmd.Env = append(os.Environ(), "INITRD=No", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.Epoch))
	if r.Env != nil {
		more, err := r.Env(archive)
		if err != nil {
			return "", err
		}
		cmd.Env = append(cmd.Env, more...)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mmdebstrap: %w\n%s", err, tail(out, 20))
	}
	return archive, os.Rename(partial, archive)
}

// Load reads an archive without the files that the list of patterns prunes.
func Load(archive, list string) (pack.Tree, error) {
	patterns, err := ReadList(list)
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

// Lock holds an archive's packages against a lock file.
type Lock struct {
	File   string
	Out    string   // folder for packages.txt and drift.txt
	Accept bool     // write the lock file, instead of comparing
	Target string   // the make target that accepts
	Also   []string // packages that may be there besides: names, or lines of another lock file
}

// Check writes the list of installed packages and their differences from the lock.
func (l Lock) Check(archive string, say func(string, ...any)) error {
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
	if err := os.WriteFile(filepath.Join(l.Out, "packages.txt"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	if l.Accept {
		head := fmt.Sprintf("# Name, version and architecture of every package in the image; make %s writes it.\n", l.Target)
		return os.WriteFile(l.File, []byte(head+text.String()), 0o644)
	}
	locked, err := ReadList(l.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	drift := slices.DeleteFunc(pack.Drift(locked, installed), func(line string) bool {
		fields := strings.Fields(line)
		return len(fields) > 1 && fields[0] == "+" && (slices.Contains(l.Also, fields[1]) || slices.Contains(l.Also, line[2:]))
	})
	report := strings.Join(drift, "\n")
	if len(drift) > 0 {
		report += "\n"
		say("packages: %d differ from %s; %s has all, make %s takes them", len(drift), l.File, filepath.Join(l.Out, "drift.txt"), l.Target)
		for _, line := range drift[:min(len(drift), 10)] {
			say("  %s", line)
		}
	} else {
		say("packages: %d, all as locked", len(installed))
	}
	return os.WriteFile(filepath.Join(l.Out, "drift.txt"), []byte(report), 0o644)
}

// ReadList reads a list of lines, in which # begins a comment.
func ReadList(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return pack.ReadList(f)
}

// tail returns the last n lines.
func tail(text []byte, n int) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}
