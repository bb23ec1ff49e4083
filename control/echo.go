package control

import (
	"context"
	"errors"
	"time"

	"eidetic/internal/lab"
)

// Echo is what a device answered to Caps Lock by its keyboard's light: when it can have got the
// press, and when it can have switched the light on.
type Echo struct {
	Press lab.Event `json:"press"`
	Light lab.Event `json:"light"`
}

// Echoer is implemented by controllers that hear what the device sets the keyboard's lights to.
type Echoer interface {
	// Echo presses Caps Lock, waits for the light, and switches it off again.
	Echo(ctx context.Context) (Echo, error)
}

// echoLimit is how long a light may take: no device that answers at all needs as long.
const echoLimit = 3 * time.Second

// ErrNoEcho says that Caps Lock had no answer.
var ErrNoEcho = errors.New("the device did not answer Caps Lock by its light within 3 s: it does not take the key, or this connection does not " +
	"tell its lights") // constant

// Caps tells the state of Caps Lock, as far as it is known.
type Caps func(context.Context) (on, known bool)

// AwaitLight asks for the state of Caps Lock until it is as wanted. The light was switched after
// the last question whose answer was the other one was asked, and not before since.
func AwaitLight(ctx context.Context, clock lab.Clock, caps Caps, want bool, since lab.Time) (lab.Event, error) {
	began := clock()
	light := lab.Event{Name: "light", Detail: map[bool]string{true: "on", false: "off"}[want], Earliest: since}
	for {
		asked := clock()
		on, known := caps(ctx)
		light.Latest = clock()
		if known && on == want {
			return light, nil
		}
		if known {
			light.Earliest = max(asked, since)
		}
		if asked.Sub(began) > echoLimit {
			return lab.Event{}, ErrNoEcho
		}
		select {
		case <-ctx.Done():
			return lab.Event{}, ctx.Err()
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// EchoCaps is what Echo does for a controller that can press Caps Lock and knows its state. The light is
// switched off again whether it was seen or not.
func EchoCaps(ctx context.Context, clock lab.Clock, caps Caps, press func(context.Context) (lab.Event, error)) (echo Echo, err error) {
	off := func(ctx context.Context) error {
		e, err := press(ctx)
		if err == nil {
			_, err = AwaitLight(ctx, clock, caps, false, e.Earliest)
		}
		if errors.Is(err, ErrNoEcho) {
			return errors.New("the device does not switch Caps Lock off: switch it off by hand")
		}
		return err
	}
	if on, known := caps(ctx); known && on {
		if err := off(ctx); err != nil {
			return echo, err
		}
	}
	if echo.Press, err = press(ctx); err != nil {
		return echo, err
	}
	echo.Light, err = AwaitLight(ctx, clock, caps, true, echo.Press.Earliest)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*echoLimit)
	defer cancel()
	if back := off(late); err == nil {
		err = back
	}
	return echo, err
}
