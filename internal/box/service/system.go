package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"eidetic/image/box"
	"eidetic/image/update"
	"eidetic/internal/fleet/member"
	"eidetic/internal/web/panel"
)

// boxSystem lets the panel update and reset the box that the service runs on.
type boxSystem struct{ root string }

// Update implements panel.System.
func (s boxSystem) Update(ctx context.Context, bundle io.Reader) (panel.Update, error) {
	_, err := box.Receiver{Root: s.root}.Receive(ctx, bundle)
	for _, known := range []struct {
		err    error
		status int
	}{
		{box.ErrBusy, http.StatusConflict}, {update.ErrSignature, http.StatusUnprocessableEntity}, {update.ErrDowngrade, http.StatusConflict},
		{update.ErrTooOld, http.StatusConflict}, {update.ErrDamaged, http.StatusUnprocessableEntity},
	} {
		if errors.Is(err, known.err) {
			return panel.Update{}, &panel.Refusal{Status: known.status, Err: err}
		}
	}
	if err != nil {
		return panel.Update{}, err
	}
	return s.Updates()
}

// Updates implements panel.System.
func (s boxSystem) Updates() (panel.Update, error) {
	now, err := box.Receiver{Root: s.root}.Status()
	u := panel.Update{Running: now.Running, Installing: now.Installing, FellBack: now.FellBack}
	if now.Last != nil {
		u.Last, u.Error = now.Last.Version, now.Last.Error
	}
	return u, err
}

// Reset implements panel.System.
func (s boxSystem) Reset() error { return box.RequestReset(s.root) }

// fleetUpdater lets the head of a fleet update the box, as the panel does.
type fleetUpdater struct{ system boxSystem }

// Update implements member.Updater.
func (u fleetUpdater) Update(ctx context.Context, bundle io.Reader) error {
	_, err := u.system.Update(ctx, bundle)
	return err
}

// Status implements member.Updater.
func (u fleetUpdater) Status() (member.UpdateStatus, error) {
	now, err := u.system.Updates()
	return member.UpdateStatus{Running: now.Running, Installing: now.Installing, Last: now.Last, Error: now.Error, FellBack: now.FellBack}, err
}

// boxSettings lets the panel read and replace the box's configuration.
type boxSettings struct{ root string }

// Text implements panel.Settings.
func (s boxSettings) Text() (string, error) {
	text, err := os.ReadFile(filepath.Join(s.root, box.ConfigFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // the defaults
	}
	return string(text), err
}

// Set implements panel.Settings.
func (s boxSettings) Set(_ context.Context, text string) error {
	if len(text) > box.MaxConfig {
		return &panel.Refusal{Status: http.StatusRequestEntityTooLarge,
			Err: fmt.Errorf("a configuration of %d bytes: at most %d", len(text), box.MaxConfig)}
	}
	cfg := DefaultConfig()
	if err := ParseConfig("the configuration", []byte(text), &cfg); err != nil {
		return &panel.Refusal{Status: http.StatusUnprocessableEntity, Err: err}
	}
	return box.RequestConfig(s.root, []byte(text))
}
