package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/capture/source"
	"eidetic/capture/tape"
	"eidetic/internal/lab"
	"eidetic/internal/tell/terminal"
)

// CaptureCmd records a screen.
type CaptureCmd struct {
	sourceFlags
	Out      string        `required:"" help:"The reel to write. It must not exist yet."`
	Duration time.Duration `help:"How long; without it until Ctrl-C or until the source ends."`
	PreRoll  time.Duration `placeholder:"TIME" help:"Wait for a trigger, Enter on the terminal (a line on standard input) or signal USR1, and begin the recording this long before it."`
	Memory   int64         `placeholder:"MIB" help:"Record into at most this many MiB of memory, and write the file at the end, so that a slow disk loses nothing."`
	JSON     bool          `name:"json" help:"Print JSON."`
}

// Help is shown by appliance capture --help.
func (CaptureCmd) Help() string {
	return `Example:

  appliance capture --source x11::99 --out screen.reel --duration 10s
  appliance capture --source rfb:192.168.122.1:5900 --out machine.reel --duration 10s
  appliance capture --source v4l2:/dev/video0 --pre-roll 10s --out crash.reel   # press Enter when it has happened
  appliance reel info screen.reel

Exit status 1 when a frame was lost, or the recording ended early.`
}

// Run records until the end, then says how it went.
func (c *CaptureCmd) Run(ctx context.Context, std *streams) error {
	src, err := c.open(ctx)
	if err != nil {
		return err
	}
	t, err := tape.Create(tape.Options{
		File: c.Out, Header: source.Header(src, c.Source, time.Now()), PreRoll: c.PreRoll, Memory: c.Memory << 20,
	})
	if err != nil {
		src.Close()
		return badFile(err)
	}
	if c.Duration > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, c.Duration)
		defer stop()
	}
	stop := c.awaitTrigger(t, std)
	st, err := source.Record(ctx, src, t.Sink())
	stop()
	if cerr := t.Close(); err == nil {
		err = cerr
	}
	var other *capture.Interruption
	switch {
	case errors.As(err, &other), errors.Is(err, reel.ErrMemoryFull):
		err = failed(fmt.Errorf("the recording ended early: %w", err))
	case err != nil:
		return fmt.Errorf("%w (%d frames are in %s)", err, t.Frames(), c.Out)
	case !t.Begun():
		_ = os.Remove(c.Out) // it is ours, and empty
		return failed(errors.New("there was no trigger: nothing was recorded"))
	}
	r, rerr := openReel(c.Out)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	defer r.Close()
	if perr := c.print(std, st, r); perr != nil {
		return perr
	}
	// Frames that were lost before a pre-roll's first frame are not missing.
	lost := st.Lost
	if t.Waits() {
		lost = r.Lost() + st.Reasons[capture.GapSink]
	}
	if err == nil && lost > 0 {
		err = failed(fmt.Errorf("%d frames were lost (%s)", lost, reasons(st.Reasons)))
	}
	return err
}

// reasons lists why frames were lost, the most frequent first.
func reasons(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for i, n := range names {
		names[i] = fmt.Sprintf("%s: %d", n, counts[n])
	}
	return strings.Join(names, ", ")
}

// print says how the recording went, and what happened during it.
func (c *CaptureCmd) print(std *streams, st capture.Stats, r *reel.Reader) error {
	if c.JSON {
		return printJSON(std.out, struct {
			capture.Stats
			Kept   int               `json:"frames_in_file"`
			Events []lab.SourceEvent `json:"events,omitempty"`
		}{st, r.Len(), r.Events()})
	}
	fmt.Fprintf(
		std.out,
		"%s: %d frames in %.1f s, %s; %d lost; interval p50 %.2f, p99 %.2f, longest %.2f ms; %d bytes\n",
		c.Out,
		r.Len(),
		st.Elapsed,
		capture.RateText(st.Rate, st.Nominal),
		st.Lost,
		st.IntervalP50,
		st.IntervalP99,
		st.IntervalMax,
		r.Size(),
	)
	if st.MissedProven+st.MissedDrawn > 0 {
		fmt.Fprintf(std.out, "looks at the screen missed: %d while nothing was drawn, so the picture is known; "+
			"%d while something was drawn: every change is known to within %.1f ms, %.1f is normal\n",
			st.MissedProven, st.MissedDrawn, st.WorstBound, st.NormalBound)
	}
	if st.Corrupt > 0 || st.Irregular > 0 {
		fmt.Fprintf(
			std.out,
			"%d frames damaged by the source (%d of them short), %d irregular timestamps\n",
			st.Corrupt,
			st.Short,
			st.Irregular,
		)
	}
	for _, e := range r.Events() {
		if e.Kind != lab.SourceIrregular && e.Kind != lab.SourceUnseen {
			fmt.Fprintln(std.out, terminal.Visible(e.String()))
		}
	}
	return nil
}

// awaitTrigger triggers a recording that waits when the person asks for it. The
// result ends the waiting.
func (c *CaptureCmd) awaitTrigger(t *tape.Tape, std *streams) (stop func()) {
	if !t.Waits() {
		return func() {}
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGUSR1)
	done := make(chan struct{})
	fmt.Fprintf(std.err, "the last %v are kept; press Enter, or send signal USR1 to process %d, to record them and what follows\n",
		c.PreRoll, os.Getpid())
	pull := func() {
		t.Trigger()
		fmt.Fprintln(std.err, "recording")
	}
	// A read of the terminal cannot be interrupted, so its goroutine is left behind.
	line := make(chan struct{})
	go func() {
		var b [1]byte
		for {
			n, err := std.in.Read(b[:])
			if n == 1 && b[0] == '\n' {
				close(line)
				return
			}
			if err != nil {
				return // no terminal: the signal is left
			}
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-asked:
			pull()
		case <-line:
			pull()
		case <-done:
		}
	}()
	return func() {
		signal.Stop(asked)
		close(done)
		<-ended
	}
}
