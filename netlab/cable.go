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
)

// cable is the packet link of a port that a device, or the whole port, may be
// taken out of at any time. What was set meanwhile holds for the next one.
type cable struct {
	port  Port
	clock lab.Clock

	mu      sync.Mutex
	profile link.Profile
	extra   map[netip.Addr]time.Duration
	packet  packetLink  // nil while there is no port
	last    link.Report // of the packet link before
}

func newCable(port Port, p link.Profile, clock lab.Clock) *cable {
	return &cable{port: port, clock: clock, profile: p, last: link.Report{Backend: "packet", Profile: p}}
}

// plug begins to forward between an interface and the lab.
func (c *cable) plug(device string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.packet != nil {
		return errors.New("plug: there is a cable already")
	}
	pc := link.PacketConfig{Device: device, Lab: c.port.Lab, Profile: c.profile, Direct: c.port.Direct, Clock: c.clock}
	var p packetLink
	var err error
	if command := c.port.Forwarder; len(command) > 0 {
		p, err = link.StartProcess(pc, command)
	} else {
		p, err = link.NewPacket(pc)
	}
	if err != nil {
		return fmt.Errorf("plug: %w", err)
	}
	p.SetExtra(c.extra)
	c.packet = p
	return nil
}

// unplug ends forwarding; without a cable it does nothing.
func (c *cable) unplug() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.packet == nil {
		return nil
	}
	c.last = c.packet.Report()
	err := c.packet.Close()
	c.packet = nil
	return err
}

// broken says whether the process that forwarded has ended by itself.
func (c *cable) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.packet.(interface{ Ended() <-chan struct{} })
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
	if c.packet != nil {
		c.packet.Set(p)
	}
}

// SetExtra implements shaper.
func (c *cable) SetExtra(extra map[netip.Addr]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extra = maps.Clone(extra)
	if c.packet != nil {
		c.packet.SetExtra(extra)
	}
}

// Restart implements shaper.
func (c *cable) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = link.Report{Backend: "packet", Profile: c.profile}
	if c.packet != nil {
		c.packet.Restart()
	}
}

// Report implements shaper. While there is no cable it is that of the last one.
func (c *cable) Report() link.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.packet != nil {
		return c.packet.Report()
	}
	return c.last
}

// Plug makes an interface of this network namespace the device's side of the
// link: a port that has come back. Only a Network with a Port has one.
func (n *Network) Plug(device string) error {
	if n.cable == nil {
		return errors.New("plug: this network was started without a port (Config.Port)")
	}
	return n.cable.plug(device)
}

// Unplug ends the link to the device's side; names, listeners and what is
// armed stay.
func (n *Network) Unplug() error {
	if n.cable == nil {
		return nil
	}
	return n.cable.unplug()
}

// LinkBroken says whether nothing is forwarded any more, because the process
// that did has ended by itself; Unplug and Plug mend it.
func (n *Network) LinkBroken() bool { return n.cable != nil && n.cable.broken() }
