package service

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/web/panel"
)

// automationFile holds workflows, schedules, webhooks and alerts.
const automationFile = "automation.db"

// keeper opens what the box does by itself. A box without it still measures: where the file
// cannot be opened the result is nil, with a warning for people. A damaged file is put aside.
func (s *Service) keeper(ctx context.Context, queue panel.Queue, runs *store.Store, carrier *runner, inside func() []netip.Prefix) (
	k *automation.Keeper, warning []string,
) {
	c := automation.Config{
		File: filepath.Join(s.Data, automationFile), Runs: queue, Store: runs, Check: carrier.checkKept, Log: s.Log,
		Sender: s.sender(inside),
	}
	k, err := automation.Open(ctx, c)
	if err != nil && store.Damaged(err) {
		aside := c.File + ".damaged"
		s.Log.Error("workflows, schedules and webhooks are damaged; they are put aside and forgotten", "aside", aside, "error", err)
		warning = append(warning, "workflows, schedules and webhooks were damaged and are forgotten")
		if err = os.Rename(c.File, aside); err == nil {
			for _, rest := range []string{c.File + "-wal", c.File + "-shm"} {
				_ = os.Remove(rest) // files of the damaged one, which may be missing
			}
			k, err = automation.Open(ctx, c)
		}
	}
	if err != nil {
		s.Log.Error("workflows, schedules, webhooks and alerts are off until the next start", "error", err)
		return nil, append(warning, "workflows, schedules, webhooks and alerts are off: their file cannot be opened")
	}
	return k, warning
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

// bisects opens the bisects that the box makes by itself.
func (s *Service) bisects(queue panel.Queue, runs *store.Store, carrier *runner, inside func() []netip.Prefix) (*bisects.Keeper, error) {
	return bisects.Open(bisects.Config{
		Dir: filepath.Join(s.Data, bisectsDir), Runs: queue, Store: runs, Sender: s.sender(inside), Check: carrier.checkKept, Log: s.Log,
	})
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
