package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"eidetic/image/box"
	"eidetic/internal/job"
	"eidetic/internal/panel"
	"eidetic/internal/store"
	"eidetic/netlab/ca"
	"eidetic/netlab/link"
	"eidetic/netlab/proxy"
	"eidetic/systemd"
)

// ServeCmd is the box's service: everything that runs while nobody is logged in.
type ServeCmd struct {
	Config    string `help:"Configuration file (YAML). Without the flag the defaults are used." placeholder:"FILE" type:"path"`
	Listen    string `placeholder:"HOST:PORT" help:"Where the panel listens, in place of panel.listen in the configuration (127.0.0.1:8080). Where systemd passes a socket, that one is taken."`
	Data      string `default:"out/box" type:"path" help:"Folder for runs, recordings, the queue and what the box must remember (${default})."`
	TokenFile string `placeholder:"FILE" type:"path" help:"File with the panel's token. Without the flag one is made in the data folder, and printed."`
}

// Help is shown by appliance serve --help.
func (ServeCmd) Help() string {
	return `Example:

  appliance serve --data out/box
  appliance serve --listen 0.0.0.0:8080     # others can reach it, and need the token
  curl http://127.0.0.1:8080/api/v1/health

Under systemd it takes the socket named "panel", says when it is ready, and
feeds the watchdog for as long as every part of it turns.`
}

// Validate checks what kong cannot.
func (c ServeCmd) Validate() error {
	if c.Listen == "" {
		return nil
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return fmt.Errorf("--listen %s: give HOST:PORT, such as 127.0.0.1:8081, or 0.0.0.0:8080 for all of this machine's addresses", c.Listen)
	}
	return nil
}

// Run serves until ctx is done.
func (c ServeCmd) Run(ctx context.Context, std *streams) error {
	cfg, instead, problem := c.config(root)
	if problem != nil && instead == "" {
		return usage(problem)
	}
	level, err := cfg.level()
	if err != nil {
		return usage(err)
	}
	notifier, err := systemd.FromEnvironment()
	if err != nil {
		return cannot(err)
	}
	sockets := systemd.TakeSockets()
	listener, err := sockets.Listener("panel")
	if err == nil && listener == nil {
		listener, err = panel.Listen(ctx, cmp.Or(c.Listen, cfg.Panel.Listen), "--listen")
	}
	if err != nil {
		return cannot(fmt.Errorf("panel: %w", err))
	}
	defer listener.Close()
	log := systemd.Logger(std.err, level)
	if problem != nil {
		log.Error(instead, "error", problem)
	}
	if err := sockets.Close(); err != nil {
		log.Warn("unused sockets", "error", err)
	}
	c.Data = dataFolder(c.Data, log)
	held, err := holdFolder(c.Data)
	if err != nil {
		return cannot(err)
	}
	defer held.Close()
	token, made, err := c.token()
	if err != nil {
		return cannot(err)
	}
	if c.TokenFile == "" {
		fmt.Fprintf(std.out, "The panel is at http://%s/ and asks for the token %s (kept in %s).\n", listener.Addr(), token, made)
	}
	roots, err := cfg.Network.roots()
	if err != nil {
		return usage(err)
	}
	s := &service{config: cfg, data: c.Data, token: token, roots: roots, notifier: notifier, log: log}
	if instead != "" {
		s.warnings = []string{instead}
	}
	return s.serve(ctx, listener)
}

// config reads the configuration. On a box a mistake is a problem that is told,
// with what is used instead; elsewhere somebody is there to read an error.
func (c ServeCmd) config(root string) (cfg serveConfig, instead string, problem error) {
	if box.Is(root) {
		return boxServeConfig(c.Config)
	}
	cfg, err := loadServeConfig(c.Config)
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errTrust) {
		err = fmt.Errorf("%w; leave out --config to serve with the defaults", err)
	}
	return cfg, "", err
}

// dataFolder makes the data folder. A service of systemd goes on without it, in
// memory: a box with a broken disk still measures.
func dataFolder(dir string, log *slog.Logger) string {
	err := os.MkdirAll(dir, 0o755)
	memory := os.Getenv("RUNTIME_DIRECTORY")
	if err == nil || memory == "" {
		return dir // what is wrong with it is said when it is used
	}
	log.Error("no data folder: runs and recordings live in memory", "data", dir, "memory", memory, "error", err)
	return memory
}

// holdFolder keeps other services from the data folder as long as the result
// is open: they would take the runs that go on here for interrupted ones. It is
// the folder itself that is locked, which a full disk allows, too.
func holdFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	// Any other error is that of a file system without locks, which nobody can hold.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		_ = f.Close()
		return nil, fmt.Errorf("data folder: another appliance serve uses %s: end it, or give this one a folder of its own with --data", dir)
	}
	return f, nil
}

// service is the running box.
type service struct {
	config   serveConfig
	data     string
	token    string
	roots    string // PEM, trusted besides the system's
	warnings []string
	notifier *systemd.Notifier
	log      *slog.Logger
}

// queueFile holds the runs that wait.
const queueFile = "queue.db"

// serve runs the panel on listener until ctx is done, and keeps systemd informed.
func (s *service) serve(ctx context.Context, listener net.Listener) error {
	runs, err := store.Open(ctx, s.data, s.log)
	if err != nil {
		return cannot(err)
	}
	defer runs.Close()
	pulse, err := s.notifier.Subsystem("panel")
	if err != nil {
		return cannot(err)
	}
	network, err := s.notifier.Subsystem("network")
	if err != nil {
		return cannot(err)
	}
	queue, err := openQueue(ctx, s.data, s.log)
	if err != nil {
		return cannot(err)
	}
	defer queue.Close()
	authority, err := ca.LoadOrCreate(filepath.Join(s.data, "ca"), time.Now)
	if err != nil {
		return cannot(err)
	}
	// In the background: a folder may be large, and nobody waits for it.
	concluding, enough := context.WithCancel(ctx)
	concluded := make(chan struct{})
	go func() { job.ConcludeAll(concluding, runs, s.log); close(concluded) }()
	defer func() { enough(); <-concluded }()
	brought := archives{filepath.Join(s.data, archivesDir)}
	brought.sweep(s.log)
	all := &deviceList{}
	plugged, err := s.ports(all, authority)
	if err != nil {
		return cannot(err)
	}
	if !box.Is(root) { // a box has no browser
		all.add("virtual", &virtualDevice{data: s.data, resolver: s.config.Network.resolver(), roots: s.roots, check: doctor.CheckVirtualDevice})
	}
	config := panel.Config{
		Store: runs, Token: s.token, Version: version, Log: s.log, Parts: s.parts, Warnings: s.warnings,
		Queue: queue, Runner: &runner{data: s.data, runs: runs, devices: all, notifier: s.notifier},
		Devices: all.describe, Links: link.Names(), Certificate: authority.PEM(), Archives: brought,
		Hosts: append([]string{s.config.Box.Hostname, s.config.Box.Hostname + ".local"}, s.config.Panel.Hosts...),
	}
	if box.Is(root) {
		config.System, config.Settings = boxSystem{root}, boxSettings{root}
	}
	p, err := panel.New(config)
	if err != nil {
		return cannot(err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended, down := make(chan error, 1), make(chan struct{})
	go func() { ended <- p.Serve(ctx, listener) }()
	go probePanel(ctx, listener.Addr(), s.notifier.Period(), pulse, s.log)
	// The network stays until the runs that it carries have ended.
	watching, unplug := context.WithCancel(context.WithoutCancel(ctx))
	go func() { plugged.watch(watching, network.Tick); close(down) }()
	defer func() { unplug(); <-down }()
	go func() { _ = s.notifier.Run(ctx) }()

	at := "http://" + listener.Addr().String()
	if err := s.notifier.Ready("panel at " + at); err != nil {
		s.log.Warn("not announced", "error", err)
	}
	s.log.Info("serving", "panel", at, "data", s.data, "version", version)
	select {
	case err := <-ended:
		return cannot(err)
	case <-ctx.Done():
	}
	if err := s.notifier.Stopping("stopping"); err != nil {
		s.log.Warn("not announced", "error", err)
	}
	if err := <-ended; err != nil {
		return cannot(err)
	}
	return nil
}

// root of the file system.
const root = "/"

// ports are the networks of devices that are plugged in.
func (s *service) ports(all *deviceList, authority *ca.Authority) (*ports, error) {
	upstream := &proxy.UpstreamConfig{Resolver: s.config.Network.resolver()}
	var err error
	if upstream.Roots, err = trusted(s.roots); err != nil {
		return nil, err
	}
	return &ports{
		config: s.config.Devices, data: s.data, authority: authority, upstream: upstream,
		devices: all, log: s.log, root: root, up: map[string]*portDevice{},
	}, nil
}

// parts is what the watchdog sees, for the panel's health.
func (s *service) parts() []panel.Part {
	var parts []panel.Part
	for _, turn := range s.notifier.Turns() {
		parts = append(parts, panel.Part{Name: turn.Name, OK: turn.OK, AgoMS: turn.Ago.Milliseconds()})
	}
	return parts
}

// openQueue opens the queue. One that is damaged is put aside: a box that
// forgets what waited is better than one that never starts again. Where the
// disk takes nothing, it is in memory: a full one can be emptied by the panel.
func openQueue(ctx context.Context, dir string, log *slog.Logger) (*store.Queue, error) {
	path := filepath.Join(dir, queueFile)
	queue, err := store.OpenQueue(ctx, path)
	if err == nil || ctx.Err() != nil {
		return queue, err
	}
	if !store.Damaged(err) {
		log.Error("the queue is in memory until the next start; what waits in the file waits for that", "error", err)
		return store.MemoryQueue(ctx)
	}
	aside := path + ".damaged"
	log.Error("the queue is damaged; it is put aside, and the runs that waited are forgotten", "aside", aside, "error", err)
	if err := os.Rename(path, aside); err != nil {
		return nil, err
	}
	for _, rest := range []string{path + "-wal", path + "-shm"} {
		_ = os.Remove(rest) // they belong to the damaged one, and need not be there
	}
	return store.OpenQueue(ctx, path)
}
