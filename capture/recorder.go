package capture

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// Status is where a recording is now.
type Status struct {
	Frames     int      // frames that reached the sink
	Lost       int      // frames lost so far
	FirstFrame lab.Time // time of the first frame
	LastFrame  lab.Time // time of the newest frame that reached the sink
	// LastChange is the time of the newest frame with a changed pixel; the
	// screen has been still for LastFrame − LastChange.
	LastChange lab.Time
	// Interruptions is how often the source reported something in the place of a
	// frame; until it delivers again, no frame is to be waited for.
	Interruptions int
	Trouble       string // what the source reported first in the place of a frame
	Err           error  // what ended the recording early, if something did
}

// Recorder is a recording that runs.
type Recorder struct {
	src    Source
	sink   Sink
	format lab.Format
	whole  bool // see Options.Whole
	card   bool // see Options.Card
	ring   *ring
	queue  chan item
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex // guards what follows
	status  Status
	meter   meter
	reasons map[string]int
	// unheeded is where changes do not count as such; see Unheed.
	unheeded image.Rectangle

	bounds bounds // only the writer uses these two until done is closed
	blue   blue

	latest sync.Mutex // held while last is read or replaced
	last   *buffer
	info   lab.FrameInfo // of last
}

// item is what the grabber hands to the writer: a gap, events of the source, and
// a frame, in this order; each may be missing.
type item struct {
	gap    lab.Gap // Count 0: none
	events []lab.SourceEvent
	frame  bool
	info   lab.FrameInfo
	buf    *buffer // nil: the same picture as before
}

// Start records src into sink until Stop is called, ctx ends, or src does.
// The recorder closes src; closing sink is left to the caller, after Stop.
// Unless Options.NoPriority is set, the first recording raises the process's
// GOMAXPROCS to four above the number of cores, for good.
func Start(ctx context.Context, src Source, sink Sink, o Options) (*Recorder, error) {
	f := src.Format()
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	buffers := o.Ring
	if buffers == 0 {
		buffers = min(64, (256<<20)/max(1, f.FrameSize()))
	}
	buffers = max(4, buffers)
	if !o.NoPriority {
		spareProcessors()
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Recorder{
		src: src, sink: sink, format: f, whole: o.Whole, card: o.Card,
		ring: newRing(buffers, f.FrameSize()),
		// Repeats take no buffer, so the queue is longer than the ring.
		queue:   make(chan item, buffers+4096),
		cancel:  cancel,
		done:    make(chan struct{}),
		reasons: make(map[string]int),
		meter:   meter{period: 1 / f.Rate},
		bounds:  bounds{period: time.Duration(1e9 / f.Rate)},
		blue:    blue{format: f},
	}
	go r.grab(ctx, !o.NoPriority)
	go r.write()
	return r, nil
}

// spareProcessors gives the Go runtime more processors than the machine has.
// A thread that returns from the kernel needs one of them, however urgent it is to
// the kernel; with as many as there are cores, a process that computes on all
// of them lets it wait for 10 ms and more. With spare ones the kernel decides, by priority.
func spareProcessors() {
	const spare = 4
	if want := runtime.NumCPU() + spare; runtime.GOMAXPROCS(0) < want {
		runtime.GOMAXPROCS(want)
	}
}

// Status is cheap (one short lock) and may be called from anywhere.
func (r *Recorder) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Unheed has changes that lie wholly within an area not count for Status.LastChange from now on: a
// code that is drawn into each frame would keep the screen from ever being still.
func (r *Recorder) Unheed(area image.Rectangle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unheeded = area
}

// Latest calls fn with the newest picture that reached the sink, and reports
// false without a call if there is none yet. The picture must not be kept or
// changed. While fn runs the sink waits, and the ring fills: be brief.
func (r *Recorder) Latest(fn func(lab.Format, lab.Frame)) bool {
	r.latest.Lock()
	defer r.latest.Unlock()
	if r.last == nil {
		return false
	}
	fn(r.format, lab.Frame{FrameInfo: r.info, Pix: r.last.pix})
	return true
}

// Done is closed when the recording has ended, by itself or by Stop, and the
// sink has every frame.
func (r *Recorder) Done() <-chan struct{} { return r.done }

// Stop ends the recording, waits until every frame taken so far is in the
// sink, and closes the source. The error is what ended it early, if anything
// did. Stop may be called again and returns the same.
func (r *Recorder) Stop() (Stats, error) {
	r.cancel()
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.meter.stats()
	st.Frames, st.Lost, st.Reasons, st.Interruptions = r.status.Frames, r.status.Lost, maps.Clone(r.reasons), r.status.Interruptions
	st.RingPeak = r.ring.peak
	r.bounds.fill(&st)
	st.Blue = r.blue.list
	return st, r.status.Err
}

// end notes why the recording ended; the first reason stays.
func (r *Recorder) end(err error) {
	r.mu.Lock()
	if r.status.Err == nil {
		r.status.Err = err
	}
	r.mu.Unlock()
	r.cancel()
}

// grab takes frames from the source as they come. It allocates nothing for a
// frame, and never waits for the sink.
func (r *Recorder) grab(ctx context.Context, priority bool) {
	defer close(r.queue)
	// The thread is never unlocked: it ends with this goroutine, and its
	// priority with it.
	runtime.LockOSThread()
	scheduling := "normal"
	if priority {
		scheduling = raisePriority()
	}
	r.mu.Lock()
	r.meter.scheduling = scheduling
	r.mu.Unlock()

	// The sink has no picture yet: the first frame is taken even if the source, of which others have read, says that it
	// repeats the one before.
	g := grabber{stale: true, times: regular{period: time.Duration(1e9 / r.format.Rate)}}
	for {
		f, err := r.src.Next(ctx)
		if err == nil {
			r.enqueue(&g, f)
			every := g.times.changed()
			if every == 0 {
				continue
			}
			err = r.rateChanged(every, f.Time)
		}
		var other *Interruption
		if errors.As(err, &other) {
			r.interrupted(&g, other)
			if other.Ends == nil {
				continue
			}
		}
		if !errors.Is(err, io.EOF) && ctx.Err() == nil {
			r.end(fmt.Errorf("record: source: %w", err))
		}
		break
	}
	if g.untold > 0 {
		g.events = append(g.events, lab.SourceEvent{Kind: lab.SourceUntold, Time: g.time, Detail: fmt.Sprint(g.untold)})
	}
	if g.pending.Count > 0 || len(g.events) > 0 {
		r.queue <- item{gap: g.pending, events: g.events} // the writer still runs: it will be taken
	}
	if err := r.src.Close(); err != nil {
		r.end(fmt.Errorf("record: close source: %w", err))
	}
}

// ErrRate ends a source whose rate changed.
var ErrRate = errors.New("the rate of the pictures changed")

// rateChanged interrupts a source whose frames come at another rate than that of its format.
func (r *Recorder) rateChanged(every time.Duration, at lab.Time) error {
	to := r.format
	to.Rate = math.Round(float64(time.Second)/float64(every)*100) / 100
	return &Interruption{
		Event: lab.SourceEvent{Kind: lab.SourceResized, Time: at, Format: &to,
			Detail: fmt.Sprintf("%d frames in a row came at this rate", otherRate)},
		Ends: fmt.Errorf("%w from %.4g to %.4g a second", ErrRate, r.format.Rate, to.Rate),
	}
}

// grabber is what grab remembers from frame to frame.
type grabber struct {
	started bool
	seq     uint64
	time    lab.Time
	pending lab.Gap // frames lost since the last one that was queued
	stale   bool    // the sink does not have the frame before
	times   regular
	events  []lab.SourceEvent // those that are not queued yet
	told    int               // events kept so far
	untold  int               // events beyond maxEvents
}

// maxEvents bounds the events of one recording: a driver whose every stamp is
// wrong must not fill the disk.
const maxEvents = 10_000

// note keeps an event for the next item.
func (g *grabber) note(e lab.SourceEvent) {
	if g.told == maxEvents {
		g.untold++
		return
	}
	g.told++
	g.events = append(g.events, e)
}

// interrupted queues an event of the source at once: the next frame may come
// much later.
func (r *Recorder) interrupted(g *grabber, i *Interruption) {
	r.mu.Lock()
	if r.status.Interruptions++; r.status.Trouble == "" {
		r.status.Trouble = i.Error()
	}
	r.mu.Unlock()
	g.note(i.Event)
	g.times.forget()
	select {
	case r.queue <- item{gap: g.pending, events: g.events}:
		g.pending, g.events = lab.Gap{}, nil
	default: // it stays for the next item
	}
}

// lose adds lost frames to the gap that is open.
func (g *grabber) lose(seq uint64, count int, reason string, from, to lab.Time) {
	if g.pending.Count == 0 {
		g.pending = lab.Gap{Seq: seq, Reason: reason, From: from}
	} else if !strings.Contains(g.pending.Reason, reason) {
		g.pending.Reason += ", and " + reason
	}
	g.pending.Count += count
	g.pending.To = to
	g.stale = true
}

// enqueue copies a frame into the ring, or counts it as lost.
func (r *Recorder) enqueue(g *grabber, f lab.Frame) {
	if g.started && f.Seq > g.seq+1 {
		missed := int(f.Seq - g.seq - 1)
		g.lose(g.seq+1, missed, lab.GapSource, g.time, f.Time)
		r.count(lab.GapSource, missed)
	}
	from := g.time
	g.started, g.seq, g.time = true, f.Seq, f.Time
	if wrong := g.times.look(f.FrameInfo); wrong != "" {
		r.mu.Lock()
		r.meter.irregular++
		r.mu.Unlock()
		g.note(lab.SourceEvent{Kind: lab.SourceIrregular, Time: f.Time, Detail: wrong})
	}
	if r.whole && f.Flags&lab.FrameCorrupt != 0 {
		g.lose(f.Seq, 1, lab.GapCorrupt, from, f.Time)
		r.count(lab.GapCorrupt, 1)
		return
	}

	it := item{gap: g.pending, events: g.events, frame: true, info: f.FrameInfo}
	if g.stale || f.Flags&lab.FrameRepeat == 0 {
		it.buf = r.ring.get(len(f.Pix))
		if it.buf == nil || len(r.queue) == cap(r.queue)-1 {
			r.ring.put(it.buf)
			g.lose(f.Seq, 1, lab.GapRing, from, f.Time)
			r.count(lab.GapRing, 1)
			return
		}
		copy(it.buf.pix, f.Pix)
		it.buf.changed = append(it.buf.changed[:0], f.Changed...)
		if g.stale {
			it.buf.changed = append(it.buf.changed[:0], r.format.Bounds())
			it.info.Flags &^= lab.FrameRepeat
		}
		it.info.Changed = it.buf.changed
	} else {
		it.info.Changed = nil
	}
	select {
	case r.queue <- it:
		g.pending, g.events, g.stale = lab.Gap{}, nil, false
	default:
		r.ring.put(it.buf)
		g.lose(f.Seq, 1, lab.GapRing, from, f.Time)
		r.count(lab.GapRing, 1)
	}
}

// count notes lost frames.
func (r *Recorder) count(reason string, n int) {
	r.mu.Lock()
	r.status.Lost += n
	r.reasons[reason] += n
	r.mu.Unlock()
}

// write hands what the grabber took to the sink.
func (r *Recorder) write() {
	defer close(r.done)
	var find diff.Finder
	var rects []image.Rectangle
	sinkFailed := false // a source's failure does not set it: its earlier frames are kept
	for it := range r.queue {
		if !sinkFailed {
			if err := r.note(it); err != nil {
				r.end(fmt.Errorf("record: sink: %w", err))
				sinkFailed = true
			}
		}
		if sinkFailed {
			r.drop(it)
			continue
		}
		if !it.frame {
			continue
		}
		f := lab.Frame{FrameInfo: it.info}
		switch {
		case it.buf == nil:
			f.Pix = r.last.pix
		case r.last != nil && r.format.Pixels != lab.MJPEG:
			rects = find.Frame(rects[:0], r.format, r.last.pix, it.buf.pix, it.info.Changed)
			f.Pix, f.Changed = it.buf.pix, rects
		default:
			f.Pix = it.buf.pix
			f.Changed = append(rects[:0], r.format.Bounds())
		}
		if err := r.writeFrame(f); err != nil {
			r.end(fmt.Errorf("record: sink: %w", err))
			r.drop(it)
			sinkFailed = true
			continue
		}
		r.show(it.buf, f.FrameInfo)
	}
	last, ok := r.blue.end(r.info.Time)
	if sinkFailed {
		return
	}
	if err := r.writeLast(last, ok); err != nil {
		r.end(fmt.Errorf("record: sink: %w", err))
	}
}

// writeLast writes what the end of the recording tells: the blue that lasted to it, and what was not told before.
func (r *Recorder) writeLast(b lab.Blue, ok bool) error {
	if err := r.writeBlue(b, ok); err != nil || r.bounds.untold == 0 {
		return err
	}
	return r.sink.WriteEvent(lab.SourceEvent{
		Kind: lab.SourceUntold, Time: r.info.Time, Detail: fmt.Sprintf("%d (%s)", r.bounds.untold, lab.SourceUnseen),
	})
}

// writeBlue writes a stretch of blue that has ended, if one has.
func (r *Recorder) writeBlue(b lab.Blue, ok bool) error {
	if !ok {
		return nil
	}
	return r.sink.WriteEvent(blueEvent(b))
}

// writeFrame writes a frame and, before it, what went unseen since the one before.
func (r *Recorder) writeFrame(f lab.Frame) error {
	// A source that looks by itself reports drawing even where the picture is the same
	// again afterwards: another picture may have been on the screen in between.
	drawn := len(f.Changed) > 0 || f.Flags&(lab.FrameLook|lab.FrameRepeat) == lab.FrameLook
	if late, ok := r.bounds.add(f.FrameInfo, drawn); ok {
		e := lab.SourceEvent{Kind: lab.SourceUnseen, Time: late.To, From: late.From, Missed: late.Missed, Detail: late.String()}
		if err := r.sink.WriteEvent(e); err != nil {
			return err
		}
	}
	if r.card {
		if err := r.writeBlue(r.blue.look(f)); err != nil {
			return err
		}
	}
	return r.sink.WriteFrame(f)
}

// note writes what stands before an item's frame.
func (r *Recorder) note(it item) error {
	if it.gap.Count > 0 {
		if err := r.sink.WriteGap(it.gap); err != nil {
			return err
		}
	}
	for _, e := range it.events {
		if err := r.sink.WriteEvent(e); err != nil {
			return err
		}
	}
	return nil
}

// GapSink is the reason for frames that were taken when the sink had failed.
const GapSink = "sink failed"

// drop counts an item that the failed sink cannot take.
func (r *Recorder) drop(it item) {
	if it.frame {
		r.count(GapSink, 1)
	}
	r.ring.put(it.buf)
}

// show makes a written frame the newest.
func (r *Recorder) show(b *buffer, info lab.FrameInfo) {
	r.latest.Lock()
	if b != nil {
		b, r.last = r.last, b
		r.ring.put(b)
	}
	r.info = info
	r.info.Changed = nil // its memory is used again
	r.latest.Unlock()

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status.Frames == 0 {
		r.status.FirstFrame = info.Time
	}
	r.status.Frames++
	r.status.LastFrame = info.Time
	if slices.ContainsFunc(info.Changed, func(c image.Rectangle) bool { return !c.In(r.unheeded) }) {
		r.status.LastChange = info.Time
	}
	r.meter.add(info)
}
