package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// progress is the one line that a terminal shows while tests run. Its methods are called with the session's lock held;
// a nil progress shows nothing.
type progress struct {
	w        io.Writer
	began    time.Time
	last     float64 // seconds that the same took here last time, or 0
	packages int     // that will run
	done     int
	tests    int
	running  []string // jobs
	shown    bool
}

// newProgress returns nil unless the output is a terminal.
func newProgress(w io.Writer, began time.Time) *progress {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return nil
	}
	return &progress{w: w, began: began}
}

const clearLine = "\r\x1b[K"

// hide clears the line, so that something else can be printed.
func (p *progress) hide() {
	if p != nil && p.shown {
		fmt.Fprint(p.w, clearLine)
		p.shown = false
	}
}

func (p *progress) show() {
	if p == nil {
		return
	}
	line := p.line(time.Since(p.began))
	if size, err := unix.IoctlGetWinsize(int(p.w.(*os.File).Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 1 {
		line = line[:min(len(line), int(size.Col)-1)]
	}
	fmt.Fprint(p.w, clearLine+line)
	p.shown = true
}

func (p *progress) line(elapsed time.Duration) string {
	text := fmt.Sprintf("%s  %d of %d packages, %d tests", clock(elapsed), p.done, p.packages, p.tests)
	if left := time.Duration(p.last*float64(time.Second)) - elapsed; p.last > 0 && left > 0 {
		text += fmt.Sprintf(", about %s left", clock(left))
	}
	return text + "  now: " + strings.Join(p.running, ", ")
}

func clock(d time.Duration) string {
	seconds := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

func (p *progress) begin(job string) {
	if p != nil {
		p.running = append(p.running, job)
		p.show()
	}
}

func (p *progress) end(job string) {
	if p != nil {
		if i := slices.Index(p.running, job); i >= 0 {
			p.running = slices.Delete(p.running, i, i+1)
		}
		p.show()
	}
}

// packageDone counts a package that has ended.
func (p *progress) packageDone(tests int) {
	if p != nil {
		p.done, p.tests = p.done+1, p.tests+tests
		p.show()
	}
}
