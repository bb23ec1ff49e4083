package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

// make test tests every package with tests exactly once, and the command's package in three parts, but those of which
// it tests nothing. What it leaves out is a part by itself, which is not short.
func TestPlan(t *testing.T) {
	t.Chdir("../../..")
	all, err := survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stages, err := plan(t.Context(), config{group: groupTest, out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, j := range jobs(stages) {
		for _, p := range j.packages {
			times[p]++
		}
		if len(j.packages) > 0 && !slices.Contains(j.flags, "-short") {
			t.Errorf("%s has no -short", j.name)
		}
	}
	for _, s := range all {
		want := 1
		switch {
		case s.path == commandPackage:
			want = 3
		case s.onlyLong:
			want = 0
		}
		if times[s.path] != want {
			t.Errorf("%s is tested %d times, want %d", s.path, times[s.path], want)
		}
	}
	for _, list := range [][]string{fileTools(), companions(), unraced()} {
		for _, p := range list {
			if !slices.ContainsFunc(all, func(s sources) bool { return s.path == module+p }) {
				t.Errorf("plan.go names the package %s, which does not exist", p)
			}
		}
	}
	names := map[string]bool{}
	for _, part := range (planner{all: all}).parts() {
		if names[part.name] {
			t.Errorf("two parts are called %q", part.name)
		}
		names[part.name] = true
		for _, j := range part.jobs {
			if slices.Contains(j.flags, "-short") != (part.name == "race cmd/appliance") {
				t.Errorf("%s has -short, or is the command's race and has not", part.name)
			}
		}
	}
	for _, s := range all {
		own := s.path == boxPackage || s.path == containerPackage
		isWhole := func(test string) bool { return names[longName(s.path)] || names[longName(s.path)+" "+test] }
		if s.longHelper && !own && !names[longName(s.path)] || !own && slices.ContainsFunc(s.long, func(test string) bool { return !isWhole(test) }) {
			t.Errorf("what make test leaves out of %s is no part", s.path)
		}
	}
}

// No test of the command is in two parts, and each name in the plan is that of a test.
func TestPlanOfTheCommand(t *testing.T) {
	files, err := filepath.Glob("../../../cmd/appliance/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the command's tests: %v (%v)", files, err)
	}
	unused := strings.Split(commandMachineTests+"|"+commandCompanions, "|")
	machine, companion := regexp.MustCompile(commandMachineTests), regexp.MustCompile(commandCompanions)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllSubmatch(text, -1) {
			name := string(m[1])
			if machine.MatchString(name) && companion.MatchString(name) {
				t.Errorf("%s would run twice", name)
			}
			unused = slices.DeleteFunc(unused, func(part string) bool { return regexp.MustCompile(part).MatchString(name) })
		}
	}
	if len(unused) > 0 {
		t.Errorf("no test of the command has these in its name: %q", unused)
	}
}

func TestConcurrent(t *testing.T) {
	for text, want := range map[string]bool{
		"var mu sync.Mutex":                                        true,
		"func f() { go f() }":                                      true,
		"type t struct{ c chan int }":                              true,
		"func TestX(t *testing.T) { var all sync.WaitGroup }":      true,
		"func f() {} // as a sync.Pool would":                      false,
		"const example = `var once sync.Once`":                     false,
		"func BenchmarkX(b *testing.B) { go b.Fatal() }":           false,
		"func open(b *testing.B, c string) { sync.OnceFunc(nil) }": false,
	} {
		var s sources
		if err := s.inspect("x.go", []byte("package x\n"+text)); err != nil || s.concurrent != want {
			t.Errorf("of %q inspect says concurrent: %v, %v; want %v", text, s.concurrent, err, want)
		}
	}
}

func TestLongTests(t *testing.T) {
	const whole, half, none = "func TestA(t *testing.T) { testlab.Long(t, `why`) }\n", "func TestB(t *testing.T) { testlab.EachBrowser(t, nil) }\n", "func TestC(t *testing.T) {}\n"
	for text, want := range map[string]struct {
		onlyLong bool
		pattern  string
		hasLong  bool
	}{
		none:                {false, "", false},
		whole:               {true, "", true},
		half:                {false, "", true},
		whole + none:        {false, "^(TestA)$", true},
		whole + half + none: {false, "^(TestA|TestB)$", true},
		none + "func help(t *testing.T) { testlab.Long(t, `why`) }":                          {false, "", true},
		none + "func TestD(t *testing.T) { t.Run(``, func(*testing.T) { testlab.Long() }) }": {false, "^(TestD)$", true},
		whole + "func FuzzA(f *testing.F) {}":                                                {false, "^(TestA)$", true},
	} {
		s := sources{onlyLong: true}
		if err := s.inspect("x_test.go", []byte("package x\n"+text)); err != nil {
			t.Fatal(err)
		}
		pattern := ""
		if s.hasLong() {
			pattern = s.longPattern()
		}
		if s.onlyLong != want.onlyLong || pattern != want.pattern || s.hasLong() != want.hasLong {
			t.Errorf("of\n%s inspect says only long: %v, %q, long: %v; want %+v", text, s.onlyLong, pattern, s.hasLong(), want)
		}
	}
}

func TestPackageOf(t *testing.T) {
	all := []sources{{path: "m/a", dir: "/r/a"}, {path: "m/a/b", dir: "/r/a/b"}}
	for file, want := range map[string]string{"/r/a/x.go": "m/a", "/r/a/b/testdata/c/x": "m/a/b", "/r/a/c/x": "m/a", "/r/x": ""} {
		if got := packageOf(all, file); got != want {
			t.Errorf("packageOf(%q) = %q, want %q", file, got, want)
		}
	}
}

// What is changed is found by what the tests of a package link.
func TestChangedSince(t *testing.T) {
	t.Chdir("../../..")
	deps, err := testDependencies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for of, dep := range map[string]string{"cmd/appliance": "netlab/dns", "netlab/dns": "internal/rigs/testlab", "image/boottest": "internal/rigs/storytest"} {
		if !slices.Contains(deps[module+of], module+dep) {
			t.Errorf("the tests of %s link %v, want %s among them", of, deps[module+of], dep)
		}
	}
}

func TestSaid(t *testing.T) {
	for want, got := range map[string]string{testlab.LongReason: longReason, testlab.WeakerReason: weakerReason, testlab.Lacking + " ": lackingReason} {
		if got != want {
			t.Errorf("testrun looks for %q; want %q, which testlab says", got, want)
		}
	}
}

func TestProgressLine(t *testing.T) {
	p := &progress{last: 600, packages: 190, done: 12, tests: 99, running: []string{"unit", "image"}}
	if got, want := p.line(65*time.Second), "1:05  12 of 190 packages, 99 tests, about 8:55 left  now: unit, image"; got != want {
		t.Errorf("line() = %q, want %q", got, want)
	}
	if got, want := p.line(11*time.Minute), "11:00  12 of 190 packages, 99 tests  now: unit, image"; got != want {
		t.Errorf("line() = %q, want %q", got, want)
	}
	var none *progress
	none.begin("x")
	none.packageDone(1)
	none.end("x")
	none.hide()
}

// A second try of a box starts it for the case that failed, and not for all.
func TestAgain(t *testing.T) {
	failed := func(name string) *test { return &test{name: name, state: "fail"} }
	r := &result{tests: []*test{
		failed("TestBoxes"), failed("TestBoxes/cases"), failed("TestBoxes/cases/access_point"), failed("TestBoxes/cases/access_point/x"),
		failed("TestBoxes/updates"), failed("TestBoxes/updates/bad"), {name: "TestBoxes/cases/grabber", state: "pass"},
	}}
	want := []string{"^TestBoxes$/^cases$/^access_point$", "^TestBoxes$/^updates$"}
	if got := r.again(true); !slices.Equal(got, want) {
		t.Errorf("again(true) = %q, want %q", got, want)
	}
	if got := r.again(false); !slices.Equal(got, []string{"^TestBoxes$"}) {
		t.Errorf("again(false) = %q; want the whole test", got)
	}
}
