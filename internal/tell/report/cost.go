package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// cost is the time and processor time of one part of a trial.
type cost struct{ Part, MS, Processor string }

// costs lists the parts of a trial and their sum. Trials of older versions have none.
func costs(parts []lab.TrialPart) (out []cost) {
	var whole float64
	sums := map[string]float64{}
	for _, p := range parts {
		whole += p.MS
		for who, ms := range p.Processor {
			sums[who] += ms
		}
		out = append(out, cost{p.Name, number(p.MS, "ms"), processor(p.Processor)})
	}
	if out != nil {
		out = append(out, cost{"all", number(whole, "ms"), processor(sums)})
	}
	return out
}

// processor lists the consumers of processor time, largest first.
func processor(ms map[string]float64) string {
	who := slices.SortedFunc(maps.Keys(ms), func(a, b string) int {
		return cmp.Or(cmp.Compare(ms[b], ms[a]), cmp.Compare(a, b))
	})
	for i, name := range who {
		who[i] = name + " " + number(ms[name], "ms")
	}
	return strings.Join(who, ", ")
}

// noVideo says why a trial has no video, or "".
func noVideo(t *lab.Trial, video *artifact) string {
	named, ok := t.Files["video"]
	switch {
	case video != nil:
		return ""
	case ok:
		return "The video " + named + " is not in the trial's folder."
	case t.NoEvidence != "":
		return "There is no video: " + sentence(t.NoEvidence)
	}
	return "There is no video of this trial."
}
