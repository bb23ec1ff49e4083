package pack

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/pe"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"

	"github.com/google/go-cmp/cmp"
)

func sample() Tree {
	t := make(Tree)
	t.Add("usr/bin/tool", 0o755, []byte("#!/bin/sh\n"))
	t.Add("etc/empty", 0o600, nil)
	t.Link("init", "usr/bin/tool")
	t.Folder("tmp", 0o1777)
	return t
}

// TestHardLinks: names of one file are one file again when GNU cpio unpacks them, and their content is there once.
func TestHardLinks(t *testing.T) {
	program := testlab.NeedProgram(t, "cpio")
	content := bytes.Repeat([]byte("driver "), 1000)
	tree := make(Tree)
	tree.Add("dri/crocus.so", 0o644, content)
	tree["dri/iris.so"], tree["dri/swrast.so"] = tree["dri/crocus.so"], tree["dri/crocus.so"]
	tree.Add("dri/z", 0o644, content) // another file
	if got, want := tree.Size(), int64(2*len(content)); got != want {
		t.Errorf("Size() = %d; want %d", got, want)
	}
	var out bytes.Buffer
	if err := tree.WriteCPIO(&out, 0); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 3*len(content) {
		t.Errorf("the archive has %d bytes; want the content of two files of %d", out.Len(), len(content))
	}
	cmd := exec.Command(program, "-id", "--quiet")
	cmd.Dir, cmd.Stdin = t.TempDir(), &out
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var first os.FileInfo
	for i, name := range []string{"dri/crocus.so", "dri/iris.so", "dri/swrast.so", "dri/z"} {
		got, err := os.ReadFile(filepath.Join(cmd.Dir, name))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s has %d bytes, %v; want %d", name, len(got), err, len(content))
		}
		info, err := os.Stat(filepath.Join(cmd.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = info
		}
		if os.SameFile(first, info) != (name != "dri/z") {
			t.Errorf("%s and dri/crocus.so are one file: %v", name, os.SameFile(first, info))
		}
	}
}

// TestCPIO lists our archive with GNU cpio, which must show the types, permissions and times.
func TestCPIO(t *testing.T) {
	cpio := testlab.NeedProgram(t, "cpio")
	var out bytes.Buffer
	if err := sample().WriteCPIO(&out, 1767225600); err != nil {
		t.Fatal(err)
	}
	if out.Len()%512 != 0 {
		t.Errorf("the archive has %d bytes, want a multiple of the block size", out.Len())
	}
	cmd := exec.Command(cpio, "-tv", "--numeric-uid-gid", "--quiet")
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
	cmd.Stdin = &out
	listing, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, listing)
	}
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(string(listing)), "\n") {
		f := strings.Fields(line)
		got = append(got, f[0]+" "+f[4]+" "+strings.Join(f[8:], " "))
	}
	want := []string{
		"drwxr-xr-x 0 etc", "-rw------- 0 etc/empty", "lrwxrwxrwx 12 init -> usr/bin/tool", "drwxrwxrwt 0 tmp",
		"drwxr-xr-x 0 usr", "drwxr-xr-x 0 usr/bin", "-rwxr-xr-x 10 usr/bin/tool",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("cpio -tv (-want +got):\n%s", d)
	}
}

func TestReadTar(t *testing.T) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range []*tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./usr/bin/su", Typeflag: tar.TypeReg, Mode: 0o4755, Size: 1},
		{Name: "./usr/bin/hard", Typeflag: tar.TypeLink, Linkname: "./usr/bin/su"},
		{Name: "./usr/bin/lost", Typeflag: tar.TypeLink, Linkname: "./usr/share/doc/x"},
		{Name: "./usr/share/doc/x", Typeflag: tar.TypeReg, Size: 1},
		{Name: "./../../etc/escape", Typeflag: tar.TypeReg, Size: 1},
		{Name: "./pipe", Typeflag: tar.TypeFifo},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	globs, err := NewGlobs([]string{"usr/share/doc"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadTar(bytes.NewReader(archive.Bytes()), globs.Match)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"etc/escape", "usr/bin/hard", "usr/bin/su"}, got.Names()); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	if mode := got["usr/bin/su"].Mode; mode != TypeFile|0o755 {
		t.Errorf("su has mode %o, want no setuid bit", mode)
	}
	if _, err := ReadTar(bytes.NewReader(archive.Bytes()[:700]), func(string) bool { return false }); err == nil {
		t.Error("ReadTar of a truncated archive = nil, want an error")
	}
}

func TestGlobs(t *testing.T) {
	g, err := NewGlobs([]string{"boot", "!boot/vmlinuz-*", "usr/lib/*/perl", "run/**", "etc/rc*.d"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"boot": true, "boot/initrd": true, "boot/vmlinuz-6": false, "bootx": false,
		"usr/lib/x86/perl/a": true, "usr/lib/a/b/perl": false, "run": false, "run/a/b": true, "etc/rc0.d/K01": true,
	} {
		if got := g.Match(name); got != want {
			t.Errorf("Match(%q) = %v", name, got)
		}
	}
}

func TestDrift(t *testing.T) {
	status := "Package: b\nStatus: install ok installed\nVersion: 2\nArchitecture: amd64\n\n" +
		"Package: gone\nStatus: deinstall ok config-files\nVersion: 1\nArchitecture: all\n\n" +
		"Package: a\nStatus: install ok installed\nVersion: 1:1\nArchitecture: all\n"
	installed, err := Installed([]byte(status))
	if err != nil {
		t.Fatal(err)
	}
	got := Drift([]string{"b 1 amd64", "c 3 all"}, installed)
	if d := cmp.Diff([]string{"+ a 1:1 all", "~ b 1 amd64 → 2 amd64", "- c 3 all"}, got); d != "" {
		t.Errorf("drift (-want +got):\n%s", d)
	}
	if same := Drift([]string{"a 1:1 all", "b 2 amd64"}, installed); same != nil {
		t.Errorf("Drift of equal lists = %v, want nil", same)
	}
	if _, err := Installed([]byte("Package: x\nStatus: install ok installed\n")); err == nil {
		t.Error("Installed with a record without a version = nil, want an error")
	}
}

func FuzzInstalled(f *testing.F) {
	f.Add([]byte("Package: a\nStatus: install ok installed\nVersion: 1\nArchitecture: all\n"))
	f.Add([]byte("\n\n\n: \n"))
	f.Fuzz(func(t *testing.T, status []byte) {
		defer testlab.Input(t)()
		all, err := Installed(status)
		if err == nil && Drift(nil, all) == nil && len(all) > 0 {
			t.Error("Drift against an empty lock = nil, want a line for each package")
		}
	})
}

const stub = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"

// TestUKI checks that the sections follow each other without overlap and contain their input.
func TestUKI(t *testing.T) {
	testlab.NeedProgram(t, "objcopy")
	_, err := os.Stat(stub)
	testlab.Need(t, err == nil, "systemd's EFI stub; install it with: make deps")
	u := UKI{
		Stub:      stub,
		OSRelease: []byte("ID=test\n"),
		Cmdline:   "quiet",
		Kernel:    bytes.Repeat([]byte("k"), 10_000),
		Initrd:    bytes.Repeat([]byte("i"), 5000),
	}
	file := filepath.Join(t.TempDir(), "test.efi")
	if err := u.Write(t.Context(), file, 1767225600); err != nil {
		t.Fatal(err)
	}
	f, err := pe.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var end uint32
	found := map[string][]byte{}
	for _, s := range f.Sections {
		if s.VirtualAddress < end {
			t.Errorf("section %s begins at %#x, before %#x", s.Name, s.VirtualAddress, end)
		}
		end = s.VirtualAddress + s.VirtualSize
		if found[s.Name], err = s.Data(); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]byte{".osrel": u.OSRelease, ".cmdline": []byte("quiet\x00"), ".linux": u.Kernel, ".initrd": u.Initrd} {
		if !bytes.HasPrefix(found[name], want) {
			t.Errorf("section %s has %d bytes, want %d", name, len(found[name]), len(want))
		}
	}
}

// The same parts give the same program and the same disk, byte for byte.
func TestReproducible(t *testing.T) {
	testlab.NeedProgram(t, "objcopy")
	testlab.NeedProgram(t, "systemd-repart")
	_, err := os.Stat(stub)
	testlab.Need(t, err == nil, "systemd's EFI stub; install it with: make deps")
	build := func() string {
		dir := t.TempDir()
		var initrd bytes.Buffer
		if err := sample().WriteCPIO(&initrd, 1767225600); err != nil {
			t.Fatal(err)
		}
		efi, esp, disk := filepath.Join(dir, "a.efi"), filepath.Join(dir, "a.esp"), filepath.Join(dir, "a.img")
		if err := (UKI{Stub: stub, OSRelease: []byte("ID=test\n"), Cmdline: "quiet", Kernel: []byte("kernel"), Initrd: initrd.Bytes()}).Write(t.Context(), efi, 1767225600); err != nil {
			t.Fatal(err)
		}
		program, err := os.ReadFile(efi)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteESP(esp, 280<<20, []ESPFile{{"EFI/Linux/a_1.efi", program}, {"EFI/BOOT/B", nil}}, 7, time.Unix(1767225600, 0)); err != nil {
			t.Fatal(err)
		}
		if err := WriteDisk(t.Context(), disk, esp, "7be9e2a9-9e9f-4b86-9d7e-eb7dd1a5c0de"); err != nil {
			t.Fatal(err)
		}
		image, err := os.ReadFile(disk)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x %x", sha256.Sum256(program), sha256.Sum256(image))
	}
	if first, second := build(), build(); first != second {
		t.Errorf("two builds differ:\n%s\n%s", first, second)
	}
}
