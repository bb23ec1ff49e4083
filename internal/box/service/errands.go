package service

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"eidetic/internal/run/errand"
	"eidetic/internal/web/panel"
	"eidetic/netlab"
)

// errands is [panel.Errands] for a list of devices.
type errands struct {
	devices *deviceList
	keeper  *errand.Keeper
}

// forErrands is what people may ask of the device.
func (d *portDevice) forErrands() errand.Device {
	return errand.Device{Name: d.config.Name, Seat: &d.seat, Hold: d.hold, Display: d.config.Display, Pictures: &d.pictures}
}

// hold keeps the device's network, for a recording, until the returned function is called.
func (d *portDevice) hold() (*netlab.Network, func(), error) {
	running, _, done := d.occupy()
	if running == nil {
		done()
		return nil, nil, fmt.Errorf("device %s: %s", d.config.Name, d.describeNetwork().Problem)
	}
	return running.Network(), done, nil
}

// of finds a device.
func (e errands) of(device string) (errand.Device, error) {
	d := e.devices.get(device)
	if d == nil {
		return errand.Device{}, &panel.Refusal{Status: http.StatusNotFound, Err: fmt.Errorf("there is no device %q", device)}
	}
	return d.forErrands(), nil
}

// Start implements [panel.Errands].
func (e errands) Start(device string, r panel.ErrandRequest, by string) (panel.Errand, error) {
	d, err := e.of(device)
	if err != nil {
		return panel.Errand{}, err
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return told(e.keeper.Start(d, errand.Request{Do: r.Do, Length: seconds(r.Seconds), PreRoll: seconds(r.PreRoll), Name: r.Name}, by))
}

// Get implements [panel.Errands].
func (e errands) Get(device string) (panel.Errand, error) {
	if _, err := e.of(device); err != nil {
		return panel.Errand{}, err
	}
	s, err := e.keeper.Of(device)
	if errors.Is(err, errand.ErrNone) {
		return panel.Errand{State: "none"}, nil
	}
	return told(s, err)
}

// Trigger implements [panel.Errands].
func (e errands) Trigger(device string) (panel.Errand, error) {
	if _, err := e.of(device); err != nil {
		return panel.Errand{}, err
	}
	return told(e.keeper.Trigger(device))
}

// End implements [panel.Errands].
func (e errands) End(device string, keep bool) (panel.Errand, error) {
	if _, err := e.of(device); err != nil {
		return panel.Errand{}, err
	}
	return told(e.keeper.End(device, keep))
}

// told is a status, or the error of a request, as the panel says it.
func told(s errand.Status, err error) (panel.Errand, error) {
	var refused *errand.RefusedError
	var full *panel.Refusal
	switch {
	case err == nil:
	case errors.As(err, &full):
		return panel.Errand{}, err
	case errors.Is(err, errand.ErrNone):
		return panel.Errand{}, &panel.Refusal{Status: http.StatusNotFound, Err: err}
	case errors.As(err, &refused):
		return panel.Errand{}, &panel.Refusal{Status: http.StatusUnprocessableEntity, Err: err}
	default:
		return panel.Errand{}, &panel.Refusal{Status: http.StatusConflict, Err: err}
	}
	out := panel.Errand{
		Do: s.Do, Name: s.Name, State: s.State, By: s.By, Began: s.Began, Ended: s.Ended, Ends: s.Ends,
		Doing: s.Doing, Error: s.Error, Note: s.Note, Frames: s.Frames, Requests: s.Requests, Run: s.Run, Recording: s.Recording,
	}
	if n := s.Noise; n != nil {
		out.Noise = &panel.ErrandNoise{
			ScreenNoise: n.ScreenNoise, Floor: n.Floor, Sees: n.Sees, Screen: n.Screen, Exact: n.Exact(), TooNoisy: n.TooNoisy,
		}
	}
	return out, nil
}
