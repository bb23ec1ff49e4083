// Package scrcpy films the screen of an Android phone through its USB cable, by the server of scrcpy: a program that
// adb puts on the phone, where it encodes the screen. The server's file is the user's; its version says its protocol.
//
// The server sends a picture when the screen was drawn, with the phone's time stamp, as H.264; ffmpeg decodes each
// picture as it comes. No picture means a screen that stays as it was, so between pictures this package gives repeats
// at 60 a second. As pictures come in order, those before a picture are proven by it; a repeat that no picture follows
// is given after a quarter of a second, in which a picture that was on its way would have come. One that comes later
// still makes known that the repeats since then were wrong: the time of that change is less certain.
//
// The phone's clock is mapped to the box's by the least difference of arrival and stamp, see clocks: a frame's Time is
// when its picture would have arrived, had it come as fast as pictures come. That least time, of encoding and of the
// cable, is what capture/source.Late takes off.
//
// What is not known: a picture that the phone's encoder left out, because it was too slow, and that a packet was lost
// from among those that no other depends on. A packet that is missing or damaged otherwise is noticed; the pictures up
// to the next one that begins anew are marked as damaged.
//
// Frames are NV12. When the picture's size changes, as a phone is turned, or the phone goes away, the source ends with a
// capture.Interruption.
//
// Standards: scrcpy, doc/develop.md, and the sources of its versions 1.23 to 4.1; ITU-T H.264.
package scrcpy

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"time"

	"eidetic/internal/base/adbserver"
	"eidetic/internal/base/scrcpyserver"
	"eidetic/internal/lab"
)

// Options of a capture.
type Options struct {
	Client adbserver.Client
	Serial string // of the phone; "" is the only one
	Server string // the file of scrcpy's server; "" is scrcpyserver.Default
	// MaxSize bounds the longer side of the pictures, MaxRate how many the encoder makes a second; 0 does not.
	MaxSize, MaxRate int
	Rate             float64 // of the repeats while nothing is drawn; default 60
	// Patience is how long the first picture may take; default 20 s.
	Patience time.Duration
	Clock    lab.Clock
}

const (
	// bitRate is what the encoder is asked for, in bits a second: text stays sharp, and a USB 2 cable takes ten times that.
	bitRate = 20_000_000
	// hold is how long a repeat waits for a picture that was drawn before it.
	hold = 250 * time.Millisecond
	// settleLimit bounds how long more pictures are waited for, by which the clocks are mapped: an encoder repeats the
	// picture of a still screen ten times a second at first.
	settleLimit = 1500 * time.Millisecond
	// mostProven is how many repeats come before a picture, the newest of them.
	mostProven = 600
)

// Errors that end a source; a caller may open it again.
var (
	// ErrResolution: the pictures have another size now.
	ErrResolution = errors.New("the phone was turned, folded or given another resolution: its pictures have another size") // constant
	// ErrClosed: the phone went away, or the server ended.
	ErrClosed = errors.New("the phone's video ended: is its cable plugged in?") // constant
)

// Source is a capture.Source over a phone.
type Source struct {
	o      Options
	server scrcpyserver.File
	speaks dialect
	serial string
	phone  string
	run    *scrcpyserver.Running
	video  io.Closer
	feed   *feed

	period time.Duration
	seq    uint64
	begun  bool
	last   lab.Time // of the newest frame
	repeat bool     // it was a repeat that nothing has proven yet
	held   *picture // is due after the repeats before it
	shown  []byte   // the pixels of the newest picture
	hurt   bool     // that the video is damaged was told
	timer  *time.Timer
	rects  [1]image.Rectangle
}

// Open starts the server on the phone, and returns when a picture has come and the clocks are mapped.
func Open(ctx context.Context, o Options) (*Source, error) {
	if o.Rate == 0 {
		o.Rate = 60
	}
	if o.Patience == 0 {
		o.Patience = 20 * time.Second
	}
	if o.Clock == nil {
		o.Clock = lab.Monotonic
	}
	if o.Server == "" {
		o.Server = scrcpyserver.Default
	}
	server, err := scrcpyserver.Read(o.Server)
	if err != nil {
		return nil, err
	}
	found, err := o.Client.Find(ctx, o.Serial)
	if err != nil {
		return nil, err
	}
	s := &Source{
		o: o, server: server, speaks: dialectOf(server), serial: found.Serial, period: time.Duration(1e9 / o.Rate), timer: time.NewTimer(0),
	}
	ctx, cancel := context.WithTimeout(ctx, o.Patience+scrcpyserver.StartLimit)
	defer cancel()
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("scrcpy: %s: %w", found.Serial, err)
	}
	return s, nil
}

func (s *Source) open(ctx context.Context) error {
	run, video, err := scrcpyserver.Start(ctx, s.o.Client, s.serial, s.server, s.speaks.options(s.o)...)
	if err != nil {
		return err
	}
	s.run, s.video = run, video
	limited, cancel := context.WithTimeout(ctx, s.o.Patience)
	defer cancel()
	stop := context.AfterFunc(limited, func() { _ = video.Close() }) // what waits for the phone ends
	err = s.greet(limited, video)
	if err == nil {
		err = s.await(limited)
	}
	if !stop() && err == nil {
		err = limited.Err()
	}
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("no picture came within %v: unlock the phone and switch its screen on (the server prints %q)", s.o.Patience, run.Text())
	case ctx.Err() != nil:
		err = ctx.Err()
	default:
		err = run.Reason(err)
	}
	s.shut()
	return err
}

// greet reads what the server says before its pictures.
func (s *Source) greet(ctx context.Context, video io.Reader) error {
	h, err := readHello(video, s.speaks)
	if err != nil {
		return err
	}
	s.phone = h.phone
	s.feed, err = newFeed(context.WithoutCancel(ctx), video, h, s.speaks, s.o.Rate, s.o.Clock)
	return err
}

// await waits for the first picture, and then for some more, by which the clocks are mapped.
func (s *Source) await(ctx context.Context) error {
	first, ok := <-s.feed.pictures
	if !ok {
		return s.feed.failure()
	}
	s.held = &first
	settled := time.NewTimer(settleLimit)
	defer settled.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !s.feed.settled() && s.feed.failure() == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-settled.C:
			return nil
		case <-ticker.C:
		}
	}
	return s.feed.failure()
}
