package reel

import (
	"fmt"
	"math"
	"slices"

	"eidetic/internal/lab"
)

// Report says how a file stands.
type Report struct {
	Frames int               `json:"frames"` // whole frames
	Lost   int               `json:"lost"`   // lost while recording, by the gaps
	Damage []Damage          `json:"damage"` // empty for a good file
	Gaps   []lab.Gap         `json:"gaps"`
	Events []lab.SourceEvent `json:"events"`
}

// Good says that nothing is damaged.
func (r Report) Good() bool { return len(r.Damage) == 0 }

// Verify decodes every frame of the file at path and checks every checksum,
// of the file's blocks and of the pixels. The error is for a file that cannot
// be read at all; damage is in the report.
func Verify(path string) (Report, error) {
	r, err := Open(path)
	if err != nil {
		return Report{}, err
	}
	defer r.Close()
	return r.walk(nil)
}

// Recover writes every whole frame of path, which may be cut off or damaged,
// to a new reel at out. Frames that damage took become gaps there, and the
// report names the damage. The error is for a file of which nothing can be
// read, or an output that cannot be written.
func Recover(path, out string) (Report, error) {
	r, err := Open(path)
	if err != nil {
		return Report{}, err
	}
	defer r.Close()
	w, err := Create(out, r.Header())
	if err != nil {
		return Report{}, err
	}
	report, err := r.walk(w)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return report, err
}

// walk decodes all frames, checks them, and copies them to w when there is one.
func (r *Reader) walk(w *Writer) (Report, error) {
	report := Report{Lost: r.Lost(), Gaps: r.Gaps(), Events: r.Events(), Damage: append([]Damage(nil), r.t.damage...)}
	r.blocks(&report)
	notes := r.Notes()
	broken := -1 // the last frame of a run that cannot be read
	good := -1   // the last whole frame
	for i := range r.t.frames {
		if w != nil {
			if err := notes.Write(w, r.t.frames[i].index); err != nil {
				return report, err
			}
		}
		pix, err := r.Pixels(i)
		if err == nil {
			err = r.check(i, pix, good == i-1 && i > 0 && len(r.Info(i).Changed) < maxChanged)
		}
		if err != nil {
			// Frames that only rest on a damaged one are not named again.
			if at := r.t.frames[i].at; (broken < 0 || r.t.frames[i].bad != nil) && !report.names(at) {
				report.Damage = append(report.Damage, Damage{Offset: at, Frame: r.t.frames[i].index, What: err.Error()})
			}
			broken = i
			continue
		}
		report.Frames++
		if w != nil {
			if err := r.copyFrame(w, i, good, pix); err != nil {
				return report, err
			}
		}
		good, broken = i, -1
	}
	if last := len(r.t.frames) - 1; w != nil && good < last {
		before := -1
		if good >= 0 {
			before = r.t.frames[good].index
		}
		end := r.t.frames[last]
		if err := w.WriteGap(r.damaged(good, end.index-before, end.Time)); err != nil {
			return report, err
		}
	}
	if w != nil {
		return report, notes.Write(w, math.MaxInt)
	}
	return report, nil
}

// blocks checks the heads of all blocks of a file whose index is whole: the
// index repeats them, so nothing else would look at those between frames.
func (r *Reader) blocks(report *Report) {
	if len(report.Damage) > 0 {
		return // the file has been walked through already
	}
	walked := &table{header: r.t.header}
	walked.scan(r.in, int64(len(magic)), r.size)
	report.Damage = append(report.Damage, walked.damage...)
}

// names says whether the damage at an offset is in the report.
func (r Report) names(offset int64) bool {
	return slices.ContainsFunc(r.Damage, func(d Damage) bool { return d.Offset == offset })
}

// GapDamage is the reason for frames that a recovered file no longer holds.
const GapDamage = "damage to the file"

// damaged is the gap after frame good (−1: at the start) that damage made.
func (r *Reader) damaged(good, missing int, to lab.Time) lab.Gap {
	g := lab.Gap{Count: missing, Reason: GapDamage, To: to}
	if good >= 0 {
		g.Seq, g.From = r.Info(good).Seq+1, r.Info(good).Time
	}
	return g
}

// copyFrame writes frame i, and a gap for the frames since good that damage took.
func (r *Reader) copyFrame(w *Writer, i, good int, pix []byte) error {
	f := lab.Frame{FrameInfo: r.Info(i), Pix: pix}
	before := -1
	if good >= 0 {
		before = r.t.frames[good].index
	}
	if missing := r.t.frames[i].index - before - 1; missing > 0 {
		if err := w.WriteGap(r.damaged(good, missing, f.Time)); err != nil {
			return err
		}
		f.Changed = append(f.Changed[:0:0], r.Format().Bounds())
		f.Flags &^= lab.FrameRepeat
	}
	if err := w.WriteFrame(f); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}
