package netlab

import (
	"fmt"
	"net/netip"
	"time"

	"eidetic/netlab/link"
	"eidetic/netlab/link/conn"
	"eidetic/netlab/link/packet"
)

// shaper is what a Network asks of the packet back end and of the
// connection-level one.
type shaper interface {
	Set(link.Profile)
	SetExtra(map[netip.Addr]time.Duration)
	Restart()
	Report() link.Report
}

// packetLink is a packet back end, in this process or another.
type packetLink interface {
	shaper
	Close() error
}

var (
	_ packetLink = (*packet.Link)(nil)
	_ packetLink = (*packet.Process)(nil)
	_ shaper     = (*cable)(nil)
	_ shaper     = (*conn.Link)(nil)
)

// startLink sets up the back ends. With a port the link shapes packets, and connections
// pass unshaped.
func (n *Network) startLink() error {
	if n.c.Port == nil {
		n.link = conn.New(n.c.Link, n.c.Clock)
		n.shaper = n.link
		return nil
	}
	native := link.Profile{Name: "native"}
	if n.c.ShapeConnections {
		n.link = conn.New(n.c.Link, n.c.Clock)
		n.cable = newCable(*n.c.Port, native, n.c.Clock)
		n.shaper = n.link
	} else {
		n.link = conn.New(native, n.c.Clock)
		n.cable = newCable(*n.c.Port, n.c.Link, n.c.Clock)
		n.shaper = n.cable
	}
	if n.c.Port.Device == "" {
		return nil
	}
	return n.cable.plug(n.c.Port.Device)
}

// SetLink changes the profile at once, also for open connections (with the conn back
// end, unless they were made under a native profile). The times of its changes count
// from now, or from RestartLink.
func (n *Network) SetLink(p link.Profile) error {
	if p.Name == "" {
		p.Name = "native"
	}
	if n.c.HTTP3 && (n.cable == nil || n.c.ShapeConnections) && p.Name != "native" {
		return fmt.Errorf("set the link %s: HTTP/3 would bypass it, because it shapes connections and not packets", p.Name)
	}
	n.shaper.Set(p)
	n.proxy.SetFlight(p.Flight())
	n.mu.Lock()
	defer n.mu.Unlock()
	n.extras.want = p.Extra
	n.extras.apply(n)
	return nil
}

// RestartLink restarts the times of the profile's changes, its random streams and its
// counters. Call it at the start of a trial, so that equal trials have equal losses.
func (n *Network) RestartLink() { n.shaper.Restart() }

// LinkReport says what the link did since SetLink, RestartLink or Start.
func (n *Network) LinkReport() link.Report { return n.shaper.Report() }
