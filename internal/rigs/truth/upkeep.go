package truth

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"eidetic/analysis/stats"
)

// Upkeep is the cost of the trials, and the reasons for invalid ones.
type Upkeep struct {
	Trials, ThrownAway int
	Seconds            float64 // of a trial, the median
	Hours              float64 // of all trials together
	// Stolen is in % of all processors' time: over all trials, and of the quietest and the worst experiment.
	Stolen, StolenLeast, StolenMost float64
	Reasons                         []Reason
}

// Reason is a reason for which trials were invalid. A trial may have several.
type Reason struct {
	Text string // with its numbers left out
	N    int
}

func upkeep(d *Data) (u Upkeep) {
	var seconds []float64
	byExperiment := map[string][2]float64{} // stolen × seconds, seconds
	reasons := map[string]int{}
	stolen := 0.0
	number := regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	for _, t := range d.Trials {
		seconds = append(seconds, t.Seconds)
		u.Hours += t.Seconds / 3600
		stolen += t.Steal * t.Seconds
		sum := byExperiment[t.Experiment]
		byExperiment[t.Experiment] = [2]float64{sum[0] + t.Steal*t.Seconds, sum[1] + t.Seconds}
		if t.Valid {
			continue
		}
		u.ThrownAway++
		for _, r := range t.Reasons {
			if what, _, causes := strings.Cut(r, "): "); causes { // what the machine did meanwhile is another one each time
				r = what + ")"
			}
			reasons[number.ReplaceAllString(r, "…")]++
		}
	}
	if u.Trials = len(d.Trials); u.Trials == 0 {
		return u
	}
	slices.Sort(seconds)
	u.Seconds, u.Stolen = stats.Quantile(seconds, 0.5), stolen/(u.Hours*3600)
	u.StolenLeast = math.Inf(1)
	for _, sum := range byExperiment {
		share := sum[0] / sum[1]
		u.StolenLeast, u.StolenMost = min(u.StolenLeast, share), max(u.StolenMost, share)
	}
	for text, n := range reasons {
		u.Reasons = append(u.Reasons, Reason{text, n})
	}
	slices.SortFunc(u.Reasons, func(a, b Reason) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Text, b.Text)) })
	return u
}
