package netlab

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
	"eidetic/netlab/link/packet"
)

// cable is the packet link of a port whose interface can vanish at any time. What is
// set without an interface applies to the next one.
type cable struct {
	port  Port
	clock lab.Clock

	mu      sync.Mutex
	profile link.Profile
	extra   map[netip.Addr]time.Duration
	packets packetLink  // nil while there is no port
	last    link.Report // of the last packet link
}

func newCable(port Port, p link.Profile, clock lab.Clock) *cable {
	return &cable{port: port, clock: clock, profile: p, last: link.Report{Backend: "packet", Profile: p}}
}

// plug starts to forward between an interface and the lab.
func (c *cable) plug(device string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.packets != nil {
		return errors.New("plug: an interface is plugged in already")
	}
	pc := packet.Config{Device: device, Lab: c.port.Lab, Profile: c.profile, Direct: c.port.Direct, Clock: c.clock}
	var p packetLink
	var err error
	if command := c.port.Forwarder; len(command) > 0 {
		p, err = packet.StartProcess(pc, command)
	} else {
		p, err = packet.New(pc)
	}
	if err != nil {
		return fmt.Errorf("plug: %w", err)
	}
	p.SetExtra(c.extra)
	c.packets = p
	return nil
}

// unplug ends forwarding; without an interface it does nothing.
func (c *cable) unplug() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.packets == nil {
		return nil
	}
	c.last = c.packets.Report()
	err := c.packets.Close()
	c.packets = nil
	return err
}

// broken reports whether the forwarding process has ended by itself.
func (c *cable) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.packets.(interface{ Ended() <-chan struct{} })
	if !ok {
		return false
	}
	select {
	case <-p.Ended():
		return true
	default:
		return false
	}
}

// Set implements shaper.
func (c *cable) Set(p link.Profile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.profile = p
	c.last = link.Report{Backend: "packet", Profile: p}
	if c.packets != nil {
		c.packets.Set(p)
	}
}

// SetExtra implements shaper.
func (c *cable) SetExtra(extra map[netip.Addr]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extra = maps.Clone(extra)
	if c.packets != nil {
		c.packets.SetExtra(extra)
	}
}

// Restart implements shaper.
func (c *cable) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = link.Report{Backend: "packet", Profile: c.profile}
	if c.packets != nil {
		c.packets.Restart()
	}
}

// Report implements shaper. Without an interface it returns the last link's report.
func (c *cable) Report() link.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.packets != nil {
		return c.packets.Report()
	}
	return c.last
}

// Plug makes an interface of this network namespace the device's side of the link. It
// is for a Network with a Port, whose interface has appeared.
func (n *Network) Plug(device string) error {
	if n.cable == nil {
		return errors.New("plug: this network was started without a port (Config.Port)")
	}
	return n.cable.plug(device)
}

// Unplug ends the link to the device's side. Name server, listeners and core go on.
func (n *Network) Unplug() error {
	if n.cable == nil {
		return nil
	}
	return n.cable.unplug()
}

// LinkBroken reports whether nothing is forwarded because the forwarding process has
// ended by itself. Unplug and Plug start another one.
func (n *Network) LinkBroken() bool { return n.cable != nil && n.cable.broken() }
