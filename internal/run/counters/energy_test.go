package counters

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// zoneOf writes a zone of energy below a root.
func zoneOf(t *testing.T, root, dir, name, most, now string) (set func(µJ string)) {
	t.Helper()
	dir = filepath.Join(root, powercap, dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	set = func(µJ string) {
		if err := os.WriteFile(filepath.Join(dir, "energy_uj"), []byte(µJ+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set(now)
	for file, text := range map[string]string{"name": name, "max_energy_range_uj": most} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

// TestEnergy: each zone is summed up from its first reading, through its counter's end; what is no number, or beyond the
// range, counts nothing. Zones that are the same ones again, and what is no zone, are left out.
func TestEnergy(t *testing.T) {
	root := t.TempDir()
	pack := zoneOf(t, root, "intel-rapl:0", "package-0", "1000", "990")
	dram := zoneOf(t, root, "intel-rapl:0:1", "dram", "500", "0")
	zoneOf(t, root, "intel-rapl-mmio:0", "package-0", "1000", "990")
	zoneOf(t, root, "intel-rapl:1", "package-1", "1000", "5000")
	zoneOf(t, root, "intel-rapl:2", "package-2", "none", "1")
	zoneOf(t, root, "intel-rapl:3", "package-0", "1000", "1")
	e := NewEnergy(root)
	defer e.Close()
	for _, step := range []struct{ pack, dram string }{{"10", "40"}, {"30", "x"}, {"2000", "45"}, {"31", "-5"}} {
		pack(step.pack)
		dram(step.dram)
		e.Total()
	}
	want := map[string]float64{lab.EnergyOf + "package-0": 41, lab.EnergyOf + "package-0 dram": 45}
	if diff := cmp.Diff(want, e.Total()); diff != "" {
		t.Errorf("Total() (-want +got):\n%s", diff)
	}
	if got := e.Describe(); !strings.HasPrefix(got, "package-0, package-0 dram; ") || !strings.Contains(got, "intel-rapl:2 is no zone") || e.Err() != nil {
		t.Errorf("Describe() = %q, %v", got, e.Err())
	}
}

// TestNoEnergy: a machine that tells none says so, and so does one that tells it to root alone. Neither is 0.
func TestNoEnergy(t *testing.T) {
	e := NewEnergy(t.TempDir())
	if got := e.Describe(); len(e.Total()) != 0 || e.Err() == nil || !strings.HasPrefix(got, "none: this machine does not tell") {
		t.Errorf("Describe() = %q, %v, %v", got, e.Total(), e.Err())
	}
	root := t.TempDir()
	for i := range 2 * mostZones {
		zoneOf(t, root, fmt.Sprintf("intel-rapl:%d", i), fmt.Sprintf("package-%d", i), "1000", "0")
	}
	many := NewEnergy(root)
	defer many.Close()
	if n := len(many.Total()); n != mostZones {
		t.Errorf("%d zones are read; want %d", n, mostZones)
	}
}

// FuzzZone: whatever the kernel's files hold, the sum grows by no more than the zone's range at once.
func FuzzZone(f *testing.F) {
	f.Add("package-0", "262143328850", "100", "262143328000")
	f.Add("", "9223372036854775807", "-1", "x")
	f.Add("package-0", "10", "10", "0")
	f.Fuzz(func(t *testing.T, name, most, before, after string) {
		defer testlab.Input(t)()
		root := t.TempDir()
		set := zoneOf(t, root, "intel-rapl:0", name, most, before)
		e := NewEnergy(root)
		defer e.Close()
		set(after)
		for zone, µJ := range e.Total() {
			if µJ < 0 || µJ > float64(e.zones[0].most) || len(zone) > 100 {
				t.Errorf("%q took %v µJ of %q", zone, µJ, most)
			}
		}
	})
}
