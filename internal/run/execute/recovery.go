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
	say  func(string)

	mu   sync.Mutex
	said []string
}

// way is one way to bring a device back.
type way struct {
	did string // "it was restarted by adb"
	do  func(context.Context) error
}

// recoveryLimit bounds one way.
const recoveryLimit = 20 * time.Minute

// HungError is a device that nothing brings back but a person.
type HungError struct{ Err error }

func (e *HungError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *HungError) Unwrap() error { return e.Err }

// recovery returns how the device is brought back; nil if only a person can.
func (c PluggedConfig) recovery(fresh refresher, keys *keys) *recovery {
	r := &recovery{say: c.Say}
	if phone, ok := fresh.(*onPhone); ok {
		r.ways = append(r.ways, way{"it was restarted by adb", func(ctx context.Context) error {
			p, err := phone.phone(ctx)
			if err != nil {
				return err
			}
			return phone.reboot(ctx, p, keys)
		}})
	}
	if c.Power != nil {
		plug := power.New(*c.Power, c.Broadcast)
		did := "its power was switched off and on"
		if !plug.Restarts() {
			did = "it was woken over the network"
		}
		r.ways = append(r.ways, way{did, func(ctx context.Context) error {
			_ = keys.Close() // what was connected goes with the power
			return plug.Restart(ctx)
		}})
	}
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
		limited, cancel := context.WithTimeout(ctx, recoveryLimit)
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
