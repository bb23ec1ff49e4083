package service

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"slices"

	"eidetic/internal/base/slots"
	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/credentials"
	"eidetic/internal/box/suites"
	"eidetic/internal/keep/store"
	"eidetic/internal/run/inspect"
	"eidetic/internal/web/panel"
	"eidetic/netlab/archive"
	"eidetic/systemd"
)

// shared holds what a box's and a head's service have alike. Its methods start the parts and carry out their work;
// each uses what the parts before it have made.
type shared struct {
	*Service
	listener net.Listener          // of the panel
	inside   func() []netip.Prefix // lists the networks of devices

	runs     *store.Store
	checker  inspect.Checker
	uploads  Uploads
	tokens   *credentials.Store
	carrier  *runner
	queue    panel.Queue
	keeper   *automation.Keeper // nil if its file cannot be opened
	bisects  *bisects.Keeper    // nil if their folder cannot be opened
	suites   *suites.Keeper     // nil if their folder cannot be opened
	retainer *retainer
	own      net.Listener // of the panel, for this process alone
	panel    *panel.Panel
	warnings []string // what the service does without, in words that a stranger may read
}

func (s *shared) openStore(ctx context.Context) (stop func() error, err error) {
	if s.runs, err = store.Open(ctx, s.Data, s.Log); err != nil {
		return nil, err
	}
	return s.runs.Close, nil
}

func (s *shared) openRecordings(context.Context) (stop func() error, err error) {
	s.checker = inspect.Checker{
		Command: s.Commands.Inspect, Memory: archive.MemoryOf(s.Config.Recordings.share()), Turn: slots.NewTurn(1).Take,
	}
	s.uploads = Uploads{filepath.Join(s.Data, UploadsDir), s.checker}
	s.uploads.removeIncomplete(s.Log)
	return nil, nil
}

func (s *shared) openTokens(context.Context) (stop func() error, err error) {
	s.tokens = credentials.Open(credentials.Options{Own: s.Token, Dir: filepath.Join(s.Data, "credentials"), Log: s.Log})
	return s.tokens.Close, nil // writes their last uses
}

// retain begins to delete evidence. The jobs are those of the queue.
func (s *shared) retain(jobs func(context.Context) ([]store.Job, error)) {
	var own []ownRuns
	if s.bisects != nil {
		own = append(own, ownRuns{"bisect", s.bisects.Needs, s.bisects.Holds})
	}
	if s.suites != nil {
		own = append(own, ownRuns{"suite", s.suites.Needs, s.suites.Holds})
	}
	s.retainer = s.newRetainer(s.runs, jobs, s.keeper, own, s.tokens)
}

func (s *shared) workRetention(ctx context.Context) error {
	s.retainer.work(ctx)
	return nil
}

func (s *shared) openSocket(context.Context) (stop func() error, err error) {
	own, remove, err := ownSocket()
	if err != nil {
		return nil, err
	}
	s.own = own
	return func() error {
		_ = own.Close() // a panel that has served it has closed it
		remove()
		return nil
	}, nil
}

// panelConfig is what the panels of both have alike.
func (s *shared) panelConfig() panel.Config {
	modules := []panel.Module{
		panel.WithArchives(s.uploads), panel.WithRetention(s.retainer),
		panel.WithDisk(func() (free, size int64, err error) { return roomOn(s.Data) }),
	}
	if s.keeper != nil {
		modules = append(modules, panel.WithAutomation(s.keeper))
	}
	if s.bisects != nil {
		modules = append(modules, panel.WithBisects(s.bisects))
	}
	if s.suites != nil {
		modules = append(modules, panel.WithSuites(s.suites))
	}
	return panel.Config{
		Store: s.runs, Token: s.Token, Credentials: s.tokens, TLS: s.TLS, Fingerprint: fingerprint(s.TLS), Version: s.Version, Log: s.Log,
		Warnings: slices.Concat(s.Warnings, s.warnings), Modules: modules,
	}
}

// panelParts are the panel of the configuration, and last what sees that it answers and tells systemd.
func (s *shared) panelParts(config func() panel.Config) []part {
	var pulse *systemd.Pulse
	return []part{
		{name: "panel's own socket", start: s.openSocket},
		{
			name: "panel",
			start: func(context.Context) (stop func() error, err error) {
				if pulse, err = s.Notifier.Subsystem("panel"); err == nil {
					s.panel, err = panel.New(config())
				}
				return nil, err
			},
			work: func(ctx context.Context) error { return s.panel.Serve(ctx, s.listener, s.own) },
		},
		{name: "probe of the panel", work: func(ctx context.Context) error {
			probePanel(ctx, s.own.Addr().String(), s.Notifier.Period(), pulse, s.Log)
			return nil
		}},
		{name: "watchdog", work: s.Notifier.Run},
		{name: "readiness", start: s.announce},
	}
}

// announce tells systemd that the service is ready, and when it stops.
func (s *shared) announce(context.Context) (stop func() error, err error) {
	at := Address(s.listener.Addr(), s.TLS)
	if err := s.Notifier.Ready("panel at " + at); err != nil {
		s.Log.Warn("systemd cannot be told that the service is ready", "error", err)
	}
	s.Log.Info("serving", "panel", at, "certificate", fingerprint(s.TLS), "data", s.Data, "version", s.Version)
	return func() error { return s.Notifier.Stopping("stopping") }, nil
}
