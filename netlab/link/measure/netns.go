// Package measure measures a link: in goes a profile, out come the achieved
// numbers beside the configured ones. It builds a device, a box and a link between
// them out of network namespaces. Debian's ping measures round trips, and plain
// sockets measure connections and transfers. The benchmark (../bench) uses the
// same cable with more programs that are not ours.
package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
	"eidetic/netlab/link/conn"
	"eidetic/netlab/link/packet"
	"eidetic/netlab/netspace"
	"eidetic/netlab/proxy"
)

// Addresses of the device and of the box.
const (
	DeviceAddr  = "192.168.77.2"
	GatewayAddr = "192.168.77.1"
	port        = "7007"
)

// Link is what a Cable needs of a back end.
type Link interface {
	Set(link.Profile)
	Report() link.Report
	Close() error
}

var (
	_ Link = (*packet.Link)(nil)
	_ Link = (*packet.Process)(nil)
	_ Link = (*conn.Link)(nil)
)

// Cable is a device's namespace behind a link.
type Cable struct {
	Device, Box *netspace.Namespace
	Link        Link // nil for a bare cable

	listener func(net.Listener) net.Listener // of the back end conn
	sentUp   atomic.Int64                    // bytes that the box's server has read
}

// Options of a Cable.
type Options struct {
	// Backend is "packet" (the default) or "conn".
	Backend string
	// Forwarder is the command of a packet link's process (see packet.Serve).
	// Without it a thread of this process forwards.
	Forwarder []string
}

// NewCable makes the namespaces and a link.
func NewCable(p link.Profile, o Options) (*Cable, error) {
	switch o.Backend {
	case "", "packet":
		return newCable(func(c *Cable) error { return c.packet(p, o.Forwarder) })
	case "conn":
		return newCable(func(c *Cable) error {
			l := conn.New(p, lab.Monotonic)
			c.Link, c.listener = l, l.Listener
			return netspace.Veth(c.Device, "eth0", c.Box, "lab0")
		})
	}
	return nil, fmt.Errorf("no back end is called %q; the back ends are packet and conn", o.Backend)
}

func (c *Cable) packet(p link.Profile, forwarder []string) error {
	if err := netspace.Veth(c.Device, "eth0", c.Box, "dev0p"); err != nil {
		return err
	}
	if err := netspace.Veth(c.Box, "lab0", c.Box, "lab0p"); err != nil {
		return err
	}
	pc := packet.Config{Device: "dev0p", Lab: "lab0p", Profile: p, Clock: lab.Monotonic}
	return c.Box.Do(func() error {
		if len(forwarder) > 0 {
			l, err := packet.StartProcess(pc, forwarder)
			if err == nil {
				c.Link = l
			}
			return err
		}
		l, err := packet.New(pc)
		if err == nil {
			c.Link = l
		}
		return err
	})
}

// NewBareCable joins device and box without a link: it shows how fast this machine
// is, and other programs' links are set up on it.
func NewBareCable() (*Cable, error) {
	return newCable(func(c *Cable) error {
		if err := netspace.Veth(c.Device, "eth0", c.Box, "lab0"); err != nil {
			return err
		}
		return c.Box.Do(func() error { return packet.DisableOffloads("lab0") })
	})
}

func newCable(plug func(*Cable) error) (_ *Cable, err error) {
	c := &Cable{}
	defer func() {
		if err != nil {
			c.Close()
			err = fmt.Errorf("lay the cable: %w", err)
		}
	}()
	if c.Device, err = netspace.New(); err != nil {
		return nil, err
	}
	if c.Box, err = netspace.New(); err != nil {
		return nil, err
	}
	if err := plug(c); err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error { return c.Device.Address("eth0", DeviceAddr+"/24") },
		func() error { return c.Box.Address("lab0", GatewayAddr+"/24") },
		func() error { return c.Device.Do(func() error { return packet.DisableOffloads("eth0") }) },
		func() error { return steadyTCP(c.Device, "eth0") },
		func() error { return steadyTCP(c.Box, "lab0") },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// steadyTCP gives the sockets of a namespace a box's settings: cubic as congestion
// control, and no metrics kept from one connection to the next. Cubic is set on
// the routes, because a namespace's default can only be one that the machine
// allows to every user.
func steadyTCP(ns *netspace.Namespace, name string) error {
	l, err := ns.Netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	routes, err := ns.Netlink.RouteList(l, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list the routes by %s: %w", name, err)
	}
	for _, r := range routes {
		r.Congctl = "cubic"
		if err := ns.Netlink.RouteReplace(&r); err != nil {
			return fmt.Errorf("set cubic on the route %v: %w", r.Dst, err)
		}
	}
	return ns.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/ipv4/tcp_no_metrics_save", []byte("1"), 0); err != nil {
			return fmt.Errorf("set tcp_no_metrics_save: %w", err)
		}
		// A window as large as any link that can be measured; it begins as Linux has it.
		for name, sizes := range map[string]string{"tcp_rmem": "4096 131072 134217728", "tcp_wmem": "4096 16384 134217728"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(sizes), 0); err != nil {
				return fmt.Errorf("set %s: %w", name, err)
			}
		}
		return nil
	})
}

// Close ends the link and closes the namespaces.
func (c *Cable) Close() {
	if c.Link != nil {
		_ = c.Link.Close() // the link's report has a failure
	}
	for _, n := range []*netspace.Namespace{c.Device, c.Box} {
		if n != nil {
			n.Close()
		}
	}
}

// Ping returns n round-trip times, sorted, that ping measures at an interval.
func (c *Cable) Ping(n int, interval time.Duration) ([]time.Duration, error) {
	path, err := exec.LookPath("ping")
	if err != nil {
		return nil, errors.New("measure round trips: ping is missing; install it with: apt-get install iputils-ping")
	}
	out, err := c.Device.Output(path, "-n", "-c", strconv.Itoa(n), "-i", fmt.Sprint(interval.Seconds()), "-W", "10", GatewayAddr)
	var rtts []time.Duration
	for _, m := range regexp.MustCompile(`time=([0-9.]+) ms`).FindAllStringSubmatch(out, -1) {
		if ms, perr := strconv.ParseFloat(m[1], 64); perr == nil {
			rtts = append(rtts, time.Duration(ms*float64(time.Millisecond)))
		}
	}
	if len(rtts) == 0 {
		return nil, fmt.Errorf("measure round trips: no answer (%w): %s", err, out)
	}
	slices.Sort(rtts)
	return rtts, nil
}

// serve answers the first byte of a connection: 'h' with 100 kB, 'd' with as much
// as TCP carries until the device closes, 'u' by reading.
func (c *Cable) serve(ctx context.Context) (close func(), err error) {
	var l net.Listener
	err = c.Box.Do(func() (err error) {
		l, err = proxy.Listen(ctx, GatewayAddr+":"+port, "cubic")
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.listener != nil {
		l = c.listener(l)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 100_000)
				if _, err := io.ReadFull(conn, buf[:1]); err != nil {
					return
				}
				switch buf[0] {
				case 'h':
					_, _ = conn.Write(buf) // the device measures it
				case 'd':
					for err := error(nil); err == nil; {
						_, err = conn.Write(buf)
					}
				case 'u':
					for {
						n, err := conn.Read(buf)
						c.sentUp.Add(int64(n))
						if err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return func() { _ = l.Close() }, nil
}

// Fetch returns how long a connection takes to be made, until its first byte, and
// until all of 100 kB.
func (c *Cable) Fetch() (connect, first, whole time.Duration, err error) {
	err = c.Device.Do(func() error {
		start := time.Now()
		conn, err := net.Dial("tcp", GatewayAddr+":"+port)
		if err != nil {
			return err
		}
		defer conn.Close()
		connect = time.Since(start)
		if _, err := conn.Write([]byte{'h'}); err != nil {
			return err
		}
		buf := make([]byte, 100_000)
		if _, err := io.ReadFull(conn, buf[:1]); err != nil {
			return err
		}
		first = time.Since(start)
		_, err = io.ReadFull(conn, buf[1:])
		whole = time.Since(start)
		return err
	})
	if err != nil {
		err = fmt.Errorf("fetch 100 kB: %w", err)
	}
	return connect, first, whole, err
}

// Transfers is Transfer by n connections at once, which together fill a link that one would need minutes to fill.
func (c *Cable) Transfers(n int, down bool, settle, span time.Duration) (rate float64, err error) {
	rates, errs := make([]float64, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { rates[i], errs[i] = c.Transfer(down, settle, span) })
	}
	all.Wait()
	for _, r := range rates {
		if rate += r; !down { // each has counted what all have sent
			rate = max(r, rates[0])
		}
	}
	return rate, errors.Join(errs...)
}

// Transfer sends as fast as TCP allows, down or up, and returns the rate in bits
// per second at which the receiving application read between settle and
// settle+span.
func (c *Cable) Transfer(down bool, settle, span time.Duration) (rate float64, err error) {
	conn := net.Conn(nil)
	err = c.Device.Do(func() (err error) {
		conn, err = net.Dial("tcp", GatewayAddr+":"+port)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("transfer: %w", err)
	}
	defer conn.Close()
	if !down {
		return c.transferUp(conn, settle, span)
	}
	if _, err := conn.Write([]byte{'d'}); err != nil {
		return 0, fmt.Errorf("transfer: %w", err)
	}
	buf := make([]byte, 64<<10)
	start := time.Now()
	var begin, end time.Duration
	var total int
	if err := conn.SetReadDeadline(start.Add(settle + span + 30*time.Second)); err != nil {
		return 0, fmt.Errorf("transfer: %w", err)
	}
	for end < settle+span {
		n, err := conn.Read(buf)
		if err != nil {
			return 0, fmt.Errorf("transfer: %w", err)
		}
		end = time.Since(start)
		switch {
		case begin > 0:
			total += n
		case end >= settle:
			begin = end
		}
	}
	return float64(total) * 8 / (end - begin).Seconds(), nil
}

// transferUp counts what the box's end of the connection reads.
func (c *Cable) transferUp(conn net.Conn, settle, span time.Duration) (float64, error) {
	if _, err := conn.Write([]byte{'u'}); err != nil {
		return 0, fmt.Errorf("transfer: %w", err)
	}
	start := time.Now()
	if err := conn.SetWriteDeadline(start.Add(settle + span)); err != nil {
		return 0, fmt.Errorf("transfer: %w", err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for err := error(nil); err == nil; {
			_, err = conn.Write(make([]byte, 64<<10)) // fails at the deadline
		}
	}()
	<-time.After(settle)
	begin, before := time.Now(), c.sentUp.Load()
	<-sent
	total, took := c.sentUp.Load()-before, time.Since(begin)
	if total <= 0 {
		return 0, errors.New("transfer: no byte passed the link")
	}
	return float64(total) * 8 / took.Seconds(), nil
}

// payloadShare of a full packet: 1448 of 1500 bytes.
const payloadShare = 1448.0 / 1500
