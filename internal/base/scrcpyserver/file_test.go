package scrcpyserver

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

func TestVersions(t *testing.T) {
	for version, want := range map[string]int{"1.23": 1, "1.25": 1, "2.0": 2, "3.3.4": 3, "4.1": 4, "1.22": 0, "1.17": 0, "5.0": 0, "x": 0, "4": 0} {
		if major, _, err := known(version); (err == nil) != (want > 0) || major != want {
			t.Errorf("known(%q) = %d, %v; want %d", version, major, err, want)
		}
	}
	if _, minor, err := known("2.7"); minor != 7 || err != nil {
		t.Errorf("known(2.7) = %d, %v; want the minor number 7", minor, err)
	}
	for major, want := range map[int]string{1: "scrcpy", 2: "scrcpy_00000007", 4: "scrcpy_00000007"} {
		if got := (File{Major: major}).socket(7); got != want {
			t.Errorf("a server %d.x waits at %s; want %s", major, got, want)
		}
	}
}

// A server's file is read within bounds, and nothing else passes for one.
func FuzzServer(f *testing.F) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if code, err := z.Create("classes.dex"); err == nil {
		_, _ = code.Write([]byte("The server version (3.3.4) does not match the client ("))
	}
	_ = z.Close()
	f.Add(b.Bytes())
	f.Add([]byte("PK\x05\x06"))
	f.Fuzz(func(t *testing.T, file []byte) {
		defer testlab.Input(t)()
		version, err := versionOf(file)
		if err == nil && (len(version) < 3 || len(version) > 11 || strings.Trim(version, "0123456789.") != "") {
			t.Errorf("version %q", version)
		}
	})
}
