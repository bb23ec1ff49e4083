package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"eidetic/image/pack"
)

// testLayer returns the files that the test build has in addition to the image for users.
func testLayer(
	ctx context.Context,
	full, base pack.Tree,
	o options,
	archive string,
	lists []string,
	say func(string, ...any),
) (pack.Tree, error) {
	if err := prune(ctx, full, o.source, lists, say); err != nil {
		return nil, err
	}
	layer := make(pack.Tree)
	for _, name := range full.Names() {
		if !strings.HasPrefix(name, "usr/lib/modules/") {
			continue
		}
		if b := base[name]; b == nil || !bytes.Equal(b.Data, full[name].Data) {
			layer[name] = full[name]
		}
	}
	if err := addPackages(ctx, layer, base, testPackages(archive)); err != nil {
		return nil, err
	}
	if err := addFiles(layer, os.DirFS(filepath.Join(o.source, "root-test")), ""); err != nil {
		return nil, err
	}
	layer.Link("etc/systemd/system/sysinit.target.wants/test-shell.service", "/usr/lib/systemd/system/test-shell.service")
	return layer, nil
}

// addPackages adds the programs and libraries of the Debian packages in a folder,
// except those that the box already has.
func addPackages(ctx context.Context, layer, base pack.Tree, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no packages in %s (%w); the flag --refresh fetches them", dir, errors.Join(err, os.ErrNotExist))
	}
	wanted := regexp.MustCompile(`^usr/(s?bin/|lib/x86_64-linux-gnu/)`)
	for _, file := range files {
		cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file)
		var archive, problem bytes.Buffer
		cmd.Stdout, cmd.Stderr = &archive, &problem
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("dpkg-deb %s: %w: %s", file, err, bytes.TrimSpace(problem.Bytes()))
		}
		tree, err := pack.ReadTar(&archive, func(string) bool { return false })
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for name, node := range tree {
			// On the box, /bin, /sbin and /lib are links to the folders below /usr.
			if !strings.HasPrefix(name, "usr/") {
				name = "usr/" + name
			}
			if wanted.MatchString(name) && base[name] == nil {
				layer[name] = node
			}
		}
	}
	return nil
}
