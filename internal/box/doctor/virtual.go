package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"eidetic/internal/base/programs"
	"eidetic/internal/lab"
	"eidetic/internal/run/isolate"
)

// CheckVirtualDevice returns, as one error, what this machine lacks for a run on
// a virtual device, or nil.
func CheckVirtualDevice(ctx context.Context) error {
	if err := programs.Missing(programs.VirtualDevice()); err != nil {
		return err
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("read how many files may be open: %w", err)
	}
	if err := checkFiles(files.Max); err != nil {
		return err
	}
	return isolate.Available(ctx)
}

// leastFiles is how many files each process of a run may have open at least; with few, browsers end by themselves.
const leastFiles = 1024

// checkFiles returns an error if a process may open too few files: most is the hard limit.
func checkFiles(most uint64) error {
	if most >= leastFiles {
		return nil
	}
	return fmt.Errorf("a process may have only %d files open here (ulimit -Hn), and a browser needs %d: "+
		"raise nofile in /etc/security/limits.conf, or LimitNOFILE= in a unit", most, leastFiles)
}

// Browsers lists the browsers of this machine by the names that plans have for them everywhere.
func Browsers() []string {
	all := []string{}
	if _, err := programs.Chromium().Find(); err == nil {
		all = append(all, lab.Chromium)
	}
	for _, name := range []string{lab.Firefox, lab.FirefoxESR} {
		find := programs.Firefox()
		find.Files = []string{name} // each by itself: one program must not count as two browsers
		if _, err := find.Find(); err == nil {
			all = append(all, name)
		}
	}
	return all
}

const (
	// leastMemory is what a run on the virtual device needs of memory: its browser and screen, its recording and its
	// film take up to three quarters of that.
	leastMemory = 1_000_000_000
	// anotherImage is what to do on a box whose image lacks what only some images have.
	anotherImage = "install an image that was built with: make image BROWSERS=chromium (docs/box.md)"
	// noImage is what to do on a box for a program that no image has.
	noImage = "no image of the box has it: use the service on a Debian machine (docs/box.md)"
)

// checkVirtual says whether this machine can measure its virtual device. lacks is what [CheckVirtualDevice] found, and
// root the root of the file system.
func checkVirtual(root fs.FS, browsers []string, lacks error, onBox bool) Finding {
	f := Finding{Name: "virtual", For: "runs and suites on the virtual device, a browser of this machine itself"}
	if onBox && len(browsers) == 0 {
		return f.bad("this box's image has no browser", anotherImage)
	}
	if lacks != nil {
		return f.bad("it cannot run", lacks.Error())
	}
	found := strings.Join(browsers, ", ")
	free, err := availableMemory(root)
	if err != nil {
		return f.good(found + "; memory unknown: " + err.Error())
	}
	found += fmt.Sprintf("; %d MB of memory are free", free/1_000_000)
	if free < leastMemory {
		return f.bad(found, fmt.Sprintf("have %d MB free: end other programs, or use a machine with more memory", leastMemory/1_000_000))
	}
	return f.good(found)
}

// availableMemory is how many bytes programs may still take before the kernel has to end one (proc(5)).
func availableMemory(root fs.FS) (uint64, error) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}

// get says how to get a program that is missing.
func get(p programs.Program, onBox bool) string {
	if !onBox {
		return "apt-get install " + p.Package
	}
	ofBrowsers := []programs.Program{programs.Chromium(), programs.Certutil(), programs.Xvfb()}
	if slices.ContainsFunc(ofBrowsers, func(b programs.Program) bool { return b.Name == p.Name }) {
		return anotherImage
	}
	return noImage
}
