package main

import (
	"slices"
	"testing"
)

// The plan tests every package with tests exactly once, and the command's package in two halves.
func TestPlan(t *testing.T) {
	t.Chdir("../..")
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
			want = 2
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
