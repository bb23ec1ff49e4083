package execute

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"eidetic/control/power"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// recovery brings a device back that no longer does what it is told: the gentlest way first.
type recovery struct {
	ways []way
	soon bool // controls that are away for a while are a hang: they can be brought back by the power
	say  func(string)

	mu   sync.Mutex
	said []string
}

// way is one way to bring a device back.
type way struct {
	did   string // "it was restarted by adb"
	limit time.Duration
	do    func(context.Context) error
}

const (
	// powerLimit bounds a restart by the power; most of it is the time that the device is given to start.
	powerLimit = 20 * time.Minute
	// firstLimit bounds a restart by adb where the power can be switched, too: phones start within it.
	firstLimit = time.Minute
)

// HungError is a device that nothing brings back but a person.
type HungError struct{ Err error }

func (e *HungError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *HungError) Unwrap() error { return e.Err }

// restarter is a refresher that can start its device again.
type restarter interface {
	startAgain(ctx context.Context, keys screenControl) error
}

// newRecovery returns how a device is brought back; nil if only a person can. Without a plug its power cannot be
// switched.
func newRecovery(fresh refresher, keys *keys, plug *power.Switch, say func(string)) *recovery {
	r := &recovery{say: say}
	if phone, ok := fresh.(restarter); ok {
		limit := rebootLimit
		if plug != nil {
			limit = firstLimit
		}
		r.ways = append(r.ways, way{"it was restarted by adb", limit, func(ctx context.Context) error {
			return phone.startAgain(ctx, keys)
		}})
	}
	if plug != nil {
		did := "its power was switched off and on"
		if !plug.Restarts() {
			did = "it was woken over the network"
		}
		r.ways = append(r.ways, way{did, powerLimit, func(ctx context.Context) error {
			_ = keys.Close() // what was connected goes with the power
			keys.replug = 0  // it is given all the time to come back
			return plug.Restart(ctx)
		}})
	}
	r.soon = plug != nil
	if len(r.ways) == 0 {
		return nil
	}
	return r
}

// bring tries each way until the device begins a trial again. Its error ends the run.
func (r *recovery) bring(ctx context.Context, cause error, again func() (experiment.Life, error)) (experiment.Life, error) {
	var tried []string
	for _, w := range r.ways {
		begun := time.Now()
		r.tell(fmt.Sprintf("The device does not answer (%s): %s", lab.Clip(cause.Error(), 200), w.did))
		limited, cancel := context.WithTimeout(ctx, w.limit)
		err := w.do(limited)
		cancel()
		var life experiment.Life
		if err == nil {
			life, err = again()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		took := time.Since(begun).Seconds()
		if err == nil {
			r.keep(fmt.Sprintf("Before a trial the device did not answer (%s); %s, and it was back after %.0f s.",
				lab.Clip(cause.Error(), 200), w.did, took))
			return life, nil
		}
		tried = append(tried, fmt.Sprintf("%s, without success after %.0f s (%v)", w.did, took, err))
	}
	return nil, &HungError{fmt.Errorf("%w; %s", cause, strings.Join(tried, "; "))}
}

func (r *recovery) tell(text string) {
	if r.say != nil {
		r.say(text)
	}
}

func (r *recovery) keep(text string) {
	r.tell(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, text)
}

// told is what was done in this run.
func (r *recovery) told() []string {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said
}
