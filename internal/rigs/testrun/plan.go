package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	groupAll      = "all"
	groupUnit     = "unit"     // tests that need only files of the machine
	groupNet      = "net"      // namespaces, screens, browsers
	groupBox      = "box"      // the booted image
	groupPackages = "packages" // by name
)

// boxPackage boots the image in virtual machines.
const boxPackage = module + "image/boottest"

// fileTools are packages that need programs of the machine, but no screens, no links and
// little processor time: they run with the packages that need nothing.
func fileTools() []string {
	return []string{
		"analysis/stats/reference", "capture/file", "capture/video", "cmd/appliance/client/clienttest", "control/adb", "image/deb", "image/fat", "image/pack", "internal/tell/export",
		"internal/fleet/blob", "internal/fleet/blob/versity", "internal/fleet/ledger", "internal/lab", "internal/tell/report",
		"internal/rigs/repotest", "netlab/archive/mitmproxy", "netlab/archive/readers", "systemd/units",
	}
}

// companions use namespaces and browsers but assert nothing about times: they run one
// after another behind the booted image, beside the unit tests.
func companions() []string {
	return []string{
		"netlab/replay/conformance", "internal/rigs/samplesite", "internal/keep/store", "netlab/archive/fulldisk", "netlab/ra",
	}
}

// commandPackage has tests of all kinds. Those whose name matches need namespaces, screens
// or browsers; companions assert nothing about times.
const (
	commandPackage      = module + "cmd/appliance"
	commandMachineTests = "AnalyzeBrowser|Demo|FilmBeside|Journey|LiveLoads|MeasureOwn|KillInATrial|PagesAreRecorded|FullDisk|Doctor$|Qualify|VNC|" +
		"KeyToFrame|Story|Fleet|MarksLandOnFrames"
	commandCompanions = "AsksItsOrigin|FirstVisit|WhereItWasRecorded|ManyKilledTwice|ScenarioSteps|Traces$"
)

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

// stage is a set of lanes that run beside each other.
type stage struct {
	name  string
	lanes [][]job
}

// sources is what the plan knows about a package's source files.
type sources struct {
	path       string
	tests      bool
	machine    bool // a test calls a function testlab.Need…
	concurrent bool // it starts goroutines or shares memory between them, in more than a benchmark
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
	p := planner{config: c, all: all, failures: readTimes(c.out).Failures}
	switch c.group {
	case groupUnit:
		return []stage{{"unit", [][]job{p.unit(0)}}}, nil
	case groupNet:
		return []stage{{"machine", [][]job{slices.Concat(p.companions(0), p.quiet())}}}, nil
	case groupBox:
		return []stage{{"box", [][]job{p.box()}}}, nil
	case groupAll:
		// Booting the image mostly waits, and no test of the image asserts a time, so
		// other tests run beside it. Tests that film or shape run last, by
		// themselves.
		const yielding = 5
		check := job{name: "lint", command: []string{"make", "lint"}, nice: yielding}
		beside := slices.Concat([]job{check}, p.unit(yielding), p.container(yielding))
		return []stage{
			{"box, and what minds no company", [][]job{slices.Concat(p.box(), p.companions(0)), beside}},
			{"films, links and browsers, one at a time", [][]job{p.quiet()}},
		}, nil
	}
	return nil, fmt.Errorf("there is no group %q: all, unit, net, box, packages", c.group)
}

type planner struct {
	config
	all      []sources
	failures map[string]int
}

// named runs packages by name, as a person asks for them.
func named(c config) stage {
	flags := []string{"-count", "1", "-timeout", c.timeout.String(), "-p", "1"}
	j := job{name: strings.Join(c.packages, " "), packages: c.packages, run: c.run, ownTemp: true}
	if c.race {
		flags, j.env = append(flags, raceFlags...), []string{"CGO_ENABLED=1"}
	}
	j.flags = flags
	return stage{"packages", [][]job{{j}}}
}

// unit returns the tests that other programs do not disturb, with all fuzz seeds. Those of
// concurrent packages run under the race detector, and only there.
func (p planner) unit(nice int) []job {
	var plain, raced []string
	for _, s := range p.all {
		switch {
		case !s.isUnit():
		case s.concurrent:
			raced = append(raced, s.path)
		default:
			plain = append(plain, s.path)
		}
	}
	flags := []string{"-timeout", packageLimit.String()}
	race := slices.Concat(raceFlags, flags)
	env := []string{"CGO_ENABLED=1"}
	return []job{
		{name: "unit, under the race detector", packages: p.order(raced), flags: race, env: env, nice: nice},
		{name: "unit", packages: p.order(plain), flags: flags, nice: nice},
		{name: "command, under the race detector", packages: []string{commandPackage}, env: env, nice: nice,
			flags: append([]string{"-skip", commandMachineTests + "|" + commandCompanions}, race...)},
	}
}

func (s sources) isUnit() bool {
	return s.path != boxPackage && s.path != commandPackage && (!s.machine || contains(fileTools(), s.path))
}

// companions run in one lane, because they use the same browsers.
func (p planner) companions(nice int) []job {
	return p.oneByOne(nice, commandCompanions, func(s sources) bool { return contains(companions(), s.path) || s.path == commandPackage })
}

// quiet returns the tests that other programs would disturb.
func (p planner) quiet() []job {
	return p.oneByOne(0, commandMachineTests, func(s sources) bool {
		return s.path != boxPackage && !s.isUnit() && !contains(companions(), s.path)
	})
}

// oneByOne returns a job for each package, with those tests of the command whose name matches.
func (p planner) oneByOne(nice int, ofCommand string, which func(sources) bool) (jobs []job) {
	var paths []string
	for _, s := range p.all {
		if which(s) {
			paths = append(paths, s.path)
		}
	}
	for _, path := range p.order(paths) {
		j := job{
			name: strings.TrimPrefix(path, module), packages: []string{path}, nice: nice, ownTemp: true,
			flags:           []string{"-count", "1", "-timeout", packageLimit.String()},
			casesStandAlone: path == module+"netlab/replay/conformance",
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
		flags: []string{"-count", "1", "-timeout", bootLimit.String()}}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "Not root: the boot tests will be skipped.")
		return []job{boot}
	}
	return []job{{name: "image", command: []string{"make", "image-test"}, needed: true}, boot}
}

// container builds the container image, which a test of the second stage runs. Only root can.
func (p planner) container(nice int) []job {
	if os.Geteuid() != 0 {
		return nil
	}
	return []job{{name: "container", command: []string{"make", "oci"}, nice: nice}}
}

// order puts the packages first that have failed most often on this machine.
func (p planner) order(paths []string) []string {
	slices.SortStableFunc(paths, func(a, b string) int { return p.failures[b] - p.failures[a] })
	return paths
}

// concurrent says whether a file starts goroutines or shares memory between them. Benchmarks do not count, as no test runs them.
func concurrent(name string, text []byte) (found bool, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		return false, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return !slices.ContainsFunc(n.Type.Params.List, func(f *ast.Field) bool { return types.ExprString(f.Type) == "*testing.B" })
		case *ast.GoStmt, *ast.ChanType:
			found = true
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			found = found || of != nil && of.Name == "sync"
		}
		return !found
	})
	return found, nil
}

func contains(list []string, path string) bool {
	return slices.Contains(list, strings.TrimPrefix(path, module))
}

// survey lists the packages with the go command and inspects their files.
func survey(ctx context.Context) (all []sources, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	asks := regexp.MustCompile(`testlab\.Need`)
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p struct {
			ImportPath, Dir                    string
			GoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		tests := slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		s := sources{path: p.ImportPath, tests: len(tests) > 0}
		for _, name := range slices.Concat(p.GoFiles, tests) {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			if !s.concurrent {
				if s.concurrent, err = concurrent(filepath.Join(p.Dir, name), text); err != nil {
					return nil, err
				}
			}
			// Calls in testlab itself and in the rules' examples are no needs.
			if slices.Contains(tests, name) && s.path != module+"internal/rigs/testlab" {
				s.machine = s.machine || asks.Match(text)
			}
		}
		all = append(all, s)
	}
}
