package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"eidetic/control/adb"
	"eidetic/control/gesture"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// apps start and end the app of an arm on a device at a port, behind whose browser the synchronisation page is.
type apps struct {
	app     *lab.App // nil for an arm that opens a page
	control screenControl
	phone   func(context.Context) (adb.Phone, error) // nil where there is none
}

// packageOf is the app's package.
func (a *apps) packageOf() string {
	name, _, _ := strings.Cut(a.app.Package, "/")
	return name
}

// onPhone does something with the phone, which may be gone in one trial.
func (a *apps) onPhone(ctx context.Context, do func(context.Context, adb.Phone) error) error {
	ctx, cancel := context.WithTimeout(ctx, freshLimit)
	defer cancel()
	phone, err := a.phone(ctx)
	if err != nil {
		return experiment.Broken(err)
	}
	if err = do(ctx, phone); err == nil {
		return nil
	}
	if _, gone := a.phone(ctx); gone != nil {
		return experiment.Broken(err)
	}
	return err // what the phone refuses it refuses in every trial
}

// end ends the app, so that the next trial starts it.
func (a *apps) end(ctx context.Context) error {
	switch {
	case a.app == nil:
		return nil
	case a.app.Package != "":
		return a.onPhone(ctx, func(ctx context.Context, p adb.Phone) error { return p.ForceStop(ctx, a.packageOf()) })
	}
	_, err := a.do(ctx, a.app.Close)
	return err
}

// begin starts it. The event is the command to the phone, or the last input.
func (a *apps) begin(ctx context.Context, component string) (e lab.Event, err error) {
	if a.app.Package == "" {
		return a.do(ctx, a.app.Recipe)
	}
	err = a.onPhone(ctx, func(ctx context.Context, p adb.Phone) error {
		e.Earliest = clock()
		err := p.Start(ctx, component)
		e.Latest = clock()
		return err
	})
	return e, err
}

func (a *apps) do(ctx context.Context, text string) (lab.Event, error) {
	steps, err := gesture.Parse(text)
	if err != nil {
		return lab.Event{}, err
	}
	return perform(ctx, a.control, steps)
}

// used reads what the processes of the app's package have used.
func (a *apps) used(ctx context.Context, memory bool) (use lab.ProgramUse, err error) {
	if a.app == nil || a.app.Package == "" {
		return use, nil
	}
	err = a.onPhone(ctx, func(ctx context.Context, p adb.Phone) error {
		before := clock()
		use, err = p.Used(ctx, a.packageOf(), memory)
		use.At = before + (use.At-before)/2
		return err
	})
	return use, err
}

// of is a life with the app.
func (a *apps) of(ctx context.Context, life plugged) (experiment.Life, error) {
	if a == nil || a.app == nil {
		return life, nil
	}
	one := &pluggedApp{plugged: life, apps: a}
	if a.app.Package == "" {
		return one, nil
	}
	err := a.onPhone(ctx, func(ctx context.Context, p adb.Phone) (err error) {
		if err := p.ForceStop(ctx, a.packageOf()); err != nil {
			return err
		}
		if one.component = a.app.Package; !strings.Contains(one.component, "/") {
			one.component, err = p.Component(ctx, a.app.Package)
		}
		return err
	})
	return one, err
}

// pluggedApp is a device at a port whose trial starts an app.
type pluggedApp struct {
	plugged
	apps      *apps
	component string // what adb starts
	began     bool
}

var _ experiment.Starter = (*pluggedApp)(nil)

// Start implements [experiment.Starter].
func (p *pluggedApp) Start(ctx context.Context, _ string) (lab.Event, error) {
	p.began = true
	e, err := p.apps.begin(ctx, p.component)
	if err != nil {
		return e, fmt.Errorf("%s: %w", p.apps.app, err)
	}
	e.Name = "launch"
	return e, nil
}

// Stop ends the app as well, unless nothing has begun to start it: the keys that close it would close another window.
func (p *pluggedApp) Stop() error {
	if !p.began {
		return p.plugged.Stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), freshLimit) // the run's own may have ended
	defer cancel()
	return errors.Join(p.apps.end(ctx), p.plugged.Stop())
}
