package journey

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/control"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// errNoEchoer is returned for a device whose controls do not tell the keyboard's lights.
var errNoEchoer = errors.New("echo: the device's controls do not tell the keyboard's lights: leave echo out") // constant

// echoes presses Caps Lock as often as the step says, and waits for the light each time.
func (p *play) echoes(ctx context.Context, s lab.Step, t *lab.TrialStep) error {
	if s.Echo == 0 {
		return nil
	}
	e, ok := p.Controller.(control.Echoer)
	if !ok {
		return errNoEchoer
	}
	for n := range s.Echo {
		one, err := e.Echo(ctx)
		if err != nil {
			return fmt.Errorf("echo %d of %d: %w", n+1, s.Echo, err)
		}
		t.Echoes = append(t.Echoes, EchoTime(one))
	}
	return nil
}

// EchoTime is the time from the press to the light, between the middles of their intervals.
func EchoTime(e control.Echo) lab.AnswerTime {
	ms := func(from, to lab.Time) float64 { return float64(to.Sub(from)) / 1e6 }
	middle := func(e lab.Event) lab.Time { return e.Earliest + (e.Latest-e.Earliest)/2 }
	return lab.AnswerTime{
		MS:  max(ms(middle(e.Press), middle(e.Light)), 0),
		Low: max(ms(e.Press.Latest, e.Light.Earliest), 0), High: ms(e.Press.Earliest, e.Light.Latest),
		Input: ms(e.Press.Earliest, e.Press.Latest), Source: ms(e.Light.Earliest, e.Light.Latest),
	}
}

// EchoMeasurements are the distribution of echoes in single numbers.
func EchoMeasurements(echoes []lab.AnswerTime) []lab.Measurement {
	if len(echoes) == 0 {
		return nil
	}
	quantile := func(share float64, of func(lab.AnswerTime) float64) float64 {
		var values []float64
		for _, e := range echoes {
			values = append(values, of(e))
		}
		slices.Sort(values)
		return stats.Quantile(values, share)
	}
	ms := func(e lab.AnswerTime) float64 { return e.MS }
	low := quantile(0.5, func(e lab.AnswerTime) float64 { return e.Low })
	high := quantile(0.5, func(e lab.AnswerTime) float64 { return e.High })
	presses := fmt.Sprintf("%d presses", len(echoes))
	median := metric.ResponseEcho.Measure(quantile(0.5, ms), nil, presses)
	median.Low, median.High = &low, &high
	return []lab.Measurement{median, metric.ResponseEchoP90.Measure(quantile(0.9, ms), nil, presses)}
}
