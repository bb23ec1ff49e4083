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
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/image/box"
	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/credentials"
	"eidetic/internal/box/doctor"
	"eidetic/internal/fleet/member"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/keep/support"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/inspect"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/run/seat"
	"eidetic/internal/web/panel"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/link"
	"eidetic/systemd"
)

// Options are what a service is made of.
type Options struct {
	Config   Config
	Data     string           // the folder of runs, recordings, the queue and what the box must remember
	Token    string           // the panel's own; others are kept in Data
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

// Serve runs the panel on listener until ctx is done, and keeps systemd informed.
func (s *Service) Serve(ctx context.Context, listener net.Listener) error {
	runs, err := store.Open(ctx, s.Data, s.Log)
	if err != nil {
		return err
	}
	defer runs.Close()
	panelPulse, err := s.Notifier.Subsystem("panel")
	if err != nil {
		return err
	}
	networkPulse, err := s.Notifier.Subsystem("network")
	if err != nil {
		return err
	}
	jobs, inMemory, err := openQueue(ctx, s.Data, s.Log)
	if err != nil {
		return err
	}
	defer jobs.Close()
	disk := newDisk(s.Data, inMemory)
	disk.removeWriteTests()
	authority, err := ca.LoadOrCreate(filepath.Join(s.Data, "ca"), time.Now)
	if err != nil {
		return err
	}
	// In the background: the folder may hold many runs, and nobody waits for it.
	concluding, stopConcluding := context.WithCancel(ctx)
	concluded := make(chan struct{})
	goOn := resumeJobs(ctx, jobs, runs, s.Software, s.Log)
	go func() { execute.ConcludeAll(concluding, runs, goOn, s.Log); close(concluded) }()
	defer func() { stopConcluding(); <-concluded }()
	memory := archive.MemoryOf(s.Config.Recordings.share())
	checker := inspect.Checker{Command: s.Commands.Inspect, Memory: memory, Turn: make(chan struct{}, 1)}
	uploads := Uploads{filepath.Join(s.Data, UploadsDir), checker}
	uploads.removeIncomplete(s.Log)
	devices := &deviceList{}
	inPlace := &partList{look: plugged(s.Log)}
	network, err := s.ports(devices, authority, checker, inPlace)
	if err != nil {
		return err
	}
	if !box.Is(root) { // a box has no browser
		devices.add("virtual", &virtualDevice{
			data: s.Data, reach: s.Config.Network.reach(s.Roots), commands: s.Commands, check: doctor.CheckVirtualDevice,
			noSandbox: s.Config.Virtual.NoSandbox, seat: seat.Seat{Live: liveFolder(s.Data, "virtual")},
		})
	}
	tokens := credentials.Open(credentials.Options{Own: s.Token, Dir: filepath.Join(s.Data, "credentials"), Log: s.Log})
	defer func() {
		if err := tokens.Close(); err != nil {
			s.Log.Warn("the last uses of tokens were not written", "error", err)
		}
	}()
	carrier := &runner{data: s.Data, runs: runs, devices: devices, notifier: s.Notifier, disk: disk}
	queue := runqueue.New(runqueue.Config{Jobs: jobs, Store: runs, Runner: carrier, Log: s.Log})
	keeper, warning := s.keeper(ctx, queue, runs, carrier, network.prefixes)
	if keeper != nil {
		defer keeper.Close()
	}
	bisecting, err := s.bisects(queue, runs, carrier, network.prefixes)
	if err != nil {
		s.Log.Error("bisects are off until the next start", "error", err)
		warning = append(warning, "bisects are off: their folder cannot be opened")
	}
	carrier.retainer = s.newRetainer(runs, jobs.Jobs, keeper, bisecting, tokens)
	belongs, err := s.member(queue, runs, carrier, uploads)
	if err != nil {
		s.Log.Error("the box is no member of a fleet until the next start", "error", err)
		warning = append(warning, "the box is no member of a fleet: its folder cannot be opened")
	} else {
		carrier.retainer.fleet = belongs.Needed
	}
	config := panel.Config{
		Store: runs, Token: s.Token, Credentials: tokens, TLS: s.TLS, Fingerprint: fingerprint(s.TLS),
		Version: s.Version, Log: s.Log, Parts: s.parts, Warnings: slices.Concat(s.Warnings, warning), Queue: queue,
		Automation: keeper, Bisects: bisecting,
		Alerts:  func() []string { return s.alerts(disk, network) },
		Devices: devices.describe, PluggedIn: inPlace.list, Seats: seats{devices},
		Links: link.Names(), Certificate: authority.PEM(), Archives: uploads,
		Hosts: s.Config.hostNames(), Retainer: carrier.retainer,
		Disk: func() (free, size int64, err error) { return roomOn(s.Data) },
	}
	if belongs != nil {
		config.Fleet = boxFleet{belongs}
	}
	if box.Is(root) {
		config.System, config.Settings = boxSystem{root}, boxSettings{root}
	}
	var restart atomic.Bool
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	config.Backups = s.Backups(runs, config.Settings, func() { restart.Store(true); stop() })
	config.Supporter = supporter{s, runs, jobs, keeper, bisecting, s.configText(config.Settings), devices.describe, inPlace.list}
	p, err := panel.New(config)
	if err != nil {
		return err
	}
	own, remove, err := ownSocket()
	if err != nil {
		return err
	}
	defer remove()
	ended, down := make(chan error, 1), make(chan struct{})
	go func() { ended <- serveAll(ctx, p, queue, keeper, bisecting, belongs, listener, own) }()
	retained := make(chan struct{})
	go func() { carrier.retainer.work(ctx); close(retained) }()
	defer func() { stop(); <-retained }()
	go probePanel(ctx, own.Addr().String(), s.Notifier.Period(), panelPulse, s.Log)
	// The network stays until the runs that use it have ended.
	watching, unplug := context.WithCancel(context.WithoutCancel(ctx))
	go func() { network.watch(watching, networkPulse.Tick); close(down) }()
	defer func() { unplug(); <-down }()
	go func() { _ = s.Notifier.Run(ctx) }()
	err = s.announce(ctx, listener, ended)
	if err == nil && restart.Load() {
		return ErrRestart
	}
	return err
}

// ErrRestart is returned by a service that is to be started again: a backup takes the place of
// what it kept.
var ErrRestart = errors.New("the service starts again")

// serveAll serves the panel and carries out the queue, and what the box does by itself, until
// ctx is done or one of them fails, and returns when all have ended. keeper, bisecting and belongs may be nil.
func serveAll(ctx context.Context, p *panel.Panel, queue *runqueue.Queue, keeper *automation.Keeper, bisecting *bisects.Keeper,
	belongs *member.Keeper, listeners ...net.Listener,
) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Serve(ctx, listeners...) })
	group.Go(func() error { return queue.Work(ctx) })
	if keeper != nil {
		group.Go(func() error { return keeper.Work(ctx) })
	}
	if bisecting != nil {
		group.Go(func() error { return bisecting.Work(ctx) })
	}
	if belongs != nil {
		group.Go(func() error { return belongs.Work(ctx) })
	}
	return group.Wait()
}

// announce tells systemd that the service is ready, and, when ctx is done, that it
// stops. It returns when the panel has ended.
func (s *Service) announce(ctx context.Context, listener net.Listener, ended <-chan error) error {
	at := Address(listener.Addr(), s.TLS)
	if err := s.Notifier.Ready("panel at " + at); err != nil {
		s.Log.Warn("systemd cannot be told that the service is ready", "error", err)
	}
	s.Log.Info("serving", "panel", at, "certificate", fingerprint(s.TLS), "data", s.Data, "version", s.Version)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if err := s.Notifier.Stopping("stopping"); err != nil {
		s.Log.Warn("systemd cannot be told that the service stops", "error", err)
	}
	return <-ended
}

// ports returns the networks of the devices that are plugged in; they are not up yet.
func (s *Service) ports(devices *deviceList, authority *ca.Authority, checker inspect.Checker, inPlace *partList) (*ports, error) {
	upstream, err := s.Config.Network.reach(s.Roots).Upstream()
	if err != nil {
		return nil, err
	}
	return &ports{
		config: s.Config.Devices, data: s.Data, software: s.Software, authority: authority, upstream: upstream, forwarder: s.Commands.Forwarder,
		devices: devices, log: s.Log, root: root, known: map[string]*portDevice{}, checker: checker,
		plugged: inPlace,
	}, nil
}

// parts is what the watchdog sees, for the panel's health.
func (s *Service) parts() []panel.Part {
	var parts []panel.Part
	for _, turn := range s.Notifier.Turns() {
		parts = append(parts, panel.Part{Name: turn.Name, OK: turn.OK, AgoMS: turn.Ago.Milliseconds()})
	}
	return parts
}
