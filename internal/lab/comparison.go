package lab

import (
	"fmt"
	"math"
)

// The verdicts of a comparison.
const (
	Slower   = "slower" // a guarded metric got worse, and none got better
	Faster   = "faster" // a guarded metric got better, and none got worse
	Mixed    = "mixed"  // some got worse and some better
	NoChange = "none"   // no difference was found, see Effect.MinimalEffect
	// Equivalent is the verdict of a plan with a margin: every guard is within it.
	Equivalent = "equivalent"
	Unknown    = "unknown" // too few pairs of valid trials
)

// LeastForInterval is the fewest trials, or pairs of them, whose smallest and largest value bound the median at 95 %:
// it is outside them with a probability of 2 × 0.5⁶ = 3.1 %.
const LeastForInterval = 6

// Bounded says whether the median has such an interval.
func (s *Summary) Bounded() bool { return s.N >= LeastForInterval }

// Bounded says whether the difference has such an interval.
func (e *Effect) Bounded() bool { return e.Pairs >= LeastForInterval }

// Comparison is what a run with two arms found about the change from control to
// treatment.
type Comparison struct {
	Verdict string `json:"verdict"` // slower, faster, mixed, none or unknown
	// Headline and Detail are the verdict in words: "Treatment (link 3g) is
	// slower" and the number that it rests on.
	Headline string `json:"headline"`
	Detail   string `json:"detail"`
	// Partial is set if the run ended before all its trials were done.
	Partial bool `json:"partial,omitempty"`
	// Control and Treatment describe what differs between the arms: "link lte".
	Control   string `json:"control"`
	Treatment string `json:"treatment"`
	// Pairs counts the pairs of valid trials: the first valid trial of each arm in a
	// block, the second of each, and so on. LeftOut counts the invalid trials.
	Pairs   int     `json:"pairs"`
	LeftOut int     `json:"left_out"`
	Level   float64 `json:"level"` // of significance, for all guarded metrics and all looks together
	Seed    uint64  `json:"seed"`  // of permutations and dithering
	// Margin is the plan's: differences up to so many percent of the control do not matter.
	Margin float64 `json:"margin_percent,omitempty"`
	// Margins are those of metrics that have another.
	Margins map[string]float64 `json:"margins_percent,omitempty"`
	// Missing is about how many more pairs would make an unknown verdict known.
	Missing int `json:"missing_pairs,omitempty"`
	// Covariates are those of the plan, as far as trials have them.
	Covariates []CovariateUse `json:"covariates,omitempty"`
	Effects    []Effect       `json:"effects"`
}

// MarginOf is the margin of a metric, in percent of the control.
func (c *Comparison) MarginOf(metric string) float64 {
	if margin, ok := c.Margins[metric]; ok {
		return margin
	}
	return c.Margin
}

// Telling is the guard that tells most: the first with the verdict's finding, or else the first that was
// tested; nil for none.
func (c *Comparison) Telling() *Effect { return c.TellingOf(c.Verdict) }

// TellingOf is Telling for another finding.
func (c *Comparison) TellingOf(finding string) (best *Effect) {
	for i := range c.Effects {
		e := &c.Effects[i]
		switch {
		case !e.Guard || e.Shift.Confidence == 0:
		case e.Finding == finding:
			return e
		case best == nil:
			best = e
		}
	}
	return best
}

// Words say what was found of a metric.
func (c *Comparison) Words(e *Effect) string {
	switch {
	case e.Finding == NoChange:
		return "no difference found"
	case e.Finding != Unknown:
		return e.Finding
	case c.MarginOf(e.Metric) > 0 && e.Shift.Confidence > 0:
		return "not known"
	}
	return "too few trials"
}

// Look is a look at the comparison of a run before all its trials are done.
type Look struct {
	Pairs int     `json:"pairs"` // of valid trials
	Level float64 `json:"level"` // the part of the level of significance that it spends
	Known bool    `json:"known"` // it ended the run
}

// Effect is the change of one metric.
type Effect struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	// Guard marks the metrics that decide the verdict.
	Guard bool `json:"guard"`
	// Finding is slower, faster, none, equivalent or unknown for guards, and larger, smaller, none
	// or unknown for other metrics.
	Finding string `json:"finding"`
	Pairs   int    `json:"pairs"`
	// Recordings is how many recordings of each arm the test counts, where they are what varies; else it counts trials.
	Recordings int `json:"recordings,omitempty"`
	// Control and Treatment are the medians of all valid trials.
	Control   float64 `json:"control"`
	Treatment float64 `json:"treatment"`
	// Shift is by how much the treatment is larger. Percent is Shift relative to the
	// control's median; nil if that is 0.
	Shift   Range  `json:"shift"`
	Percent *Range `json:"percent,omitempty"`
	// P is the p-value of the test, Adjusted the one corrected for the number of metrics.
	// Permutations is 0 if P is exact.
	P            float64 `json:"p"`
	Adjusted     float64 `json:"p_adjusted"`
	Permutations int     `json:"permutations"`
	// Delta is Cliff's δ, −1 … 1, and DeltaSize its conventional name.
	Delta     float64 `json:"delta"`
	DeltaSize string  `json:"delta_size"`
	// MinimalEffect is the smallest shift that the test finds with a power of 80 %.
	MinimalEffect float64 `json:"minimal_effect"`
	// ModeChange is set if the arms differ in their number of modes.
	ModeChange bool     `json:"mode_change,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
	// Adjustment is set if covariates were taken out: Shift, Percent, P and MinimalEffect are then of what is left.
	Adjustment *Adjustment `json:"adjustment,omitempty"`
}

// Size is how many pairs a run chose to make, once it knew by how much loads vary.
type Size struct {
	After  int     `json:"after_pairs"` // that it knew
	Pairs  int     `json:"pairs"`
	Metric string  `json:"metric"`
	Effect float64 `json:"effect"` // to be detected with 80 % probability, in the metric's unit
	// Spread is the standard deviation of the loads of both arms together within blocks, without what covariates
	// explain.
	Spread float64 `json:"spread"`
	Needed int     `json:"needed_pairs"` // which may be more than the plan has
}

// ServerRow is an answer that both arms ask their servers for: by how much longer that of the treatment took until its
// first byte, in ms, over several recordings of each.
type ServerRow struct {
	Name       string  `json:"name"` // its address without the server
	Recordings int     `json:"recordings"`
	Control    float64 `json:"control_ms"`
	Treatment  float64 `json:"treatment_ms"`
	Shift      Range   `json:"shift_ms"`
	// P holds for all answers together (stats.MaxT).
	P       float64 `json:"p_adjusted"`
	Differs bool    `json:"differs"`
}

// String is the row as a sentence.
func (r ServerRow) String() string {
	text := fmt.Sprintf("%s %s ms (%s and %s), %d recordings each, p = %.2g", Clip(r.Name, 80), Signed(r.Shift.Value, 1), Millis(r.Control),
		Millis(r.Treatment), r.Recordings, r.P)
	if !r.Differs {
		return text + ": no difference found"
	}
	return text
}

// LeastApart is the least difference of two servers' waits that people are told of, in ms.
const LeastApart = 10

// ServersApart is how much later the treatment's server answered than the control's where each was recorded once, and
// trials give both arms the mean. On one occasion that may be chance, so no test counts it.
type ServersApart struct {
	Answers  int     `json:"answers"` // that both arms ask for
	Median   float64 `json:"median_ms"`
	Document float64 `json:"document_ms"` // of the page itself; 0 in a run of several pages
}

// Most is the larger of the two in size.
func (s ServersApart) Most() float64 {
	if math.Abs(s.Document) > math.Abs(s.Median) {
		return s.Document
	}
	return s.Median
}

// String says it as a part of a sentence.
func (s ServersApart) String() string {
	by, of := s.Most(), fmt.Sprintf("its answers (median of %d)", s.Answers)
	if by != s.Median {
		of = "its document"
	}
	than := "later"
	if by < 0 {
		than = "earlier"
	}
	return fmt.Sprintf("the servers' own times are left out (timing: shared): on the one occasion that each was recorded, the treatment's server sent "+
		"%s %s %s, which timing: recorded would test", of, Millis(math.Abs(by)), than)
}

// AssetRow is an answer in which the recordings of the arms differ.
type AssetRow struct {
	Name      string `json:"name"`  // its address without the page's server, as the treatment has it
	Found     string `json:"found"` // added, removed or changed
	Control   int    `json:"control_bytes"`
	Treatment int    `json:"treatment_bytes"`
}

// What is found of an answer in the recording of the treatment.
const (
	AssetAdded   = "added"
	AssetRemoved = "removed"
	AssetChanged = "changed"
)

// Moved is by how many bytes the arms differ.
func (r AssetRow) Moved() int { return max(r.Treatment-r.Control, r.Control-r.Treatment) }

// String is the row as a sentence.
func (r AssetRow) String() string {
	kb := func(bytes int) string { return fmt.Sprintf("%.1f kB", float64(bytes)/1e3) }
	switch name := Clip(r.Name, 80); r.Found {
	case AssetAdded:
		return fmt.Sprintf("%s, %s, is only in the treatment", name, kb(r.Treatment))
	case AssetRemoved:
		return fmt.Sprintf("%s, %s, is only in the control", name, kb(r.Control))
	default:
		return fmt.Sprintf("%s has another content: %s in the control and %s in the treatment", name, kb(r.Control), kb(r.Treatment))
	}
}

// Range is an estimate with its confidence interval.
type Range struct {
	Value      float64 `json:"value"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
}
