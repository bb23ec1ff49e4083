package journey

import (
	"context"
	"fmt"
	"image"
	"slices"
	"strings"
	"time"

	"eidetic/analysis/ends"
	"eidetic/analysis/settle"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// ending returns what ends a step; nil is the end of its input.
func (p *play) ending(s lab.Step, verb string, at nest, t *lab.TrialStep) (*lab.Ending, error) {
	text := s.End
	if verb == lab.VerbWait && text == "" {
		_, end, err := lab.ParseWait(s.Wait)
		if err != nil {
			return nil, err
		}
		if end != nil {
			text = end.Text
		}
	}
	if text == "" && s.Pings == 0 && at.depth == 0 && hasDefault(verb) {
		text, t.Default = DefaultEnd(p.Still), true
	}
	if text == "" {
		return nil, nil
	}
	end, err := lab.ParseEnd(text)
	t.Expect = text
	return &end, err
}

// hasDefault says whether steps of a verb have an end where the plan gives none.
func hasDefault(verb string) bool {
	return verb != lab.VerbMove && verb != lab.VerbWait && verb != lab.VerbMark && verb != lab.VerbIdle
}

// DefaultEnd is the end of a step that the plan gives none: it has changed the screen, and
// screen and network have been still for a time.
func DefaultEnd(still time.Duration) string {
	return fmt.Sprintf("changed and still %v and network %v", still, still)
}

// masks returns the rectangles of regions of the content area.
func masks(regions []string, content image.Rectangle) (all []image.Rectangle) {
	for _, text := range regions {
		if r, err := lab.ParseRegion(text); err == nil { // the plan was checked
			all = append(all, r.In(content))
		}
	}
	return all
}

// await waits until the end has come.
func (p *play) await(ctx context.Context, s lab.Step, t *lab.TrialStep, ending lab.Ending, first *visual.Picture) error {
	judge, err := ends.New(ends.Config{
		Ending: ending, Content: p.content, Masks: masks(s.Mask, p.content), Templates: p.Templates, Rate: p.format.Rate,
		Since: t.Input.Latest, First: first,
	})
	if err != nil {
		return p.fail(ctx, t, lab.StepFailed, err)
	}
	limit := p.Limit
	if s.Limit > 0 {
		limit = time.Duration(s.Limit * float64(time.Second))
	}
	deadline := t.Input.Latest.Add(limit)
	rest := experiment.Rest{}
	if t.Default {
		rest.MainThreads = p.MainThreads
	}
	var seen lab.Time
	unrest, before := settle.NewUnrest(p.content), first
	for {
		if err := p.Look(ctx); err != nil {
			return err
		}
		status, traffic := p.film.Status(), p.Traffic()
		if status.LastChange != seen {
			seen = status.LastChange
			pic, err := p.picture()
			if err != nil {
				return err
			}
			judge.Look(seen, pic)
			unrest.Add(seen, before, pic)
			before = pic
		}
		now := p.filmed(status)
		network := ends.Network{InFlight: traffic.InFlight, Last: traffic.LastActivity}
		since, met := judge.Met(now, network, traffic.Marks)
		switch clock := p.Clock(); {
		case met && !p.computes(&rest, t, clock):
			t.End, t.Met, t.Seen, t.Network = ending.Kinds(), since, clock, network.Last
			return nil
		case met:
		case now.Sub(seen) >= p.Still/2:
			rest.Begin(clock) // so that the share is known when the conditions hold
		default:
			rest.Moved()
		}
		if p.Clock() > deadline {
			missing := judge.Missing(now, network, traffic.Marks)
			if missing == "" {
				missing = "the page computed all the time"
			}
			t.Restless = proposals(unrest, p.content, masks(s.Mask, p.content), now.Add(-2*p.Still))
			if waitsForStillness(ending) && len(t.Restless) > 0 {
				missing += "; these places kept changing: if they do not count, mask them: " + maskLine(t.Restless)
			}
			return p.fail(ctx, t, lab.StepLimit, fmt.Errorf("it did not come to its end (%s) within %v: %s", ending.Text, limit, missing))
		}
	}
}

// waitsForStillness says whether an end needs a screen that is still.
func waitsForStillness(e lab.Ending) bool {
	return slices.ContainsFunc(e.Conditions, func(c lab.Condition) bool { return c.Kind == lab.EndStill })
}

// proposals are the places that kept changing since an instant, as of a step's mask, without what is
// masked already and without what is the whole content area.
func proposals(u *settle.Unrest, content image.Rectangle, masked []image.Rectangle, since lab.Time) (all []string) {
	for _, r := range u.Regions(since) {
		if len(visual.Without(r, masked)) == 0 || r == content {
			continue
		}
		r = r.Sub(content.Min)
		all = append(all, fmt.Sprintf("%d,%d,%d,%d", r.Min.X, r.Min.Y, r.Dx(), r.Dy()))
	}
	return all
}

// maskLine is a step's field as it stands in a plan.
func maskLine(regions []string) string { return `mask: ["` + strings.Join(regions, `", "`) + `"]` }

// computes says whether the page still computes, though all conditions of the default end hold.
func (p *play) computes(rest *experiment.Rest, t *lab.TrialStep, now lab.Time) bool {
	if !t.Default {
		return false
	}
	rest.Begin(now)
	return rest.IsBusy(now)
}

// filmed is the instant up to which the screen is known.
func (p *play) filmed(status experiment.FilmStatus) lab.Time {
	now := status.LastFrame
	p.film.Latest(func(_ lab.Format, frame lab.Frame) { now = now.Add(-frame.Uncertainty) })
	return now
}
