package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"

	"eidetic/internal/lab"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/seat"
	"eidetic/internal/web/panel"
)

// seats is [panel.Seats] for a list of devices.
type seats struct{ devices *deviceList }

func (s seats) at(device string) (*seat.Seat, error) {
	d := s.devices.get(device)
	if d == nil {
		return nil, &panel.Refusal{Status: http.StatusNotFound, Err: fmt.Errorf("there is no device %q", device)}
	}
	return d.place(), nil
}

// refusedBy makes an error of a seat one of the request.
func refusedBy(err error) error {
	var wrong *seat.StepsError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return &panel.Refusal{Status: http.StatusUnprocessableEntity, Err: err}
	}
	return &panel.Refusal{Status: http.StatusConflict, Err: err}
}

// Screen implements [panel.Seats].
func (s seats) Screen(ctx context.Context, device string) (panel.ScreenPicture, error) {
	at, err := s.at(device)
	if err != nil {
		return panel.ScreenPicture{}, err
	}
	p, err := at.Look(ctx)
	return panel.ScreenPicture(p), refusedBy(err)
}

// View implements [panel.Seats].
func (s seats) View(device, who string) (panel.View, error) {
	at, err := s.at(device)
	if err != nil {
		return nil, err
	}
	v, err := at.View(who)
	if err != nil {
		return nil, refusedBy(err)
	}
	return v, nil
}

// Drive implements [panel.Seats].
func (s seats) Drive(device string, who panel.Driver) (panel.Turn, error) {
	at, err := s.at(device)
	if err != nil {
		return panel.Turn{}, err
	}
	lasts, err := at.Drive(seat.Driver(who))
	return panel.Turn{Driver: who.Name, Seconds: lasts.Seconds()}, refusedBy(err)
}

// Release implements [panel.Seats].
func (s seats) Release(device string, who panel.Driver) error {
	at, err := s.at(device)
	if err == nil {
		at.Release(seat.Driver(who))
	}
	return err
}

// Input implements [panel.Seats].
func (s seats) Input(ctx context.Context, device string, who panel.Driver, steps string) ([]lab.Event, error) {
	at, err := s.at(device)
	if err != nil {
		return nil, err
	}
	events, err := at.Input(ctx, seat.Driver(who), steps)
	return events, refusedBy(err)
}

// liveFolder is where a run of a device shows its screen.
func liveFolder(data, device string) string {
	sum := sha256.Sum256([]byte(device))
	return filepath.Join(data, "live", hex.EncodeToString(sum[:8]))
}

// parts is what the device's parts are opened with, for people.
func (d *portDevice) parts() (seat.Parts, error) {
	c := execute.PluggedConfig{Screen: *d.config.Screen, Controls: *d.config.Controls, Password: d.config.Password}
	now := d.describeNetwork()
	c.Address, _ = netip.ParseAddr(now.Address)
	if !c.Address.IsValid() && c.NeedsAddress() {
		return seat.Parts{}, fmt.Errorf("device %s: %s", d.config.Name, now.Problem)
	}
	return seat.Parts{Screen: c.Source(), Controls: c.Connect(), Recipe: d.config.Recipe}, nil
}
