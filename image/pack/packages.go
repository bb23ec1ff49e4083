package pack

import (
	"fmt"
	"sort"
	"strings"
)

// Package is one installed Debian package.
type Package struct {
	Name, Version, Arch string
}

// String is a line of the lock file.
func (p Package) String() string { return p.Name + " " + p.Version + " " + p.Arch }

// Installed reads dpkg's status file and returns the installed packages, sorted.
func Installed(status []byte) ([]Package, error) {
	var all []Package
	for n, block := range strings.Split(string(status), "\n\n") {
		var p Package
		installed := false
		for _, line := range strings.Split(block, "\n") {
			key, value, _ := strings.Cut(line, ": ")
			switch key {
			case "Package":
				p.Name = value
			case "Version":
				p.Version = value
			case "Architecture":
				p.Arch = value
			case "Status":
				installed = strings.HasSuffix(value, " installed")
			}
		}
		if strings.TrimSpace(block) == "" || !installed {
			continue
		}
		if p.Name == "" || p.Version == "" || p.Arch == "" {
			return nil, fmt.Errorf("dpkg status: record %d lacks Package, Version or Architecture", n+1)
		}
		all = append(all, p)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].String() < all[j].String() })
	return all, nil
}

// Drift lists the differences of the installed packages from the lines of the lock
// file: one line per package, "+" new, "-" gone, "~" another version. It is nil if there are none.
func Drift(locked []string, installed []Package) []string {
	was := make(map[string]string)
	for _, line := range locked {
		name, rest, _ := strings.Cut(line, " ")
		was[name] = rest
	}
	var drift []string
	for _, p := range installed {
		now := p.Version + " " + p.Arch
		before, known := was[p.Name]
		switch {
		case !known:
			drift = append(drift, "+ "+p.Name+" "+now)
		case before != now:
			drift = append(drift, "~ "+p.Name+" "+before+" → "+now)
		}
		delete(was, p.Name)
	}
	for name, before := range was {
		drift = append(drift, "- "+name+" "+before)
	}
	sort.Slice(drift, func(i, j int) bool { return drift[i][2:] < drift[j][2:] })
	return drift
}
