package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// part is a piece of what make test leaves to make test-all, which can run by itself.
type part struct {
	name   string
	inputs []string // packages; if a file of one of them or of what it imports changes, the part has to run again
	jobs   []job
}

// raceName and longName name parts as .ci/tested does.
func raceName(path string) string { return "race " + strings.TrimPrefix(path, module) }
func longName(path string) string { return "long " + strings.TrimPrefix(path, module) }

const (
	bootsName        = "boots"
	containerName    = "container"
	staticcheckName  = "staticcheck"
	benchRegressName = "bench-regress"
)

// containerPackage tests the container image, and has to build it first.
const containerPackage = module + "image/oci"

// parts returns all that make test leaves out.
func (p planner) parts() (parts []part) {
	var everything []string
	for _, s := range p.all {
		everything = append(everything, s.path)
	}
	benches := []string{module + "capture/reel/bench", module + "netlab/replay/bench", module + "analysis/change/bench", module + "analysis/bisect/bench"}
	parts = []part{{staticcheckName, everything, []job{staticcheck(0)}}, {benchRegressName, benches, []job{benchRegress(0)}}}
	for _, s := range p.all {
		if len(s.tests) == 0 {
			continue
		}
		long := job{
			name: longName(s.path), packages: []string{s.path}, run: s.longPattern(), ownTemp: true,
			flags: append([]string{"-count", "1"}, p.flags()...), casesStandAlone: s.path == conformancePackage,
		}
		switch {
		case s.path == boxPackage:
			parts = append(parts, part{bootsName, []string{s.path, module + "image", commandPackage}, p.box()})
		case s.path == containerPackage:
			parts = append(parts, part{containerName, []string{s.path, commandPackage}, append(p.container(0), long)})
		case s.hasLong():
			parts = append(parts, part{long.name, []string{s.path}, []job{long}})
		}
		if !s.concurrent {
			continue
		}
		race := job{
			name: raceName(s.path), packages: []string{s.path}, flags: append(p.flags(), raceFlags...), env: []string{"CGO_ENABLED=1"},
		}
		switch {
		case s.path == commandPackage:
			parts = append(parts, part{race.name, []string{s.path}, []job{p.command(0, raceFlags)}})
		case s.isUnit():
			parts = append(parts, part{race.name, []string{s.path}, []job{race}})
		}
	}
	return parts
}

// runRest runs the parts whose inputs changed since the last whole make test-all, the cheapest first, as long as the
// time that they took there fits into the limit.
func (s *session) runRest(ctx context.Context) error {
	all, err := survey(ctx)
	if err != nil {
		return err
	}
	last := readTested()
	if last.Commit == "" {
		s.printf("There is no %s, so no make test-all is known to have passed: what make test leaves out is not run.\n", testedFile)
		return nil
	}
	changed, why, err := changedSince(ctx, all, last.Commit)
	if err != nil {
		return err
	}
	var due []part
	for _, part := range (planner{config: s.config, all: all}).parts() {
		if slices.ContainsFunc(part.inputs, func(p string) bool { return changed[p] }) {
			due = append(due, part)
		}
	}
	slower := last.slower()
	cost := func(p part) float64 {
		if known, ok := last.Parts[p.name]; ok {
			return known * slower
		}
		return unknownCost
	}
	slices.SortStableFunc(due, func(a, b part) int { return int(cost(a)*1000) - int(cost(b)*1000) })
	s.printf("Of what make test leaves out, %d parts have inputs that changed since %s.\n", len(due), why)
	for i, part := range due {
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(s.began).Seconds()+cost(part) > s.config.limit.Seconds() {
			for _, left := range due[i:] {
				s.leftOut = append(s.leftOut, left.name)
			}
			return nil
		}
		s.runStage(ctx, stage{part.name, [][]job{part.jobs}})
	}
	return nil
}

// unknownCost is what a part is taken to cost, in seconds, that .ci/tested does not know.
const unknownCost = 60

// changedSince returns the packages that a change since a commit can have made fail, and how the commit is called.
// Where git does not know the commit, all have changed.
func changedSince(ctx context.Context, all []sources, commit string) (changed map[string]bool, since string, err error) {
	changed = map[string]bool{}
	everything := func(why string) (map[string]bool, string, error) {
		for _, s := range all {
			changed[s.path] = true
		}
		return changed, why, nil
	}
	out, err := exec.CommandContext(ctx, "git", "diff", "--name-only", "--no-renames", commit, "--").Output()
	if err != nil {
		return everything(fmt.Sprintf("ever: git does not know %s, which %s names", commit, testedFile))
	}
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, "", fmt.Errorf("git rev-parse: %w", err)
	}
	own := map[string]bool{} // packages with changed files
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		if file == "go.mod" || file == "go.sum" {
			return everything(commit + ", and " + file + " with them")
		}
		if of := packageOf(all, filepath.Join(strings.TrimSpace(string(root)), file)); of != "" {
			own[of] = true
		}
	}
	deps, err := testDependencies(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, s := range all {
		changed[s.path] = own[s.path] || slices.ContainsFunc(deps[s.path], func(d string) bool { return own[d] })
	}
	return changed, commit, nil
}

// packageOf returns the package of the nearest folder above a file, as test data and embedded files lie below one.
func packageOf(all []sources, file string) string {
	for dir := filepath.Dir(file); len(dir) > 1; dir = filepath.Dir(dir) {
		if i := slices.IndexFunc(all, func(s sources) bool { return s.dir == dir }); i >= 0 {
			return all[i].path
		}
	}
	return ""
}

// testDependencies returns all packages that the tests of a package link, by package.
func testDependencies(ctx context.Context) (map[string][]string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-test", "-json=ImportPath,Deps", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -test: %w", err)
	}
	deps := map[string]map[string]bool{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Deps       []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list -test: %w", err)
		}
		of, _, _ := strings.Cut(p.ImportPath, " ")
		of = strings.TrimSuffix(of, ".test")
		if deps[of] == nil {
			deps[of] = map[string]bool{}
		}
		for _, dep := range p.Deps {
			if dep, _, _ = strings.Cut(dep, " "); strings.HasPrefix(dep, module) {
				deps[of][dep] = true
			}
		}
	}
	lists := map[string][]string{}
	for of, set := range deps {
		lists[of] = slices.Sorted(maps.Keys(set))
	}
	return lists, nil
}
