package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The plan tests every package with tests exactly once, and the command's package in three parts.
func TestPlan(t *testing.T) {
	t.Chdir("../../..")
	all, err := survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stages, err := plan(t.Context(), config{group: groupAll, out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, st := range stages {
		for _, j := range slices.Concat(st.lanes...) {
			for _, p := range j.packages {
				times[p]++
			}
		}
	}
	for _, s := range all {
		want := 1
		if s.path == commandPackage {
			want = 3
		}
		if times[s.path] != want {
			t.Errorf("%s is tested %d times, want %d", s.path, times[s.path], want)
		}
	}
	for _, list := range [][]string{fileTools(), companions()} {
		for _, p := range list {
			if times[module+p] == 0 {
				t.Errorf("plan.go names the package %s, which does not exist", p)
			}
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
		if got, err := concurrent("x.go", []byte("package x\n"+text)); err != nil || got != want {
			t.Errorf("concurrent(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}
