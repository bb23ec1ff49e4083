package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// times is out/test/times.json.
type times struct {
	Seconds  float64        `json:"seconds"`
	Parts    []note         `json:"parts"` // stages and jobs
	Packages []packageTime  `json:"packages"`
	Failures map[string]int `json:"failures"` // first tries that failed here, by package, since out/test was made
}

type packageTime struct {
	Package string             `json:"package"`
	Seconds float64            `json:"seconds"`
	Passed  bool               `json:"passed"`
	Tests   map[string]float64 `json:"tests,omitempty"` // seconds, of tests that took half a second or more
}

// readTimes reads the times of an earlier call; without any it returns the zero value.
func readTimes(dir string) (t times) {
	text, err := os.ReadFile(filepath.Join(dir, "times.json"))
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil || t.Failures == nil {
		t.Failures = map[string]int{}
	}
	return t
}

// slowest is the number of packages that the summary lists.
const slowest = 15

// summary prints the results, and returns the exit status.
func (s *session) summary(ctx context.Context) int {
	all := readTimes(s.out)
	all.Seconds, all.Parts, all.Packages = time.Since(s.began).Seconds(), s.notes, nil
	passed, skipped := 0, 0
	for _, o := range s.first {
		p := packageTime{Package: o.Package, Seconds: o.took.Seconds(), Passed: o.passed, Tests: map[string]float64{}}
		for _, t := range o.tests {
			if t.took >= time.Second/2 {
				p.Tests[t.name] = t.took.Seconds()
			}
		}
		passed, skipped = passed+o.top("pass"), skipped+o.top("skip")
		if !o.passed && ctx.Err() == nil {
			all.Failures[o.Package]++
		}
		all.Packages = append(all.Packages, p)
	}
	slices.SortStableFunc(all.Packages, func(a, b packageTime) int { return int(b.Seconds*1000) - int(a.Seconds*1000) })
	text, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(s.out, "times.json"), append(text, '\n'), 0o644)
	}
	if err != nil {
		s.printf("testrun: %v\n", err)
	}

	s.printf("\nWhere the time went (%s has every test):\n", filepath.Join(s.out, "times.json"))
	for _, n := range s.notes {
		if strings.HasPrefix(n.Name, "stage ") {
			s.printf("%7.0f s  %s\n", n.Seconds, n.Name)
		}
	}
	for _, p := range all.Packages[:min(slowest, len(all.Packages))] {
		s.printf("%7.1f s  %s\n", p.Seconds, p.Package)
	}
	if s.slow != nil {
		s.printf("Held to one part in %v of the processors' time: %s\n", s.config.slow, s.slow.throttled())
	}
	if len(s.left) > 0 {
		s.printf("Left behind by tests, and ended:\n")
		for _, line := range s.left {
			s.printf("  %s\n", line)
		}
	}
	if ctx.Err() != nil {
		s.printf("Interrupted after %.0f s. Nothing is left running.\n", all.Seconds)
		return statusInterrupted
	}
	if lacks := s.lacks(); len(lacks) > 0 {
		s.list("Left out, for want of a package in this release of Debian", lacks)
	}
	second, failed := s.verdicts()
	s.list("Passed on the second try", second)
	s.list("Failed", failed)
	s.printf("%d tests of %d packages passed, %d were skipped, in %.0f s.\n", passed, len(s.first), skipped, all.Seconds)
	if len(failed) > 0 {
		return statusFailed
	}
	return 0
}

// lacking is what testlab.NeedPackage says of a test that it leaves out; the package's name follows.
const lacking = "this release of Debian has no package "

// lacks lists the tests that were left out because this release of Debian lacks a package.
func (s *session) lacks() (lines []string) {
	for _, o := range s.first {
		for _, t := range o.tests {
			_, pkg, found := strings.Cut(strings.Join(t.output, ""), lacking)
			if pkg, _, _ = strings.Cut(pkg, "\n"); found && t.state == "skip" {
				lines = append(lines, pkg+": "+o.Package+" "+t.name)
			}
		}
	}
	return lines
}

// verdicts lists the tests that passed on their second try, and those that failed.
func (s *session) verdicts() (second, failed []string) {
	for _, o := range s.second {
		name := strings.TrimSpace(o.Package + " " + plain(o.pattern))
		if o.pattern == "" {
			name += " (the whole package)"
		}
		if o.passed {
			second = append(second, name)
		} else {
			failed = append(failed, name+", twice")
		}
	}
	for _, o := range s.first {
		switch {
		case o.notBuilt:
			failed = append(failed, o.Package+" is not built")
		case o.raced && !o.passed:
			failed = append(failed, o.Package+" has a data race")
		}
	}
	return second, append(failed, s.broken...)
}

// plain returns the name of the test that a pattern matches.
func plain(pattern string) string {
	return strings.NewReplacer("^", "", "$", "", `\`, "").Replace(pattern)
}

func (s *session) list(title string, lines []string) {
	if len(lines) == 0 {
		s.printf("%s: none.\n", title)
		return
	}
	s.printf("%s:\n  %s\n", title, strings.Join(lines, "\n  "))
}
