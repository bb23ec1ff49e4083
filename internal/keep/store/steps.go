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

// bareSteps returns steps as report.json holds them: the values of measurements, without their
// methods and bounds.
func bareSteps(steps []*lab.TrialStep) []*lab.TrialStep {
	out := withoutCurves(steps)
	for _, s := range out {
		s.Measurements = nil
		if s.Metrics == nil {
			s.Metrics = map[string]float64{}
		}
	}
	return out
}
