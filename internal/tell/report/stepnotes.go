package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// endOf says by what a step ended.
func endOf(s *lab.TrialStep) string {
	switch {
	case len(s.Pings) > 0:
		return fmt.Sprintf("the answer to the last of %d inputs", len(s.Pings))
	case s.Verb == lab.VerbIdle:
		return "its time"
	}
	return s.Expect
}

// notesOf says what a person should know of a step besides its numbers: where its window was, what is
// masked, and what should be.
func notesOf(run *lab.Run, s *lab.TrialStep) (notes []string) {
	if len(s.Window) == 4 {
		notes = append(notes, fmt.Sprintf("It opened a window of %d×%d pixels at %d,%d; the metrics window … are of that rectangle alone.",
			s.Window[2], s.Window[3], s.Window[0], s.Window[1]))
	}
	if s.Region != "" {
		notes = append(notes, "Answers were looked for in the region "+s.Region+".")
	}
	if len(s.Mask) > 0 {
		notes = append(notes, "Masked, and so without influence: "+strings.Join(s.Mask, " and ")+".")
	}
	var restless []string
	eachStep(run, s.Name, func(_ *lab.Trial, one *lab.TrialStep) {
		for _, region := range one.Restless {
			if !slices.Contains(restless, region) && len(restless) < 8 {
				restless = append(restless, region)
			}
		}
	})
	if len(restless) > 0 {
		notes = append(notes, `These places went on changing. If they do not count, mask them in the plan: mask: ["`+strings.Join(restless, `", "`)+`"]`)
	}
	return notes
}

// answerCurves draw, for each arm, how many of the inputs of all valid trials had been answered after
// each time.
func answerCurves(run *lab.Run, name string) (all []stepCurve, axis string) {
	times := map[string][]float64{}
	end := 0.0
	eachStep(run, name, func(t *lab.Trial, s *lab.TrialStep) {
		for _, a := range s.Answers {
			if t.Valid && a.First >= 0 {
				times[t.Arm] = append(times[t.Arm], a.ToFirst.MS)
				end = max(end, a.ToFirst.MS)
			}
		}
	})
	if end <= 0 {
		return nil, ""
	}
	end *= 1.05
	for _, arm := range armsOf(run) {
		list := times[arm]
		if len(list) == 0 {
			continue
		}
		slices.Sort(list)
		var b strings.Builder
		fmt.Fprintf(&b, "M0 %.1f", curveHeight)
		for i, ms := range list {
			fmt.Fprintf(&b, "H%.1fV%.1f", curveWidth*max(ms, 0)/end, curveHeight*(1-float64(i+1)/float64(len(list))))
		}
		fmt.Fprintf(&b, "H%.1f", curveWidth)
		c := stepCurve{Path: template.HTMLAttr(`d="` + b.String() + `"`), Arm: arm, Valid: true}
		for i, ms := range list {
			c.Times, c.Values = append(c.Times, round3(ms)), append(c.Values, round3(100*float64(i+1)/float64(len(list))))
		}
		all = append(all, c)
	}
	return all, number(end, "ms") + " ms"
}
