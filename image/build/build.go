package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"eidetic/image/debian"
	"eidetic/image/pack"
	"eidetic/systemd/units"

	"github.com/klauspost/compress/zstd"
)

const (
	serial = 0xe1de71c0
	// bootLoader and ukiStub are systemd's, from this machine.
	bootLoader = "/usr/lib/systemd/boot/efi/systemd-bootx64.efi"
	ukiStub    = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"
	seed       = "7be9e2a9-9e9f-4b86-9d7e-eb7dd1a5c0de"
	// serviceID is the user and group of appliance.service.
	serviceID = 900
	adbID     = 901 // of appliance-adb.service
)

// build makes everything that o asks for and reports progress on w.
func build(ctx context.Context, o options, w io.Writer) error {
	if !regexp.MustCompile(`^[0-9]+(\.[0-9]+)*$`).MatchString(o.version) {
		return fmt.Errorf("version %q: only numbers and dots sort in the boot loader", o.version)
	}
	if o.accept && (o.wifi || len(o.browsers) > 0) {
		return errors.New("packages.lock describes the image without --wifi and --browsers: leave them out with --accept")
	}
	if err := checkBrowsers(o.browsers); err != nil {
		return err
	}
	started := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(w, "%5.1f s  %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if o.sign != "" {
		return signOnly(o, secrets{o.passphrase, terminal}, say)
	}
	archive, err := bootstrap(ctx, o, say)
	if err != nil {
		return err
	}
	// make test is not to stop for a question: what it boots has keys of its own.
	ask := terminal
	if o.test {
		ask = func(string) ([]byte, error) { return nil, errNoPassphrase }
	}
	signs, err := readSigning(o, secrets{o.passphrase, ask}, say)
	if err != nil {
		return err
	}
	sum, err := inputs(o, archive, signs.trusted)
	if err != nil {
		return err
	}
	if !o.accept && !o.refresh && isBuilt(o, sum) {
		say("image: nothing that it is made of has changed since %s was written", filepath.Join(o.out, "inputs.json"))
		return signImage(o, signs, false)
	}
	if err := assembleAll(ctx, o, archive, signs.trusted, say); err != nil {
		return err
	}
	return errors.Join(signImage(o, signs, true), remember(o, sum))
}

// assembleAll makes the images from the fetched packages.
func assembleAll(ctx context.Context, o options, archive string, trusted []byte, say func(string, ...any)) error {
	tree, err := debian.Load(archive, filepath.Join(o.source, "prune.txt"))
	if err != nil {
		return err
	}
	if err := checkPackages(o, archive, say); err != nil {
		return err
	}
	var kernel []byte
	for name, node := range tree {
		if strings.HasPrefix(name, "boot/vmlinuz-") {
			kernel = node.Data
		}
	}
	if kernel == nil {
		return errors.New("no kernel among the packages")
	}
	full := make(pack.Tree, len(tree)) // the test build takes its modules from here
	for name, node := range tree {
		full[name] = node
	}
	lists := []string{"modules.txt"}
	if o.wifi {
		lists = append(lists, "modules-wifi.txt")
	}
	if err := prune(ctx, tree, o.source, lists, say); err != nil {
		return err
	}
	if err := furnish(tree, o, trusted); err != nil {
		return err
	}
	tree.Drop(func(name string) bool { return name == "boot" })
	say("file system: %d files, %.0f MB", len(tree), float64(tree.Size())/1e6)
	initrd, err := compress(tree, o.epoch)
	if err != nil {
		return err
	}
	say("initrd: %.1f MB", float64(len(initrd))/1e6)
	if err := assemble(ctx, o, "appliance", kernel, initrd, say); err != nil {
		return err
	}
	if !o.test {
		return nil
	}
	// The kernel unpacks a second archive over the first, so that the test build
	// differs from the image for users only by the files in that archive.
	extra, err := testLayer(ctx, full, tree, o, archive, append(lists, "modules-test.txt"), say)
	if err != nil {
		return err
	}
	keys, err := newTestKeys()
	if err != nil {
		return err
	}
	extra.Add(updateKeyFile, 0o644, keys.trustsFirst)
	over, err := compress(extra, o.epoch)
	if err != nil {
		return err
	}
	initrd = append(initrd, over...)
	if err := assemble(ctx, o, "appliance-test", kernel, initrd, say); err != nil {
		return err
	}
	return testUpdates(ctx, o, kernel, initrd, keys)
}

// prune removes the kernel modules that the lists do not name.
func prune(ctx context.Context, tree pack.Tree, source string, lists []string, say func(string, ...any)) error {
	var patterns []string
	for _, list := range lists {
		more, err := debian.ReadList(filepath.Join(source, list))
		if err != nil {
			return err
		}
		patterns = append(patterns, more...)
	}
	globs, err := pack.NewGlobs(patterns)
	if err != nil {
		return err
	}
	version, kept, err := tree.PruneModules(ctx, globs)
	if err != nil {
		return err
	}
	say("kernel %s with %d modules", version, kept)
	return nil
}

// furnish adds our files: the binary, the units and the files of root/.
func furnish(tree pack.Tree, o options, trusted []byte) error {
	binary, err := os.ReadFile(o.binary)
	if err != nil {
		return fmt.Errorf("%w; make build makes it", err)
	}
	tree.Add("usr/bin/appliance", 0o755, binary)
	if len(trusted) > 0 {
		tree.Add(updateKeyFile, 0o644, trusted)
	}
	if err := addFiles(tree, os.DirFS(filepath.Join(o.source, "root")), ""); err != nil {
		return err
	}
	if err := addFiles(tree, units.Files, "usr/lib/systemd/system"); err != nil {
		return err
	}
	if len(o.browsers) > 0 {
		const dropIns = "usr/lib/systemd/system/appliance.service.d/"
		tree.Add(dropIns+"50-virtual-device.conf", 0o644, units.VirtualDevice)
		tree.Add(dropIns+"60-memory.conf", 0o644, []byte("# The system's own files are in memory, too.\n[Service]\nMemoryMax=60%\n"))
		tree.Folder("var/cache/fontconfig", 0o755) // Fontconfig looks for it in each process
	}
	for from, to := range map[string]string{"sysusers": "usr/lib/sysusers.d/appliance.conf", "tmpfiles": "usr/lib/tmpfiles.d/appliance.conf"} {
		unit := "usr/lib/systemd/system/appliance." + from
		tree[to] = tree[unit]
		delete(tree, unit)
	}
	// Create the accounts here, because the box never writes /etc at its first boot.
	for _, account := range []struct {
		name, home string
		id         int
	}{{"appliance", "/var/lib/appliance", serviceID}, {"appliance-adb", "/var/lib/appliance/adb", adbID}} {
		for file, line := range map[string]string{
			"etc/passwd":  fmt.Sprintf("%s:x:%d:%d:Eidetic:%s:/usr/sbin/nologin\n", account.name, account.id, account.id, account.home),
			"etc/group":   fmt.Sprintf("%s:x:%d:\n", account.name, account.id),
			"etc/shadow":  account.name + ":!*:20454::::::\n",
			"etc/gshadow": account.name + ":!*::\n",
		} {
			if tree[file] == nil {
				return fmt.Errorf("no %s among the packages' files", file)
			}
			tree[file].Data = append(tree[file].Data, line...)
		}
	}
	wants := map[string][]string{
		"multi-user.target": {
			"appliance.service",
			"appliance-setup.service",
			"appliance-bless.service",
			"appliance-ports.service",
			"appliance-console.service",
			"appliance-update.path",
			"appliance-reset.path",
			"appliance-config.path",
			"systemd-networkd.service",
		},
		"sockets.target":  {"appliance-panel.socket", "systemd-networkd.socket"},
		"local-fs.target": {"run-appliance.mount"},
		"sysinit.target":  {"nftables.service"},
	}
	for target, services := range wants {
		for _, s := range services {
			tree.Link("etc/systemd/system/"+target+".wants/"+s, "/usr/lib/systemd/system/"+s)
		}
	}
	tree.Link("etc/systemd/system/default.target", "/usr/lib/systemd/system/multi-user.target")
	tree.Link("etc/resolv.conf", "/run/systemd/resolve/resolv.conf")
	tree.Link("init", "usr/lib/systemd/systemd")
	tree.Add("etc/machine-id", 0o444, nil)
	// systemd treats a file system with this file as an initrd, and leaves it for another root.
	delete(tree, "etc/initrd-release")
	tree.Add("usr/lib/os-release", 0o644, osRelease(o.version))
	for name, mode := range map[string]uint32{"dev": 0o755, "proc": 0o555, "sys": 0o555, "run": 0o755, "tmp": 0o1777, "var/log": 0o755, "var/lib/appliance": 0o755} {
		tree.Folder(name, mode)
	}
	return nil
}

// osRelease describes the image; the boot loader shows and sorts by it.
func osRelease(version string) []byte {
	return []byte(fmt.Sprintf(`NAME="Eidetic"
PRETTY_NAME="Eidetic appliance %[1]s"
ID=eidetic
ID_LIKE=debian
VERSION_ID=%[1]s
IMAGE_ID=appliance
IMAGE_VERSION=%[1]s
`, version))
}

// addFiles adds the regular files of a folder.
func addFiles(tree pack.Tree, from fs.FS, below string) error {
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".go") {
			return err
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		tree.Add(below+"/"+name, 0o644, data)
		return nil
	})
}

// compress writes a tree as a compressed cpio archive.
func compress(tree pack.Tree, epoch int64) ([]byte, error) {
	var out bytes.Buffer
	// One thread and a library pinned in go.sum give the same bytes on every machine.
	z, err := zstd.NewWriter(
		&out,
		zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(8<<20),
	)
	if err != nil {
		return nil, err
	}
	if err := tree.WriteCPIO(z, epoch); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// assemble makes NAME.efi and NAME.img.
func assemble(ctx context.Context, o options, name string, kernel, initrd []byte, say func(string, ...any)) error {
	program := filepath.Join(o.out, name+".efi")
	if err := writeUKI(ctx, o, program, kernel, initrd); err != nil {
		return err
	}
	efi, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	loader, err := os.ReadFile(bootLoader)
	if err != nil {
		return fmt.Errorf("%w; the package systemd-boot-efi has it", err)
	}
	esp := filepath.Join(o.out, name+".esp")
	defer func() { _ = os.Remove(esp) }()
	files := []pack.ESPFile{
		{Path: "EFI/BOOT/BOOTX64.EFI", Data: loader},
		{Path: "loader/loader.conf", Data: []byte("timeout 0\neditor no\n")},
		{Path: "loader/entries/install.conf", Data: installEntry(o.version)},
		{Path: systemPath(o.version), Data: efi},
	}
	if err := pack.WriteESP(esp, sizesOf(o).esp, files, serial, time.Unix(o.epoch, 0)); err != nil {
		return err
	}
	disk := filepath.Join(o.out, name+".img")
	if err := pack.WriteDisk(ctx, disk, esp, seed); err != nil {
		return err
	}
	info, err := os.Stat(disk)
	if err != nil {
		return err
	}
	say("%s: %.1f MB, %s: %.1f MB", program, float64(len(efi))/1e6, disk, float64(info.Size())/1e6)
	if most := sizesOf(o); name == "appliance" && (int64(len(efi)) > most.efi || info.Size() > most.image) {
		return fmt.Errorf("too large: at most %d MB and %d MB", most.efi/1e6, most.image/1e6)
	}
	return nil
}

// systemPath is the path of the system on the EFI partition of a new disk.
func systemPath(version string) string { return "EFI/Linux/appliance_" + version + ".efi" }

// cmdline is the kernel's command line.
const cmdline = "console=ttyS0,115200 console=tty0 quiet loglevel=4 panic=10 systemd.condition-needs-update=no"

// installEntry is an entry of the boot loader's menu (UAPI group, Boot Loader
// Specification, type #1): the same system, started as the installer. Its sort key
// puts it after the systems, so that the boot loader never starts it by default.
func installEntry(version string) []byte {
	return fmt.Appendf(
		nil,
		"title Install Eidetic on a disk of this machine\nsort-key z-install\nversion %s\nefi /%s\noptions %s systemd.unit=appliance-install.target\n",
		version,
		systemPath(version),
		cmdline,
	)
}

// writeUKI joins kernel and initrd to one EFI program.
func writeUKI(ctx context.Context, o options, file string, kernel, initrd []byte) error {
	return pack.UKI{
		Stub:      ukiStub,
		OSRelease: osRelease(o.version),
		Cmdline:   cmdline,
		Kernel:    kernel,
		Initrd:    initrd,
	}.Write(ctx, file, o.epoch)
}
