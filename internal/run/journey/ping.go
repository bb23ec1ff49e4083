package journey

import (
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"slices"
	"time"

	"eidetic/analysis/ends"
	"eidetic/analysis/response"
	"eidetic/analysis/stats"
	"eidetic/analysis/visual"
	"eidetic/control/gesture"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

const (
	// pingQuiet is how long a region is unchanged before its answer counts as complete.
	pingQuiet = 300 * time.Millisecond
	// pingLimit is how long an answer is waited for, unless the step has a limit of its own.
	pingLimit = 5 * time.Second
	// pingPhases is how many periods of the screen an input is put off by lot, so that inputs meet all
	// phases of it alike.
	pingPhases = 2
)

// pings gives a step's input again and again, and waits each time until the region has answered and
// come to rest.
func (p *play) pings(ctx context.Context, s lab.Step, t *lab.TrialStep) (all gesture.Log, err error) {
	t.Region = s.Region
	limit := pingLimit
	if s.Limit > 0 {
		limit = time.Duration(s.Limit * float64(time.Second))
	}
	random := rand.New(rand.NewPCG(uint64(p.Trial.Number), uint64(len(p.Trial.Steps))))
	period := time.Duration(float64(time.Second) / max(p.format.Rate, 1))
	for n := range s.Pings {
		phase := p.Clock().Add(time.Duration(random.Int64N(pingPhases * int64(period))))
		if err := p.doer.Wait(ctx, phase); err != nil {
			return all, err
		}
		before, err := p.picture()
		if err != nil {
			return all, err
		}
		log, err := p.doer.Do(ctx, s)
		if n == 0 {
			all.At, all.Area = log.At, log.Area
		}
		all.Events = append(all.Events, log.Events...)
		if err != nil {
			return all, err
		}
		span, _ := log.Span()
		t.Pings = append(t.Pings, span)
		if err := p.answered(ctx, s, span, before, limit); err != nil {
			return all, fmt.Errorf("input %d of %d: %w", n+1, s.Pings, err)
		}
	}
	return all, p.echoes(ctx, s, t)
}

// answered waits until the region has changed after an input, and is quiet again.
func (p *play) answered(ctx context.Context, s lab.Step, input lab.Event, before *visual.Picture, limit time.Duration) error {
	parts := visual.Without(pingArea(s.Region, p.content), masks(s.Mask, p.content))
	moved := lab.Time(0)
	seen := input.Earliest
	for deadline := input.Latest.Add(limit); ; {
		if err := p.Look(ctx); err != nil {
			return err
		}
		status := p.film.Status()
		if status.LastChange > seen {
			seen = status.LastChange
			now, err := p.picture()
			if err != nil {
				return err
			}
			if ends.Differ(before, now, parts) {
				moved = seen
			}
			before = now
		}
		if moved != 0 && p.filmed(status).Sub(moved) >= pingQuiet {
			return nil
		}
		if p.Clock() > deadline {
			if moved == 0 {
				return fmt.Errorf("the region did not change within %v", limit)
			}
			return fmt.Errorf("the region did not come to rest within %v: leave out what never rests (mask, region)", limit)
		}
	}
}

// pingArea is where pings are answered.
func pingArea(region string, content image.Rectangle) image.Rectangle {
	if r, err := lab.ParseRegion(region); region != "" && err == nil { // the plan was checked
		return r.In(content)
	}
	return content
}

// measurePings measures the answers of a step.
func (m *measuring) measurePings(s *lab.TrialStep) error {
	area := pingArea(s.Region, m.content)
	c, err := visual.Changes(m.frames, visual.ChangeOptions{
		Start: s.StartFrame, End: s.EndFrame + 1, Regions: []visual.Region{{Name: "", Area: area}}, Ignore: masks(s.Mask, m.content),
	})
	if err != nil {
		return err
	}
	answers, err := response.Measure(c, 0, s.Pings, response.Options{Quiet: pingQuiet * 3 / 4}) // frames may be late
	if err != nil {
		return err
	}
	s.Answers = nil
	missing := 0
	for _, a := range answers {
		one := lab.Answer{First: a.First, Settled: a.Settled}
		if a.First < 0 {
			missing++
		} else {
			one.ToFirst = m.answerTime(a.Event, a.First, a.ToFirst)
		}
		if a.Settled >= 0 {
			still := m.answerTime(a.Event, a.Settled, a.ToStill)
			one.ToStill = &still
		}
		s.Answers = append(s.Answers, one)
	}
	if missing > 0 {
		s.Invalid = append(s.Invalid, fmt.Sprintf("%d of %d inputs have no answer on the frames", missing, len(answers)))
	}
	region := s.Region
	if region == "" {
		region = "(the whole content area)"
	}
	s.Measurements = append(pingMeasurements(s.Answers, region), EchoMeasurements(s.Echoes)...)
	return nil
}

func (m *measuring) answerTime(e lab.Event, frame int, v response.Interval) lab.AnswerTime {
	source := 0.0
	if frame > 0 {
		source = float64(m.frames.Info(frame).Time.Sub(m.frames.Info(frame-1).Time)) / 1e6
	}
	return lab.AnswerTime{MS: v.MS, Low: v.Low, High: v.High, Input: float64(e.Latest.Sub(e.Earliest)) / 1e6, Source: source}
}

// pingMeasurements are the distributions of answers in single numbers.
func pingMeasurements(answers []lab.Answer, region string) (all []lab.Measurement) {
	var first, settled []lab.AnswerTime
	for _, a := range answers {
		if a.First >= 0 {
			first = append(first, a.ToFirst)
		}
		if a.ToStill != nil {
			settled = append(settled, *a.ToStill)
		}
	}
	if len(first) == 0 {
		return nil
	}
	field := func(list []lab.AnswerTime, of func(lab.AnswerTime) float64) (values []float64) {
		for _, a := range list {
			values = append(values, of(a))
		}
		slices.Sort(values)
		return values
	}
	ms, low, high := func(a lab.AnswerTime) float64 { return a.MS }, func(a lab.AnswerTime) float64 { return a.Low },
		func(a lab.AnswerTime) float64 { return a.High }
	median := func(what metric.ID, list []lab.AnswerTime, detail string) lab.Measurement {
		lo, hi := stats.Quantile(field(list, low), 0.5), stats.Quantile(field(list, high), 0.5)
		m := what.Measure(stats.Quantile(field(list, ms), 0.5), nil, detail)
		m.Low, m.High = &lo, &hi
		return m
	}
	inputs := fmt.Sprintf("%d inputs, region %s", len(first), region)
	all = append(all, median(metric.ResponseTime, first, inputs))
	sorted := field(first, ms)
	for _, q := range []struct {
		metric metric.ID
		share  float64
	}{{metric.ResponseP10, 0.1}, {metric.ResponseP90, 0.9}, {metric.ResponseMax, 1}} {
		all = append(all, q.metric.Measure(stats.Quantile(sorted, q.share), nil, inputs))
	}
	if len(settled) > 0 {
		all = append(all, median(metric.ResponseSettled, settled, fmt.Sprintf("quiet for %v", pingQuiet*3/4)))
	}
	of := func(width func(lab.AnswerTime) float64) float64 { return stats.Quantile(field(first, width), 0.5) }
	return append(all,
		metric.ResponseInputShare.Measure(of(func(a lab.AnswerTime) float64 { return a.Input }), nil),
		metric.ResponseSourceShare.Measure(of(func(a lab.AnswerTime) float64 { return a.Source }), nil))
}
