package device

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// A program that a plan names is asked for its version as it is started later: as nobody, without capabilities, without
// files of the machine and without descriptors of this process.
func TestVersionIsAskedInTheSandbox(t *testing.T) {
	o := confined(t)
	dir, programs := t.TempDir(), t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	open, err := os.Create(secret) // descriptors of this process are closed on exec, as Go opens them; this one is not
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := unix.FcntlInt(open.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.CloseOnExec(int(open.Fd()))
	program, mark := filepath.Join(programs, "browser"), filepath.Join(programs, "mark")
	script := "#!/bin/sh\ntouch " + mark + " 2>/dev/null && echo -n 'wrote; '\ncat " + secret + " 2>/dev/null && echo -n 'read; '\n" +
		"ls -A /root >/dev/null 2>&1 && echo -n 'root; '\n" +
		"echo user $(id -u) $(grep CapEff /proc/self/status) $(grep CapPrm /proc/self/status) files $(ls /proc/$$/fd)\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{filepath.Dir(programs), programs} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p, err := OpenBrowser(t.Context(), workshop(o, dir, authority(t, dir)), &lab.Browser{Command: program})
	if err != nil {
		t.Fatal(err)
	}
	const none = "0000000000000000"
	// 3 and 10 are the shell's own: what ls says, and its script.
	want := "user 1000 CapEff: " + none + " CapPrm: " + none + " files 0 1 10 2 3"
	if got, _, _ := strings.Cut(p.Describe(), " ("); got != want {
		t.Errorf("the program that was asked for its version said\n%q; want\n%q", got, want)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program wrote beside itself")
	}
}

// Of a profile its files and folders are copied, and no link is followed, neither when it is copied nor when
// preferences are written into it.
func TestProfileWithLinks(t *testing.T) {
	inside(t)
	profile, home, outside := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(profile, "storage", "default"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"prefs.js", "storage/default/a"} {
		if err := os.WriteFile(filepath.Join(profile, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"user.js": outside, "lock": "127.0.1.1:+1", "all": "/etc", "storage/up": ".."} {
		if err := os.Symlink(target, filepath.Join(profile, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(profile, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(home, profileName)
	if err := copyFolder(to, profile, ofProfile()); err != nil {
		t.Fatal(err)
	}
	if err := writePrefs(to, lab.Browser{Name: lab.Firefox}); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if !d.IsDir() {
			name, _ := filepath.Rel(to, path)
			got = append(got, name+" "+d.Type().String())
		}
		return err
	})
	if want := []string{"prefs.js ----------", "storage/default/a ----------", "user.js ----------"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the copy has %q, %v; want %q", got, err, want)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "secret" {
		t.Errorf("the file that a link led to is %q, %v; want it as it was", text, err)
	}
}

// A folder that is no profile, such as a whole disk, is refused once it has more than a profile may have.
func TestCopyIsBounded(t *testing.T) {
	from := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(from, name), make([]byte, 1000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		most folderBounds
		says string
	}{
		{"as it may be", folderBounds{3000, 4}, ""},
		{"a byte more", folderBounds{2999, 4}, "more than 2999 bytes"},
		{"a file more", folderBounds{3000, 3}, "more than 3 files"},
	} {
		err := copyFolder(filepath.Join(t.TempDir(), "copy"), from, c.most)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: copyFolder() = %v; want an error with %q", c.name, err, c.says)
		}
	}
}
