package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"eidetic/control/adb"
	"eidetic/control/recipe"
	"eidetic/internal/base/adbserver"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/experiment"
)

// onPhone makes an Android device fresh: its browser is stopped and, if it may be, cleared, and an intent opens the
// page.
type onPhone struct {
	client adbserver.Client
	serial string // "" is the only phone
	recipe recipe.Recipe
	clear  bool          // what the browser has stored may be removed
	limit  time.Duration // freshLimit

	state      string
	restart    bool // the phone is started again before the next trial
	warmed     bool // the browser has loaded the page that warm trials load
	configured bool // the browser reads settings of ours
}

const (
	// rebootLimit is how long a phone may take to start.
	rebootLimit = 4 * time.Minute
	// freshLimit is how long a phone may take to stop, clear and start its browser. What hangs never answers.
	freshLimit = 45 * time.Second
)

// errHangs is of a phone that would hang again.
var errHangs = errors.New("the phone hangs") // constant

func (p *onPhone) phone(ctx context.Context) (adb.Phone, error) {
	found, err := p.client.Find(ctx, p.serial)
	return adb.Phone{Client: p.client, Serial: found.Serial}, err
}

// begin implements [refresher].
func (p *onPhone) begin(state string) { p.state, p.restart = state, state == lab.StateRebooted }

// clears says whether the next trial begins with a browser that has nothing stored.
func (p *onPhone) clears() bool {
	return p.clear && p.state != lab.StateKept && (p.state != lab.StateWarm || !p.warmed)
}

// do implements [refresher]. What fails because the phone is gone ends one trial; what the phone refuses ends the run.
func (p *onPhone) do(ctx context.Context, c screenControl) error {
	err := p.open(ctx, c)
	if err != nil && ctx.Err() == nil && !experiment.IsBroken(err) {
		if _, gone := p.phone(ctx); gone != nil {
			return experiment.Broken(err)
		}
	}
	return err
}

func (p *onPhone) open(ctx context.Context, c screenControl) error {
	phone, err := p.phone(ctx)
	if err != nil {
		return experiment.Broken(err) // it may be back by now
	}
	if p.restart {
		if err := p.reboot(ctx, phone, c); err != nil {
			return err
		}
		p.restart = false
	}
	limited, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	if err := p.launch(limited, phone); err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			return experiment.Broken(fmt.Errorf("%w: it has not done within %v what adb told it", errHangs, p.limit))
		}
		return err
	}
	return nil
}

// launch opens the start page in a browser that was stopped.
func (p *onPhone) launch(ctx context.Context, phone adb.Phone) error {
	name := p.recipe.Package
	if err := phone.ForceStop(ctx, name); err != nil {
		return err
	}
	if p.clears() {
		if err := p.clean(ctx, phone); err != nil {
			return fmt.Errorf("clearing %s: %w", name, err)
		}
	}
	return phone.Open(ctx, StartURL, name, p.recipe.Extras...)
}

// clean removes what the browser has stored, and keeps it from asking its owner what it asks at its first start.
func (p *onPhone) clean(ctx context.Context, phone adb.Phone) error {
	name := p.recipe.Package
	if err := phone.Clear(ctx, name); err != nil {
		return err
	}
	for _, permission := range p.recipe.Grant {
		if err := phone.Grant(ctx, name, permission); err != nil && ctx.Err() != nil {
			return err // a version of Android that does not know the permission does not ask for it either
		}
	}
	if p.recipe.Settings == nil {
		return nil
	}
	p.configured = true
	return phone.Configure(ctx, name, *p.recipe.Settings)
}

// startAgain implements [restarter].
func (p *onPhone) startAgain(ctx context.Context, keys screenControl) error {
	phone, err := p.phone(ctx)
	if err != nil {
		return err
	}
	return p.reboot(ctx, phone, keys)
}

// reboot starts the phone again, and waits until it and its controls can be used.
func (p *onPhone) reboot(ctx context.Context, phone adb.Phone, c screenControl) error {
	if held, ok := c.(io.Closer); ok {
		_ = held.Close() // its keyboard goes with the phone's system
	}
	ctx, cancel := context.WithTimeout(ctx, rebootLimit)
	defer cancel()
	if err := phone.Reboot(ctx); err != nil {
		return err
	}
	if part, ok := c.(interface{ await(context.Context) error }); ok {
		return part.await(ctx)
	}
	return nil
}

// shown implements [refresher]: Android's browsers cannot be told to fill the screen.
func (*onPhone) shown(context.Context, screenControl) error { return nil }

// warm returns what loads an arm's page once, so that its trials begin warm.
func (p *onPhone) warm(births pluggedBirths) func(context.Context, plan.Arm, func(experiment.Life) error) error {
	return func(ctx context.Context, a plan.Arm, loaded func(experiment.Life) error) error {
		p.begin(a.State)
		life, err := births.Birth(ctx, a.Page)
		if err != nil {
			return err
		}
		if err := loaded(life); err != nil {
			return errors.Join(err, life.Stop())
		}
		p.warmed = true
		return life.Stop()
	}
}

// conditions asks the phone how it is.
func (p *onPhone) conditions(ctx context.Context) (lab.Conditions, error) {
	ctx, cancel := context.WithTimeout(ctx, keyLimit)
	defer cancel()
	phone, err := p.phone(ctx)
	if err != nil {
		return lab.Conditions{}, err
	}
	return phone.Conditions(ctx)
}

// Close takes back what the browser was told.
func (p *onPhone) Close() error {
	if !p.configured {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyLimit) // the run's own may have ended
	defer cancel()
	phone, err := p.phone(ctx)
	if err != nil {
		return err
	}
	return phone.Unconfigure(ctx, p.recipe.Package, *p.recipe.Settings)
}
