package suite

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"eidetic/internal/rigs/testlab"
)

// tarOf is a tar archive of files by name and size.
func tarOf(t *testing.T, files map[string]int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, size := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(size)}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestUnpackIsBounded: what a release unpacks to is bounded, whatever compresses it, and what is cut off is none.
func TestUnpackIsBounded(t *testing.T) {
	zipped := func(plain []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(plain); err != nil || z.Close() != nil {
			t.Fatal("gzip fails")
		}
		return b.Bytes()
	}
	zstandard := func(plain []byte) []byte {
		z, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return z.EncodeAll(plain, nil)
	}
	by := func(name string) func([]byte) []byte {
		testlab.NeedProgram(t, name)
		return func(plain []byte) []byte {
			cmd := exec.CommandContext(t.Context(), name, "-c")
			cmd.Stdin = bytes.NewReader(plain)
			packed, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			return packed
		}
	}
	half := func(b []byte) []byte { return b[:len(b)/2] }
	small, large := tarOf(t, map[string]int{"fox/fox": 100 << 10}), tarOf(t, map[string]int{"fox/fox": 2 << 20})
	many := map[string]int{}
	for i := range 9 {
		many["fox/"+strings.Repeat("f", 1+i)] = 1
	}
	for name, test := range map[string]struct {
		archive []byte
		want    string
	}{
		"plain": {small, ""}, "gzip": {zipped(small), ""}, "zstd": {zstandard(small), ""}, "xz": {by("xz")(small), ""}, "bzip2": {by("bzip2")(small), ""},
		"large": {large, "more than 1 MiB"}, "large gzip": {zipped(large), "more than 1 MiB"}, "large zstd": {zstandard(large), "more than 1 MiB"},
		"large xz": {by("xz")(large), "more than 1 MiB"}, "many": {tarOf(t, many), "more than 8 files"},
		"cut off":      {half(small), "unexpected EOF"},
		"cut off gzip": {half(zipped(small)), "unexpected EOF"}, "cut off xz": {half(by("xz")(small)), "xz: "},
		"no archive": {[]byte(strings.Repeat("no archive ", 200)), "tar"},
	} {
		dir := t.TempDir()
		err := unpack(t.Context(), bytes.NewReader(test.archive), dir, bounds{1 << 20, 8})
		if test.want != "" {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: unpack() = %v; want an error with %q", name, err, test.want)
			}
			continue
		}
		info, e := os.Stat(filepath.Join(dir, "fox/fox"))
		if err != nil || e != nil || info.Size() != 100<<10 {
			t.Errorf("%s: unpack() = %v; fox: %v, %v; want %d bytes", name, err, info, e, 100<<10)
		}
	}
}

// TestSumOf: lists of checksums are read as programs write them.
func TestSumOf(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	for line, want := range map[string]string{
		sum + "  linux/fox.tar.gz": "linux/fox.tar.gz", sum + " *fox.tar.gz\r": "fox.tar.gz", strings.ToUpper(sum) + "  ./fox.tar.gz": "fox.tar.gz",
		"\ufeff" + sum + "\tfox.tar.gz": "fox.tar.gz", "SHA256 (fox-1.tar.xz) = " + sum: "fox-1.tar.xz", "SHA256(fox.tar.xz)= " + sum: "fox.tar.xz",
		"SHA2-256(a (1).tar.xz)= " + strings.ToUpper(sum): "a (1).tar.xz", sum: "", sum + "  ../fox.tar.gz": "", "SHA512 (fox) = " + sum: "",
		sum[1:] + "  fox.tar.gz": "", "-----BEGIN PGP SIGNED MESSAGE-----": "",
	} {
		name, got, ok := sumOf(line)
		if ok != (want != "") || ok && (name != want || got != sum) {
			t.Errorf("sumOf(%q) = %q, %q, %v; want %q", line, name, got, ok, want)
		}
	}
}

// TestVersionsAreInOrder: a release comes after what led to it, and before the next.
func TestVersionsAreInOrder(t *testing.T) {
	for _, list := range [][]string{
		{"firefox-152.0a1.tar.xz", "firefox-152.0b9.tar.xz", "firefox-152.0b10.tar.xz", "firefox-152.0rc1.tar.xz", "firefox-152.0.tar.xz", "firefox-152.0.1.tar.xz"},
		{"chromium_150.0.7_amd64.deb", "chromium_150.0.10_amd64.deb", "chromium_151.0.1-1_amd64.deb"},
		{"fox-150.0-b0123456789a", "fox-150.0.2-a1bc23456789"}, {"Mozilla Firefox 153.0b1", "Mozilla Firefox 153.0", "Mozilla Firefox 153.0.1esr"},
		{"browser", "browser-1"},
	} {
		for i := range len(list) - 1 {
			if got := newestOf(list[i : i+2]); got != list[i+1] {
				t.Errorf("newestOf(%q) = %s; want the second", list[i:i+2], got)
			}
			if got := newestOf([]string{list[i+1], list[i]}); got != list[i+1] {
				t.Errorf("newestOf(%s, %s) = %s; want the first", list[i+1], list[i], got)
			}
		}
	}
}
