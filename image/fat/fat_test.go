package fat_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/image/fat"
	"eidetic/image/fat/fattest"
	"eidetic/internal/rigs/testlab"

	"github.com/google/go-cmp/cmp"
)

const size = 280 << 20

var when = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)

func volume(t testing.TB, dev fat.Device) *fat.Volume {
	t.Helper()
	if err := fat.Format(dev, size, 0x12345678, "TEST"); err != nil {
		t.Fatal(err)
	}
	v, err := fat.Open(dev)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func names(t testing.TB, v *fat.Volume, folder string) []string {
	t.Helper()
	entries, err := v.List(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, fmt.Sprintf("%s %v %d %s", e.Name, e.Folder, e.Size, e.Time.Format("2006-01-02 15:04:05")))
	}
	return all
}

// create writes a file whose content follows from its name.
func create(t testing.TB, v *fat.Volume, path string, n int) []byte {
	t.Helper()
	content := bytes.Repeat([]byte(path+"\n"), n/(len(path)+1)+1)[:n]
	if err := v.Create(path, int64(n), bytes.NewReader(content), when); err != nil {
		t.Fatal(err)
	}
	return content
}

// TestOthersAgree checks a volume that we wrote: dosfstools finds no fault, and mtools reads the same files.
func TestOthersAgree(t *testing.T) {
	fsck := testlab.NeedProgram(t, "fsck.fat")
	mcopy := testlab.NeedProgram(t, "mcopy")
	file := filepath.Join(t.TempDir(), "esp.img")
	dev, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if err := dev.Truncate(size); err != nil {
		t.Fatal(err)
	}
	v := volume(t, dev)
	for _, folder := range []string{"EFI", "EFI/BOOT", "EFI/Linux", "a folder with a long name"} {
		if err := v.Mkdir(folder, when); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][]byte{}
	for path, n := range map[string]int{
		"EFI/BOOT/BOOTX64.EFI": 10_000, "EFI/Linux/appliance_0.1.7+3.efi": 1_000_000, "empty": 0,
		"one": 1, "EFI/Linux/exactly one cluster": 4096, "a folder with a long name/grüße €.txt": 77,
	} {
		want[path] = create(t, v, path, n)
	}
	// Create more names than fit into one cluster of the folder.
	for i := range 200 {
		path := fmt.Sprintf("EFI/Linux/a rather long name number %d", i)
		want[path] = create(t, v, path, i)
	}
	if err := v.Rename("one", "appliance_1-2.efi"); err != nil {
		t.Fatal(err)
	}
	want["appliance_1-2.efi"] = want["one"]
	delete(want, "one")
	if err := v.Remove("EFI/Linux/a rather long name number 7"); err != nil {
		t.Fatal(err)
	}
	delete(want, "EFI/Linux/a rather long name number 7")

	if out, err := exec.Command(fsck, "-n", file).CombinedOutput(); err != nil {
		t.Errorf("fsck.fat: %v\n%s", err, out)
	}
	for path, content := range want {
		copied := exec.Command(mcopy, "-i", file, "::"+path, "-")
		copied.Env = append(os.Environ(), "MTOOLS_SKIP_CHECK=1", "LC_ALL=C.UTF-8")
		out, err := copied.Output()
		if err != nil || !bytes.Equal(out, content) {
			t.Errorf("mcopy %s: %v, %d bytes, want %d", path, err, len(out), len(content))
		}
		ours, err := v.ReadFile(path, 1<<30)
		if err != nil || !bytes.Equal(ours, content) {
			t.Errorf("ReadFile %s: %v, %d bytes, want %d", path, err, len(ours), len(content))
		}
	}
}

// TestWeReadOthers reads a volume that mtools wrote.
func TestWeReadOthers(t *testing.T) {
	mkfs := testlab.NeedProgram(t, "mkfs.fat")
	mcopy := testlab.NeedProgram(t, "mcopy")
	dir := t.TempDir()
	file, text := filepath.Join(dir, "esp.img"), filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("box:\n  hostname: lab\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, "-F", "32", "-s", "4", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"appliance.yaml", "UPPER.TXT"} {
		if out, err := exec.Command(mcopy, "-i", file, text, "::"+name).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	dev, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	v, err := fat.Open(dev)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"appliance.yaml", "Appliance.YAML", "UPPER.TXT"} {
		if got, err := v.ReadFile(name, 100); err != nil || string(got) != "box:\n  hostname: lab\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestErrors(t *testing.T) {
	v := volume(t, fattest.New(size))
	create(t, v, "A.TXT", 5000)
	if err := v.Mkdir("D", when); err != nil {
		t.Fatal(err)
	}
	free := v.Free()
	nothing := strings.NewReader("")
	for what, err := range map[string]error{
		"exists":            v.Create("a.txt", 0, nothing, when),
		"no folder":         v.Create("x/y", 0, nothing, when),
		"file as folder":    v.Create("A.TXT/y", 0, nothing, when),
		"short source":      v.Create("short", 10_000, strings.NewReader("few"), when),
		"too large":         v.Create("large", 1<<32, nothing, when),
		"full":              v.Create("full", size, nothing, when),
		"bad name":          v.Create("a:b", 0, nothing, when),
		"dot":               v.Create("..", 0, nothing, when),
		"rename onto":       v.Rename("A.TXT", "D"),
		"rename nothing":    v.Rename("none", "other"),
		"remove a folder":   v.Remove("D"),
		"remove nothing":    v.Remove("none"),
		"list a file":       second(v.List("A.TXT")),
		"read a folder":     second(v.Open("D")),
		"more than allowed": second(v.ReadFile("A.TXT", 4999)),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if err := v.Create("full", size, nothing, when); !errors.Is(err, fat.ErrFull) {
		t.Errorf("Create on a full volume = %v, want %v", err, fat.ErrFull)
	}
	if err := v.Remove("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Remove of a missing file = %v, want %v", err, fs.ErrNotExist)
	}
	want := []string{"A.TXT false 5000 2026-01-02 03:04:06", "D true 0 2026-01-02 03:04:06"}
	if d := cmp.Diff(want, names(t, v, "")); d != "" {
		t.Errorf("names after failed calls (-want +got):\n%s", d)
	}
	if v.Free() != free {
		t.Errorf("failed calls used %d bytes, want 0", free-v.Free())
	}
	if n, err := v.Reclaim(); n != 0 || err != nil {
		t.Errorf("Reclaim() = %d, %v; want 0, nil: no cluster is lost", n, err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestReclaim checks that the clusters of an interrupted new file are free again after Reclaim.
func TestReclaim(t *testing.T) {
	disk := fattest.New(size)
	v := volume(t, disk)
	free := v.Free()
	content := strings.Repeat("x", 100_000)
	for left := int64(1000); ; left += 1000 {
		cut := disk.Copy()
		cut.Left = left
		w, err := fat.Open(cut)
		if err != nil {
			t.Fatal(err)
		}
		err = w.Create("a file", int64(len(content)), strings.NewReader(content), when)
		if err == nil {
			break
		}
		if !errors.Is(err, fattest.ErrPower) {
			t.Fatal(err)
		}
		again, err := fat.Open(cut.Copy())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Reclaim(); err != nil {
			t.Fatal(err)
		}
		if again.Free() != free {
			t.Fatalf("cut after %d bytes: %d bytes are still lost after Reclaim, want 0", left, free-again.Free())
		}
	}
}

// A volume whose first megabyte is hostile: no panic, no endless loop, and no
// more memory than its claimed size allows.
func FuzzOpen(f *testing.F) {
	disk := fattest.New(size)
	v := volume(f, disk)
	if err := v.Mkdir("EFI", when); err != nil {
		f.Fatal(err)
	}
	create(f, v, "EFI/a long name", 9000)
	head := make([]byte, 1<<10)
	if _, err := disk.ReadAt(head, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(head, []byte{}, uint32(32*512))
	f.Add(head, []byte{2, 0, 0, 0}, uint32(32*512+8))                // the root folder leads to itself
	f.Add(head, []byte("\xe5\x00\x0f\x0f\x0f"), uint32(0x90000))     // anywhere
	f.Add(head[:90], []byte("\xff\xff\xff\xff"), uint32(0x7fffffff)) // beyond the end
	f.Fuzz(func(t *testing.T, boot, patch []byte, at uint32) {
		defer testlab.Input(t)()
		if len(boot) > 1<<16 || len(patch) > 1<<12 {
			return
		}
		hostile := disk.Copy()
		_, _ = hostile.WriteAt(boot, 0)
		_, _ = hostile.WriteAt(patch, int64(at)%size)
		v, err := fat.Open(hostile)
		if err != nil {
			return
		}
		entries, err := v.List("EFI")
		if err != nil {
			return
		}
		for _, e := range entries {
			if r, err := v.Open("EFI/" + e.Name); err == nil {
				_, _ = io.Copy(io.Discard, io.LimitReader(r, 1<<20))
			}
		}
		_, _ = v.Reclaim()
		_ = v.Create("EFI/new", 10, strings.NewReader("0123456789"), when)
	})
}
