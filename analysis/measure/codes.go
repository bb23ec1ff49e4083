package measure

import (
	"errors"
	"fmt"
	"image"
	"math"

	"eidetic/analysis/framecode"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// mostDelay is how long a page may take from drawing a code to the screen: it bounds the
// page's clock from below.
const mostDelay = lab.Time(250e6)

// codes reads the strip at the corner of the content area, or else of the frame.
func (m *run) codes() error {
	var seen []framecode.Seen
	var broken int
	for _, corner := range []image.Point{m.o.Content.Min, {}} {
		var err error
		if seen, broken, err = framecode.Read(m.frames, m.o.Start, m.o.End, corner); err != nil {
			return err
		}
		if len(seen) > 0 {
			break
		}
	}
	if len(seen) == 0 {
		m.note("no frame shows a frame code at the corner of the content area or of the frame: see docs/metrics.md#frame-codes")
		return nil
	}
	n := len(m.r.TimesMS)
	counter, page, bits := make([]float64, n), make([]float64, n), make([]float64, n)
	fresh, skipped := 0, 0
	for k, s := range seen {
		i := s.Frame - m.o.Start
		counter[i], page[i], bits[i] = float64(s.Counter), s.PageMS, float64(s.Bits)
		if s.New {
			fresh++
		}
		if k > 0 && s.Counter > seen[k-1].Counter+1 {
			skipped += int(s.Counter - seen[k-1].Counter - 1)
		}
	}
	m.column("code_counter", "", counter)
	m.column("code_page_ms", "", page)
	m.column("code_bits", "", bits)
	ends := []int{seen[0].Frame, seen[len(seen)-1].Frame}
	m.add("", metric.CodeFrames.Measure(float64(fresh), ends), metric.CodeBroken.Measure(float64(broken), ends),
		metric.CodeSkipped.Measure(float64(skipped), ends))
	c, err := framecode.Relate(m.frames, seen, mostDelay)
	switch {
	case errors.Is(err, framecode.ErrClock):
		m.note("%v", err)
	case err != nil:
		return fmt.Errorf("relate the page's clock: %w", err)
	default:
		middle := m.o.Origin.Earliest + (m.o.Origin.Latest-m.o.Origin.Earliest)/2
		low, high := float64(c.Low-middle)/1e6, float64(c.High-middle)/1e6
		clock := metric.CodeClock.Measure(math.Round(high*1e3)/1e3, ends, fmt.Sprintf("by %d codes", c.Frames))
		clock.Low, clock.High = &low, &high
		m.add("", clock)
	}
	return nil
}
