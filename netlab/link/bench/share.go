package main

import (
	"slices"
	"time"
)

// sight is one end of a cable's view of a connection: when each packet to the
// server, and from it, passed.
type sight struct{ up, down []time.Duration }

// sights returns the connections to a port, by the client's port.
func sights(packets []packet, port string) map[string]*sight {
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

// linkPart returns how much of what a connection's last byte missed is the
// link's: it goes back from the packet that came at the given time to the one
// at the box that it was, from there to the last that the box had got by then,
// and so on to the SYN, and adds up by how much each missed half the RTT. What
// remains is the time that the programs and the kernels at both ends took.
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
