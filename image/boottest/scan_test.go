package boottest

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Open ports by side, as documented in docs/box.md.
var (
	openTCP = map[string][]int{"uplink": {8080}, "device": {53, 80, 443, 3128}}
	openUDP = map[string][]int{"uplink": {68, 546, 5353}, "device": {53, 67, 123, 443}}
)

// scanned is the number of ports that are tried, from port 1 on.
const scanned = 10000

// testNoWayIn checks that only the documented ports are open.
func testNoWayIn(t *testing.T, b *Box) {
	b.Until(t, "ip -br addr show lab0 | grep 192.168.77.1/24")
	var all []int
	for port := 1; port <= scanned; port++ {
		all = append(all, port)
	}
	for _, side := range []struct {
		name    string
		port    *Port
		address netip.Addr
		inside  string // the box's interface
	}{
		{"uplink", b.Uplink, Lease.Addr(), "enp0s16"},
		{"device", b.Device, Gateway, "lab0"},
	} {
		found, err := side.port.OpenPorts(t.Context(), side.address, all, 400*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range found {
			if !slices.Contains(openTCP[side.name], port) {
				t.Errorf("TCP port %d is open to the %s but not documented", port, side.name)
			}
		}
		// The scan does not wait for a slow answer.
		found, err = side.port.OpenPorts(t.Context(), side.address, openTCP[side.name], Patience)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(found, openTCP[side.name]) {
			t.Errorf("TCP ports open to the %s: %v, want those documented: %v", side.name, found, openTCP[side.name])
		}
		if found := b.hearsUDP(t, side.port, side.address, side.inside); !slices.Equal(found, openUDP[side.name]) {
			t.Errorf("UDP ports that receive from the %s: %v, want those documented: %v", side.name, found, openUDP[side.name])
		}
	}
	t.Logf("listening:\n%s", b.Run(t, "ss -Hltun | awk '{print $1, $5}' | sort -u"))
}

// hearsUDP sends a packet to each UDP port of the box and returns the ports whose packets
// passed all filters. A port that does not answer looks the same from outside whether or
// not it is filtered, so rules on the box count packets before the first filter and after the last.
func (b *Box) hearsUDP(t *testing.T, from *Port, to netip.Addr, inside string) []int {
	t.Helper()
	const source = 40000 // distinguishes these packets from answers to the box's own queries
	count := func(chain, hook string, priority int, set string) string {
		return fmt.Sprintf(
			"set %[4]s { type inet_service; flags dynamic; size 65535; }\nchain %[1]s { type filter hook %[2]s priority %[3]d; iifname %[5]s udp sport %[6]d add @%[4]s { udp dport }; }\n",
			chain,
			hook,
			priority,
			set,
			inside,
			source,
		)
	}
	b.Run(
		t,
		"nft -f - <<'END'\ntable inet scan {\n"+count("first", "prerouting", -310, "arrived")+count("last", "input", 310, "heard")+"}\nEND",
	)
	defer b.Run(t, "nft delete table inet scan")
	var conn net.PacketConn
	if err := from.Do(func() (err error) {
		conn, err = net.ListenPacket("udp4", fmt.Sprintf(":%d", source))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var missing []int
	for port := 1; port <= scanned; port++ {
		missing = append(missing, port)
	}
	for deadline := time.Now().Add(Patience); len(missing) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d packets did not reach the box on %s, want all to arrive", len(missing), scanned, inside)
		}
		for i, port := range missing {
			if i%4 == 0 {
				<-tick.C // a larger burst would overflow queues
			}
			_, _ = conn.WriteTo([]byte("?"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, uint16(port)))) // a lost packet is sent again
		}
		arrived := b.ports(t, "arrived")
		missing = slices.DeleteFunc(missing, func(port int) bool {
			_, found := slices.BinarySearch(arrived, port)
			return found
		})
	}
	return b.ports(t, "heard")
}

// ports lists a set of ports of the table scan.
func (b *Box) ports(t *testing.T, set string) (ports []int) {
	t.Helper()
	for _, word := range strings.Fields(b.Run(t, "nft list set inet scan "+set+" | sed -n '/elements/,$p' | grep -oE '[0-9]+' | tr '\n' ' '")) {
		port, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	slices.Sort(ports)
	return ports
}
