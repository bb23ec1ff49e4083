package service

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/keep/redact"
	"eidetic/internal/keep/store"
	"eidetic/internal/keep/support"
	"eidetic/internal/web/panel"
	"eidetic/netlab/wifi"
)

// supporter makes support bundles; it implements [panel.Supporter].
type supporter struct {
	s       *Service
	runs    *store.Store
	jobs    *store.Queue
	keeper  *automation.Keeper // nil keeps nothing
	bisects *bisects.Keeper    // nil keeps none
	config  func() (string, error)
	devices func(context.Context) []panel.Device
	parts   func(context.Context) []panel.PluggedPart
}

// newestRuns is how many runs a bundle lists.
const newestRuns = 50

// Support implements panel.Supporter.
func (p supporter) Support(ctx context.Context, w io.Writer, health panel.Health) error {
	b := support.New(w, redact.New(p.secrets(ctx)...), time.Now())
	steps := []error{
		b.Text("version.txt", p.s.Software+"\npanel "+p.s.Version+"\n"),
		b.JSON("health.json", health),
		b.Text("hardware.txt", support.Hardware(root)),
		p.addConfig(b),
		addJSON(b, "queue.json", func() (any, error) { return p.jobs.Jobs(ctx) }),
		addJSON(b, "runs.json", func() (any, error) { return p.runs.Runs(ctx, "", newestRuns) }),
		addJSON(b, "disk.json", func() (any, error) {
			free, size, err := roomOn(p.s.Data)
			return map[string]int64{"free": free, "size": size}, err
		}),
		b.JSON("devices.json", map[string]any{"devices": p.devices(ctx), "parts": p.parts(ctx)}),
		p.addAutomation(ctx, b),
		p.addBisects(b),
		p.addDoctor(ctx, b),
	}
	if p.s.Recent != nil {
		steps = append(steps, b.Text("log.txt", p.s.Recent.String()))
	}
	return errors.Join(errors.Join(steps...), b.Close())
}

func addJSON(b *support.Bundle, name string, read func() (any, error)) error {
	v, err := read()
	if err != nil {
		return b.Failed(name, err)
	}
	return b.JSON(name, v)
}

func (p supporter) addConfig(b *support.Bundle) error {
	if p.config == nil {
		return nil
	}
	text, err := p.config()
	var clean []byte
	if err == nil {
		clean, _, err = redact.YAML([]byte(text))
	}
	if err != nil {
		return b.Failed("appliance.yaml", err)
	}
	return b.Text("appliance.yaml", string(clean))
}

func (p supporter) addAutomation(ctx context.Context, b *support.Bundle) error {
	if p.keeper == nil {
		return nil
	}
	return errors.Join(
		addJSON(b, "schedules.json", func() (any, error) { return p.keeper.Schedules(ctx) }),
		addJSON(b, "workflows.json", func() (any, error) { return p.keeper.Workflows(ctx) }),
		addJSON(b, "deliveries.json", func() (any, error) { return p.keeper.DeliveryCounts(ctx) }),
	)
}

func (p supporter) addBisects(b *support.Bundle) error {
	if p.bisects == nil {
		return nil
	}
	return b.JSON("bisects.json", p.bisects.List())
}

// doctorLimit is how long the doctor may take: it tries things out.
const doctorLimit = time.Minute

func (p supporter) addDoctor(ctx context.Context, b *support.Bundle) error {
	if p.s.Doctor == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, doctorLimit)
	defer cancel()
	return addJSON(b, "doctor.json", func() (any, error) { return p.s.Doctor(ctx) })
}

// secrets are those that the service knows, to be removed wherever they are.
func (p supporter) secrets(ctx context.Context) []string {
	known := append(redact.Secrets(p.s.Config), p.s.Token.Reveal())
	if p.keeper != nil {
		if all, err := p.keeper.Secrets(ctx); err == nil {
			known = append(known, all...)
		}
	}
	if p.bisects != nil {
		known = append(known, p.bisects.Secrets()...)
	}
	if text, err := os.ReadFile(filepath.Join(p.s.Data, "wifi.json")); err == nil {
		var network wifi.Network
		if json.Unmarshal(text, &network) == nil {
			known = append(known, network.Passphrase.Reveal())
		}
	}
	if p.config != nil { // it may have changed since the service began
		var changed Config
		if text, err := p.config(); err == nil {
			_ = ParseConfig("", []byte(text), &changed) // what could be read counts
			known = append(known, redact.Secrets(changed)...)
		}
	}
	return known
}
