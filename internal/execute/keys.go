package execute

import (
	"context"
	"errors"
	"image"
	"time"

	"eidetic/internal/experiment"
	"eidetic/internal/lab"
)

// keyLimit is how long a device may take to answer one action.
const keyLimit = 30 * time.Second

// keys controls a device over a connection that may be lost: an action without an answer in
// time fails its trial, and the next action connects again.
type keys struct {
	open  func(context.Context) (screenControl, error)
	limit time.Duration
	now   screenControl // nil if there is no connection
}

// errNoKeys is returned if there is no connection to the device's screen.
var errNoKeys = errors.New("there is no connection to the device's screen")

func (k *keys) ready(ctx context.Context) (err error) {
	if k.now == nil {
		k.now, err = k.open(ctx)
	}
	if err != nil {
		k.now = nil // open may return a typed nil; store a plain nil
	}
	return err
}

// act does one action within keyLimit.
func (k *keys) act(ctx context.Context, do func(context.Context, screenControl) (lab.Event, error)) (lab.Event, error) {
	limited, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	err := k.ready(limited)
	var event lab.Event
	if err == nil {
		if event, err = do(limited, k.now); err != nil {
			err = errors.Join(err, k.Close())
		}
	}
	if err != nil && ctx.Err() == nil {
		err = experiment.Broken(err)
	}
	return event, err
}

// Key implements [experiment.Control].
func (k *keys) Key(ctx context.Context, chord string) (lab.Event, error) {
	return k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) { return c.Key(ctx, chord) })
}

// Text types text.
func (k *keys) Text(ctx context.Context, text string) (lab.Event, error) {
	return k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) { return c.Text(ctx, text) })
}

// Move moves the pointer.
func (k *keys) Move(ctx context.Context, x, y int) (lab.Event, error) {
	return k.act(ctx, func(ctx context.Context, c screenControl) (lab.Event, error) { return c.Move(ctx, x, y) })
}

// Size returns the size of the screen.
func (k *keys) Size() (image.Point, error) {
	if k.now == nil {
		return image.Point{}, experiment.Broken(errNoKeys)
	}
	return k.now.Size()
}

// Close ends the connection, if there is one.
func (k *keys) Close() error {
	if k.now == nil {
		return nil
	}
	c := k.now
	k.now = nil
	return c.Close()
}
