package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"eidetic/image/update"
	"eidetic/internal/base/atomicfile"

	"golang.org/x/sys/unix"
)

// ErrBusy means that an update is already being received or installed.
var ErrBusy = errors.New("an update is being received or installed")

// Receiver accepts an update that is sent to the panel and passes it to
// appliance-update.service. It needs no more rights than the service has.
type Receiver struct {
	Root string // the file system, / on a box
}

// Receive reads a bundle, checks it, and requests its installation, which
// restarts the box. It refuses early what the installation would refuse:
// update.ErrSignature, ErrDowngrade, ErrTooOld, ErrDamaged and our ErrBusy are
// refusals; any other error is a failure of this machine. It does not read bytes
// after the bundle. Status tells the result of the installation.
func (r Receiver) Receive(ctx context.Context, bundle io.Reader) (update.Manifest, error) {
	u := Updater{Root: r.Root}
	keys, err := u.keys()
	if err != nil {
		return update.Manifest{}, err
	}
	running, err := u.version()
	if err != nil {
		return update.Manifest{}, err
	}
	dir := filepath.Dir(u.path(Incoming))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return update.Manifest{}, err
	}
	// Without this lock, the second of two concurrent bundles would remove the first,
	// or replace it during its installation.
	lock, err := os.Open(dir)
	if err != nil {
		return update.Manifest{}, err
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return update.Manifest{}, ErrBusy
	} else if err != nil {
		return update.Manifest{}, fmt.Errorf("lock %s: %w", dir, err)
	}
	if u.installing() {
		return update.Manifest{}, ErrBusy
	}
	if err := removeAll(filepath.Join(dir, ".part-*")); err != nil { // left by interrupted uploads
		return update.Manifest{}, err
	}
	f, err := atomicfile.Create(u.path(Incoming), ".part-")
	if err != nil {
		return update.Manifest{}, err
	}
	defer f.Discard()
	m, err := copyBundle(f, cancellable{ctx, bundle}, func(m update.Manifest) error { return m.Allowed(running) }, keys)
	if err == nil {
		err = f.Commit()
	}
	if err != nil {
		return m, err
	}
	if err := writeFile(u.path(UpdateRequest), nil, 0o600); err != nil {
		return m, errors.Join(err, remove(u.path(Incoming))) // without a request it would never be installed
	}
	return m, nil
}

// copyBundle copies a bundle to w and checks it while reading.
func copyBundle(w io.Writer, bundle io.Reader, allowed func(update.Manifest) error, keys update.Keys) (update.Manifest, error) {
	m, program, err := update.Open(io.TeeReader(bundle, w), keys)
	if err != nil {
		return m, err
	}
	if err := allowed(m); err != nil {
		return m, err
	}
	_, err = io.Copy(io.Discard, program)
	return m, err
}

// cancellable is a reader that fails once its context is done.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// removeAll removes the files that match a pattern.
func removeAll(pattern string) error {
	names, err := filepath.Glob(pattern)
	for _, name := range names {
		err = errors.Join(err, remove(name))
	}
	return err
}

// UpdateStatus is the state of the last update.
type UpdateStatus struct {
	// Running is the version of the system that runs.
	Running string `json:"running"`
	// Installing is set while an accepted update waits for the restart.
	Installing bool `json:"installing"`
	// Last is the result of the last update, nil when there was none.
	Last *Result `json:"last,omitempty"`
	// FellBack is set if the last update was installed but did not become
	// healthy, so that the box returned to the system before it.
	FellBack bool `json:"fell_back"`
}

// Status reads the state of the last update.
func (r Receiver) Status() (UpdateStatus, error) {
	u := Updater{Root: r.Root}
	var s UpdateStatus
	var err error
	if s.Running, err = u.version(); err != nil {
		return s, err
	}
	s.Installing = u.installing()
	if s.Last, err = u.readResult(); err != nil || s.Last == nil {
		return s, err
	}
	s.FellBack = !s.Installing && s.Last.Error == "" && update.Compare(s.Running, s.Last.Version) < 0
	return s, nil
}

// installing reports whether an accepted update waits to be installed, or is
// installed and waits for the restart.
func (u Updater) installing() bool {
	if _, err := os.Stat(u.path(Incoming)); err == nil {
		return true
	}
	last, err := u.readResult()
	return err == nil && last != nil && last.Error == "" && last.BootID != "" && last.BootID == u.bootID()
}

// text is the line for the console; "" if there is nothing to report.
func (s UpdateStatus) text() string {
	switch {
	case s.Installing:
		return "being installed; leave the power on"
	case s.Last == nil:
		return ""
	case s.Last.Error != "":
		return "refused: " + strings.TrimPrefix(s.Last.Error, "update: ")
	case s.FellBack:
		return s.Last.Version + " did not become healthy, and was given up"
	}
	return ""
}
