package scrcpy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"eidetic/internal/lab"
)

const (
	// maxQueue and maxQueued bound packets that wait for the decoder.
	maxQueue  = 256
	maxQueued = 64 << 20 // bytes
	// ahead is how many pictures wait to be taken.
	ahead = 8
)

// pending is a packet whose picture has not come out of the decoder yet.
type pending struct {
	number  uint64
	pts     time.Duration
	arrived lab.Time
	damage  string // "" or why its picture cannot be believed
	isIDR   bool
}

// picture is what came out of the decoder.
type picture struct {
	pending
	pix  []byte
	lost int // packets before it that gave no picture
}

// feed reads what the phone sends, has it decoded, and holds the pictures until they are taken. Reading goes on
// whatever happens behind it, because arrivals tell the time.
type feed struct {
	speaks  dialect
	clock   lab.Clock
	in      *bufio.Reader
	decoder *decoder
	format  lab.Format

	queue    chan packet   // to the decoder
	pictures chan picture  // from the decoder
	closed   chan struct{} // closed when nobody takes pictures any more
	all      sync.WaitGroup

	mu      sync.Mutex // guards what follows
	err     error
	queued  int // bytes
	waiting []pending
	clocks  clocks
	free    [][]byte
	begun   bool   // somebody takes the pictures
	damage  string // since the last picture that begins anew; "" is none

	// Only the reader uses these.
	sps    sps
	config []byte
	order  order
	next   uint64
	last   time.Duration
	any    bool
}

// resized is the error that ends a feed when the pictures' size changes.
type resized struct{ width, height int }

func (r resized) Error() string {
	return fmt.Sprintf("%v: %d × %d now", ErrResolution, r.width, r.height)
}
func (r resized) Unwrap() error { return ErrResolution }

// newFeed reads the first packets, up to the parameters of the pictures.
func newFeed(ctx context.Context, in io.Reader, h hello, d dialect, rate float64, clock lab.Clock) (*feed, error) {
	f := &feed{
		speaks: d, clock: clock, in: bufio.NewReaderSize(in, 1<<16),
		queue: make(chan packet, maxQueue), pictures: make(chan picture, ahead), closed: make(chan struct{}),
	}
	for f.sps.width == 0 {
		p, err := readPacket(f.in, d, clock)
		if err != nil {
			return nil, err
		}
		switch {
		case p.width > 0:
			h.width, h.height = p.width, p.height
		case !p.isConfig:
			return nil, errors.New("the server sends a picture before its parameters")
		default:
			if f.sps, err = parametersIn(p.data); err != nil {
				return nil, err
			}
			f.config = p.data
		}
	}
	// In 1.x the phone says its size before the encoder has chosen.
	if d.codec > 0 && (h.width != f.sps.width || h.height != f.sps.height) {
		return nil, fmt.Errorf("the server announces pictures of %d × %d, and its video has %d × %d", h.width, h.height, f.sps.width, f.sps.height)
	}
	f.format = lab.Format{
		Pixels: lab.NV12, Width: f.sps.width, Height: f.sps.height, Rate: rate, Matrix: f.sps.matrix, Range: lab.LimitedRange,
	}
	if err := f.format.Validate(); err != nil {
		return nil, err
	}
	var err error
	if f.decoder, err = newDecoder(ctx, f.format); err != nil {
		return nil, err
	}
	f.all.Go(f.read)
	f.all.Go(f.write)
	f.all.Go(f.draw)
	return f, nil
}

var errNoParameters = errors.New("the server sends parameters without those of a sequence") // constant

// parametersIn are those that stand in a packet before its picture.
func parametersIn(data []byte) (sps, error) {
	for unit := range units(data) {
		switch unit[0] & 31 {
		case nalSPS:
			return parseSPS(unit)
		case nalSlice, nalIDR:
			return sps{}, errNoParameters
		}
	}
	return sps{}, errNoParameters
}

// fail ends the feed; the first reason stays.
func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// failure is why it ended, or nil.
func (f *feed) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// read takes packet after packet.
func (f *feed) read() {
	defer close(f.queue)
	for {
		p, err := readPacket(f.in, f.speaks, f.clock)
		if err == nil {
			err = f.take(p)
		}
		if err != nil {
			f.fail(err)
			return
		}
	}
}

// take acts on a packet.
func (f *feed) take(p packet) error {
	switch {
	case p.width > 0:
		if p.width != f.format.Width || p.height != f.format.Height {
			return resized{p.width, p.height}
		}
		return nil
	}
	s, err := parametersIn(p.data)
	switch {
	case err == nil && (s.width != f.format.Width || s.height != f.format.Height):
		return resized{s.width, s.height}
	case err == nil:
		f.sps = s
	case p.isConfig || !errors.Is(err, errNoParameters):
		return err
	}
	if p.isConfig {
		f.config = p.data
		return nil
	}
	missing, isIDR, err := f.order.add(p.data, f.sps)
	damage := ""
	switch {
	case err != nil:
		damage = err.Error()
	case missing:
		damage = "a packet of the video is missing"
	case f.any && p.pts <= f.last:
		damage = fmt.Sprintf("a picture is stamped %v before the one before it: the phone's encoder must not reorder them", f.last-p.pts)
	}
	f.any, f.last = true, max(f.last, p.pts)
	if isIDR {
		// Decoding can begin here, so the parameters stand before it, as they came or again.
		p.data = append(append([]byte(nil), f.config...), p.data...)
	}
	return f.hand(p, damage, isIDR)
}

// hand gives a packet to the decoder's queue.
func (f *feed) hand(p packet, damage string, isIDR bool) error {
	f.mu.Lock()
	err := f.clocks.add(p.pts, p.arrived)
	if isIDR || f.damage == "" {
		f.damage = damage
	}
	f.queued += len(p.data)
	f.waiting = append(f.waiting, pending{f.next, p.pts, p.arrived, f.damage, isIDR})
	f.next++
	behind := f.queued > maxQueued
	f.mu.Unlock()
	if err != nil {
		return err
	}
	if !behind {
		select {
		case f.queue <- p:
			return nil
		default:
		}
	}
	return errors.New("this machine cannot decode the phone's video as fast as it comes: ask for less, by size: and rate: of the screen")
}

// write gives the decoder what waits for it.
func (f *feed) write() {
	number := uint64(0)
	for p := range f.queue {
		_ = f.decoder.write(number, p.data) // draw says why the decoder has ended
		number++
		f.mu.Lock()
		f.queued -= len(p.data)
		f.mu.Unlock()
	}
	_ = f.decoder.stdin.Close() // the decoder gives what it has, and ends
}

// draw takes picture after picture from the decoder.
func (f *feed) draw() {
	defer close(f.pictures)
	for {
		pix := f.buffer()
		number, complaint, err := f.decoder.read(pix)
		if err != nil {
			f.fail(err)
			return
		}
		p, err := f.of(number, complaint)
		if err != nil {
			f.fail(err)
			return
		}
		p.pix = pix
		f.show(p)
		// Only now, so that it is always known of it.
		f.mu.Lock()
		f.waiting = f.waiting[1:]
		f.mu.Unlock()
	}
}

// of finds the packet of a picture; those before it gave none.
func (f *feed) of(number uint64, complaint string) (p picture, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) > 0 && f.waiting[0].number < number {
		f.waiting = f.waiting[1:]
		p.lost++
	}
	if len(f.waiting) == 0 || f.waiting[0].number != number {
		return p, fmt.Errorf("the decoder gives a picture of packet %d, which it has given or never got", number)
	}
	p.pending = f.waiting[0]
	if complaint != "" && p.damage == "" {
		p.damage = "the decoder says: " + complaint
	}
	if p.lost > 0 && p.damage == "" && !p.isIDR {
		p.damage = "the decoder gave no picture of the packet before"
	}
	if p.damage == "" {
		return p, nil
	}
	// What follows is made of this picture, up to one that begins anew.
	for i := 1; i < len(f.waiting); i++ {
		if f.waiting[i].isIDR {
			return p, nil
		}
		f.waiting[i].damage = p.damage
	}
	f.damage = p.damage
	return p, nil
}

// show puts a picture where it is taken. Until somebody takes pictures, only the newest are kept.
func (f *feed) show(p picture) {
	for {
		select {
		case f.pictures <- p:
			return
		default:
		}
		f.mu.Lock()
		begun := f.begun
		f.mu.Unlock()
		if begun {
			select {
			case f.pictures <- p:
			case <-f.closed:
			}
			return
		}
		select {
		case old := <-f.pictures:
			f.release(old.pix)
		default:
		}
	}
}

// buffer is memory for a picture.
func (f *feed) buffer() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.free); n > 0 {
		pix := f.free[n-1]
		f.free = f.free[:n-1]
		return pix
	}
	return make([]byte, f.format.FrameSize())
}

// release gives it back.
func (f *feed) release(pix []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if pix != nil && len(f.free) < ahead {
		f.free = append(f.free, pix)
	}
}

// horizon is the time of the oldest picture that came and was not decoded yet: nothing is known of the screen from
// then on. It fails if the decoder is silent for too long.
func (f *feed) horizon() (at lab.Time, known bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		return 0, false, nil
	}
	oldest := f.waiting[0]
	if f.clock().Sub(oldest.arrived) > decodeLimit {
		return 0, true, fmt.Errorf("the decoder gave no picture for %v", decodeLimit)
	}
	at, _ = f.clocks.at(oldest.pts)
	return at, true, nil
}

// stamp is when a picture's screen was, as the box's clock has it.
func (f *feed) stamp(p picture) (at lab.Time, uncertain time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, uncertain = f.clocks.at(p.pts)
	return min(at, p.arrived), uncertain
}

// settled says whether the mapping of the clocks rests on enough pictures, and the decoder, which has just started, has
// caught up with them.
func (f *feed) settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clocks.row >= enough && (len(f.waiting) == 0 || f.clock().Sub(f.waiting[0].arrived) < hold)
}

// begin takes the mapping as it is, because the pictures are taken from now on.
func (f *feed) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = true
	f.clocks.settle()
}

// end waits until nothing reads any more; the connection was closed.
func (f *feed) end() {
	close(f.closed)
	f.decoder.shut()
	f.all.Wait()
}
