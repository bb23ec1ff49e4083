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

// Notifier tells the service manager how the service is. Its watchdog pings
// only while every registered subsystem is really turning: a hung recorder
// must restart the service even if the panel still answers.
type Notifier struct {
	send     func(state string) error
	interval time.Duration // WatchdogSec; 0 when no watchdog is set
	now      func() time.Time

	mu     sync.Mutex
	pulses map[string]*Pulse
	status string
	late   string // the names last reported as not turning
}

// FromEnvironment returns a Notifier for this process's NOTIFY_SOCKET and
// WATCHDOG_USEC. Without them it says nothing. A socket that cannot be reached,
// or a watchdog interval that is not a number, is an error.
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

// Ready says that everything the service offers is bound and answering.
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

// Stopping says that the service is ending by itself.
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

// Subsystem registers a loop that must turn for the service to count as
// alive, and returns what it ticks. A name in use is an error.
func (n *Notifier) Subsystem(name string) (*Pulse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, used := n.pulses[name]; used {
		return nil, fmt.Errorf("systemd watchdog: subsystem %q is registered already", name)
	}
	// Fresh at first, so that a subsystem has a whole interval to start turning.
	p := &Pulse{notifier: n, name: name, last: n.now(), fresh: true}
	n.pulses[name] = p
	return p, nil
}

// Turn is how long ago a subsystem last ticked.
type Turn struct {
	Name string
	Ago  time.Duration
	// OK is set while it ticked within the watchdog's interval (ten seconds
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

// Run pings the watchdog until ctx is done. It returns nil then, and at once
// when no watchdog is set. A ping that cannot be sent is not fatal: if it
// stays so, the service manager restarts us, which is what the watchdog is for.
func (n *Notifier) Run(ctx context.Context) error {
	if n.interval == 0 {
		return nil
	}
	ticker := time.NewTicker(n.interval / 2)
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

// ping sends WATCHDOG=1 if every subsystem ticked since the ping before, and
// otherwise says once which did not.
func (n *Notifier) ping() error {
	n.mu.Lock()
	var late []string
	for name, p := range n.pulses {
		if !p.fresh {
			late = append(late, name)
		}
	}
	sort.Strings(late)
	names := strings.Join(late, ", ")
	changed := names != n.late
	n.late = names
	if names == "" {
		for _, p := range n.pulses {
			p.fresh = false
		}
	}
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

// statusLine makes a status that is one line: a line break would start a new
// assignment, and a status may quote what came from outside.
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
	fresh    bool // ticked since the last ping
}

// Tick says that the subsystem's loop has turned.
func (p *Pulse) Tick() {
	p.notifier.mu.Lock()
	p.last, p.fresh = p.notifier.now(), true
	p.notifier.mu.Unlock()
}

// End says that the subsystem ended as it should, and is no longer waited for.
func (p *Pulse) End() {
	p.notifier.mu.Lock()
	delete(p.notifier.pulses, p.name)
	p.notifier.mu.Unlock()
}
