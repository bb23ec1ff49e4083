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
	"eidetic/capture/file"
	"eidetic/capture/preroll"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

// CaptureCmd records a screen.
type CaptureCmd struct {
	sourceFlags
	Out      string        `required:"" help:"The reel to write. It must not exist yet."`
	Duration time.Duration `help:"How long; without it until Ctrl-C or until the source ends."`
	PreRoll  time.Duration `placeholder:"TIME" help:"Keep the last so many seconds, and begin the recording with them on a trigger: Enter on the terminal (a line on standard input) or signal USR1."`
	Memory   int64         `placeholder:"MIB" help:"Record into at most so many MiB of memory, and write the file at the end, so that no disk is waited for."`
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
	t, err := c.tape(src)
	if err != nil {
		src.Close()
		return err
	}
	if c.Duration > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, c.Duration)
		defer stop()
	}
	stop := t.await(std)
	st, err := record(ctx, src, t.sink())
	stop()
	if cerr := t.close(); err == nil {
		err = cerr
	}
	var other *capture.Interruption
	switch {
	case errors.As(err, &other), errors.Is(err, reel.ErrMemoryFull):
		err = failed(fmt.Errorf("the recording ended early: %w", err))
	case err != nil:
		return fmt.Errorf("%w (%d frames are in %s)", err, t.w.Frames(), c.Out)
	case t.ring != nil && !t.ring.Begun():
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
	// What was lost before a pre-roll's first frame is not missing.
	lost := st.Lost
	if t.ring != nil {
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
	fmt.Fprintf(std.out, "%s: %d frames in %.1f s, %s; %d lost; interval p50 %.2f, p99 %.2f, longest %.2f ms; %d bytes\n",
		c.Out, r.Len(), st.Elapsed, capture.RateText(st.Rate, st.Nominal), st.Lost, st.IntervalP50, st.IntervalP99, st.IntervalMax, r.Size())
	if st.MissedProven+st.MissedDrawn > 0 {
		fmt.Fprintf(std.out, "%d looks at the screen missed with nothing drawn, which proves the picture; %d with something drawn: every change is known to within %.1f ms, %.1f is normal\n",
			st.MissedProven, st.MissedDrawn, st.WorstBound, st.NormalBound)
	}
	if st.Corrupt > 0 || st.Irregular > 0 {
		fmt.Fprintf(std.out, "%d frames damaged by the source (%d of them short), %d irregular timestamps\n", st.Corrupt, st.Short, st.Irregular)
	}
	for _, e := range r.Events() {
		if e.Kind != lab.SourceIrregular && e.Kind != lab.SourceUnseen {
			fmt.Fprintln(std.out, e)
		}
	}
	return nil
}

// record films a screen, or copies a file, which has time to wait.
func record(ctx context.Context, src capture.Source, sink capture.Sink) (capture.Stats, error) {
	if _, ok := src.(*file.Source); ok {
		return capture.Copy(ctx, src, sink)
	}
	r, err := capture.Start(ctx, src, sink, capture.Options{})
	if err != nil {
		src.Close()
		return capture.Stats{}, err
	}
	<-r.Done()
	return r.Stop()
}

// tape is where a recording goes: a file, or memory and then the file, behind a
// pre-roll ring or not.
type tape struct {
	w      *reel.Writer
	ring   *preroll.Ring // nil: the recording begins at once
	length time.Duration // of the ring
	memory *reel.Memory  // nil: to the file
	file   *os.File      // with memory
}

// tape makes the file.
func (c *CaptureCmd) tape(src capture.Source) (*tape, error) {
	h := reel.Header{Format: src.Format(), Source: c.Source, Wall: time.Now(), Notes: notes(src)}
	if h.Format.Pixels == lab.MJPEG {
		h.NotLossless = "MJPEG at the source"
	}
	if s, ok := src.(interface{ NotLossless() string }); ok {
		h.NotLossless = s.NotLossless()
	}
	t := &tape{length: c.PreRoll}
	var err error
	switch {
	case c.Memory < 0 || c.Memory > 1<<20:
		return nil, usage(fmt.Errorf("--memory %d is outside 1 … %d MiB", c.Memory, 1<<20))
	case c.Memory > 0:
		if t.file, err = os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
			return nil, badFile(err)
		}
		t.memory = reel.NewMemory(c.Memory << 20)
		t.w, err = reel.NewWriter(t.memory, h)
	default:
		t.w, err = reel.Create(c.Out, h)
	}
	if err != nil {
		return nil, badFile(err)
	}
	if c.PreRoll > 0 {
		if t.ring, err = preroll.New(t.w, preroll.Options{Format: h.Format, Length: c.PreRoll}); err != nil {
			_ = t.w.Close()
			_ = os.Remove(c.Out)
			return nil, usage(err)
		}
	}
	return t, nil
}

// sink is what the recorder writes to.
func (t *tape) sink() capture.Sink {
	if t.ring != nil {
		return t.ring
	}
	return t.w
}

// await pulls the trigger when it is asked for. The result ends the waiting.
func (t *tape) await(std *streams) (stop func()) {
	if t.ring == nil {
		return func() {}
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGUSR1)
	done := make(chan struct{})
	fmt.Fprintf(std.err, "the last %v are kept; press Enter, or send signal USR1 to process %d, to record them and what follows\n", t.length, os.Getpid())
	pull := func() {
		t.ring.Trigger()
		fmt.Fprintln(std.err, "recording")
	}
	// A read of the terminal cannot be ended: it is left behind.
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

// close ends the reel, and writes it when it is in memory still.
func (t *tape) close() error {
	err := t.w.Close()
	if t.memory == nil {
		return err
	}
	_, werr := t.memory.WriteTo(t.file)
	return errors.Join(err, werr, t.file.Close())
}
