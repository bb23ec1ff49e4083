package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/credentials"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/head"
	"eidetic/internal/keep/retention"
	"eidetic/internal/keep/store"
	"eidetic/internal/run/inspect"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/web/panel"
	"eidetic/netlab/archive"
	"eidetic/netlab/link"
	"eidetic/systemd"
)

// HeadOptions are what the head of a fleet is made of.
type HeadOptions struct {
	Data     string // folder of what this head keeps
	Database string // postgres://…, or "" for a file in Data
	// Files is the store of what boxes hand in; nil is a folder in Data.
	Files   blob.Store
	Address string // by which boxes reach the head, HOST:PORT; "" is where it listens
	Hosts   []string
	Token   string
	TLS     *tls.Certificate
	Version string
	// FilmsStay leaves films on the boxes until somebody opens them.
	FilmsStay bool
	// Commands has that which reads a recording.
	Commands sandbox.Commands
	Notifier *systemd.Notifier
	Webhooks []string // hosts that webhooks may call besides public ones
	// Retention says whose evidence is deleted; boxes have policies of their own.
	Retention retention.Policy
	Log       *slog.Logger
}

// answersFile holds what was answered to requests with a key, as a box's queue does.
const answersFile = "answers.db"

// ledgerFile is the database of a head that has no PostgreSQL.
const ledgerFile = "fleet.db"

// Head is the head of a fleet, running.
type Head struct{ HeadOptions }

// NewHead returns a head that does not run yet.
func NewHead(o HeadOptions) *Head { return &Head{o} }

// Serve serves panel and boxes on the listener until ctx is done.
func (s *Head) Serve(ctx context.Context, listener net.Listener) error {
	runs, err := store.Open(ctx, s.Data, s.Log)
	if err != nil {
		return err
	}
	defer runs.Close()
	checker := inspect.Checker{Command: s.Commands.Inspect, Memory: archive.MemoryOf(archive.DefaultShare), Turn: make(chan struct{}, 1)}
	uploads := Uploads{filepath.Join(s.Data, UploadsDir), checker}
	uploads.removeIncomplete(s.Log)
	// Plans are checked as a box does; the head has no device.
	carrier := &runner{data: s.Data, runs: runs, devices: &deviceList{}, notifier: s.Notifier}
	if s.Files == nil {
		if s.Files, err = blob.OpenFolder(filepath.Join(s.Data, "files")); err != nil {
			return err
		}
	}
	if s.Database == "" {
		s.Database = filepath.Join(s.Data, ledgerFile)
	}
	if s.Address == "" {
		s.Address = listener.Addr().String()
	}
	var stay []string
	if s.FilmsStay {
		stay = []string{"*.reel", "*.webm"}
	}
	h, err := head.Open(ctx, head.Config{
		Stay: stay, Data: s.Data, Database: s.Database, Blobs: s.Files, Store: runs, Check: carrier.checkKept, Archive: carrier.archive,
		Address: s.Address, Pin: fingerprint(s.TLS), Log: s.Log,
	})
	if err != nil && ctx.Err() != nil {
		return nil // stopped while it waited for its database
	}
	if err != nil {
		return err
	}
	defer h.Close()
	answers, err := store.OpenQueue(ctx, filepath.Join(s.Data, answersFile))
	if err != nil {
		return err
	}
	defer answers.Close()
	tokens := credentials.Open(credentials.Options{Own: s.Token, Dir: filepath.Join(s.Data, "credentials"), Log: s.Log})
	defer func() {
		if err := tokens.Close(); err != nil {
			s.Log.Warn("the last uses of tokens were not written", "error", err)
		}
	}()
	// The parts of a box's service that a head has, too.
	box := &Service{Options{Data: s.Data, Log: s.Log, Version: s.Version, Config: Config{
		Webhooks: webhooksConfig{Allow: s.Webhooks}, Retention: s.Retention,
	}}}
	nowhere := func() []netip.Prefix { return nil }
	keeper, warnings := box.keeper(ctx, h, runs, carrier, nowhere)
	if keeper != nil {
		defer keeper.Close()
	}
	bisecting, err := box.bisects(h, runs, carrier, nowhere)
	if err != nil {
		s.Log.Error("bisects are off until the next start", "error", err)
		warnings = append(warnings, "bisects are off: their folder cannot be opened")
	}
	retainer := box.newRetainer(runs, h.List, keeper, bisecting, tokens)
	retainer.thinned = h.Thinned
	p, err := panel.New(panel.Config{
		Store: runs, Token: s.Token, Credentials: tokens, TLS: s.TLS, Fingerprint: fingerprint(s.TLS), Version: s.Version, Log: s.Log,
		Warnings: warnings, Hosts: s.Hosts, Queue: h, Answers: answers,
		Automation: keeper, Bisects: bisecting, Boxes: h.Boxes(), Links: link.Names(),
		Archives: uploads, Fetch: h.Fetch, Removed: h.Removed, Retainer: retainer,
		Machines: &panel.Machines{Name: fleet.ServerName, Handler: h.BoxHandler(), Knows: h.Knows},
		Devices:  h.Devices,
		Disk:     func() (free, size int64, err error) { return roomOn(s.Data) },
	})
	if err != nil {
		return err
	}
	return s.serve(ctx, h, p, keeper, bisecting, retainer, listener)
}

func (s *Head) serve(
	ctx context.Context, h *head.Head, p *panel.Panel, keeper *automation.Keeper, bisecting *bisects.Keeper, retainer *retainer,
	listener net.Listener,
) error {
	own, remove, err := ownSocket()
	if err != nil {
		return err
	}
	defer remove()
	pulse, err := s.Notifier.Subsystem("panel")
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Serve(ctx, listener, own) })
	group.Go(func() error { return h.Work(ctx) })
	group.Go(func() error { retainer.work(ctx); return nil })
	if keeper != nil {
		group.Go(func() error { return keeper.Work(ctx) })
	}
	if bisecting != nil {
		group.Go(func() error { return bisecting.Work(ctx) })
	}
	go probePanel(ctx, own.Addr().String(), s.Notifier.Period(), pulse, s.Log)
	go func() { _ = s.Notifier.Run(ctx) }()
	at := Address(listener.Addr(), s.TLS)
	if err := s.Notifier.Ready("panel at " + at); err != nil {
		s.Log.Warn("systemd cannot be told that the head is ready", "error", err)
	}
	s.Log.Info("serving a fleet", "panel", at, "certificate", fingerprint(s.TLS), "data", s.Data, "version", s.Version)
	err = group.Wait()
	if stopping := s.Notifier.Stopping("stopping"); stopping != nil {
		s.Log.Warn("systemd cannot be told that the head stops", "error", stopping)
	}
	return err
}

// HeadCertificate is the certificate of a head for the names by which it is called.
func HeadCertificate(data string, hosts []string, log *slog.Logger) (*tls.Certificate, error) {
	c := DefaultConfig()
	c.Panel.Hosts = slices.Clone(hosts)
	cert := Certificate(c, data, log)
	if cert == nil {
		return nil, errors.New("the head has no certificate, and boxes could not know it: see the log")
	}
	return cert, nil
}

// CheckAddress returns an error for an address that boxes cannot dial.
func CheckAddress(address string) error {
	err := fleet.CheckHost(address)
	if at, parseErr := netip.ParseAddrPort(address); err == nil && parseErr == nil && at.Addr().IsUnspecified() {
		err = errors.New("it means all of this machine's addresses, which boxes cannot call")
	}
	if err != nil {
		return fmt.Errorf("%.200q: %w; write HOST:PORT by which boxes reach the head, such as head.example:8443", address, err)
	}
	return nil
}
