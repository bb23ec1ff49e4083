package counters

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// powercap is where the kernel shows what Intel's and AMD's processors count of their energy (RAPL; the kernel's
// power/powercap/powercap.rst), below /sys or another root.
const powercap = "class/powercap"

// mostZones bounds the zones that are read, which are a handful for each package.
const mostZones = 32

// Energy reads the energy that parts of this machine take.
type Energy struct {
	zones []*zone
	err   error // why there is none
}

// zone is one counter of µJ, which begins anew at 0 when it has reached most.
type zone struct {
	name string // "package-0", or "package-0 dram" of one that lies in it
	file *os.File
	most int64
	last int64
	sum  int64
}

// errNoEnergy is of a machine that does not tell.
var errNoEnergy = errors.New("this machine does not tell what energy it takes (no " + powercap + "/intel-rapl): a virtual machine, or not Intel's or AMD's") // constant

// NewEnergy finds the zones below /sys, or another root.
func NewEnergy(system string) *Energy {
	e := &Energy{}
	// Zones of intel-rapl-mmio are the same ones, seen in another way.
	dirs, err := filepath.Glob(filepath.Join(system, powercap, "intel-rapl:[0-9]*"))
	if err != nil || len(dirs) == 0 {
		e.err = errNoEnergy
		return e
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		if len(e.zones) == mostZones {
			break
		}
		z, err := openZone(dir)
		if err != nil {
			e.err = errors.Join(e.err, err)
			continue
		}
		if slices.ContainsFunc(e.zones, func(o *zone) bool { return o.name == z.name }) {
			z.file.Close()
			continue
		}
		e.zones = append(e.zones, z)
	}
	if len(e.zones) == 0 && e.err == nil {
		e.err = errNoEnergy
	}
	return e
}

func openZone(dir string) (*zone, error) {
	name := lab.OneLine(firstLine(filepath.Join(dir, "name")), 40)
	base := filepath.Base(dir)
	if parent := base[:strings.LastIndexByte(base, ':')]; strings.Contains(parent, ":") { // it lies in another one
		name = lab.OneLine(firstLine(filepath.Join(filepath.Dir(dir), parent, "name")), 40) + " " + name
	}
	most, _ := strconv.ParseInt(firstLine(filepath.Join(dir, "max_energy_range_uj")), 10, 62) // 0 is refused below
	file, err := os.Open(filepath.Join(dir, "energy_uj"))
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%s may be read by root alone: measure as root, or let your group read it (docs/timeline.md)", filepath.Join(dir, "energy_uj"))
	}
	if err != nil {
		return nil, err
	}
	z := &zone{name: name, file: file, most: most}
	now, err := z.now()
	if err != nil || name == "" || most <= 0 || now > most {
		file.Close()
		return nil, fmt.Errorf("%s is no zone of energy (name %q, %d of %d µJ)", dir, name, now, most)
	}
	z.last = now
	return z, nil
}

// now reads the counter.
func (z *zone) now() (int64, error) {
	var b [32]byte
	n, _ := z.file.ReadAt(b[:], 0) // a short file ends with io.EOF
	v, err := strconv.ParseInt(strings.TrimSpace(string(b[:n])), 10, 62)
	if err == nil && v < 0 {
		err = strconv.ErrRange
	}
	return v, err
}

// more is what was taken since the last reading, in µJ. A reading that fails, or is out of range, counts nothing.
func (z *zone) more() int64 {
	now, err := z.now()
	if err != nil || now > z.most {
		return 0
	}
	d := now - z.last
	if d < 0 { // it began anew
		d += z.most
	}
	z.last = now
	return d
}

// Total is what was taken so far, in µJ, by zone. It works for nil, too.
func (e *Energy) Total() map[string]float64 {
	if e == nil {
		return nil
	}
	sum := map[string]float64{}
	for _, z := range e.zones {
		z.sum += z.more()
		sum[lab.EnergyOf+z.name] = float64(z.sum)
	}
	return sum
}

// Describe names the zones, or says why there are none. It is "" for nil.
func (e *Energy) Describe() string {
	switch {
	case e == nil:
		return ""
	case len(e.zones) == 0:
		return "none: " + e.err.Error()
	}
	var names []string
	for _, z := range e.zones {
		names = append(names, z.name)
	}
	text := strings.Join(names, ", ")
	if e.err != nil {
		text += "; " + strings.ReplaceAll(e.err.Error(), "\n", "; ")
	}
	return text
}

// Err says why no energy is told; nil where some is.
func (e *Energy) Err() error {
	if len(e.zones) > 0 {
		return nil
	}
	return e.err
}

// Close closes the zones' files. It works for nil, too.
func (e *Energy) Close() {
	if e == nil {
		return
	}
	for _, z := range e.zones {
		z.file.Close()
	}
	e.zones = nil
}

// firstLine is that of a file of the kernel's; "" where there is none.
func firstLine(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}
