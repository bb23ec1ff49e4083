package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json (go doc test2json; the build's lines are
// described by go help buildjson).
type event struct {
	Action, Package, Test, Output string
	ImportPath, FailedBuild       string
	Elapsed                       float64
}

// result is the outcome of one package in one go test.
type result struct {
	Package string
	passed  bool
	took    time.Duration
	tests   []*test // in the order in which they began
	// notBuilt: the package or its tests do not compile, or vet rejects them.
	notBuilt bool
	// raced: the race detector found a data race, which is a fault even if the test
	// passes in most runs.
	raced bool
	// broken: the process ended before its tests did, or failed although all tests
	// passed: a panic, a time limit, an exit, a leak.
	broken bool
	output []string // the package's own output, without that of its tests
}

// test is a test or a subtest.
type test struct {
	name   string
	state  string // run, pass, fail, skip
	took   time.Duration
	output []string
}

// failed returns the names of the failed tests and subtests, without those that have
// failed subtests.
func (r *result) failed() (names []string) {
	for _, t := range r.tests {
		if t.state == "fail" && !slices.ContainsFunc(r.tests, func(c *test) bool {
			return c.state == "fail" && strings.HasPrefix(c.name, t.name+"/")
		}) {
			names = append(names, t.name)
		}
	}
	return names
}

// What testlab.Long, testlab.Weaker and testlab.NeedPackage write; that package is for tests only.
const (
	longReason    = "make test-all: "
	weakerReason  = "proves less: "
	lackingReason = "this release of Debian has no package "
)

// long is the state of a test, or of a part of it, that make test leaves to make test-all.
const long = "long"

// lacking is the state of a test that is left out because this release of Debian lacks a package.
const lacking = "lacking"

// kind is the test's state, in which a test that testlab skipped for a reason that is no want of this machine has its
// own.
func (t *test) kind() string {
	switch {
	case t.state == "skip" && len(t.said(longReason)) > 0:
		return long
	case t.state == "skip" && len(t.said(lackingReason)) > 0:
		return lacking
	}
	return t.state
}

// said returns what the test logged behind a word.
func (t *test) said(word string) (found []string) {
	for _, line := range t.output {
		if _, text, ok := strings.Cut(line, ": "+word); ok {
			found = append(found, strings.TrimSpace(text))
		}
	}
	return found
}

// top counts the top-level tests that ended in a state.
func (r *result) top(state string) (n int) {
	for _, t := range r.tests {
		if t.kind() == state && !strings.Contains(t.name, "/") {
			n++
		}
	}
	return n
}

// summaryLine finds the line that go test prints of a package.
func (r *result) summaryLine() string {
	for _, line := range slices.Backward(r.output) {
		if regexp.MustCompile(`^(ok|FAIL|\?)\s+\S`).MatchString(line) {
			return strings.TrimRight(line, "\n")
		}
	}
	return fmt.Sprintf("FAIL\t%s\t%.3fs [it did not end]", r.Package, r.took.Seconds())
}

// reader turns the stream of one go test into results.
type reader struct {
	verbatim func(string)  // gets output that belongs to no package, such as the compiler's
	log      func(event)   // gets every output
	done     func(*result) // gets each package when it has ended
	open     map[string]*result
}

// wordOfTesting is what package testing prints when all tests have run and some
// have failed. A process that panics, exits or is killed does not get there.
const wordOfTesting = "FAIL\n"

func (d *reader) read(from io.Reader) error {
	d.open = map[string]*result{}
	lines := bufio.NewReaderSize(from, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				d.verbatim(string(line))
			} else {
				d.take(e)
			}
		}
		if err != nil {
			// go test itself has ended: packages that are still open did not end.
			for _, r := range d.open {
				r.broken = true
				d.done(r)
			}
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

func (d *reader) take(e event) {
	if e.Action == "build-output" {
		d.verbatim(e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	r := d.open[e.Package]
	if r == nil {
		r = &result{Package: e.Package}
		d.open[e.Package] = r
	}
	if e.Action == "output" {
		d.log(e)
		if strings.HasPrefix(e.Output, "WARNING: DATA RACE") {
			r.raced = true
		}
	}
	took := time.Duration(e.Elapsed * float64(time.Second))
	if e.Test != "" {
		r.takeTest(e, took)
		return
	}
	switch e.Action {
	case "output":
		r.output = append(r.output, e.Output)
	case "pass", "fail", "skip":
		r.took, r.passed, r.notBuilt = took, e.Action != "fail", e.FailedBuild != ""
		unfinished := slices.ContainsFunc(r.tests, func(t *test) bool { return t.state == "run" })
		r.broken = !r.passed && !r.notBuilt && (unfinished || len(r.failed()) == 0 || !slices.Contains(r.output, wordOfTesting))
		delete(d.open, e.Package)
		d.done(r)
	}
}

func (r *result) takeTest(e event, took time.Duration) {
	at := slices.IndexFunc(r.tests, func(t *test) bool { return t.name == e.Test })
	if at < 0 {
		r.tests = append(r.tests, &test{name: e.Test, state: "run"})
		at = len(r.tests) - 1
	}
	switch t := r.tests[at]; e.Action {
	case "output":
		t.output = append(t.output, e.Output)
	case "pass", "fail", "skip":
		t.state, t.took = e.Action, took
	}
}

// story returns the output of a failed package that is printed: the lines of its failed
// tests and of those that did not end, and its own.
func (r *result) story() string {
	var b strings.Builder
	for _, t := range r.tests {
		if t.state == "fail" || t.state == "run" {
			for _, line := range t.output {
				if !strings.HasPrefix(line, "=== ") {
					b.WriteString(line)
				}
			}
		}
	}
	summary := r.summaryLine()
	for _, line := range r.output {
		if strings.TrimRight(line, "\n") != summary && line != "FAIL\n" && line != "PASS\n" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// again returns the patterns (as for go test -run) with which a failed package is run once
// more; an empty pattern runs the whole package. If casesStandAlone, failed subtests are run
// by themselves; otherwise subtests may depend on those before them, so the whole test
// is run.
func (r *result) again(casesStandAlone bool) (patterns []string) {
	if r.broken {
		return []string{""}
	}
	for _, name := range r.failed() {
		parts := strings.Split(name, "/")
		if !casesStandAlone {
			parts = parts[:1]
		}
		most := 2
		if len(parts) > 1 && parts[1] == "cases" { // of a box that is started once for all of them
			most = 3
		}
		parts = parts[:min(most, len(parts))]
		for i, p := range parts {
			parts[i] = "^" + regexp.QuoteMeta(p) + "$"
		}
		if pattern := strings.Join(parts, "/"); !slices.Contains(patterns, pattern) {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}
