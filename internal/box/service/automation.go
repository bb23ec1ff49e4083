package service

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/mail"
	"eidetic/internal/box/suites"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/tell/suite"
)

// automationFile holds workflows, schedules, webhooks and alerts.
const automationFile = "automation.db"

// openAutomation opens what the box does by itself. A box without it still measures: where the file
// cannot be opened there is a warning for people in its place. A damaged file is put aside.
func (s *shared) openAutomation(ctx context.Context) (stop func() error, err error) {
	c := automation.Config{
		File: filepath.Join(s.Data, automationFile), Runs: s.queue, Store: s.runs, Check: s.carrier.checkKept, Log: s.Log,
		Sender: s.sender(s.inside), Bisector: bisector{s},
	}
	if s.Config.Mail.Server != "" {
		roots := s.sender(s.inside).Roots
		c.Mail = func(ctx context.Context, m mail.Message) error { return s.Config.Mail.Send(ctx, m, roots) }
	}
	k, err := automation.Open(ctx, c)
	if err != nil && store.Damaged(err) {
		aside := c.File + ".damaged"
		s.Log.Error("workflows, schedules and webhooks are damaged; they are put aside and forgotten", "aside", aside, "error", err)
		s.warnings = append(s.warnings, "workflows, schedules and webhooks were damaged and are forgotten")
		if err = os.Rename(c.File, aside); err == nil {
			for _, rest := range []string{c.File + "-wal", c.File + "-shm"} {
				_ = os.Remove(rest) // files of the damaged one, which may be missing
			}
			k, err = automation.Open(ctx, c)
		}
	}
	if err != nil {
		s.Log.Error("workflows, schedules, webhooks and alerts are off until the next start", "error", err)
		s.warnings = append(s.warnings, "workflows, schedules, webhooks and alerts are off: their file cannot be opened")
		return nil, nil
	}
	s.keeper = k
	return k.Close, nil
}

func (s *shared) workAutomation(ctx context.Context) error {
	if s.keeper == nil {
		return nil
	}
	return s.keeper.Work(ctx)
}

// sender posts to the addresses that people gave; inside are the networks of devices.
func (s *Service) sender(inside func() []netip.Prefix) webhook.Sender {
	roots, err := sandbox.TrustedRoots(s.Roots)
	if err != nil {
		s.Log.Error("webhooks: the trusted certificates cannot be read", "error", err)
	}
	return webhook.Sender{
		Guard:    webhook.Guard{Allow: s.Config.Webhooks.Allow, Inside: inside},
		Resolver: s.Config.Network.resolver(), Roots: roots, Agent: "eidetic/" + s.Version,
	}
}

// bisectsDir is the folder of bisects in the data folder.
const bisectsDir = "bisects"

// openBisects opens the bisects that the box makes by itself, or warns.
func (s *shared) openBisects(context.Context) (stop func() error, err error) {
	for name, r := range s.Config.Repositories {
		if err := r.Usable(); err != nil {
			s.Log.Error("a repository of the configuration cannot be used", "repository", name, "error", err)
			s.warnings = append(s.warnings, "repositories of the configuration cannot be used: "+err.Error())
			break // the others lack the same
		}
	}
	s.bisects, err = bisects.Open(bisects.Config{
		Dir: filepath.Join(s.Data, bisectsDir), Runs: s.queue, Store: s.runs, Sender: s.sender(s.inside), Check: s.carrier.checkKept, Log: s.Log,
		Repositories: s.Config.Repositories, Ended: func() {
			if s.keeper != nil {
				s.keeper.Stir()
			}
		},
	})
	if err != nil {
		s.Log.Error("bisects are off until the next start", "error", err)
		s.warnings = append(s.warnings, "bisects are off: their folder cannot be opened")
	}
	return nil, nil
}

func (s *shared) workBisects(ctx context.Context) error {
	if s.bisects == nil {
		return nil
	}
	return s.bisects.Work(ctx)
}

// suitesDir is the folder of suites and their results in the data folder.
const suitesDir = "suites"

// openSuites opens the suites, or warns. sums are those of the files of runs; nil hashes the store's.
func (s *shared) openSuites(sums suite.Sum) (err error) {
	s.suites, err = suites.Open(suites.Config{
		Dir: filepath.Join(s.Data, suitesDir), Runs: s.queue, Store: s.runs, Check: s.carrier.checkSuite, Archive: s.carrier.archive,
		Sums: sums, Software: s.Software, Log: s.Log,
	})
	if err != nil {
		s.Log.Error("suites are off until the next start", "error", err)
		s.warnings = append(s.warnings, "suites are off: their folder cannot be opened")
	}
	return nil
}

func (s *shared) workSuites(ctx context.Context) error {
	if s.suites == nil {
		return nil
	}
	return s.suites.Work(ctx)
}

// checkSuite says what is wrong with a plan of a suite: also that there is no such device.
func (r *runner) checkSuite(_ context.Context, p lab.Plan) error {
	if p.Device != "" && !r.head && r.devices.get(p.Device) == nil {
		return &lab.FieldError{Path: "device", Err: fmt.Errorf("there is no %q; there are: %s", p.Device, strings.Join(r.devices.list(), ", "))}
	}
	return r.checkKept(p)
}

// checkKept says what is wrong with a plan that is to be kept, wherever its device is now.
func (r *runner) checkKept(p lab.Plan) error {
	_, err := r.resolve(p)
	return err
}

// prefixes are the networks of the devices.
func (p *ports) prefixes() (all []netip.Prefix) {
	for _, w := range p.wanted() {
		if prefix, err := netip.ParsePrefix(w.Gateway); err == nil {
			all = append(all, prefix.Masked())
		}
	}
	return all
}
