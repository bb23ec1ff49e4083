package journey

import (
	"errors"
	"fmt"
	"image"

	"eidetic/analysis/measure"
	"eidetic/analysis/response"
	"eidetic/analysis/settle"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// special measures a step that has no end to reach: pings, or a screen that is left alone.
func (m *measuring) special(s *lab.TrialStep, last int) error {
	s.EndFrame = last
	if s.Seen > 0 {
		s.EndFrame = min(last, max(frameAt(m.frames, s.Seen), s.StartFrame+1))
	}
	measure := m.measurePings
	if s.Verb == lab.VerbIdle {
		measure = m.measureIdle
	}
	return measure(s)
}

// measureIdle measures what changes while nothing is done, and proposes masks for it.
func (m *measuring) measureIdle(s *lab.TrialStep) error {
	ignore := masks(s.Mask, m.content)
	c, err := visual.Changes(m.frames, visual.ChangeOptions{
		Start: s.StartFrame, End: s.EndFrame + 1, Regions: []visual.Region{{Name: "", Area: m.content}}, Ignore: ignore,
	})
	if err != nil {
		return err
	}
	region := c.Regions[0]
	changed, lastChange, most := 0, 0.0, 0
	begin := s.Input.Latest
	for i, n := range region.Changed {
		if n == 0 || i == 0 {
			continue
		}
		changed++
		lastChange = max(lastChange, float64(c.Infos[i].Time.Sub(begin))/1e6)
		most = max(most, n)
	}
	seconds := c.Infos[len(c.Infos)-1].Time.Sub(c.Infos[0].Time).Seconds()
	if seconds <= 0 {
		return errors.New("the recording has no time without input")
	}
	s.Measurements = []lab.Measurement{
		metric.IdleRate.Measure(float64(changed)/seconds, nil, fmt.Sprintf("%.1f s without input", seconds)),
		metric.IdleLastChange.Measure(lastChange, nil),
		metric.IdleArea.Measure(100*float64(most)/float64(max(region.Pixels, 1)), nil),
	}
	s.Measurements = append(s.Measurements, used(s.Used)...)
	return m.propose(s, ignore)
}

// used is what a program's processes used between two readings, and what they had in memory at the second.
func used(read []lab.ProgramUse) []lab.Measurement {
	if len(read) != 2 || read[1].At <= read[0].At || read[1].Processes == 0 {
		return nil
	}
	ran := max(read[1].Ran-read[0].Ran, 0) // less if a process has ended
	share := 100 * float64(ran) / float64(read[1].At-read[0].At)
	of := fmt.Sprintf("%d processes", read[1].Processes)
	if read[1].Processes == 1 {
		of = "one process"
	}
	all := []lab.Measurement{metric.IdleProcessor.Measure(share, nil, of)}
	if read[1].Memory > 0 {
		all = append(all, metric.ProgramMemory.Measure(float64(read[1].Memory)/1e6, nil, of))
	}
	return all
}

// propose names the places that kept changing in a step's frames.
func (m *measuring) propose(s *lab.TrialStep, ignore []image.Rectangle) error {
	unrest := settle.NewUnrest(m.content)
	var before *visual.Picture
	for i := s.StartFrame; i <= s.EndFrame; i++ {
		info := m.frames.Info(i)
		if before != nil && len(info.Changed) == 0 {
			continue
		}
		pix, err := m.frames.Pixels(i)
		if err != nil {
			return err
		}
		now, err := visual.PictureOf(m.frames.Format(), pix, m.content)
		if err != nil {
			return err
		}
		if before != nil {
			unrest.Add(info.Time, before, now)
		}
		before = now
	}
	s.Restless = proposals(unrest, m.content, ignore, s.Input.Latest)
	return nil
}

// window finds the window that a step opened, and adds how that filled.
func (m *measuring) window(s *lab.TrialStep, ignore []image.Rectangle) error {
	r, err := measure.Run(m.frames, measure.Options{
		Start: s.StartFrame, End: s.EndFrame + 1, Origin: s.First, Content: m.content, Ignore: ignore, Groups: []string{metric.Window},
	})
	if err != nil {
		return err
	}
	if r.Window == nil {
		s.Invalid = append(s.Invalid, response.ErrNoWindow.Error())
		return nil
	}
	s.Window = []int{r.Window.Min.X, r.Window.Min.Y, r.Window.Dx(), r.Window.Dy()}
	for _, one := range r.Numbers {
		s.Measurements = append(s.Measurements, one.Measurement)
	}
	return nil
}
