package main

import (
	"testing"
	"time"
)

// TestLinkPart compares with two round trips of 100 ms that are added up by hand.
func TestLinkPart(t *testing.T) {
	const ms = time.Millisecond
	// SYN and SYN-ACK are 1 and 2 ms late, the box answers 3 ms after the
	// request, which was 4 ms late; of the two packets of the answer the
	// second, which came last, was 6 ms late. An acknowledgement follows.
	device := sight{up: []time.Duration{0, 110 * ms, 300 * ms}, down: []time.Duration{103 * ms, 222 * ms, 224 * ms}}
	box := sight{up: []time.Duration{51 * ms, 164 * ms, 350 * ms}, down: []time.Duration{51 * ms, 167 * ms, 168 * ms}}
	if got, want := linkPart(device, box, 224*ms, 100*ms), (1+2+4+6)*ms; got != want {
		t.Errorf("linkPart() = %v, want %v", got, want)
	}
}

func TestSights(t *testing.T) {
	list := sights([]seenPacket{
		{1, "IP 192.168.77.2.40000 > 192.168.77.1.80: tcp 0"},
		{2, "IP 192.168.77.1.80 > 192.168.77.2.40000: tcp 0"},
		{3, "IP 192.168.77.2.40001 > 192.168.77.1.80: tcp 0"},
		{4, "IP 192.168.77.2.40001 > 192.168.77.1.443: tcp 0"},
		{5, "ARP, Request who-has 192.168.77.1"},
	}, "80")
	if s := list["40000"]; len(list) != 2 || s == nil || len(s.up) != 1 || s.up[0] != 1 || len(s.down) != 1 || s.down[0] != 2 {
		t.Errorf("connections %v, want 40000 and 40001, the first with a packet up at 1 and one down at 2", list)
	}
}
