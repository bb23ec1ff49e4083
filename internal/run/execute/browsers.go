package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/device"
	"eidetic/internal/run/experiment"
)

// browsers are those of a virtual device that the arms of a plan have asked for so far.
type browsers struct {
	virtual        *device.Virtual
	seats          *seats
	dir, authority string
	open           map[string]device.Program // by what the plan calls them
	names          []string                  // in the order of their first use
	warm           map[string]string         // homes of browsers that have loaded a page, by warmKey

	asleep  bool // trials start the browser
	forget  bool // its program is not to be in memory
	evicted device.Evicted
}

// warmKey tells which arms may begin with the same warm profile.
func warmKey(a plan.Arm) string {
	key := browserKey(a.Browser) + "\n" + a.Page + "\n" + a.Archive
	if a.User.IsSeeded() {
		key += "\n" + userKey(a)
	}
	return key
}

// browserKey tells two browsers apart; their words for people have only the last element of a profile's path.
func browserKey(b *lab.Browser) string {
	if b == nil {
		b = &lab.Browser{Name: lab.Chromium}
	}
	return fmt.Sprintf("%+v", *b)
}

// userKey tells which arms may begin with the same profile of a user.
func userKey(a plan.Arm) string { return browserKey(a.Browser) + "\nuser " + a.User.Name }

// prepare makes the device the one that an arm asks for.
func (b *browsers) prepare(ctx context.Context, a plan.Arm) error {
	b.virtual.Home = ""
	if a.User.IsSeeded() {
		b.virtual.Home = b.warm[userKey(a)]
	}
	b.asleep, b.forget = a.IsStart(), a.State == lab.StateAppCold
	if a.IsWarm() {
		b.virtual.Home = b.warm[warmKey(a)]
	}
	if err := b.seats.sit(ctx, a.Screen); err != nil {
		return err
	}
	return b.choose(ctx, a.Browser)
}

// warmUp starts the arm's browser at its page, and keeps its profile for the arm's trials when
// loaded returns.
func (b *browsers) warmUp(
	ctx context.Context, a plan.Arm, birth func(url string) (experiment.Life, error), loaded func(experiment.Life) error,
) error {
	return b.keep(ctx, a, warmKey(a), a.Page, birth, loaded)
}

// seedTries is how often a user's profile is made anew because the browser has not kept what was set.
const seedTries = 6

// seed has the arm's browser make a user's visits, and keeps its profile for the trials of the user.
func (b *browsers) seed(ctx context.Context, a plan.Arm, v Visits, birth func(url string) (experiment.Life, error)) error {
	key := userKey(a)
	a.User = nil
	begun := func(url string) (experiment.Life, error) {
		if err := v.Begin(); err != nil {
			return nil, err
		}
		return birth(url)
	}
	for range seedTries {
		if err := b.keep(ctx, a, key, v.Set, begun, v.IsSet); err != nil {
			return err
		}
		b.virtual.Home = b.warm[key]
		life, err := begun(v.Check)
		if err != nil {
			return err
		}
		kept, err := v.IsKept(life)
		if err := errors.Join(err, life.Stop()); err != nil || kept {
			return err
		}
		home := b.warm[key]
		delete(b.warm, key)
		if err := os.RemoveAll(home); err != nil {
			return err
		}
	}
	return fmt.Errorf("the browser did not keep cookies and storage in %d attempts: it may refuse them", seedTries)
}

// keep starts the arm's browser at a URL, and keeps its profile under a key, unless there is one.
func (b *browsers) keep(
	ctx context.Context, a plan.Arm, key, url string, birth func(url string) (experiment.Life, error), loaded func(experiment.Life) error,
) error {
	if b.warm[key] != "" {
		return nil
	}
	cold := a
	cold.State, cold.App = lab.StateCold, nil // it starts at its birth
	if err := b.prepare(ctx, cold); err != nil {
		return err
	}
	life, err := birth(url)
	if err != nil {
		return err
	}
	browser, ok := life.(*device.Browser)
	if err := loaded(life); err != nil || !ok {
		return errors.Join(err, life.Stop())
	}
	home, err := browser.Keep()
	if err != nil {
		return err
	}
	b.warm[key] = home
	return nil
}

// choose makes the device start a browser from now on.
func (b *browsers) choose(ctx context.Context, which *lab.Browser) error {
	program := b.open[browserKey(which)]
	if program == nil {
		var err error
		if program, err = device.OpenBrowser(ctx, b.workshop(), which); err != nil {
			return err
		}
		b.open[browserKey(which)] = program
		b.names = append(b.names, program.Describe())
	}
	b.virtual.Browser = program
	return nil
}

// workshop is where the browsers are prepared.
func (b *browsers) workshop() device.Workshop {
	return device.Workshop{Dir: b.dir, Authority: b.authority, Namespace: b.virtual.Namespace, Sandbox: b.virtual.Sandbox}
}

// evict takes the browser's program out of memory, if it is not to be there.
func (b *browsers) evict() error {
	if !b.forget {
		return nil
	}
	left, err := device.Evict(b.virtual.Browser)
	if err != nil {
		return fmt.Errorf("%s: %w", lab.StateAppCold, err)
	}
	if left.Share() >= b.evicted.Share() {
		b.evicted = left
	}
	return nil
}

// describe names the browsers that have been used.
func (b *browsers) describe() string { return strings.Join(b.names, " and ") }

// prepare readies the rig for the trials of an arm.
func (x *Execution) prepare(ctx context.Context, a plan.Arm) error {
	if err := x.seed(ctx, a); err != nil {
		return err
	}
	if err := x.Rig.Prepare(ctx, a); err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	return nil
}

// warmUp loads the page of an arm once, before its first trial, if its trials begin warm.
func (x *Execution) warmUp(ctx context.Context, cell string, a plan.Arm, network experiment.Network) error {
	name := a.Name
	if cell != "" {
		name += " of " + cell
	}
	if !a.IsWarm() || x.Rig.Warm == nil || x.warmed[name] {
		return nil
	}
	if err := x.seed(ctx, a); err != nil {
		return err
	}
	if a.App != nil {
		x.News.say("Starting %s once, so that the trials of the %s begin warm", a.App, name)
	} else {
		x.News.say("Loading %s once, so that the trials of the %s begin warm", a.Page, name)
	}
	session, err := network.Arm(ctx)
	if err != nil {
		return err
	}
	err = x.Rig.Warm(ctx, a, func(life experiment.Life) error {
		if a.App != nil {
			return awaitIdle(ctx, life, x.Rig.Hands, x.Plan.StillTime(), x.Plan.LimitTime())
		}
		return x.awaitKept(ctx, life, session)
	})
	_, disarmErr := session.Disarm()
	if err = errors.Join(err, disarmErr); err != nil {
		return fmt.Errorf("warming up the browser of the %s: %w", name, err)
	}
	x.warmed[name] = true
	return nil
}

// awaitKept waits until a page that nobody films has loaded what its browser is to keep.
func (x *Execution) awaitKept(ctx context.Context, life experiment.Life, session experiment.Session) error {
	rest := experiment.Rest{MainThreads: x.Rig.MainThreads}
	return experiment.AwaitKept(ctx, life, session, rest, clock, x.Plan.StillTime(), x.Plan.LimitTime())
}

// idleShare is the most of a processor that a program uses that has nothing to do.
const idleShare = 0.1

// awaitIdle waits until a program that nobody films has used almost no processor for a time.
func awaitIdle(ctx context.Context, life experiment.Life, hands *Hands, still, limit time.Duration) error {
	deadline := clock().Add(limit)
	var before lab.ProgramUse
	for {
		now, err := hands.Used(ctx, false)
		if err != nil {
			return err
		}
		if now.Processes > 0 && before.Processes == now.Processes && float64(now.Ran-before.Ran) < idleShare*float64(now.At-before.At) {
			return nil
		}
		if before = now; now.At > deadline {
			return fmt.Errorf("the program did not come to rest within %v", limit)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-life.Done():
			return life.Err()
		case <-time.After(still):
		}
	}
}
