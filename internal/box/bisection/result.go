package bisection

import (
	"fmt"
	"math"
	"strings"

	"eidetic/analysis/bisect"
	"eidetic/analysis/stats"
)

// Result is what a bisect has found.
type Result struct {
	// Kind is culprit, none, several or unsure.
	Kind   string `json:"kind"`
	Metric string `json:"metric"`
	Text   string `json:"text"` // a sentence for people
	Steps  []Step `json:"steps"`
	// Effect is bad less good.
	Effect stats.Interval `json:"effect"`
	// More is how many pairs are missing, about, where the kind is unsure.
	More       int          `json:"more_pairs,omitempty"`
	Pairs      int          `json:"pairs"`
	Trials     int          `json:"trials"`
	Runs       int          `json:"runs"`
	Tried      int          `json:"revisions_tried"`
	Untestable []Untestable `json:"untestable"`
	// Revisions have the probability of each of being the only culprit.
	Revisions []Probability `json:"revisions"`
	None      float64       `json:"probability_of_none"`
	Several   float64       `json:"probability_of_several"`
}

// Step is a place of change.
type Step struct {
	Before      Revision        `json:"before"` // the last revision that was tried without the step
	Revisions   []Revision      `json:"revisions"`
	Probability float64         `json:"probability"`
	Size        float64         `json:"size"`
	Direct      *stats.Interval `json:"direct,omitempty"` // measured between Before and the last of Revisions
	Pairs       int             `json:"pairs,omitempty"`
	Runs        []string        `json:"runs"` // those that compared the two
}

// Untestable is a revision that could not be tried.
type Untestable struct {
	Revision Revision `json:"revision"`
	Reason   string   `json:"reason"`
}

// Probability of a revision.
type Probability struct {
	Revision
	Probability float64 `json:"probability"`
}

// known is what is known so far, in names.
func (h *hunt) known(d bisect.Decision) *Result {
	r := &Result{Metric: h.Metric, Pairs: d.Pairs, None: d.None, Several: d.Several, Steps: []Step{}, Untestable: []Untestable{},
		Revisions: []Probability{}}
	tried := map[int]bool{}
	for _, v := range h.journal.visits {
		r.Trials, r.Runs = r.Trials+v.Trials, r.Runs+1
		tried[v.Control], tried[v.Treatment] = true, true
	}
	r.Tried = len(tried)
	for _, u := range h.journal.skipped {
		r.Untestable = append(r.Untestable, Untestable{h.Revisions[u.Revision], u.Reason})
	}
	for i, p := range d.Culprits {
		r.Revisions = append(r.Revisions, Probability{h.Revisions[i], p})
	}
	return r
}

// result turns a finding into words and names.
func (h *hunt) result(d bisect.Decision) *Result {
	f, r := d.Found, h.known(d)
	r.Kind, r.Effect, r.More = f.Kind, f.Effect, f.More
	for _, s := range f.Steps {
		step := Step{Before: h.Revisions[s.Before], Revisions: h.Revisions[s.First : s.Last+1], Probability: s.Probability, Size: s.Size,
			Pairs: s.Pairs, Runs: []string{}}
		if s.Pairs > 0 {
			step.Direct = &s.Direct
		}
		for _, v := range h.journal.visits {
			if v.Control == s.Before && v.Treatment == s.Last && v.Run != "" {
				step.Runs = append(step.Runs, v.Run)
			}
		}
		r.Steps = append(r.Steps, step)
	}
	r.Text = r.words(len(h.Revisions))
	return r
}

// ended is the result of a bisect that was ended before it was sure.
func (h *hunt) ended(d bisect.Decision, why string) *Result {
	r := h.known(d)
	r.Kind, r.Text = bisect.Unsure, "Not sure: "+why+"."
	best := -1
	for i, p := range d.Culprits {
		if i > 0 && (best < 0 || p > d.Culprits[best]) {
			best = i
		}
	}
	if best > 0 && r.Trials > 0 {
		r.Steps = []Step{{Before: h.Revisions[best-1], Revisions: h.Revisions[best : best+1], Probability: d.Culprits[best], Runs: []string{}}}
		r.Text += fmt.Sprintf(" Most probable is %s, with %s.", described(h.Revisions[best]), chance(d.Culprits[best]))
	}
	return r
}

// words say what was found.
func (r *Result) words(revisions int) string {
	spent := fmt.Sprintf("%d trials (%d pairs in %d runs) of %d of %d revisions", r.Trials, r.Pairs, r.Runs, r.Tried, revisions)
	switch r.Kind {
	case bisect.None:
		width := (r.Effect.High - r.Effect.Low) / 2
		return fmt.Sprintf("There is no difference between good and bad to be found: bad less good is %s (%g %% interval). A difference of %.1f "+
			"would have been detected with 80 %% probability. Spent: %s.", interval(r.Effect), percent(r.Effect.Confidence),
			stats.MinimalEffect(width, 0.8, 1), spent)
	case bisect.Several:
		a, b := r.Steps[0], r.Steps[1]
		return fmt.Sprintf("The change came in several steps, with a probability of %s: about %+.1f %s, and %+.1f %s. Bisect each for itself: "+
			"--good %s --bad %s, and --good %s --bad %s. Spent: %s.", chance(r.Several), a.Size, a.place(), b.Size, b.place(),
			a.Before.Name, a.last().Name, b.Before.Name, b.last().Name, spent)
	case bisect.Unsure:
		if len(r.Steps) == 0 {
			return fmt.Sprintf("Not sure: about %d more pairs of trials are missing. Spent: %s.", r.More, spent)
		}
		s := r.Steps[0]
		return fmt.Sprintf("Not sure: about %d more pairs of trials are missing. Most probable is %s, with %s. Spent: %s.", r.More, s.which(),
			chance(s.Probability), spent)
	}
	s := r.Steps[0]
	text := fmt.Sprintf("It was %s, with a probability of %s", s.which(), chance(s.Probability))
	if s.Direct != nil {
		text += fmt.Sprintf(": it moves %s by %s (%g %% interval) against %s, over %d pairs made to confirm it", r.Metric, interval(*s.Direct),
			percent(s.Direct.Confidence), s.Before.Name, s.Pairs)
	}
	return text + ". Spent: " + spent + "."
}

func (s Step) last() Revision { return s.Revisions[len(s.Revisions)-1] }

// which names the revisions that a step may be at.
func (s Step) which() string {
	if len(s.Revisions) == 1 {
		return described(s.Revisions[0])
	}
	return fmt.Sprintf("one of %s, of which only the last could be tried", strings.Join(names(s.Revisions), ", "))
}

// place says where a step is.
func (s Step) place() string {
	if len(s.Revisions) == 1 {
		return "at " + s.Revisions[0].Name
	}
	return fmt.Sprintf("after %s and up to %s", s.Before.Name, s.last().Name)
}

func interval(i stats.Interval) string {
	return fmt.Sprintf("%+.1f (%+.1f … %+.1f)", i.Value, i.Low, i.High)
}

func percent(share float64) float64 { return math.Floor(share*1000) / 10 }

// chance is a probability in words: never one.
func chance(p float64) string {
	if p > 0.999 {
		return "more than 99.9 %"
	}
	return fmt.Sprintf("%.1f %%", 100*p)
}
