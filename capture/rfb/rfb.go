// Package rfb films the screen of a VNC server: of a virtual machine, or of a
// laptop that shares its screen.
//
// A server sends what changed when it finds the time; this package keeps a
// picture up to date from that, and takes it at each tick of a 60 Hz schedule.
// Every tick also asks the server for a sign that it has done what
// was sent before (a fence, or where the server has none the update of one
// pixel), and waits for it for at most half a period. A tick that this machine
// missed is no loss: the picture at that tick is known where no update came between
// the looks around it, and otherwise the time of the change is known less well, see capture.Looks.
//
// What a frame shows is what the server had sent. It was the server's picture
// at some instant in [Time − Uncertainty, Time]: Time is when the frame was taken, and
// the interval reaches back to the request for the last sign that came, because the
// server's answers keep their order, and every update from before that request
// had then arrived. A slow server or network therefore makes frames
// uncertain, not lost. How long after drawing a server looks at its screen is not in
// this interval, as a monitor's delay is not: Xvnc looks every 16.7 ms (-FrameRate), x11vnc
// and QEMU every 20 to 30 ms.
//
// Frames are BGRX. The server is asked not to draw the pointer into them, as
// package x11 does not see it; Options.Pointer has it drawn. When the screen's size
// changes or the server goes away, the source ends with a capture.Interruption.
//
// Standards: see package internal/base/rfb.
package rfb

import (
	"context"
	"errors"
	"fmt"
	"image"
	"strconv"
	"time"

	"eidetic/capture"
	"eidetic/internal/base/rfb"
	"eidetic/internal/lab"
)

// Encoding is how the server is asked to send pixels. All are lossless.
type Encoding string

// The encodings. A server that lacks the one that is asked for sends Raw.
const (
	Auto    Encoding = ""        // Raw from this machine, ZRLE from another
	Raw     Encoding = "raw"     // 4 bytes a pixel: the least work
	ZRLE    Encoding = "zrle"    // runs and palettes, deflated: the fewest bytes
	Hextile Encoding = "hextile" // flat areas cost little; no compression
)

// Options of a capture.
type Options struct {
	Address  string     // "host:port" or "unix:/path"
	Password lab.Secret // for VNC Authentication
	Rate     float64
	Encoding Encoding
	Pointer  bool // the server draws its pointer into the picture
	// Patience is how long the server may be silent before the signal counts
	// as lost; default 5 s.
	Patience time.Duration
	// Wait waits for the next tick; default capture.SleepUntil. Tests oversleep.
	Wait func(lab.Time)
}

// Errors that end a source; a caller may open it again.
var (
	// ErrResolution: the screen has another size now.
	ErrResolution = errors.New("the size of the server's screen changed")
	// ErrClosed: the server ended the connection, or broke the protocol.
	ErrClosed = errors.New("the connection to the VNC server ended")
)

// Source is a capture.Source over a VNC server.
type Source struct {
	o      Options
	conn   *rfb.Conn
	format lab.Format
	looks  capture.Looks
	feed   *feed
	pix    []byte
	rects  []image.Rectangle
	first  bool          // no frame was taken yet
	silent bool          // the loss of the signal has been told
	half   time.Duration // how long a tick waits for its sign
	timer  *time.Timer
}

// mostResizes is how often a server may change the size of its screen while Open connects.
const mostResizes = 3

// Open connects, and returns when the whole screen has come. A screen without pixels is waited for, see rfb.Dial. Some
// servers learn the size of their screen only when a client connects: after a change of the size Open connects again.
func Open(ctx context.Context, o Options) (*Source, error) {
	if o.Rate == 0 {
		o.Rate = 60
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	if o.Wait == nil {
		o.Wait = capture.SleepUntil
	}
	for resizes := 0; ; resizes++ {
		conn, err := rfb.Dial(ctx, rfb.Options{Address: o.Address, Password: o.Password})
		if err != nil {
			return nil, fmt.Errorf("rfb: %w", err)
		}
		s, err := open(ctx, conn, o)
		if err == nil {
			return s, nil
		}
		_ = conn.Close()
		if !errors.Is(err, ErrResolution) || resizes == mostResizes {
			return nil, fmt.Errorf("rfb: %s: %w", o.Address, err)
		}
	}
}

func open(ctx context.Context, conn *rfb.Conn, o Options) (*Source, error) {
	list, err := encodings(o, conn.Local())
	if err != nil {
		return nil, err
	}
	screen := conn.NewScreen()
	format := screen.Format(o.Rate)
	if err := format.Validate(); err != nil {
		return nil, err
	}
	period := time.Duration(1e9 / o.Rate)
	s := &Source{
		o: o, conn: conn, format: format, first: true, half: period / 2,
		looks: capture.Looks{Pace: capture.Pace{Period: period, Clock: lab.Monotonic, Wait: o.Wait}},
		pix:   make([]byte, format.FrameSize()),
	}
	hello := rfb.AppendEncodings(rfb.AppendPixelFormat(nil), list...)
	if err := conn.Send(rfb.AppendRequest(hello, false, screen.Bounds())); err != nil {
		return nil, err
	}
	s.feed = newFeed(conn, screen, lab.Monotonic)
	s.timer = time.NewTimer(o.Patience)
	defer s.timer.Stop()
	select {
	case <-s.feed.complete:
	case <-s.feed.done:
		return nil, s.feed.failure()
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.timer.C:
		err = fmt.Errorf("the server did not send its screen within %v", o.Patience)
	}
	if err != nil {
		_ = conn.Close()
		<-s.feed.done
		return nil, err
	}
	return s, nil
}

// encodings lists what is announced, the preferred first.
func encodings(o Options, local bool) ([]rfb.Encoding, error) {
	e := o.Encoding
	if e == Auto && local {
		e = Raw
	}
	var list []rfb.Encoding
	switch e {
	case Raw:
		list = []rfb.Encoding{rfb.Raw, rfb.CopyRect}
	case Auto, ZRLE:
		list = []rfb.Encoding{rfb.ZRLE, rfb.Hextile, rfb.CopyRect, rfb.Raw}
	case Hextile:
		list = []rfb.Encoding{rfb.Hextile, rfb.CopyRect, rfb.Raw}
	default:
		return nil, fmt.Errorf("encoding %q is not one of raw, zrle, hextile", o.Encoding)
	}
	if !o.Pointer {
		list = append(list, rfb.Cursor)
	}
	return append(list, rfb.DesktopSize, rfb.ExtDesktopSize, rfb.FenceSupport, rfb.ContinuousUpdates), nil
}

// Format describes the frames: BGRX.
func (s *Source) Format() lab.Format { return s.format }

// Name is what the server calls its desktop.
func (s *Source) Name() string { return s.conn.Name }

// Notes are what a recording should remember of the server.
func (s *Source) Notes() map[string]string {
	return map[string]string{
		"desktop": s.Name(), "protocol": "RFB " + s.Version(),
		"fences": strconv.FormatBool(s.Fences()), "continuous updates": strconv.FormatBool(s.Continuous()),
	}
}

// Version is the protocol's: "3.8".
func (s *Source) Version() string { return s.conn.Version }

// Fences says whether the server offers them, beyond the standard.
func (s *Source) Fences() bool { return s.feed.can().fences }

// Continuous says whether the server sends updates without being asked.
func (s *Source) Continuous() bool { return s.feed.can().continuous }

// Next waits for the next tick and takes the picture.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	info, proven, err := s.looks.Next(ctx)
	if err != nil || proven {
		return lab.Frame{FrameInfo: info, Pix: s.pix}, err
	}
	if err := s.sign(ctx); err != nil {
		return lab.Frame{}, err
	}
	var known lab.Time
	s.rects, known, err = s.feed.take(s.pix, s.rects[:0])
	info.Time = lab.Monotonic()
	info.Uncertainty = info.Time.Sub(known)
	if err != nil {
		return lab.Frame{}, s.ended(info.Time, err)
	}
	if s.first {
		s.first = false
		s.rects = append(s.rects[:0], s.format.Bounds())
	}
	if info.Changed = s.rects; len(s.rects) == 0 {
		info.Flags = lab.FrameRepeat
	}
	return lab.Frame{FrameInfo: s.looks.Frame(info, known), Pix: s.pix}, nil
}

// sign asks for a sign of the server and waits for it a little. A server that
// has been silent for too long is reported once; then its next sign is waited for.
func (s *Source) sign(ctx context.Context) error {
	if err := s.feed.ask(); err != nil {
		// Why the server went away may still be on its way to the reader.
		s.await(ctx, s.half)
		if known := s.feed.failure(); known != nil {
			err = known
		}
		return s.ended(lab.Monotonic(), err)
	}
	s.await(ctx, s.half)
	if !s.silent && s.feed.silence(lab.Monotonic()) > s.o.Patience {
		// This machine may have been held up, not the server: first read what has
		// come meanwhile, and give the server time for the rest.
		s.await(ctx, s.o.Patience/10)
	}
	for silence := s.feed.silence(lab.Monotonic()); silence > s.o.Patience || s.silent; silence = s.feed.silence(lab.Monotonic()) {
		if !s.silent {
			s.silent = true
			return &capture.Interruption{Event: lab.SourceEvent{
				Kind: lab.SourceSignalLost, Time: lab.Monotonic(),
				Detail: fmt.Sprintf("the VNC server has been silent for %.1f s", silence.Seconds()),
			}}
		}
		if silence < s.o.Patience {
			s.silent = false
			return &capture.Interruption{Event: lab.SourceEvent{Kind: lab.SourceSignalBack, Time: lab.Monotonic()}}
		}
		s.await(ctx, time.Second)
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.feed.failure() != nil {
			return nil // take says why
		}
	}
	return nil
}

// await waits until nothing that was asked for is missing, for at most d.
func (s *Source) await(ctx context.Context, d time.Duration) {
	s.timer.Reset(d)
	defer s.timer.Stop()
	for s.feed.waiting() {
		select {
		case <-s.feed.signs:
		case <-s.feed.done:
			return
		case <-ctx.Done():
			return
		case <-s.timer.C:
			return
		}
	}
}

// ended makes an interruption of what ended the feed.
func (s *Source) ended(at lab.Time, err error) error {
	e := lab.SourceEvent{Kind: lab.SourceUnplugged, Time: at, Detail: err.Error()}
	if size := (resized{}); errors.As(err, &size) {
		f := s.format
		f.Width, f.Height = size.width, size.height
		e.Kind, e.Format = lab.SourceResized, &f
	}
	if errors.Is(err, rfb.ErrNoPixels) {
		e.Kind = lab.SourceSignalLost
	}
	return &capture.Interruption{Event: e, Ends: fmt.Errorf("rfb: %s: %w", s.o.Address, err)}
}

// Close disconnects.
func (s *Source) Close() error {
	_ = s.conn.Close() // the server may have done so before
	<-s.feed.done
	return nil
}
