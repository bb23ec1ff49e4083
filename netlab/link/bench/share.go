package main

import (
	"slices"
	"time"
)

// sight is when each packet of a connection to the server, and from it, passed one end
// of a cable.
type sight struct{ up, down []time.Duration }

// sights returns the connections to a port by the client's port.
func sights(packets []seenPacket, port string) map[string]*sight {
	list := map[string]*sight{}
	for _, p := range packets {
		m := tcp.FindStringSubmatch(p.what)
		if m == nil || (m[1] == port) == (m[2] == port) {
			continue
		}
		client, up := m[1], true
		if m[1] == port {
			client, up = m[2], false
		}
		s := list[client]
		if s == nil {
			s = &sight{}
			list[client] = s
		}
		if up {
			s.up = append(s.up, p.at)
		} else {
			s.down = append(s.down, p.at)
		}
	}
	return list
}

// linkPart returns how much of a connection's delay until whole, the time of its last
// byte, the link caused. It follows the chain of packets back to the SYN: from a
// packet that the device received to the same packet at the box, from there to the
// last packet that the box had received by then, and so on. The result is the sum of
// the differences of their passages from half the RTT. The rest of the delay is the
// time that programs and kernels at both ends took.
func linkPart(device, box sight, whole, rtt time.Duration) (part time.Duration) {
	// last returns the index of the last time that is not after t, or -1.
	last := func(times []time.Duration, t time.Duration) int {
		i, found := slices.BinarySearch(times, t)
		if found {
			return i
		}
		return i - 1
	}
	for t := whole; ; {
		i := last(device.down, t)
		if i < 0 || i >= len(box.down) {
			return part
		}
		part += device.down[i] - box.down[i] - rtt/2
		if i = last(box.up, box.down[i]); i < 0 || i >= len(device.up) {
			return part
		}
		part += box.up[i] - device.up[i] - rtt/2
		t = device.up[i]
	}
}
