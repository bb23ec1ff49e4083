package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
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

// made is a part that make does.
func made(target string, inputs []string) part {
	return part{target, inputs, []job{{name: target, command: []string{"make", target}}}}
}

func longName(path string) string { return "long " + strings.TrimPrefix(path, module) }

// containerPackage tests the container image, and has to build it first.
const containerPackage = module + "image/oci"

// parts returns all that make test leaves out.
func (p planner) parts() (parts []part) {
	var everything []string
	for _, s := range p.all {
		everything = append(everything, s.path)
	}
	var benches []string
	for _, area := range []string{"capture/reel", "netlab/replay", "analysis/change", "analysis/bisect"} {
		benches = append(benches, module+area+"/bench")
	}
	parts = []part{
		made("vet", everything),
		made("staticcheck", everything),
		made("bench-regress", benches), // compares what benchmarks count: the machine's load does not matter
	}
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
			parts = append(parts, part{"boots", []string{s.path, module + "image", commandPackage}, p.box()})
		case s.path == containerPackage:
			image := job{name: "container", command: []string{"make", "oci"}, needed: true}
			parts = append(parts, part{"container", []string{s.path, commandPackage}, []job{image, long}})
		case slices.Contains([]string{commandPackage, conformancePackage}, s.path) && !s.longHelper:
			// Together they take longer than CI has left: each of these tests is a part by itself.
			for _, test := range s.long {
				one := long
				one.name, one.run = long.name+" "+test, "^"+test+"$"
				parts = append(parts, part{one.name, []string{s.path}, []job{one}})
			}
		case s.hasLong():
			parts = append(parts, part{long.name, []string{s.path}, []job{long}})
		}
		if !s.concurrent {
			continue
		}
		race := job{
			name: "race " + strings.TrimPrefix(s.path, module), packages: []string{s.path},
			flags: append(p.flags(), raceFlags...), env: []string{"CGO_ENABLED=1"},
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

// runRest runs the parts that are not known to pass as they are: those whose inputs changed since they last passed, the
// cheapest first, as long as the time that they took then fits into the limit. Parts of which nobody knows what they
// take are left to make test-all.
func (s *session) runRest(ctx context.Context) error {
	all, err := survey(ctx)
	if err != nil {
		return err
	}
	proofs := readProofs()
	changed, err := newChanges(ctx, all)
	if err != nil {
		return err
	}
	parts := (planner{config: s.config, all: all}).parts()
	var due []part
	for _, part := range parts {
		since, err := changed.since(ctx, proofs[part.name].Commit)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(part.inputs, func(p string) bool { return since[p] }) {
			due = append(due, part)
		}
	}
	s.printf("Of the %d parts that make test leaves out, %d are not known to pass as they are now (%s).\n",
		len(parts), len(due), proofsFile)
	here := speed()
	cost := func(p part) float64 {
		known := proofs[p.name]
		return known.Seconds * max(1, known.Speed/here)
	}
	if s.config.group == groupRest {
		due = slices.DeleteFunc(due, func(p part) bool {
			_, known := proofs[p.name]
			if !known {
				s.leftOut = append(s.leftOut, p.name+" (it never passed: make test-all runs it)")
			}
			return !known
		})
	}
	slices.SortStableFunc(due, func(a, b part) int { return int(cost(a)*1000) - int(cost(b)*1000) })
	for i, part := range due {
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(s.began).Seconds()+cost(part) > s.config.limit.Seconds() {
			for _, left := range due[i:] {
				s.leftOut = append(s.leftOut, left.name+" (there was no time)")
			}
			return nil
		}
		s.prove(ctx, part)
	}
	return nil
}

// prove runs a part. If it passes and nothing of it is skipped, that is written down at once: make test-all that is
// interrupted goes on from there.
func (s *session) prove(ctx context.Context, p part) {
	began, ran := time.Now(), len(s.first)
	secondBefore, failedBefore := s.verdicts()
	s.runStage(ctx, stage{name: p.name, lanes: [][]job{p.jobs}})
	took := time.Since(began)
	s.secondTries(ctx)
	second, failed := s.verdicts()
	if ctx.Err() != nil || len(failed) > len(failedBefore) {
		return
	}
	err := errors.New("something of it was skipped")
	if !slices.ContainsFunc(s.first[ran:], func(o outcome) bool { return o.top("skip") > 0 }) {
		err = writeProof(ctx, p.name, proof{Seconds: math.Round(took.Seconds()), SecondTries: second[len(secondBefore):]})
	}
	if err != nil {
		s.printf("%s passed, but that is not written to %s: %v\n", p.name, proofsFile, err)
	}
}

// changes says which packages a change since a commit can have made fail.
type changes struct {
	all   []sources
	root  string              // of the repository
	deps  map[string][]string // of testDependencies
	known map[string]map[string]bool
}

func newChanges(ctx context.Context, all []sources) (*changes, error) {
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, fmt.Errorf("git rev-parse: %w", err)
	}
	deps, err := testDependencies(ctx)
	return &changes{all, strings.TrimSpace(string(root)), deps, map[string]map[string]bool{}}, err
}

// since returns the packages that have changed. Where git does not know the commit, all have.
func (c *changes) since(ctx context.Context, commit string) (map[string]bool, error) {
	if known, ok := c.known[commit]; ok {
		return known, nil
	}
	changed, own, everything := map[string]bool{}, map[string]bool{}, commit == ""
	if !everything {
		out, err := exec.CommandContext(ctx, "git", "diff", "--name-only", "--no-renames", commit, "--").Output()
		everything = err != nil
		for file := range strings.Lines(string(out)) {
			file = strings.TrimSpace(file)
			everything = everything || file == "go.mod" || file == "go.sum"
			if of := packageOf(c.all, filepath.Join(c.root, file)); of != "" {
				own[of] = true
			}
		}
	}
	for _, s := range c.all {
		changed[s.path] = everything || own[s.path] || slices.ContainsFunc(c.deps[s.path], func(d string) bool { return own[d] })
	}
	c.known[commit] = changed
	return changed, ctx.Err()
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
