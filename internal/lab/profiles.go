package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Profile is one of the recorded gestures of a step, as often as its weight among the others.
type Profile struct {
	File   string
	Weight int // from 1
}

// Bounds of a set of profiles.
const (
	mostProfiles = 20
	mostWeight   = 100
)

// ParseProfiles reads the gestures of a step: "fling.jsonl", or several, of which each trial takes
// one: "slow.jsonl weight 3, fast.jsonl".
func ParseProfiles(text string) ([]Profile, error) {
	parts := strings.Split(text, ",")
	if len(parts) > mostProfiles {
		return nil, fmt.Errorf("%d gestures; at most %d take turns", len(parts), mostProfiles)
	}
	var all []Profile
	for _, part := range parts {
		p := Profile{File: strings.TrimSpace(part), Weight: 1}
		if name, weight, ok := strings.Cut(p.File, " weight "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(weight))
			if err != nil || n < 1 || n > mostWeight {
				return nil, fmt.Errorf("weight %q: write a whole number from 1 to %d, such as slow.jsonl weight 3", strings.TrimSpace(weight), mostWeight)
			}
			p.File, p.Weight = strings.TrimSpace(name), n
		}
		if err := CheckFileName(p.File); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o Profile) bool { return o.File == p.File }) {
			return nil, fmt.Errorf("%s is named twice: give it a weight", p.File)
		}
		all = append(all, p)
	}
	return all, nil
}

// pick returns the profile of the n-th trial of an arm, from 0: each comes as often as its weight
// says, and the turns of each are spread evenly.
func pick(profiles []Profile, n int) Profile {
	sum := 0
	for _, p := range profiles {
		sum += p.Weight
	}
	credit := make([]int, len(profiles))
	chosen := 0
	for range n%sum + 1 {
		chosen = 0
		for i, p := range profiles {
			credit[i] += p.Weight
			if credit[i] > credit[chosen] {
				chosen = i
			}
		}
		credit[chosen] -= sum
	}
	return profiles[chosen]
}

// StepsOf returns the steps of the n-th trial of an arm, from 0, in which each step that has several
// recorded gestures has one.
func StepsOf(steps []Step, n int) []Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].Steps = StepsOf(out[i].Steps, n)
		if out[i].Replay == "" {
			continue
		}
		if profiles, err := ParseProfiles(out[i].Replay); err == nil {
			out[i].Replay = pick(profiles, n).File
		}
	}
	return out
}
