package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/head"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/web/panel"
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
	Token   lab.Secret
	TLS     *tls.Certificate
	Version string
	// FilmsStay leaves films on the boxes until somebody opens them.
	FilmsStay bool
	// Commands has that which reads a recording.
	Commands sandbox.Commands
	Notifier *systemd.Notifier
	// Config is that of LoadHeadConfig; of its retention boxes have their own.
	Config Config
	Log    *slog.Logger
}

// answersFile holds what was answered to requests with a key, as a box's queue does.
const answersFile = "answers.db"

// ledgerFile is the database of a head that has no PostgreSQL.
const ledgerFile = "fleet.db"

// Head is the head of a fleet, running.
type Head struct{ HeadOptions }

// NewHead returns a head that does not run yet.
func NewHead(o HeadOptions) *Head { return &Head{o} }

// Serve serves panel and boxes on the listener until ctx is done. An error names the part that failed.
func (s *Head) Serve(ctx context.Context, listener net.Listener) error {
	roots, err := s.Config.Network.Roots()
	if err != nil {
		return err
	}
	box := &Service{Options{
		Data: s.Data, Token: s.Token, TLS: s.TLS, Roots: roots, Version: s.Version, Commands: s.Commands, Notifier: s.Notifier,
		Log: s.Log, Config: s.Config,
	}}
	h := &headService{shared: shared{Service: box, listener: listener, inside: func() []netip.Prefix { return nil }}, options: s.HeadOptions}
	return serveParts(ctx, h.parts(), s.Log)
}

// headService holds what the parts of a head's service have made.
type headService struct {
	shared
	options HeadOptions
	head    *head.Head
	answers *store.Queue
}

// parts are the head's, in the order of their start.
func (h *headService) parts() []part {
	return append([]part{
		{name: "store of runs", start: h.openStore},
		{name: "recordings", start: h.openRecordings},
		{name: "fleet", start: h.openFleet},
		{name: "kept answers", start: h.openAnswers},
		{name: "tokens", start: h.openTokens},
		{name: "workflows", start: h.openAutomation},
		{name: "bisects", start: h.openBisects},
		{name: "suites", start: func(ctx context.Context) (func() error, error) {
			return nil, h.openSuites(func(run, path string) (string, error) { return h.head.SHA256(ctx, run, path) })
		}},
		{name: "retention", start: h.openRetention, work: h.workRetention},
		{name: "boxes", work: func(ctx context.Context) error { return h.head.Work(ctx) }},
		{name: "automation", work: h.workAutomation},
		{name: "bisecting", work: h.workBisects},
		{name: "measuring suites", work: h.workSuites},
	}, h.panelParts(h.panelConfig)...)
}

// openFleet opens the queue of the fleet. Plans are checked as a box does; the head has no device.
func (h *headService) openFleet(ctx context.Context) (stop func() error, err error) {
	o := h.options
	h.carrier = &runner{data: h.Data, runs: h.runs, devices: &deviceList{}, notifier: h.Notifier, head: true}
	c := head.Config{
		Data: h.Data, Database: cmp.Or(o.Database, filepath.Join(h.Data, ledgerFile)), Blobs: o.Files, Store: h.runs,
		Check: h.carrier.checkKept, Archive: h.carrier.archive,
		Address: cmp.Or(o.Address, h.listener.Addr().String()), Pin: fingerprint(h.TLS), Log: h.Log,
	}
	if o.FilmsStay {
		c.Stay = []string{"*.reel", "*.webm"}
	}
	if c.Blobs == nil {
		if c.Blobs, err = blob.OpenFolder(filepath.Join(h.Data, "files")); err != nil {
			return nil, err
		}
	}
	if h.head, err = head.Open(ctx, c); err != nil {
		return nil, err
	}
	h.queue = h.head
	return h.head.Close, nil
}

func (h *headService) openAnswers(ctx context.Context) (stop func() error, err error) {
	if h.answers, err = store.OpenQueue(ctx, filepath.Join(h.Data, answersFile)); err != nil {
		return nil, err
	}
	return h.answers.Close, nil
}

func (h *headService) openRetention(context.Context) (stop func() error, err error) {
	h.retain(h.head.List)
	h.retainer.thinned = h.head.Thinned
	return nil, nil
}

// panelConfig is the panel of a head.
func (h *headService) panelConfig() panel.Config {
	c := h.shared.panelConfig()
	c.Hosts = h.options.Hosts
	c.Modules = append(c.Modules,
		panel.WithRuns(h.head, nil, nil), panel.WithAnswers(h.answers), panel.WithDevices(h.head.Devices, link.Names()),
		panel.WithBoxes(h.head.Boxes()), panel.WithFiles(h.head.Fetch, h.head.Removed),
		panel.WithMachines(panel.Machines{Name: fleet.ServerName, Handler: h.head.BoxHandler(), Knows: h.head.Knows}),
	)
	return c
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
