package pack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// PruneModules keeps the kernel modules whose path below kernel/ matches keep, and their
// dependencies, removes the others, and rebuilds the indices that modprobe reads.
// It returns the kernel's version and the number of modules kept.
func (t Tree) PruneModules(ctx context.Context, keep *Globs) (version string, kept int, err error) {
	const base = "usr/lib/modules/"
	for name := range t {
		if rest, ok := strings.CutPrefix(name, base); ok && strings.HasSuffix(rest, "/modules.dep") {
			version = strings.TrimSuffix(rest, "/modules.dep")
		}
	}
	if version == "" {
		return "", 0, fmt.Errorf("no kernel with a modules.dep in the file system")
	}
	root := base + version + "/"
	depends := make(map[string][]string)
	for _, line := range strings.Split(string(t[root+"modules.dep"].Data), "\n") {
		if name, rest, ok := strings.Cut(line, ":"); ok {
			depends[name] = strings.Fields(rest)
		}
	}
	wanted := make(map[string]bool)
	for name, needs := range depends { // modules.dep lists indirect dependencies too
		if keep.Match(strings.TrimPrefix(name, "kernel/")) {
			wanted[name] = true
			for _, need := range needs {
				wanted[need] = true
			}
		}
	}
	t.Drop(func(name string) bool {
		rest, ok := strings.CutPrefix(name, root+"kernel/")
		return ok && t[name].Mode&typeMask == TypeFile && !wanted["kernel/"+rest]
	})
	if err := t.depmod(ctx, version); err != nil {
		return "", 0, err
	}
	return version, len(wanted), nil
}

// depmod rebuilds modules.dep and the other indices with kmod's own tool.
func (t Tree) depmod(ctx context.Context, version string) error {
	dir, err := os.MkdirTemp("", "modules-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	const from = "usr/lib/modules/"
	for _, name := range t.Names() {
		rest, ok := strings.CutPrefix(name, from)
		if !ok || t[name].Mode&typeMask != TypeFile {
			continue
		}
		file := filepath.Join(dir, "lib/modules", rest)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, t[name].Data, 0o644); err != nil {
			return err
		}
	}
	if out, err := exec.CommandContext(ctx, "depmod", "-b", dir, version).CombinedOutput(); err != nil {
		return fmt.Errorf("depmod: %w: %s", err, out)
	}
	indices, err := filepath.Glob(filepath.Join(dir, "lib/modules", version, "modules.*"))
	if err != nil {
		return err
	}
	sort.Strings(indices)
	for _, file := range indices {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		t.Add(from+version+"/"+filepath.Base(file), 0o644, data)
	}
	return nil
}
