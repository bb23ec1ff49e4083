package systemd

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Notifier reports the service's state to the service manager. It pings the watchdog
// only while every registered subsystem ticks: a hung recorder must restart the
// service even if the panel still answers. A subsystem may be silent for half of the
// watchdog's interval before the pings end, and the service manager waits for the whole
// interval after the last one.
type Notifier struct {
	send     func(state string) error
	interval time.Duration // WatchdogSec; 0 when no watchdog is set
	now      func() time.Time

	mu     sync.Mutex
	pulses map[string]*Pulse
	status string
	late   string // the subsystems last reported as hung
}

// FromEnvironment returns a Notifier for this process's NOTIFY_SOCKET and
// WATCHDOG_USEC. Without them the Notifier sends nothing. A socket that cannot be
// reached, or a watchdog interval that is not a number, is an error.
func FromEnvironment() (*Notifier, error) {
	interval, err := daemon.SdWatchdogEnabled(true)
	if err != nil {
		return nil, fmt.Errorf("systemd watchdog: %w", err)
	}
	send := func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}
	return NewNotifier(send, interval, time.Now), nil
}

// NewNotifier returns a Notifier that sends its states, in the form of
// sd_notify(3), with send, for a watchdog that expires after interval
// (0 for none).
func NewNotifier(send func(state string) error, interval time.Duration, now func() time.Time) *Notifier {
	return &Notifier{send: send, interval: interval, now: now, pulses: make(map[string]*Pulse)}
}

// Ready reports that every socket of the service is bound and answers.
func (n *Notifier) Ready(status string) error {
	n.mu.Lock()
	n.status = status
	n.mu.Unlock()
	return n.notify("ready", daemon.SdNotifyReady+"\n"+statusLine(status))
}

// Status sets the line that "systemctl status" shows.
func (n *Notifier) Status(status string) error {
	n.mu.Lock()
	n.status = status
	n.mu.Unlock()
	return n.notify("status", statusLine(status))
}

// Stopping reports that the service is ending by itself.
func (n *Notifier) Stopping(status string) error {
	return n.notify("stopping", daemon.SdNotifyStopping+"\n"+statusLine(status))
}

// Period is how often a subsystem should tick: four times per watchdog
// interval, so that one late tick does no harm; a second without a watchdog.
func (n *Notifier) Period() time.Duration {
	if n.interval == 0 {
		return time.Second
	}
	return n.interval / 4
}

// Subsystem registers a loop that must tick for the service to count as alive, and
// returns its Pulse. A name in use is an error.
func (n *Notifier) Subsystem(name string) (*Pulse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, used := n.pulses[name]; used {
		return nil, fmt.Errorf("systemd watchdog: subsystem %q is registered already", name)
	}
	p := &Pulse{notifier: n, name: name, last: n.now()}
	n.pulses[name] = p
	return p, nil
}

// Turn is the age of a subsystem's last tick.
type Turn struct {
	Name string
	Ago  time.Duration
	// OK is set if the subsystem ticked within the watchdog's interval (ten seconds
	// without a watchdog).
	OK bool
}

// Turns returns every registered subsystem, sorted by name.
func (n *Notifier) Turns() []Turn {
	patience := n.interval
	if patience == 0 {
		patience = 10 * time.Second
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	turns := make([]Turn, 0, len(n.pulses))
	for name, p := range n.pulses {
		ago := n.now().Sub(p.last)
		turns = append(turns, Turn{name, ago, ago <= patience})
	}
	sort.Slice(turns, func(i, j int) bool { return turns[i].Name < turns[j].Name })
	return turns
}

// Run pings the watchdog until ctx is done and then returns nil. It returns at once
// if no watchdog is set. A ping that cannot be sent is not fatal: if pings keep
// failing, the service manager restarts us, which is the watchdog's purpose.
func (n *Notifier) Run(ctx context.Context) error {
	if n.interval == 0 {
		return nil
	}
	// So often that little of the interval is lost between a tick that comes late and its ping.
	ticker := time.NewTicker(n.interval / 8)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			_ = n.ping()
		}
	}
}

// ping sends WATCHDOG=1 if every subsystem ticked within half of the interval. Otherwise it
// reports once which subsystems did not.
func (n *Notifier) ping() error {
	n.mu.Lock()
	var late []string
	for name, p := range n.pulses {
		if n.now().Sub(p.last) > n.interval/2 {
			late = append(late, name)
		}
	}
	sort.Strings(late)
	names := strings.Join(late, ", ")
	changed := names != n.late
	n.late = names
	status := n.status
	n.mu.Unlock()

	var states []string
	if names == "" {
		states = append(states, daemon.SdNotifyWatchdog)
	}
	if changed && names != "" {
		states = append(states, "STATUS=no sign of life from "+names)
	} else if changed {
		states = append(states, statusLine(status))
	}
	if len(states) == 0 {
		return nil
	}
	return n.notify("watchdog", strings.Join(states, "\n"))
}

func (n *Notifier) notify(what, state string) error {
	if err := n.send(state); err != nil {
		return fmt.Errorf("notify systemd (%s): %w", what, err)
	}
	return nil
}

// statusLine replaces line breaks in a status: a line break would start a new
// assignment, and a status may contain text from outside.
func statusLine(status string) string {
	return "STATUS=" + strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, status)
}

// Pulse is the sign of life of one subsystem.
type Pulse struct {
	notifier *Notifier
	name     string
	last     time.Time
}

// Tick reports that the subsystem's loop is alive.
func (p *Pulse) Tick() {
	p.notifier.mu.Lock()
	p.last = p.notifier.now()
	p.notifier.mu.Unlock()
}

// End reports that the subsystem ended normally; the watchdog no longer waits for it.
func (p *Pulse) End() {
	p.notifier.mu.Lock()
	delete(p.notifier.pulses, p.name)
	p.notifier.mu.Unlock()
}
