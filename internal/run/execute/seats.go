package execute

import (
	"context"
	"errors"
	"fmt"
	"image"
	"strings"

	"eidetic/control"
	x11control "eidetic/control/x11"
	"eidetic/internal/lab"
	"eidetic/internal/run/device"
	"eidetic/internal/run/experiment"
)

// seats are the virtual screens of a device, one for each size that an arm asks for, with the input to
// each. The device sits at one of them at a time.
type seats struct {
	device *device.Virtual
	all    map[image.Point]seat
	sizes  []image.Point // in the order of their first use
	// Controller is that of the screen at which the device sits.
	*x11control.Controller
}

type seat struct {
	x    *device.XServer
	keys *x11control.Controller
}

// newSeats opens the input to the device's first screen.
func newSeats(ctx context.Context, d *device.Virtual) (*seats, error) {
	keys, err := openKeys(ctx, d.X)
	if err != nil {
		return nil, err
	}
	first := image.Pt(d.Size.Width, d.Size.Height)
	return &seats{device: d, all: map[image.Point]seat{first: {d.X, keys}}, sizes: []image.Point{first}, Controller: keys}, nil
}

// openKeys opens the input to a screen.
func openKeys(ctx context.Context, x *device.XServer) (*x11control.Controller, error) {
	keys, err := x11control.Open(ctx, x.Display, clock)
	if err != nil || x.Touch == "" {
		return keys, err
	}
	if err := keys.ConnectTouch(ctx, x.Touch); err != nil {
		return nil, errors.Join(err, keys.Close())
	}
	return keys, nil
}

// Key is that of the screen at which the device sits. A key that may have been down for too long spoils its trial.
func (s *seats) Key(ctx context.Context, chord string) (lab.Event, error) {
	event, err := s.Controller.Key(ctx, chord)
	if control.IsHeld(err) {
		err = experiment.Broken(err)
	}
	return event, err
}

// sit makes the device use a screen of a size, or of its first size for the zero point.
func (s *seats) sit(ctx context.Context, size image.Point) error {
	if size == (image.Point{}) {
		size = s.sizes[0]
	}
	at, ok := s.all[size]
	if !ok {
		x, err := device.StartX(ctx, device.Screen{Width: size.X, Height: size.Y}, s.device.X.Touch != "")
		if err != nil {
			return fmt.Errorf("a screen of %d×%d: %w", size.X, size.Y, err)
		}
		keys, err := openKeys(ctx, x)
		if err != nil {
			x.Stop()
			return err
		}
		at = seat{x, keys}
		s.all[size], s.sizes = at, append(s.sizes, size)
	}
	s.device.X, s.device.Size, s.Controller = at.x, device.Screen{Width: size.X, Height: size.Y}, at.keys
	return nil
}

// describe names the sizes that were used.
func (s *seats) describe() string {
	var all []string
	for _, size := range s.sizes {
		all = append(all, fmt.Sprintf("%d×%d", size.X, size.Y))
	}
	return strings.Join(all, " and ")
}

// Close ends the screens, but the device's first one, which the device ends.
func (s *seats) Close() error {
	var errs []error
	for size, at := range s.all {
		errs = append(errs, at.keys.Close())
		if size != s.sizes[0] {
			at.x.Stop()
		}
	}
	first := s.sizes[0]
	s.device.X, s.device.Size = s.all[first].x, device.Screen{Width: first.X, Height: first.Y}
	return errors.Join(errs...)
}
