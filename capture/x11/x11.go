// Package x11 films an X server's screen at a fixed rate on an absolute schedule.
//
// At each tick the source asks the server what was drawn since the last one
// (DAMAGE extension). When nothing was drawn, the frame is a repeat of the one before,
// and no pixel is read. Otherwise the server copies the whole picture into shared
// memory (MIT-SHM), in one request, so that no picture is half drawn by us;
// without MIT-SHM it comes over the socket. Frames are BGRX, their fourth byte 0.
//
// A frame's Time is when the picture had arrived, and its Uncertainty reaches back to
// the request; the Time of a repeat is that of the request. A tick that this machine
// missed is no loss: where the server's next answer is that nothing was drawn since the
// one before, the picture at that tick is known and delivered as a repeat; otherwise the
// time of the change is known less well, see capture.Looks. A server without DAMAGE proves nothing: there a missed
// tick is a step in Seq. The protocol is spoken directly, see wire.
//
// What this rests on stands in docs/capture.md under "What a screen proves". The pointer is hidden
// on the screen while it is filmed.
//
// Standards: X Window System Protocol 11; MIT-SHM 1.1; XFIXES 2.0; DAMAGE 1.1.
package x11

import (
	"context"
	"errors"
	"fmt"
	"image"
	"time"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// Options of a screen capture.
type Options struct {
	Display string          // ":99"; empty means $DISPLAY
	Rate    float64         // frames per second; default 60
	Region  image.Rectangle // part of the screen; default all of it
	// Authority is the file with the server's cookie (Xauthority format);
	// empty means $XAUTHORITY, else ~/.Xauthority if it exists.
	Authority string
	// NoSHM and NoDamage do without these extensions, as when the server lacks them.
	NoSHM, NoDamage bool
	// Wait waits for the next tick; default capture.SleepUntil. Tests oversleep.
	Wait func(lab.Time)
}

// Source is a capture.Source over an X screen.
type Source struct {
	w      *wire
	format lab.Format
	region image.Rectangle
	looks  capture.Looks
	clock  lab.Clock
	damage *damage  // nil: the server has no DAMAGE
	shm    *segment // nil: the server has no MIT-SHM
	grab   []byte   // the request for a picture
	pix    []byte   // the newest picture
	rects  []image.Rectangle
	have   bool
}

// Open connects to the display.
func Open(o Options) (*Source, error) {
	if o.Rate == 0 {
		o.Rate = 60
	}
	if o.Wait == nil {
		o.Wait = capture.SleepUntil
	}
	w, err := dial(o.Display, o.Authority)
	if err != nil {
		return nil, fmt.Errorf("x11: %w", err)
	}
	s, err := open(w, o)
	if err != nil {
		w.close()
		return nil, fmt.Errorf("x11: %w", err)
	}
	return s, nil
}

func open(w *wire, o Options) (*Source, error) {
	screen := image.Rect(0, 0, w.width, w.height)
	if o.Region.Empty() {
		o.Region = screen
	}
	if !o.Region.In(screen) {
		return nil, fmt.Errorf("the region %v is not on the screen, which is %v", o.Region, screen)
	}
	if w.bpp != 32 || w.depth < 24 {
		return nil, fmt.Errorf("the screen has depth %d in %d bits, 24 in 32 is needed (Xvfb: -screen 0 WIDTHxHEIGHTx24)", w.depth, w.bpp)
	}
	s := &Source{
		w: w, region: o.Region,
		format: lab.Format{Pixels: lab.BGRX, Width: o.Region.Dx(), Height: o.Region.Dy(), Rate: o.Rate},
		clock:  lab.Monotonic,
		looks:  capture.Looks{Pace: capture.Pace{Period: time.Duration(1e9 / o.Rate), Clock: lab.Monotonic, Wait: o.Wait}},
	}
	if err := s.format.Validate(); err != nil {
		return nil, err
	}
	if !o.NoDamage {
		d, err := openDamage(w)
		if err != nil {
			return nil, fmt.Errorf("DAMAGE: %w", err)
		}
		s.damage = d
	}
	if !o.NoSHM {
		if err := s.openSHM(); err != nil {
			return nil, fmt.Errorf("MIT-SHM: %w", err)
		}
	}
	if s.shm == nil {
		s.pix = make([]byte, s.format.FrameSize())
		s.grab = request(73, 2, w.root, xy(o.Region.Min), xy(o.Region.Size()), 0x00ffffff) // GetImage, ZPixmap
	}
	return s, nil
}

// xy packs two 16-bit numbers as X requests hold them.
func xy(p image.Point) uint32 { return uint32(uint16(p.X)) | uint32(uint16(p.Y))<<16 }

// openSHM sets up shared memory; s.shm stays nil when the server cannot.
func (s *Source) openSHM() error {
	major, err := s.w.extension("MIT-SHM")
	if err != nil || major == 0 {
		return err
	}
	seg, err := newSegment(s.format.FrameSize())
	if err != nil {
		return nil // no System V memory here (a container's policy): pictures come over the socket
	}
	id := s.w.id()
	var refused xError
	err = s.w.check(request(major, 1, id, uint32(seg.id), 0)) // ShmAttach
	if errors.As(err, &refused) {
		seg.close() // another user's server, or one in another IPC namespace
		return nil
	}
	if err != nil {
		seg.close()
		return err
	}
	seg.release()
	s.shm, s.pix = seg, seg.mem[:s.format.FrameSize()]
	s.grab = request(major, 4, s.w.root, xy(s.region.Min), xy(s.region.Size()), 0x00ffffff, 2, id, 0) // ShmGetImage
	return nil
}

// Format describes the frames: BGRX.
func (s *Source) Format() lab.Format { return s.format }

// Next waits for the next tick and takes the picture.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	info, proven, err := s.looks.Next(ctx)
	if err != nil || proven {
		return lab.Frame{FrameInfo: info, Pix: s.pix}, err
	}
	asked := s.clock()
	drawn, err := s.look()
	if err != nil {
		return lab.Frame{}, fmt.Errorf("x11: tick %d: %w", s.looks.Tick(), err)
	}
	if drawn {
		info.Time = s.clock()
		info.Uncertainty = info.Time.Sub(asked)
		info.Changed = s.rects
	} else {
		// Until the question at least; when the server answered it is not known.
		info.Time, info.Flags = asked, lab.FrameRepeat
	}
	if s.damage == nil {
		info.Seq = s.looks.Tick() // a step is a loss: nobody says what was drawn meanwhile
	} else {
		info = s.looks.Frame(info, asked)
	}
	return lab.Frame{FrameInfo: info, Pix: s.pix}, nil
}

// look asks what was drawn and, if anything was, takes the picture.
func (s *Source) look() (bool, error) {
	if s.damage == nil {
		s.rects = append(s.rects[:0], s.format.Bounds())
		return true, s.picture()
	}
	rects, err := s.damage.take(s.w, s.region, s.rects[:0])
	if err != nil {
		return false, err
	}
	if len(rects) == 0 && s.have {
		return false, nil
	}
	// What is drawn between the two requests is in the picture, but not in
	// rects: the picture may differ anywhere, and the recorder compares it.
	if err := s.picture(); err != nil {
		return false, err
	}
	s.rects = append(rects[:0], s.format.Bounds())
	s.have = true
	return true, nil
}

// picture asks for the screen and waits for it.
func (s *Source) picture() error {
	r, err := s.w.call(s.grab)
	if err != nil {
		return err
	}
	if s.shm == nil {
		if len(r)-32 < len(s.pix) {
			return fmt.Errorf("a picture of %d bytes instead of %d", len(r)-32, len(s.pix))
		}
		copy(s.pix, r[32:])
	}
	return nil
}

// Close disconnects; the server frees what it held for us.
func (s *Source) Close() error {
	s.w.close()
	if s.shm != nil {
		s.shm.close()
		s.shm = nil
	}
	return nil
}
