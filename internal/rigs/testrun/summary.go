package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// times is out/test/times.json.
type times struct {
	Seconds  float64            `json:"seconds"`
	Parts    []note             `json:"parts"` // stages and jobs
	Packages []packageTime      `json:"packages"`
	Last     map[string]float64 `json:"last"`     // seconds that each group took when it last passed here
	Failures map[string]int     `json:"failures"` // first tries that failed here, by package, since out/test was made
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

// leftOutTitle heads the list of parts that were not run.
const leftOutTitle = "Left out"

// summary prints the results, and returns the exit status.
func (s *session) summary(ctx context.Context) int {
	s.tell(func(p *progress) { p.hide() })
	all := readTimes(s.out)
	all.Seconds, all.Parts, all.Packages = time.Since(s.began).Seconds(), s.notes, nil
	for _, o := range s.first {
		p := packageTime{Package: o.Package, Seconds: o.took.Seconds(), Passed: o.passed, Tests: map[string]float64{}}
		for _, t := range o.tests {
			if t.took >= time.Second/2 {
				p.Tests[t.name] = t.took.Seconds()
			}
		}
		if !o.passed && ctx.Err() == nil {
			all.Failures[o.Package]++
		}
		all.Packages = append(all.Packages, p)
	}
	slices.SortStableFunc(all.Packages, func(a, b packageTime) int { return int(b.Seconds*1000) - int(a.Seconds*1000) })
	second, failed := s.verdicts()
	if ctx.Err() == nil && len(failed) == 0 {
		if all.Last == nil {
			all.Last = map[string]float64{}
		}
		all.Last[s.config.group] = all.Seconds
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(s.out, "times.json"), append(text, '\n'), 0o644)
	}
	if err != nil {
		s.printf("testrun: %v\n", err)
	}

	passed, skipped := s.table()
	if s.slow != nil {
		s.printf("Held to one part in %v of the processors' time: %s\n", s.config.slow, s.slow.throttled())
	}
	for _, l := range []struct {
		title string
		lines []string
	}{
		{"Left behind by tests, and ended", s.left},
		{"Proved less than elsewhere", s.said(weakerReason)},
		{"Left out, for want of a package in this release of Debian", s.said(lackingReason)},
		{leftOutTitle, s.leftOut},
	} {
		if len(l.lines) > 0 {
			s.list(l.title, l.lines)
		}
	}
	if ctx.Err() != nil {
		s.printf("Interrupted after %.0f s. Nothing is left running.\n", all.Seconds)
		return statusInterrupted
	}
	s.list("Passed on the second try", second)
	s.list("Failed", failed)
	s.printf("%d tests of %d packages passed, %d were skipped, in %.0f s. %s has the time of each.\n",
		passed, len(s.first), skipped, all.Seconds, filepath.Join(s.out, "times.json"))
	if len(failed) > 0 {
		return statusFailed
	}
	return 0
}

// area returns the row of the summary's table in which a package counts: two names of its path within internal, one
// elsewhere.
func area(path string) string {
	names := strings.Split(strings.TrimPrefix(path, module), "/")
	if names[0] == "internal" || names[0] == "cmd" {
		return strings.Join(names[:min(2, len(names))], "/")
	}
	return names[0]
}

// table prints what was tested, by area, and returns the numbers of tests that passed and that were skipped.
func (s *session) table() (passed, skipped int) {
	type row struct {
		passed, long int
		seconds      float64
	}
	rows := map[string]*row{}
	at := func(name string) *row {
		if rows[name] == nil {
			rows[name] = &row{}
		}
		return rows[name]
	}
	for _, o := range s.first {
		if len(o.tests) == 0 && o.passed {
			continue
		}
		r := at(area(o.Package))
		r.passed, r.long, r.seconds = r.passed+o.top("pass"), r.long+o.top(long), r.seconds+o.took.Seconds()
		passed, skipped = passed+o.top("pass"), skipped+o.top("skip")
	}
	for _, n := range s.notes {
		if n.command {
			at(n.Name).seconds += n.Seconds
		}
	}
	s.printf("\n%-20s %8s %10s %10s\n", "", "passed", "for all", "seconds")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		s.printf("%-20s %8s %10s %10.0f\n", name, orDash(r.passed), orDash(r.long), r.seconds)
	}
	return passed, skipped
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// said returns what tests said behind a word.
func (s *session) said(word string) (lines []string) {
	for _, o := range slices.Concat(s.first, s.second) {
		for _, t := range o.tests {
			for _, why := range t.said(word) {
				if line := fmt.Sprintf("%s %s: %s", o.Package, t.name, why); !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
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
