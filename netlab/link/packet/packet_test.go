package packet

import (
	"encoding/binary"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/link"
	"eidetic/netlab/link/linktest"
	"eidetic/netlab/nstest"
)

// cable is the device's namespace and the box's, joined by a link in a process.
type cable struct {
	device, box *nstest.Namespace
	link        *Process
}

const (
	deviceAddr  = "192.168.77.2"
	gatewayAddr = "192.168.77.1"
)

// layCable makes the namespaces and interfaces without the link.
func layCable(t testing.TB) *cable {
	t.Helper()
	c := &cable{device: nstest.New(t), box: nstest.Here(t)}
	nstest.Veth(t, c.device, "eth0", c.box, "dev0p")
	nstest.Veth(t, c.box, "lab0", c.box, "lab0p")
	c.device.Address(t, "eth0", deviceAddr+"/24")
	c.box.Address(t, "lab0", gatewayAddr+"/24")
	if err := c.device.Do(func() error { return DisableOffloads("eth0") }); err != nil {
		t.Fatal(err)
	}
	return c
}

func newCable(t testing.TB, profile string) *cable {
	t.Helper()
	p, err := link.Parse(profile)
	if err != nil {
		t.Fatal(err)
	}
	c := layCable(t)
	t.Setenv(forwarderVar, "1")
	if c.link, err = StartProcess(Config{Device: "dev0p", Lab: "lab0p", Profile: p}, []string{"/proc/self/exe"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.link.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *cable) set(t testing.TB, profile string) {
	t.Helper()
	p, err := link.Parse(profile)
	if err != nil {
		t.Fatal(err)
	}
	c.link.Set(p)
}

var pingTime = regexp.MustCompile(`time=([0-9.]+) ms`)

// ping returns the round-trip times that Debian's ping measures, in order of time.
func (c *cable) ping(t testing.TB, n int, interval time.Duration) []time.Duration {
	t.Helper()
	ping := testlab.NeedProgram(t, "ping")
	out, err := c.device.Output(ping, "-n", "-c", strconv.Itoa(n), "-i", fmt.Sprint(interval.Seconds()), "-W", "5", gatewayAddr)
	var rtts []time.Duration
	for _, m := range pingTime.FindAllStringSubmatch(out, -1) {
		ms, _ := strconv.ParseFloat(m[1], 64)
		rtts = append(rtts, time.Duration(ms*float64(time.Millisecond)))
	}
	if len(rtts) == 0 {
		t.Fatalf("ping: %v\n%s", err, out)
	}
	return rtts
}

func TestPacketDelays(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	c := newCable(t, "native")
	c.ping(t, 2, 10*time.Millisecond) // fills the ARP tables
	base := slices.Min(c.ping(t, 20, 10*time.Millisecond))
	const pings = 50
	for _, rtt := range []time.Duration{20, 100} {
		rtt *= time.Millisecond
		// On a busy machine the link is late, which its report says. ping can be late
		// although the link is not.
		var r link.Report
		var median time.Duration
		answers := 0
		for try := 0; try == 0 || try < 4 && (r.Invalid() != "" || answers != pings || median > rtt+5*time.Millisecond); try++ {
			c.link.Set(link.Profile{Name: "custom", RTT: rtt})
			got := c.ping(t, pings, 10*time.Millisecond)
			slices.Sort(got)
			r, median, answers = c.link.Report(), got[len(got)/2], len(got)
			t.Logf("rtt %v: %d answers, min %v median %v p96 %v max %v (native %v); delay error p50 %v p99 %v max %v; %v; %s",
				rtt, answers, got[0], median,
				got[len(got)*96/100], got[len(got)-1], base, r.Down.Errors.Quantile(.5), r.Down.Errors.Quantile(.99),
				r.Down.Errors.Max, r.Thread, r.Invalid())
			if got[0] < rtt || r.Up.Errors.Early+r.Down.Errors.Early > 0 {
				t.Errorf("rtt %v: a packet came after %v, too early; report %+v", rtt, got[0], r)
			}
		}
		if r.Invalid() == "" && (median > rtt+5*time.Millisecond || answers != pings || r.Up.Packets < pings || r.Down.Packets < pings) {
			t.Errorf("rtt %v: the median is %v, of %d answers; report %+v", rtt, median, answers, r)
		}
	}
}

// iperf runs iperf3 from the box to the device (or back) for some seconds.
func (c *cable) iperf(t testing.TB, seconds int, args ...string) {
	t.Helper()
	iperf := testlab.NeedProgram(t, "iperf3")
	server := exec.Command(iperf, "-s", "-1", "-B", gatewayAddr)
	if err := c.box.Do(server.Start); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill() // it has ended, unless its client failed
		_ = server.Wait()
	}()
	for deadline := time.Now().Add(testlab.Hang); ; {
		out, err := c.device.Output(iperf, append([]string{"-c", gatewayAddr, "-t", strconv.Itoa(seconds), "-C", "cubic"}, args...)...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("iperf3: %v\n%s", err, out)
		}
	}
}

func TestPacketConforms(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	c := newCable(t, "native")
	linktest.Conform(t, linktest.Backend{
		Name: "packet", Set: c.link.Set, Report: c.link.Report, Close: c.link.Close,
		Cannot: func(link.Profile) []string { return nil },
		Dial:   linktest.Dialer(t, c.device, linktest.Listen(t, gatewayAddr+":0")),
	})
}

func TestPacketRates(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	c := newCable(t, "native")
	for _, rate := range []string{"10mbit", "100mbit"} {
		// On a busy machine the link is late, which its report says; its rates are not
		// checked then. A late sender leaves the link less than it can carry. More than
		// the rate is always wrong.
		var r link.Report
		var got, want float64
		var empty int
		for try := 0; try == 0 || try < 4 && (r.Invalid() != "" || got < 0.98*want || empty > 0); try++ {
			c.set(t, "rtt=20ms,queue=100ms,down="+rate+",up="+rate)
			c.iperf(t, 3, "-R")
			r = c.link.Report()
			got, want, empty = steady(r)
			t.Logf("%s: %.4f of the rate, queue peak %d bytes, drops %v, errors p99 %v max %v, slips %d; %s", rate, got/want,
				r.Down.QueuePeak, r.Down.Drops,
				r.Down.Errors.Quantile(.99), r.Down.Errors.Max, r.Slips, r.Invalid())
			if r.Invalid() == "" && got > 1.01*want {
				break
			}
		}
		if r.Invalid() == "" && (got > 1.01*want || got < 0.98*want || empty > 0) {
			t.Errorf("%s: %.0f bit/s left the link, with %d empty tenths of a second", rate, got, empty)
		}
		if r.Merged > 0 || r.Profile.Down.Transmit(int(r.Down.QueuePeak)) > 100*time.Millisecond {
			t.Errorf("%s: %d merged frames, %d bytes waited", rate, r.Merged, r.Down.QueuePeak)
		}
	}
}

// steady returns the rate in bit/s at which a link sent towards the device, and
// that of its profile. In steady state the link is never idle, so that each tenth
// of a second in the middle carries the rate; empty counts those that carried
// nothing.
func steady(r link.Report) (got, want float64, empty int) {
	const from, to = 10, 25
	sum := 0
	for i := from; i < to; i++ {
		if i >= len(r.Bins) || r.Bins[i].Down == 0 {
			empty++
			continue
		}
		sum += r.Bins[i].Down
	}
	return float64(sum) * 8 / ((to - from) * link.BinWidth.Seconds()), float64(r.Profile.Down), empty
}

// TestPacketLosesTheSame sends the same packets through a real link five times:
// each time the same ones are lost.
func TestPacketLosesTheSame(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	c := newCable(t, "loss=10%,burst=2,seed=42")
	c.link.Set(link.Profile{Name: "native"})
	c.ping(t, 2, 10*time.Millisecond) // fills the ARP tables
	c.set(t, "loss=10%,burst=2,seed=42")
	server, err := net.ListenPacket("udp", gatewayAddr+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var client net.Conn
	if err := c.device.Do(func() (err error) {
		client, err = net.Dial("udp", server.LocalAddr().String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const packets = 400
	var first []int
	for trial := range 5 {
		c.link.Restart()
		var came []int
		b := make([]byte, 100)
		// send sends a number and reads until it comes back, for a limited time.
		send := func(i int, within time.Duration) {
			t.Helper()
			binary.BigEndian.PutUint16(b, uint16(i))
			if _, err := client.Write(b); err != nil {
				t.Fatal(err)
			}
			if err := server.SetReadDeadline(time.Now().Add(within)); err != nil {
				t.Fatal(err)
			}
			for {
				if _, _, err := server.ReadFrom(b); err != nil {
					return
				}
				if came = append(came, int(binary.BigEndian.Uint16(b))); came[len(came)-1] == i {
					return
				}
			}
		}
		for i := range packets { // a packet takes some tenths of a millisecond
			send(i, 2*time.Millisecond)
		}
		// Packets that a busy machine has late come before those that are sent now.
		const most = 2 * packets
		for i := packets; i < most && (len(came) == 0 || came[len(came)-1] < packets); i++ {
			send(i, 100*time.Millisecond)
		}
		came = slices.DeleteFunc(came, func(i int) bool { return i >= packets })
		if trial == 0 {
			first = came
		}
		if lost := packets - len(came); !slices.Equal(came, first) || lost < packets/25 || lost > packets/4 {
			t.Errorf("trial %d lost %d of %d packets; want %d to %d, those that trial 0 lost", trial, lost, packets, packets/25, packets/4)
		}
	}
}
