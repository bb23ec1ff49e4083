// Package service is the box's running parts, which "appliance serve" starts: the
// networks of the ports that devices are plugged into, the devices, the virtual
// device, uploads, the configuration, the token, and what the watchdog sees.
//
// In go a configuration, a data folder and a listener; the service wires the
// instruments to the panel's interfaces and to the queue of runs, tells systemd
// that it is ready (sd_notify), and feeds the watchdog while every part turns.
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"

	"eidetic/internal/box/doctor"
	"eidetic/internal/keep/support"
	"eidetic/internal/lab"
	"eidetic/internal/run/sandbox"
	"eidetic/systemd"
)

// Options are what a service is made of.
type Options struct {
	Config   Config
	Data     string           // the folder of runs, recordings, the queue and what the box must remember
	Token    lab.Secret       // the panel's own; others are kept in Data
	TLS      *tls.Certificate // the panel's, see [Certificate]; nil for a panel without TLS
	Roots    string           // certificates in PEM form, trusted for origins besides the system's
	Warnings []string         // what somebody should mend, in words that a stranger may read
	Version  string           // which the panel shows
	Software string           // what runs name as the software that made them
	Commands sandbox.Commands
	Notifier *systemd.Notifier
	// ConfigFile is the file that Config came from; empty for the defaults.
	ConfigFile string
	// Recent is the end of the log, and Doctor looks at the machine: for support bundles. Without them they lack that.
	Recent *support.Tail
	Doctor func(context.Context) ([]doctor.Finding, error)
	Log    *slog.Logger
}

// Service is the running box.
type Service struct{ Options }

// New returns a service that does not run yet.
func New(o Options) *Service { return &Service{o} }

// root of the file system.
const root = "/"

// Serve runs the panel on listener until ctx is done, and keeps systemd informed. An error names the part that failed.
func (s *Service) Serve(ctx context.Context, listener net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var restart atomic.Bool
	b := &boxService{shared: shared{Service: s, listener: listener}, restart: func() { restart.Store(true); stop() }}
	err := serveParts(ctx, b.parts(), s.Log)
	if err == nil && restart.Load() {
		return ErrRestart
	}
	return err
}

// ErrRestart is returned by a service that is to be started again: a backup takes the place of
// what it kept.
var ErrRestart = errors.New("the service starts again")
