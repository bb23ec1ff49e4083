package execute

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"

	"eidetic/capture"
	"eidetic/capture/rfb"
	rfbcontrol "eidetic/control/rfb"
	"eidetic/internal/lab"
	"eidetic/netlab/port"
)

// PluggedConfig describes a device at a port of the box that shares its screen.
type PluggedConfig struct {
	Port     *port.Port
	Start    *StartPage
	Fresh    Fresh
	Address  netip.Addr // of the device
	VNC      uint16     // TCP port of its VNC server
	Password string
	Rate     float64 // frames per second to film
}

// NewPlugged makes a rig of a device that is plugged in. The caller closes the returned keys.
func NewPlugged(ctx context.Context, c PluggedConfig) (Rig, io.Closer, error) {
	at := net.JoinHostPort(c.Address.String(), strconv.Itoa(int(c.VNC)))
	keys := &keys{limit: keyLimit, open: func(ctx context.Context) (screenControl, error) {
		return rfbcontrol.Open(ctx, rfbcontrol.Options{Address: at, Password: c.Password, Clock: clock})
	}}
	if err := keys.ready(ctx); err != nil {
		return Rig{}, nil, fmt.Errorf("the device's screen: %w", err)
	}
	network := c.Port.Network()
	link := &guarded{emulated: emulated{network}, watch: func() func() []string { return c.Port.Watch().Reasons }}
	rig := Rig{
		Network: network, Link: link, Control: keys,
		Device: pluggedBirths{c.Start, c.Fresh, keys},
		Screen: Screen{Name: "rfb:" + at, Open: func(ctx context.Context) (capture.Source, error) {
			return rfb.Open(ctx, rfb.Options{Address: at, Password: c.Password, Rate: c.Rate})
		}},
		Describe: func(e *lab.Environment) {
			e.Screen = fmt.Sprintf("VNC at %s, looked at %g times a second", at, c.Rate)
			e.Network = network.Environment()
			if s, err := c.Port.Status(); err == nil { // if the port gives no status, the trials fail anyway
				e.Port = describePort(s)
			}
		},
		Finish: func(run *lab.Run) error {
			s, err := c.Port.Status()
			if err != nil {
				return err
			}
			run.Environment.Isolation = &lab.Isolation{
				StrayPackets: &s.Strays,
				How:          "what the device sends to anybody but the box ends in the box; nothing is forwarded",
			}
			return nil
		},
	}
	return rig, keys, nil
}

// describePort converts a port's status to the form that a run keeps.
func describePort(s port.Status) *lab.PortState {
	d := &lab.PortState{
		Interface: s.Interface, Lab: s.Lab, Gateway: s.Gateway.String(), Present: s.Present, Carrier: s.Carrier,
		Problem: s.Problem, Flaps: s.Flaps, Strays: s.Strays, Limits: s.Limits,
	}
	if s.Gateway6.IsValid() {
		d.Gateway6 = s.Gateway6.String()
	}
	for _, l := range s.Leases {
		d.Leases = append(d.Leases, lab.Lease{MAC: l.MAC, Address: l.Addr.String(), Name: l.Name, Until: l.Until})
	}
	return d
}
