package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// module is the module's name with a slash.
const module = "eidetic/"

// packageLimit is the -timeout of a package and bootLimit that of the booted image's
// tests: even on a machine a third as fast as ours, only a hang exceeds them.
const (
	packageLimit = 40 * time.Minute
	bootLimit    = 70 * time.Minute
)

// raceFlags of go test put everything but SQLite under the race detector. SQLite is C made Go, which orders its
// threads by itself; watched, it takes ten times as long.
var raceFlags = []string{"-race", "-gcflags=modernc.org/sqlite/lib=-race=false"}

// The groups.
const (
	groupTest     = "test"     // make test: every promise once
	groupAll      = "all"      // make test-all: make test, and then all that is due of the rest
	groupRest     = "rest"     // what make test leaves out and is not known to pass as it is: see rest.go
	groupRace     = "race"     // concurrent packages of the group unit under the race detector
	groupUnit     = "unit"     // tests that need only files of the machine
	groupNet      = "net"      // namespaces, screens, browsers
	groupBox      = "box"      // the booted image
	groupPackages = "packages" // by name
)

// boxPackage boots the image in virtual machines.
const boxPackage = module + "image/boottest"

// conformancePackage has the browsers' conformance cases, each of which stands alone.
const conformancePackage = module + "netlab/replay/conformance"

// fileTools are packages that need programs of the machine, but no screens, no links and
// little processor time: they run with the packages that need nothing.
func fileTools() []string {
	return []string{
		"analysis/stats/reference", "capture/file", "capture/video", "cmd/appliance/client/clienttest", "control/adb", "image/deb", "image/fat", "image/pack", "internal/tell/export",
		"internal/base/adbserver", "internal/base/scrcpyserver", "internal/fleet/blob", "internal/fleet/blob/versity", "internal/fleet/ledger", "internal/lab", "internal/tell/report",
		"internal/rigs/repotest", "netlab/archive/mitmproxy", "netlab/archive/readers", "systemd/units",
	}
}

// companions use namespaces and browsers but assert nothing about times: they run beside the booted image and the unit
// tests, as soon as a lane is free, the longest first.
func companions() []string {
	return []string{
		"netlab/replay/conformance", "internal/web/panel", "netlab/port", "internal/fleet/head", "internal/box/service", "netlab/proxy",
		"capture/scrcpy", "internal/run/device", "internal/keep/store", "internal/rigs/samplesite", "capture/rfb", "internal/base/rfb",
		"internal/run/drive", "control/ch9329", "control/hid", "control/rfb", "internal/run/sandbox", "internal/run/seat",
		"internal/tell/suite", "netlab/dhcp", "netlab/ra", "internal/run/isolate", "image/build", "netlab/archive/fulldisk",
		"internal/rigs/storytest", "image/oci", "internal/base/rfb/rfbtest", "internal/rigs/testlab/xtest", "internal/base/unshare",
	}
}

// commandPackage has tests of all kinds. Those whose name matches need namespaces, screens
// or browsers; companions assert nothing about times.
const (
	commandPackage      = module + "cmd/appliance"
	commandMachineTests = "AnalyzeBrowser|Demo|FilmBeside|Journey|LiveLoads|MeasureOwn|KillInATrial|PagesAreRecorded|FullDisk|Doctor$|Qualify|VNC|" +
		"KeyToFrame|Story|Fleet|MarksLandOnFrames|ControlCalibrates"
	commandCompanions = "AsksItsOrigin|FirstVisit|WhereItWasRecorded|ManyKilledTwice|ScenarioSteps|SecretsOfARun|Traces$"
)

// unraced are packages in which the race detector would find nothing, though a lock is in them, and take many times as
// long: tests that compute one step after another, and other people's programs, which are compiled for it anew.
func unraced() []string {
	return []string{"capture/steady", "cmd/appliance/client/clienttest", "internal/fleet/blob/versity"}
}

// job is one go test, or another command.
type job struct {
	name     string
	packages []string
	flags    []string // of go test
	run      string   // go test's -run, which a second try replaces
	command  []string // instead of go test
	env      []string
	nice     int
	needed   bool // if it fails, the rest of its lane is skipped
	again    bool // it is a second try
	ownTemp  bool // its temporary files are removed however it ends
	// casesStandAlone: the subtests of a test (t.Run) do not depend on each other.
	casesStandAlone bool
}

// stage is a set of lanes that run beside each other. A lane that has done its own jobs takes the next of the pool.
type stage struct {
	name  string
	lanes [][]job
	pool  []job
}

// plan returns the stages in the order in which they run.
func plan(ctx context.Context, c config) ([]stage, error) {
	if c.group == groupPackages {
		return []stage{named(c)}, nil
	}
	all, err := survey(ctx)
	if err != nil {
		return nil, err
	}
	p := planner{config: c, all: all, failures: readTimes(c.out).Failures, short: c.short()}
	if p.short {
		p.all = slices.DeleteFunc(all, func(s sources) bool { return s.onlyLong })
	}
	switch c.group {
	case groupUnit:
		return []stage{{name: "unit", lanes: [][]job{{p.unit(0), p.command(0, nil)}}}}, nil
	case groupRace:
		return []stage{{name: "race", lanes: [][]job{p.raced()}}}, nil
	case groupNet:
		return []stage{{name: "machine", lanes: [][]job{slices.Concat(p.companions(0), p.quiet())}}}, nil
	case groupBox:
		return []stage{{name: "box", lanes: [][]job{p.box()}}}, nil
	case groupTest, groupAll:
		return p.whole(), nil
	}
	return nil, fmt.Errorf("there is no group %q: test, all, rest, unit, race, net, box, packages", c.group)
}

// whole returns the stages of make test. Booting the image mostly waits, and no test of the image
// asserts a time, so other tests run beside it. Tests that film or shape run last, by themselves.
func (p planner) whole() []stage {
	const yielding = 5
	return []stage{
		{
			name:  "box, and what minds no company",
			lanes: [][]job{p.box(), {p.unit(yielding)}, {{name: "format", command: []string{"make", "format"}, nice: yielding}}},
			pool:  append([]job{p.command(yielding, nil)}, p.companions(yielding)...),
		},
		{name: "films, links and browsers, one at a time", lanes: [][]job{p.quiet()}},
	}
}

type planner struct {
	config
	all      []sources
	failures map[string]int
	short    bool // what only make test-all runs is left out
}

// named runs packages by name, as a person asks for them.
func named(c config) stage {
	flags := []string{"-count", "1", "-timeout", c.timeout.String(), "-p", "1"}
	if c.shortly {
		flags = append(flags, "-short")
	}
	j := job{name: strings.Join(c.packages, " "), packages: c.packages, run: c.run, ownTemp: true}
	if c.race {
		flags, j.env = append(flags, raceFlags...), []string{"CGO_ENABLED=1"}
	}
	j.flags = flags
	return stage{name: "packages", lanes: [][]job{{j}}}
}

// flags are those of every go test. The part vet of the rest looks at the tests.
func (p planner) flags() []string {
	flags := []string{"-timeout", packageLimit.String(), "-vet=off"}
	if p.short {
		flags = append(flags, "-short")
	}
	return flags
}

// unit returns the tests that other programs do not disturb, with all fuzz seeds.
func (p planner) unit(nice int) job {
	all := p.units(func(sources) bool { return true })
	flags := append(p.flags(), "-p", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // half of them wait at any time
	return job{name: "unit", packages: p.order(all), flags: flags, nice: nice}
}

// raced returns those of them in which goroutines meet, under the race detector.
func (p planner) raced() []job {
	concurrent := p.units(func(s sources) bool { return s.concurrent })
	env := []string{"CGO_ENABLED=1"}
	return []job{
		{name: "race", packages: p.order(concurrent), flags: append(p.flags(), raceFlags...), env: env},
		p.command(0, raceFlags),
	}
}

// command returns those tests of the command that need nothing of the machine.
func (p planner) command(nice int, race []string) job {
	j := job{name: "command", packages: []string{commandPackage}, nice: nice}
	skip := commandMachineTests + "|" + commandCompanions
	if race != nil {
		j.name, j.env = "race of the command", []string{"CGO_ENABLED=1"}
		skip += "|ArchiveMemory$" // bounds memory, of which the race detector takes many times as much
		p.short = true            // what make test leaves out films, for which this is too slow
	}
	j.flags = slices.Concat([]string{"-skip", skip}, p.flags(), race)
	return j
}

func (p planner) units(which func(sources) bool) (paths []string) {
	for _, s := range p.all {
		if s.isUnit() && which(s) {
			paths = append(paths, s.path)
		}
	}
	return paths
}

func (s sources) isUnit() bool {
	return s.path != boxPackage && s.path != commandPackage && (!s.machine || contains(fileTools(), s.path))
}

func (p planner) companions(nice int) []job {
	place := func(path string) int { return slices.Index(companions(), strings.TrimPrefix(path, module)) }
	jobs := p.oneByOne(nice, commandCompanions, func(path string) bool { return path == commandPackage || place(path) >= 0 })
	slices.SortStableFunc(jobs, func(a, b job) int { return place(a.packages[0]) - place(b.packages[0]) })
	return jobs
}

// quiet returns the tests that other programs would disturb.
func (p planner) quiet() []job {
	return p.oneByOne(0, commandMachineTests, func(path string) bool { return path != boxPackage && !contains(companions(), path) })
}

// oneByOne returns a job for each package, with those tests of the command whose name matches.
func (p planner) oneByOne(nice int, ofCommand string, which func(path string) bool) (jobs []job) {
	var paths []string
	for _, s := range p.all {
		if !s.isUnit() && which(s.path) {
			paths = append(paths, s.path)
		}
	}
	for _, path := range p.order(paths) {
		j := job{
			name: strings.TrimPrefix(path, module), packages: []string{path}, nice: nice, ownTemp: true,
			flags:           append([]string{"-count", "1"}, p.flags()...),
			casesStandAlone: path == conformancePackage,
		}
		if path == commandPackage {
			j.run = ofCommand
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// box builds the image and boots it. Only root can.
func (p planner) box() []job {
	boot := job{name: "boot", packages: []string{boxPackage}, ownTemp: true, casesStandAlone: true,
		flags: append(p.flags(), "-count", "1", "-timeout", bootLimit.String())}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "Not root: the boot tests will be skipped.")
		return []job{boot}
	}
	return []job{{name: "image", command: []string{"make", "image-test"}, needed: true}, boot}
}

// order puts the packages first that have failed most often on this machine.
func (p planner) order(paths []string) []string {
	slices.SortStableFunc(paths, func(a, b string) int { return p.failures[b] - p.failures[a] })
	return paths
}
func contains(list []string, path string) bool {
	return slices.Contains(list, strings.TrimPrefix(path, module))
}
