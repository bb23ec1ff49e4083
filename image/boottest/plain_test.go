package boottest

import (
	"bytes"
	"debug/pe"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"eidetic/image/pack"
)

// TestPlainImage checks that the image for users has no shell and nothing that only tests
// need. The test build is that image, byte by byte, followed by a second archive of files.
// So a test of the test build also holds for the image, except for the files in that archive.
func TestPlainImage(t *testing.T) {
	plain, tested := initrd(t, "appliance.efi"), initrd(t, "appliance-test.efi")
	if !bytes.HasPrefix(tested, plain) {
		t.Fatal("the test build does not begin with the bytes of the image for users")
	}
	inside, over := cpioFiles(t, plain), cpioFiles(t, tested[len(plain):])
	t.Logf("the image has %d files, the test build %d over them", len(inside), len(over))
	for _, name := range over {
		if slices.Contains(inside, name) && !strings.HasPrefix(path.Base(name), "modules.") {
			t.Errorf("the test build replaces %s of the image, want it unchanged", name)
		}
	}
	for _, name := range []string{"usr/lib/systemd/system/test-shell.service", "usr/sbin/iw", "usr/bin/iperf3", "usr/sbin/wpa_supplicant"} {
		if !slices.Contains(over, name) {
			t.Errorf("the test build has no %s, so this test would not find it in the image either", name)
		}
	}
	never := forbidden(t)
	for _, name := range inside {
		if never.Match(name) {
			t.Errorf("the image for users contains %s, which only the test build may have", name)
		}
	}
}

// forbidden matches files that no box may have: logins, shells of tests, the drivers of
// modules-test.txt, compilers and servers of remote shells.
func forbidden(t *testing.T) *pack.Globs {
	t.Helper()
	list, err := os.Open(filepath.Join(Root(t), "image", "modules-test.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	modules, err := pack.ReadList(list)
	if err != nil || len(modules) == 0 {
		t.Fatalf("modules-test.txt: %d lines (%v)", len(modules), err)
	}
	patterns := []string{
		"**/test-shell.service", "**/*getty*", "**/debug-shell.service", "**/systemd-debug-generator", "usr/bin/login",
		"usr/sbin/sshd", "usr/sbin/dropbear", "usr/sbin/in.telnetd", "usr/bin/gcc*", "usr/bin/cc", "usr/bin/tcc", "usr/bin/go", "usr/bin/perl*", "usr/bin/python*",
	}
	for _, m := range modules {
		patterns = append(patterns, "usr/lib/modules/*/kernel/"+m, "usr/lib/modules/*/kernel/"+m+"/**")
	}
	globs, err := pack.NewGlobs(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return globs
}

// initrd returns the initrd of one of the built EFI programs.
func initrd(t *testing.T, name string) []byte {
	t.Helper()
	program, err := pe.Open(ImagePath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	section := program.Section(".initrd")
	if section == nil {
		t.Fatalf("%s has no initrd", name)
	}
	text, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	return text[:min(section.VirtualSize, section.Size)]
}

// cpioFiles lists the files, without folders, of a compressed newc archive (cpio(5)).
func cpioFiles(t *testing.T, compressed []byte) (names []string) {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	const header = 110
	for at := 0; ; {
		take := func(n int) []byte {
			b := make([]byte, n)
			if _, err := io.ReadFull(z, b); err != nil {
				t.Fatalf("the archive of files at byte %d: %v", at, err)
			}
			at += n
			return b
		}
		head := take(header)
		mode, errMode := hexField(head, 1)
		size, errSize := hexField(head, 6)
		length, errLength := hexField(head, 11)
		if err := errors.Join(errMode, errSize, errLength); err != nil || string(head[:6]) != "070701" {
			t.Fatalf("the archive of files has %.20q at byte %d (%v)", head, at-header, err)
		}
		name := string(bytes.TrimRight(take(length), "\x00"))
		take(-at & 3)
		take(size)
		take(-at & 3)
		if name == "TRAILER!!!" {
			return names
		}
		if mode&0o170000 != pack.TypeFolder {
			names = append(names, name)
		}
	}
}

// hexField is the n-th number after the magic.
func hexField(head []byte, n int) (int, error) {
	v, err := strconv.ParseUint(string(head[6+8*n:14+8*n]), 16, 31)
	if err != nil {
		return 0, fmt.Errorf("field %d: %w", n, err)
	}
	return int(v), nil
}
