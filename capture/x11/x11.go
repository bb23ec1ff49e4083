// Package x11 films an X server's screen at a fixed rate on an absolute schedule.
package x11

import (
	"context"
	"errors"
	"image"

	"eidetic/internal/lab"
)

// Options of a screen capture.
type Options struct {
	Display string          // ":99"; empty means $DISPLAY
	Rate    float64         // frames per second; default 60
	Region  image.Rectangle // part of the root window; default all of it
	// Authority is the file with the server's cookie (Xauthority format);
	// empty means no authorisation.
	Authority string
}

// Source is a capture.Source over an X screen.
type Source struct{}

// Open connects to the display.
func Open(o Options) (*Source, error) { return nil, errors.New("x11: not wired yet") }

// Format describes the frames: BGRX.
func (s *Source) Format() lab.Format { return lab.Format{} }

// Next waits for the next tick and takes the picture.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	return lab.Frame{}, errors.New("x11: not wired yet")
}

// Close disconnects.
func (s *Source) Close() error { return nil }
