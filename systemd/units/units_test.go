package units

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// worst is the highest exposure level that a unit of ours may have; systemd's own
// networkd has 2.8 and dnsmasq 9.6.
const worst = 2.2

// unpack writes the unit files to a folder that systemd's tools can read.
func unpack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := fs.ReadDir(Files, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := fs.ReadFile(Files, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestExposure(t *testing.T) {
	analyze := testlab.NeedProgram(t, "systemd-analyze")
	dir := unpack(t)
	services, err := filepath.Glob(filepath.Join(dir, "*.service"))
	if err != nil || len(services) == 0 {
		t.Fatalf("Glob found no services (%v), want at least one", err)
	}
	level := regexp.MustCompile(`exposure level for (\S+): ([0-9.]+)`)
	for _, service := range services {
		out, err := exec.Command(analyze, "security", "--offline=yes", "--no-pager", service).CombinedOutput()
		m := level.FindSubmatch(out)
		if m == nil {
			t.Errorf("%s: %v: no level in:\n%s", service, err, out)
			continue
		}
		got, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil || got > worst {
			t.Errorf("%s has exposure level %s, at most %v is allowed", m[1], m[2], worst)
		}
		t.Logf("%s: %s", m[1], m[2])
	}
}

// worstVirtual is the highest exposure level of the service where it measures a virtual device.
const worstVirtual = 3.5

// TestVirtualDevice: what a virtual device needs leaves the service less exposed than docs/box.md says, and systemd
// knows each setting.
func TestVirtualDevice(t *testing.T) {
	analyze := testlab.NeedProgram(t, "systemd-analyze")
	dir := unpack(t)
	service := filepath.Join(dir, "appliance.service")
	text, err := os.ReadFile(service)
	if err != nil {
		t.Fatal(err)
	}
	// A drop-in is read after the unit.
	text = append(append(text, '\n'), VirtualDevice...)
	text = bytes.ReplaceAll(text, []byte("/usr/bin/appliance "), []byte("/bin/true "))
	text = bytes.ReplaceAll(text, []byte("file:/usr/share/doc/appliance/box.md"), []byte("https://example.org/"))
	if err := os.WriteFile(service, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", service).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err = exec.Command(analyze, "security", "--offline=yes", "--no-pager", service).CombinedOutput()
	m := regexp.MustCompile(`exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("%v: no level in:\n%s", err, out)
	}
	if got, err := strconv.ParseFloat(string(m[1]), 64); err != nil || got > worstVirtual || got <= worst {
		t.Errorf("the service has exposure level %s with a virtual device; want more than %v and at most %v", m[1], worst, worstVirtual)
	}
	t.Logf("with a virtual device: %s", m[1])
}

// Every unit parses without an unknown setting and starts only our own program. verify
// requires that the program exists, so the test replaces it with one that does.
func TestUnitsAreCorrect(t *testing.T) {
	analyze := testlab.NeedProgram(t, "systemd-analyze")
	dir := unpack(t)
	units, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range units {
		if strings.HasSuffix(unit, ".sysusers") || strings.HasSuffix(unit, ".tmpfiles") {
			continue
		}
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			if command, ok := strings.CutPrefix(line, "ExecStart="); ok && !strings.HasPrefix(command, "/usr/bin/appliance ") {
				t.Errorf("%s starts %q, want only our own program", filepath.Base(unit), command)
			}
		}
		stood := strings.ReplaceAll(string(text), "/usr/bin/appliance ", "/bin/true ")
		stood = strings.ReplaceAll(stood, "file:/usr/share/doc/appliance/box.md", "https://example.org/")
		if err := os.WriteFile(unit, []byte(stood), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, unit := range units {
		if strings.HasSuffix(unit, ".sysusers") || strings.HasSuffix(unit, ".tmpfiles") {
			continue
		}
		out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", filepath.Base(unit), err, out)
		}
	}
}

// The accounts are those that systemd-sysusers makes.
func TestAccounts(t *testing.T) {
	text, err := fs.ReadFile(Files, "appliance.sysusers")
	if err != nil {
		t.Fatal(err)
	}
	sysusers := exec.Command(testlab.NeedProgram(t, "systemd-sysusers"), "--dry-run", "--root", t.TempDir(), "-")
	sysusers.Stdin = bytes.NewReader(text)
	if out, err := sysusers.CombinedOutput(); err != nil || strings.Count(string(out), "Creating user") != 2 {
		t.Errorf("systemd-sysusers: %v, %s; want the two accounts", err, out)
	}
}

// TestMemoryMax: a service that grows ends itself, and not its neighbours.
func TestMemoryMax(t *testing.T) {
	services, err := fs.Glob(Files, "*.service")
	if err != nil || len(services) == 0 {
		t.Fatalf("Glob found no services (%v), want at least one", err)
	}
	for _, name := range services {
		text, err := fs.ReadFile(Files, name)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^MemoryMax=\d+%$`).Match(text) {
			t.Errorf("%s has no MemoryMax", name)
		}
	}
}
