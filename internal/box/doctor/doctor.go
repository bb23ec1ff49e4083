// Package doctor finds out what this machine can do for the appliance, and what
// to do about the rest: which programs are installed, which hardware is plugged
// in, and, by trying in namespaces of its own, what the kernel can do. It
// changes nothing of the machine. A check stands for code that exists: nothing
// is looked for that no command uses.
package doctor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"eidetic/control/power"
	"eidetic/internal/base/programs"
	"eidetic/internal/base/scrcpyserver"
	"eidetic/internal/run/frequency"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/wifi/radio"
)

// Finding is the result of one check.
type Finding struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// For says what needs the thing that was checked.
	For string `json:"for"`
	// Found is what was found, or why it does not work.
	Found string `json:"found"`
	// Remedy says what to do; it is empty when the check is good.
	Remedy string `json:"mend,omitempty"`
}

// bad returns the finding of something that is missing or does not work.
func (f Finding) bad(found, remedy string) Finding {
	f.OK, f.Found, f.Remedy = false, found, remedy
	return f
}

// good returns the finding of something that works.
func (f Finding) good(found string) Finding {
	f.OK, f.Found, f.Remedy = true, found, ""
	return f
}

// Check makes every check. The checks of the kernel run in namespaces, as
// another process of this program: inside is its command line, which must call
// [CheckInside]. onBox says that this machine runs a box's image, on which nothing can be installed.
func Check(ctx context.Context, inside []string, onBox bool) ([]Finding, error) {
	here := os.DirFS("/")
	all := []Finding{checkVirtual(here, Browsers(), CheckVirtualDevice(ctx), onBox)}
	all = append(append(all, checkPrograms(onBox)...), checkHardware(here)...)
	all = append(all, checkRadios(radio.All), checkPower(ctx, power.ThisMachine()), checkEnergy("/sys"), checkScrcpy(scrcpyserver.Default))
	all = append(all, checkProcessors(), checkFrequency(frequency.This("")), checkNamespaces(ctx))
	kernel, err := checkKernel(ctx, inside)
	if err != nil {
		return nil, err
	}
	return append(all, kernel...), nil
}

// Choose keeps the named findings, in the order of all. No names keep all.
func Choose(all []Finding, names []string) ([]Finding, error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, f := range all {
		known = append(known, f.Name)
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("no check is called %q; there are %s", n, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(f Finding) bool { return !slices.Contains(names, f.Name) }), nil
}

// AllGood says whether every finding is good.
func AllGood(all []Finding) bool {
	return !slices.ContainsFunc(all, func(f Finding) bool { return !f.OK })
}

// checkPrograms looks for every program of the table.
func checkPrograms(onBox bool) (list []Finding) {
	for _, p := range programs.All() {
		f := Finding{Name: p.Name, For: p.For}
		path, err := p.Find()
		if err != nil {
			list = append(list, f.bad("not installed", get(p, onBox)))
			continue
		}
		list = append(list, f.good(path))
	}
	return list
}

// checkProcessors says whether filming and forwarding have processors beside
// those that the measured browser takes.
func checkProcessors() Finding {
	f := Finding{Name: "processors", For: "filming and forwarding beside a browser"}
	n := runtime.NumCPU()
	clock, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	source := strings.TrimSpace(string(clock))
	if err != nil {
		source = "unknown"
	}
	found := fmt.Sprintf("%d, clock %s", n, source)
	if n < 2 {
		return f.bad(
			found,
			"use a machine with at least two processors; with one, trials are invalid because of lost frames and late packets",
		)
	}
	return f.good(found)
}

// checkFrequency says what runs would set of the processors' frequency.
func checkFrequency(m frequency.Machine) Finding {
	f := Finding{Name: "frequency", For: "the same speed of the processors in every trial"}
	if !m.Known() {
		return f.bad("the kernel shows no frequencies: runs set nothing",
			"nothing can be done in a virtual machine; elsewhere allow the system to choose frequencies (P-states) in the firmware")
	}
	wanted := m.Wanted()
	if len(wanted) == 0 {
		return f.good("as it should be already: runs set nothing")
	}
	if err := m.MaySet(wanted); err != nil {
		return f.bad("runs would set "+frequency.Tell(wanted)+", but this user may not", "make runs as root, or set it yourself: "+err.Error())
	}
	return f.good("during runs: " + frequency.Tell(wanted) + "; put back afterwards (--keep-processors, processors: {keep: true} leave it)")
}

// checkNamespaces says whether namespaces can be made at all.
func checkNamespaces(ctx context.Context) Finding {
	f := Finding{Name: "namespaces", For: "appliance demo, virtual devices, link test"}
	if err := isolate.Available(ctx); err != nil {
		return f.bad("not allowed", err.Error())
	}
	if os.Geteuid() == 0 {
		return f.good("as root")
	}
	return f.good("as an ordinary user")
}
