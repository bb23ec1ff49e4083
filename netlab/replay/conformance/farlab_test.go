package conformance

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	mdns "github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/netlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/dns"
	"eidetic/netlab/nstest"
	"eidetic/netlab/proxy"
)

// originAddress is the address of the origins' name server, and of most origins.
const originAddress = "203.0.113.10"

// farLab is a device, the box and origins in three network namespaces; the box has that of the
// test. The device can reach only the box.
type farLab struct {
	box, device, away *nstest.Namespace
	authority         *ca.Authority // the box's
	network           *netlab.Network
}

// newFarLab makes the namespaces, calls origins in that of the origins, and starts the box.
func newFarLab(t *testing.T, c netlab.Config, trusted *ca.Authority, origins func(l *farLab)) *farLab {
	l := &farLab{box: nstest.Here(t), device: nstest.New(t), away: nstest.New(t)}
	nstest.Veth(t, l.box, "lab0", l.device, "eth0")
	nstest.Veth(t, l.box, "up0", l.away, "eth0")
	l.box.Address(t, "lab0", "192.168.77.1/24")
	l.device.Address(t, "eth0", "192.168.77.2/24")
	l.device.Default(t, "192.168.77.1")
	l.box.Address(t, "up0", "203.0.113.1/24")
	l.away.Address(t, "eth0", originAddress+"/24")

	// An address that is added late (duplicate address detection) would make the browser drop its
	// connections.
	check(t, l.device.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", []byte("1"), 0)
	}))
	resolv := filepath.Join(t.TempDir(), "resolv.conf")
	check(t, os.WriteFile(resolv, []byte("nameserver 192.168.77.1\n"), 0o644))
	check(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	check(t, unix.Mount(resolv, "/etc/resolv.conf", "", unix.MS_BIND, ""))
	origins(l)

	var err error
	l.authority, err = ca.New(time.Now)
	check(t, err)
	c.Gateway, c.Routes = netip.MustParseAddr("192.168.77.1"), true
	c.HTTPAddr, c.HTTPSAddr, c.DNSAddr = "0.0.0.0:80", "0.0.0.0:443", "192.168.77.1:53"
	c.CA, c.Clock = l.authority, lab.Monotonic
	c.Upstream = &proxy.UpstreamConfig{Resolver: netip.MustParseAddrPort(originAddress + ":53"), Roots: trusted.Pool()}
	l.network, err = netlab.Start(t.Context(), c)
	check(t, err)
	t.Cleanup(func() { check(t, l.network.Close()) })
	return l
}

// start starts a program in a namespace; the kernel ends it with the test's process.
func start(t *testing.T, in *nstest.Namespace, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, over := make(chan error), make(chan struct{})
	t.Cleanup(func() { close(over) })
	go func() {
		if err := in.Do(func() error {
			started <- cmd.Start()
			<-over // the thread's end is the parent's death to the kernel
			return nil
		}); err != nil {
			started <- err
		}
	}()
	return <-started
}

// dial connects from a namespace.
func dial(in *nstest.Namespace, network, addr string) (c net.Conn, err error) {
	err = in.Do(func() (err error) {
		c, err = net.Dial(network, addr)
		return err
	})
	return c, err
}

// serveNames answers questions at originAddress with the records that answer
// gives for a host and type; known is false for a host that does not exist.
func (l *farLab) serveNames(t *testing.T, answer func(host string, qtype uint16) (rdata string, known bool)) {
	var conn net.PacketConn
	check(t, l.away.Do(func() (err error) {
		conn, err = net.ListenPacket("udp", originAddress+":53")
		return err
	}))
	server := &mdns.Server{PacketConn: conn, Handler: mdns.HandlerFunc(func(w mdns.ResponseWriter, r *mdns.Msg) {
		m := new(mdns.Msg).SetReply(r)
		q := r.Question[0]
		rdata, known := answer(dns.Canonical(q.Name), q.Qtype)
		if !known {
			m.Rcode = mdns.RcodeNameError
		}
		if rr, err := mdns.NewRR(q.Name + " 60 IN " + mdns.TypeToString[q.Qtype] + " " + rdata); rdata != "" && err == nil {
			m.Answer = append(m.Answer, rr)
		}
		_ = w.WriteMsg(m)
	})}
	done := make(chan struct{})
	go func() { _ = server.ActivateAndServe(); close(done) }()
	t.Cleanup(func() { _ = conn.Close(); <-done })
}
