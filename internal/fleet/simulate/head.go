package simulate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/head"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/pin"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// serving is a head that boxes can call.
type serving struct {
	*head.Head
	ledger *ledger.Ledger
	panel  *panel.Panel
	close  func() error
}

// machine is what stays the same when the head is started again.
type machine struct {
	dir     string
	address string // "" until the first start
	cert    *tls.Certificate
	store   *store.Store
	blobs   blob.Store
	log     *slog.Logger
}

func newMachine(ctx context.Context, dir string, log *slog.Logger) (*machine, error) {
	m := &machine{dir: dir, log: log}
	var err error
	if m.cert, err = pin.LoadOrCreate(filepath.Join(dir, "panel"), nil, time.Now); err != nil {
		return nil, err
	}
	if m.blobs, err = blob.OpenFolder(filepath.Join(dir, "files")); err != nil {
		return nil, err
	}
	m.store, err = store.Open(ctx, dir, log)
	return m, err
}

// start starts a head on the machine, as "appliance head" does, but for three things: people are not asked for a token,
// runs need no recording, and of runs there are only lists of files.
func (m *machine) start(ctx context.Context, o Options) (_ *serving, err error) {
	l, err := ledger.Open(ctx, ledger.Config{Database: o.Database, Lease: o.Lease, Log: m.log, Assemble: assembled})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", m.listenAt())
	if err != nil {
		return nil, err
	}
	m.address = listener.Addr().String()
	h, err := head.Over(l, head.Config{
		Data: m.dir, Blobs: m.blobs, Store: m.store, Address: m.address, Pin: pin.Of(m.cert.Leaf), Log: m.log,
		Check:   func(lab.Plan) error { return nil },
		Archive: func(name string) (string, error) { return "", fmt.Errorf("no recording %q", name) },
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	p, err := panel.New(panel.Config{
		Store: m.store, TLS: m.cert, Fingerprint: h.Pin, Log: m.log, Modules: []panel.Module{
			panel.WithRuns(h, nil, nil), panel.WithBoxes(h.Boxes()),
			panel.WithMachines(panel.Machines{Name: fleet.ServerName, Handler: h.BoxHandler(), Knows: h.Knows}),
		},
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	group, work := errgroup.WithContext(work)
	group.Go(func() error { return p.Serve(work, listener) })
	group.Go(func() error { return h.Work(work) })
	return &serving{h, l, p, func() error {
		stop()
		return errors.Join(group.Wait(), l.Close())
	}}, nil
}

func (m *machine) listenAt() string {
	if m.address == "" {
		return "127.0.0.1:0"
	}
	return m.address
}

// assembled ends a run as done. The files of its parts stay on their boxes: there is nothing of them but their names.
func assembled(_ context.Context, r ledger.Run) (ledger.Assembled, error) {
	a := ledger.Assembled{State: store.StateDone}
	for _, p := range r.Parts {
		if p.Outcome == nil {
			continue
		}
		for _, f := range p.Outcome.Files {
			if len(r.Parts) > 1 {
				f.Path = p.ID + "/" + f.Path
			}
			a.Files = append(a.Files, f)
		}
	}
	return a, nil
}
