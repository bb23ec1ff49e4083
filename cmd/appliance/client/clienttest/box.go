// Package clienttest is a box for the tests and examples of clients: the real panel, queue and
// automation behind TLS, and runs that are made up, trial by trial, without a device.
package clienttest

import (
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/service"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/pin"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/internal/web/panel"
)

// Box is a box that serves.
type Box struct {
	URL         string // https://127.0.0.1:PORT
	Token       string // the box's own, which may do everything
	Fingerprint string // of its certificate
	// Authority is a PEM file with the certificate, for clients that pin no fingerprint.
	Authority string

	stop func() error
}

// Start starts a box that keeps its data in an empty folder.
func Start(dir string) (*Box, error) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &Box{Token: "0123456789abcdefghij", Authority: filepath.Join(dir, "box.pem")}
	closers := []func() error{func() error { cancel(); return nil }}
	b.stop = func() error {
		var err error
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	}
	fail := func(err error) (*Box, error) { return nil, errors.Join(err, b.stop()) }
	runs, err := store.Open(ctx, dir, nil)
	if err != nil {
		return fail(err)
	}
	closers = append(closers, runs.Close)
	jobs, err := store.OpenQueue(ctx, filepath.Join(dir, "queue.db"))
	if err != nil {
		return fail(err)
	}
	closers = append(closers, jobs.Close)
	queue := runqueue.New(runqueue.Config{Jobs: jobs, Store: runs, Runner: runner{dir}})
	keeper, err := automation.Open(ctx, automation.Config{
		File: filepath.Join(dir, "automation.db"), Runs: queue, Store: runs,
		Sender: webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}},
	})
	if err != nil {
		return fail(err)
	}
	closers = append(closers, keeper.Close)
	cert := service.Certificate(service.DefaultConfig(), dir, slog.New(slog.DiscardHandler))
	if cert == nil {
		return fail(errors.New("the box has no certificate"))
	}
	b.Fingerprint = pin.Of(cert.Leaf)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Leaf.Raw})
	if err := os.WriteFile(b.Authority, text, 0o600); err != nil {
		return fail(err)
	}
	devices := func(context.Context) []panel.Device {
		return []panel.Device{{Name: "virtual", Kind: "virtual", Ready: true}}
	}
	p, err := panel.New(panel.Config{
		Store: runs, Token: lab.NewSecret(b.Token), TLS: cert, Version: "v1", Modules: []panel.Module{
			panel.WithRuns(queue, nil, nil), panel.WithAnswers(jobs), panel.WithAutomation(keeper),
			panel.WithArchives(service.Uploads{Dir: filepath.Join(dir, service.UploadsDir)}),
			panel.WithDevices(devices, []string{"native", "lte"}),
		},
	})
	if err != nil {
		return fail(err)
	}
	l, err := panel.Listen(ctx, "127.0.0.1:0", "--listen")
	if err != nil {
		return fail(err)
	}
	b.URL = "https://" + l.Addr().String()
	done := make(chan error, 3)
	go func() { done <- p.Serve(ctx, l) }()
	go func() { done <- queue.Work(ctx) }()
	go func() { done <- keeper.Work(ctx) }()
	served := func() error { return errors.Join(<-done, <-done, <-done) }
	closers = append(closers[:1], append([]func() error{served}, closers[1:]...)...)
	return b, nil
}

// Close ends the box.
func (b *Box) Close() error { return b.stop() }

// runner makes runs up.
type runner struct{ root string }

func (r runner) Accept(_ context.Context, q lab.Plan) (lab.Plan, error) {
	if q.Device = cmp.Or(q.Device, "virtual"); q.Device != "virtual" {
		return q, fmt.Errorf("device: there is no %q; there are: virtual", q.Device)
	}
	return q, nil
}

func (r runner) Run(ctx context.Context, id string, q lab.Plan, news func(panel.Progress)) error {
	run := reporttest.Run(1, q.Trials)
	all := run.Trials
	run.ID, run.Name, run.Plan, run.Trials, run.State = id, q.Name, q, nil, store.StateRunning
	folder, err := store.Create(r.root, run)
	if err != nil {
		return err
	}
	defer folder.Close()
	for i, trial := range all {
		if ctx.Err() != nil {
			run.State = store.StateInterrupted
			return folder.Save(run)
		}
		news(panel.Progress{Trial: i + 1, Of: len(all), Doing: "filming"})
		run.Trials = append(run.Trials, trial)
		if err := folder.Save(run); err != nil {
			return err
		}
	}
	run.State = store.StateDone
	if err := reporttest.Files(folder.Path(), run, reporttest.Options{}); err != nil {
		return err
	}
	if err := report.Write(folder.Path(), run); err != nil {
		return err
	}
	return folder.Save(run)
}
