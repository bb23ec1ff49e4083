package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/run/experiment"
)

// progress shows a person how a run goes: on a terminal one line that is
// overwritten, elsewhere a line for each trial that has ended.
type progress struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	drawn    bool
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if f, ok := out.(*os.File); ok {
		p.terminal = term.IsTerminal(int(f.Fd()))
	}
	return p
}

// say prints a line that stays.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// step shows a step of a run.
func (p *progress) step(s experiment.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Note != "" {
		p.wipe()
		fmt.Fprintln(p.out, s.Note)
		return
	}
	if s.Done == nil {
		if p.terminal && s.Trial > 0 {
			p.wipe()
			fmt.Fprintf(p.out, "%s trial %d of %d: %s", barOf(s.Trial-1, s.Of), s.Trial, s.Of, s.Doing)
			p.drawn = true
		}
		return
	}
	p.wipe()
	fmt.Fprintf(p.out, "Trial %*d of %d: %s\n", len(fmt.Sprint(s.Of)), s.Trial, s.Of, resultOf(s.Done))
}

// resultOf returns a line on how a trial went.
func resultOf(t *lab.Trial) string {
	if !t.Valid {
		return "invalid: " + strings.Join(t.Invalid, "; ")
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

// barOf draws a progress bar of 20 cells.
func barOf(done, all int) string {
	const cells = 20
	full := cells * done / max(all, 1)
	return "[" + strings.Repeat("█", full) + strings.Repeat("·", cells-full) + "]"
}

// close leaves the terminal without a half-drawn line.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

// wipe removes the line that is overwritten.
func (p *progress) wipe() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\033[K")
		p.drawn = false
	}
}
