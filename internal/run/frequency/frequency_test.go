package frequency

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine is one with a tree of files in place of /sys: two processors with a governor each, and turbo.
func machine(t *testing.T, more ...string) Machine {
	t.Helper()
	m := Machine{Root: t.TempDir(), File: filepath.Join(t.TempDir(), "kept.json")}
	write(t, m, append([]string{
		"cpufreq/policy0/scaling_governor", "schedutil", "cpufreq/policy0/scaling_available_governors", "performance powersave schedutil",
		"cpufreq/policy1/scaling_governor", "powersave", "cpufreq/policy1/scaling_available_governors", "performance powersave schedutil",
		"cpufreq/boost", "1",
	}, more...)...)
	restart(t, m, "first")
	return m
}

func write(t *testing.T, m Machine, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		put(t, m.path(files[i]), files[i+1])
	}
}

// restart gives the machine another boot.
func restart(t *testing.T, m Machine, id string) {
	t.Helper()
	put(t, filepath.Join(m.Root, "proc/sys/kernel/random/boot_id"), id)
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// values are what is set: the governors and turbo.
func values(m Machine) string {
	return strings.TrimSpace(strings.Join([]string{m.read("cpufreq/policy0/scaling_governor"), m.read("cpufreq/policy1/scaling_governor"), m.read(boost), m.read(noTurbo)}, " "))
}

const (
	before = "schedutil powersave 1"
	during = "performance performance 0"
)

func expect(t *testing.T, m Machine, want, when string) {
	t.Helper()
	if got := values(m); got != want {
		t.Errorf("%s the processors have %s, want %s", when, got, want)
	}
}

// TestHold: everything is set until the last of two processes releases it, and is then as it was.
func TestHold(t *testing.T) {
	m := machine(t)
	first, told, err := m.Hold()
	if err != nil || told != "governor performance in place of schedutil and powersave, turbo off" {
		t.Fatalf("Hold() = %q, %v", told, err)
	}
	expect(t, m, during, "while it is held")
	second, told, err := m.Hold()
	if err != nil || told != "" {
		t.Fatalf("Hold() beside another one = %q, %v; want nothing to set", told, err)
	}
	if err := m.Recover(); err != nil {
		t.Error(err)
	}
	if err := first(); err != nil {
		t.Error(err)
	}
	expect(t, m, during, "while another one holds it")
	if err := second(); err != nil {
		t.Error(err)
	}
	expect(t, m, before, "afterwards")
}

// TestOthersSettings: what somebody has set meanwhile stays.
func TestOthersSettings(t *testing.T) {
	m := machine(t)
	release, _, err := m.Hold()
	if err != nil {
		t.Fatal(err)
	}
	write(t, m, "cpufreq/policy0/scaling_governor", "powersave")
	if err := release(); err != nil {
		t.Error(err)
	}
	expect(t, m, "powersave powersave 1", "after somebody chose powersave")
}

// TestWanted: a machine with Intel's driver, one without the governor, one that is as it should be, and none.
func TestWanted(t *testing.T) {
	intel := machine(t, "intel_pstate/no_turbo", "0")
	if err := os.Remove(intel.path(boost)); err != nil {
		t.Fatal(err)
	}
	other := machine(t, "cpufreq/policy0/scaling_available_governors", "powersave", "cpufreq/policy1/scaling_governor", performance, "cpufreq/boost", "0")
	none := Machine{Root: t.TempDir(), File: filepath.Join(t.TempDir(), "kept.json")}
	want := []Setting{
		{"cpufreq/policy0/scaling_governor", "schedutil", performance}, {"cpufreq/policy1/scaling_governor", "powersave", performance}, {noTurbo, "0", "1"},
	}
	if d := cmp.Diff(want, intel.Wanted()); d != "" {
		t.Errorf("Wanted() (- want, + got):\n%s", d)
	}
	for name, m := range map[string]Machine{"a machine that is as it should be": other, "a machine without frequencies": none} {
		release, told, err := m.Hold()
		if err != nil || told != "" || len(m.Wanted()) > 0 || m.Known() != (m == other) {
			t.Errorf("%s: Hold() = %q, %v, Known() = %v; want nothing to set", name, told, err, m.Known())
		}
		if err := release(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFailure: where one value cannot be set, all others are as they were.
func TestFailure(t *testing.T) {
	m := machine(t)
	wanted := append(m.Wanted(), Setting{"cpufreq/nowhere/scaling_governor", "powersave", performance})
	f, err := os.Create(m.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := m.change(f, wanted); err == nil {
		t.Fatal("change() of a file that is not there returned no error")
	}
	expect(t, m, before, "after a failure")
}

// TestKilled: what a killed process has set is put back by the next one, and not after another boot, which has undone
// it; a file of somebody else sets nothing.
func TestKilled(t *testing.T) {
	killed := func(t *testing.T) Machine {
		t.Helper()
		m := machine(t)
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHolder$")
		c.Env = append(os.Environ(), "HOLDER_ROOT="+m.Root, "HOLDER_FILE="+m.File)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "held"; {
		}
		expect(t, m, during, "while the process lives")
		if err := m.Recover(); err != nil { // its settings are not ours to undo
			t.Error(err)
		}
		expect(t, m, during, "after another process looked")
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // killed
		expect(t, m, during, "after the process was killed")
		return m
	}
	m := killed(t)
	if err := m.Recover(); err != nil {
		t.Error(err)
	}
	expect(t, m, before, "after the next start")

	m = killed(t)
	release, told, err := m.Hold()
	if err != nil || told == "" {
		t.Fatalf("Hold() after a process was killed = %q, %v", told, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	expect(t, m, before, "after the next run")

	m = killed(t)
	restart(t, m, "second")
	write(t, m, "cpufreq/policy0/scaling_governor", performance) // of the new boot
	if err := m.Recover(); err != nil {
		t.Error(err)
	}
	expect(t, m, during, "after another boot")

	m = machine(t)
	put(t, m.File, `{"boot":"first","settings":[{"name":"../../../../etc/passwd","was":"x","set":"y"},{"name":"cpufreq/boost","was":"7\n8","set":"1"}]}`)
	if err := m.Recover(); err != nil {
		t.Error(err)
	}
	expect(t, m, before, "after somebody else's file")
}

// TestHolder is the process that TestKilled kills.
func TestHolder(t *testing.T) {
	root := os.Getenv("HOLDER_ROOT")
	if root == "" {
		return
	}
	_, _, err := Machine{Root: root, File: os.Getenv("HOLDER_FILE")}.Hold()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("held\n")
	select {}
}

// TestThisMachine: where the kernel shows no frequencies, nothing happens.
func TestThisMachine(t *testing.T) {
	m := Machine{Root: "/", File: filepath.Join(t.TempDir(), "kept.json")}
	if m.Known() {
		t.Logf("this machine would be set: %s", Tell(m.Wanted()))
		return
	}
	release, told, err := m.Hold()
	if err != nil || told != "" || release() != nil {
		t.Errorf("Hold() = %q, %v; want nothing", told, err)
	}
	if _, err := os.Stat(m.File); err == nil {
		t.Error("a machine without frequencies has a file of them")
	}
}
