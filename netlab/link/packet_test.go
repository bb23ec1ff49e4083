package link

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/testlab"
	"eidetic/netlab/nstest"
)

// cable is a device's namespace and the box's, joined by a Packet link.
type cable struct {
	device, box *nstest.Namespace
	link        *Packet
}

const (
	deviceAddr  = "192.168.77.2"
	gatewayAddr = "192.168.77.1"
)

// layCable makes the namespaces and interfaces, without the link.
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
	p, err := Parse(profile)
	if err != nil {
		t.Fatal(err)
	}
	c := layCable(t)
	if c.link, err = NewPacket(PacketConfig{Device: "dev0p", Lab: "lab0p", Profile: p, Clock: lab.Monotonic}); err != nil {
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
	p, err := Parse(profile)
	if err != nil {
		t.Fatal(err)
	}
	c.link.Set(p)
}

var pingTime = regexp.MustCompile(`time=([0-9.]+) ms`)

// ping returns the round-trip times that Debian's ping measures, in order.
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
	c.ping(t, 2, 10*time.Millisecond) // ARP
	base := slices.Min(c.ping(t, 20, 10*time.Millisecond))
	for _, rtt := range []time.Duration{20, 100} {
		rtt *= time.Millisecond
		c.link.Set(Profile{Name: "custom", RTT: rtt})
		got := c.ping(t, 50, 10*time.Millisecond)
		slices.Sort(got)
		r := c.link.Report()
		t.Logf("rtt %v: min %v median %v p98 %v max %v (native %v); delay error p50 %v p99 %v max %v; %v", rtt, got[0], got[25], got[48], got[49], base,
			r.Down.Errors.Quantile(.5), r.Down.Errors.Quantile(.99), r.Down.Errors.Max, r.Thread)
		if got[0] < rtt {
			t.Errorf("rtt %v: a packet came after %v, too early", rtt, got[0])
		}
		if got[25] > rtt+5*time.Millisecond {
			t.Errorf("rtt %v: the median is %v", rtt, got[25])
		}
		if len(got) != 50 || r.Up.Packets < 50 || r.Down.Packets < 50 || r.Up.Errors.Early+r.Down.Errors.Early > 0 {
			t.Errorf("rtt %v: %d answers, report %+v", rtt, len(got), r)
		}
	}
}

// iperf runs iperf3 from the box to the device (or back) and returns what the
// receiver got in bits per second.
func (c *cable) iperf(t testing.TB, seconds int, args ...string) (bits float64, bins []float64) {
	t.Helper()
	iperf := testlab.NeedProgram(t, "iperf3")
	server := make(chan string, 1)
	go func() {
		out, _ := c.box.Output(iperf, "-s", "-1", "-B", gatewayAddr)
		server <- out
	}()
	var out string
	var err error
	for deadline := time.Now().Add(5 * time.Second); ; {
		out, err = c.device.Output(iperf, append([]string{"-c", gatewayAddr, "-J", "-t", strconv.Itoa(seconds), "-i", "0.1", "-C", "cubic"}, args...)...)
		if err == nil || !strings.Contains(out, "refused") || time.Now().After(deadline) {
			break
		}
	}
	<-server
	if err != nil {
		t.Fatalf("iperf3: %v\n%s", err, out)
	}
	var r struct {
		Intervals []struct{ Sum struct{ Bytes float64 } }
		End       struct {
			SumReceived struct {
				Bits float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("iperf3's report: %v", err)
	}
	for _, i := range r.Intervals {
		bins = append(bins, i.Sum.Bytes)
	}
	return r.End.SumReceived.Bits, bins
}

func TestPacketRates(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	c := newCable(t, "native")
	for _, rate := range []string{"10mbit", "100mbit"} {
		c.set(t, "rtt=20ms,queue=100p,down="+rate+",up="+rate)
		c.iperf(t, 3, "-R")
		r := c.link.Report()
		// In steady state the link is never idle: the tenths of a second in the
		// middle carry the rate.
		var sum, n int
		for _, b := range r.Bins[10:25] {
			sum += b.Down
			n++
			if b.Down == 0 {
				t.Errorf("%s: a tenth of a second is empty", rate)
			}
		}
		got := float64(sum) * 8 / (float64(n) * BinWidth.Seconds())
		want := float64(r.Profile.Down)
		t.Logf("%s: %.4f of the rate, queue peak %d bytes, drops %v, errors p99 %v max %v, slips %d", rate, got/want, r.Down.QueuePeak, r.Down.Drops,
			r.Down.Errors.Quantile(.99), r.Down.Errors.Max, r.Slips)
		if got < 0.98*want || got > 1.01*want {
			t.Errorf("%s: %.0f bit/s left the link", rate, got)
		}
		if r.Merged > 0 {
			t.Errorf("%s: %d merged frames", rate, r.Merged)
		}
	}
}
