package lab

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/rigs/testlab"
)

func TestProfiles(t *testing.T) {
	got, err := ParseProfiles("slow.jsonl weight 3, my fast one.jsonl")
	if d := cmp.Diff([]Profile{{"slow.jsonl", 3}, {"my fast one.jsonl", 1}}, got); err != nil || d != "" {
		t.Errorf("ParseProfiles() = %v; -want +got\n%s", err, d)
	}
	for text, want := range map[string]string{
		"":                          "no name of a file",
		"a.jsonl,":                  "no name of a file",
		"a.jsonl weight 0":          "from 1 to 100",
		"a.jsonl weight many":       "from 1 to 100",
		"a.jsonl, a.jsonl":          "named twice",
		"../a.jsonl":                "no name of a file",
		strings.Repeat("x,", 20):    "at most 20",
		"a.jsonl weight 3, /b.json": "no name of a file",
	} {
		if _, err := ParseProfiles(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseProfiles(%q): %v; want an error with %q", text, err, want)
		}
	}
}

// TestStepsOf: the profiles of a step take turns by their weights, in nested steps too, and the plan stays
// as it is.
func TestStepsOf(t *testing.T) {
	plan := []Step{{Click: "1,1"}, {Name: "pan", Steps: []Step{{Replay: "slow.jsonl weight 3, fast.jsonl"}}}}
	var turns []string
	for n := range 8 {
		steps := StepsOf(plan, n)
		turns = append(turns, steps[1].Steps[0].Replay)
	}
	want := []string{"slow.jsonl", "slow.jsonl", "fast.jsonl", "slow.jsonl", "slow.jsonl", "slow.jsonl", "fast.jsonl", "slow.jsonl"}
	if d := cmp.Diff(want, turns); d != "" {
		t.Error("the turns: -want +got\n", d)
	}
	if d := cmp.Diff([]string{"slow.jsonl", "fast.jsonl"}, Gestures(plan)); d != "" {
		t.Error("Gestures(): -want +got\n", d)
	}
	if got := StepsOf([]Step{{Replay: "one.jsonl"}}, 5)[0].Replay; got != "one.jsonl" {
		t.Errorf("StepsOf() of one gesture = %q; want it", got)
	}
}

func FuzzProfiles(f *testing.F) {
	f.Add("slow.jsonl weight 3, fast.jsonl", 7)
	f.Add("a weight , weight 2", 0)
	f.Fuzz(func(t *testing.T, text string, n int) {
		defer testlab.Input(t)()
		profiles, err := ParseProfiles(text)
		if err != nil {
			return
		}
		sum := 0
		for _, p := range profiles {
			sum += p.Weight
		}
		count := map[string]int{}
		for i := range sum {
			count[pick(profiles, i).File]++
		}
		for _, p := range profiles {
			if count[p.File] != p.Weight {
				t.Errorf("%q: %s has %d turns of %d; want %d", text, p.File, count[p.File], sum, p.Weight)
			}
		}
		_ = StepsOf([]Step{{Replay: text}}, max(0, n))
	})
}
