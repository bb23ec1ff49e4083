package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/run/experiment"
)

// Progress shows a person how a run goes: on a terminal one line that is
// overwritten, elsewhere a line for each trial that has ended.
type Progress struct {
	mu sync.Mutex
	Console
	drawn bool
	now   func() time.Time
	begun time.Time // of the progress
	pace  experiment.Pace
	done  []*lab.Trial
	arms  bool // there are two
}

// NewProgress begins one.
func NewProgress(out io.Writer) *Progress {
	return &Progress{Console: New(out), now: time.Now, begun: time.Now()}
}

// Say prints a line that stays.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	p.Line(fmt.Sprintf(format, args...))
}

// Step shows a step of a run.
func (p *Progress) Step(s experiment.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arms = p.arms || s.Arm != "" || s.Done != nil && s.Done.Arm == lab.Treatment
	if s.Done != nil && !s.Done.IsExtra() {
		p.done = append(p.done, s.Done)
	}
	switch {
	case s.Note != "":
		p.wipe()
		p.Line(s.Note)
	case s.Done == nil && p.Terminal:
		p.wipe()
		fmt.Fprint(p.out, p.status(s))
		p.drawn = true
	case s.Done == nil:
	case !p.Terminal:
		p.Line(p.title(s) + ": " + TrialResult(s.Done))
	case !s.Done.Valid: // the line that is overwritten tells the rest
		p.wipe()
		fmt.Fprintln(p.out, clip(p.title(s)+": "+OneLine(TrialResult(s.Done)), p.width-1))
	}
}

// title names a trial, with its arm where there are two.
func (p *Progress) title(s experiment.Step) string {
	text := fmt.Sprintf("Trial %*d of %d", len(fmt.Sprint(s.Of)), s.Trial, s.Of)
	arm := s.Arm
	if s.Done != nil {
		arm = s.Done.Arm
	}
	if p.arms && arm != "" {
		text += ", " + arm
	}
	return text
}

// status is the line that is overwritten: which trial of which arm, the time, what is known so far, and what goes on,
// as far as there is room.
func (p *Progress) status(s experiment.Step) string {
	if s.Trial == 0 {
		return clip(fmt.Sprintf("Recording, %s: %s", clockOf(p.now().Sub(p.begun)), OneLine(s.Doing)), p.width-1)
	}
	text := p.title(s) + ", " + clockOf(p.now().Sub(p.begun))
	if left, known := p.pace.Left(s.Trial, s.Of, p.now()); known {
		text += ", " + clockOf(left) + " left"
	}
	valid := 0
	for _, t := range p.done {
		if t.Valid { // which later trials may change
			valid++
		}
	}
	if len(p.done) > 0 {
		text += fmt.Sprintf(", %d valid", valid)
	}
	for _, part := range []string{p.soFar(), OneLine(s.Doing)} {
		if longer := text + ", " + part; part != "" && utf8.RuneCountInString(longer) < p.width {
			text = longer
		}
	}
	if longer := barOf(s.Trial-1, s.Of, leastBar) + " " + text; utf8.RuneCountInString(longer) < p.width {
		text = longer
	}
	return clip(text, p.width-1)
}

// soFar is the result of the valid trials until now; "" where they have none in common.
func (p *Progress) soFar() string {
	of := metric.Guards()[0]
	values := map[string][]float64{}
	for _, t := range p.done {
		if t.Cell != "" {
			return "" // pages differ
		}
		if len(t.Steps) > 0 {
			of = metric.Journey
		}
		if v, ok := t.Value(of.String()); ok && t.Valid {
			values[t.Arm] = append(values[t.Arm], v)
		}
	}
	control, treatment := values[lab.Control], values[lab.Treatment]
	switch {
	case len(control) == 0, p.arms && len(treatment) == 0:
		return ""
	case p.arms:
		after := valueOf(stats.Median(treatment), of.Entry().Unit)
		return fmt.Sprintf("%s %.0f → %s", of.Label(), stats.Median(control), after)
	}
	return fmt.Sprintf("%s %s", of.Label(), valueOf(stats.Median(control), of.Entry().Unit))
}

// clockOf is a duration in minutes and seconds.
func clockOf(d time.Duration) string {
	d = d.Round(time.Second)
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// TrialResult returns a line on how a trial went.
func TrialResult(t *lab.Trial) string {
	switch {
	case t.IsSuperseded():
		return t.Invalid[0]
	case !t.Valid:
		return "invalid: " + Brief(Visible(strings.Join(t.Invalid, "; ")))
	}
	if len(t.Steps) > 0 {
		return fmt.Sprintf("%d steps in %.0f ms; %d requests, %d frames%s", len(t.Steps), metric.Journey.In(t), t.Requests, t.Frames, flawsOf(t))
	}
	return fmt.Sprintf(
		"first change %4.0f ms, SpeedIndex %4.0f ms, last change %4.0f ms; %d requests, %d frames%s",
		metric.FirstChange.In(t),
		metric.SpeedIndex.In(t),
		metric.LastChange.In(t),
		t.Requests,
		t.Frames,
		flawsOf(t),
	)
}

// flawsOf returns what is wrong with a valid trial: lost frames, blur.
func flawsOf(t *lab.Trial) string {
	text := ", none lost"
	if t.FramesLost > 0 {
		text = fmt.Sprintf(", %d lost", t.FramesLost)
	}
	if t.Blur != nil {
		text += fmt.Sprintf(", blur %.1f ms", t.Blur.Worst())
	}
	return text
}

// barOf draws a progress bar of so many cells.
func barOf(done, all, cells int) string {
	full := min(cells*done/max(all, 1), cells)
	return "[" + strings.Repeat("█", full) + strings.Repeat("·", cells-full) + "]"
}

// Close leaves the terminal without a half-drawn line.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

// wipe removes the line that is overwritten.
func (p *Progress) wipe() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\033[K")
		p.drawn = false
	}
}
