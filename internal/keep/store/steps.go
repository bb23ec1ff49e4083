package store

import "eidetic/internal/lab"

// withoutCurves returns steps without their per-frame series, which only trial.json has.
func withoutCurves(steps []*lab.TrialStep) []*lab.TrialStep {
	if steps == nil {
		return nil
	}
	out := make([]*lab.TrialStep, len(steps))
	for i, s := range steps {
		bare := *s
		bare.LoadHistogram, bare.VisualProgress, bare.FrameTimes = nil, nil, nil
		out[i] = &bare
	}
	return out
}

// bareSteps returns steps as report.json holds them.
func bareSteps(steps []*lab.TrialStep) []ReportStep {
	var out []ReportStep
	for _, s := range withoutCurves(steps) {
		values := lab.Values(s.Measurements)
		s.Measurements = nil
		out = append(out, ReportStep{s, values})
	}
	return out
}
