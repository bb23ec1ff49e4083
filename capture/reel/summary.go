package reel

import "eidetic/internal/lab"

// Summary is what a reel holds, in numbers.
type Summary struct {
	Header
	Frames    int               `json:"frames"`
	Changed   int               `json:"changed"` // frames that differ from the one before
	Lost      int               `json:"lost"`
	Seconds   float64           `json:"seconds"`
	Bytes     int64             `json:"bytes"`
	Ratio     float64           `json:"ratio"` // uncompressed size over file size
	Rate      float64           `json:"rate"`  // measured frames per second
	Gaps      []lab.Gap         `json:"gaps,omitempty"`
	Events    []lab.SourceEvent `json:"events,omitempty"`
	Corrupt   int               `json:"corrupt"`   // frames that the source marked as damaged
	Short     int               `json:"short"`     // of these, frames with bytes missing
	Irregular int               `json:"irregular"` // frames whose time does not fit their number
	Proven    int               `json:"proven"`    // frames at whose time the screen was not sampled and nothing was drawn
	LateLooks int               `json:"late_looks"`
	Recovered []Damage          `json:"recovered,omitempty"`
}

// Summary counts what the reel holds; it decodes no pixels.
func (r *Reader) Summary() Summary {
	s := Summary{
		Header:    r.Header(),
		Frames:    r.Len(),
		Lost:      r.Lost(),
		Bytes:     r.Size(),
		Gaps:      r.Gaps(),
		Events:    r.Events(),
		Recovered: r.Recovered(),
	}
	for i := range r.Len() {
		f := r.Info(i)
		if len(f.Changed) > 0 {
			s.Changed++
		}
		if f.Flags&lab.FrameProven != 0 {
			s.Proven++
		}
		if f.Flags&lab.FrameCorrupt != 0 {
			s.Corrupt++
		}
		if f.Flags&lab.FrameShort != 0 {
			s.Short++
		}
	}
	for _, e := range s.Events {
		switch e.Kind {
		case lab.SourceIrregular:
			s.Irregular++
		case lab.SourceUnseen:
			s.LateLooks++
		}
	}
	if n := r.Len(); n > 0 {
		s.Seconds = r.Info(n - 1).Time.Sub(r.Info(0).Time).Seconds()
		if s.Seconds > 0 {
			s.Rate = float64(r.Info(n-1).Seq-r.Info(0).Seq) / s.Seconds
		}
		s.Ratio = float64(n) * float64(s.Format.FrameSize()) / float64(r.Size())
	}
	return s
}
