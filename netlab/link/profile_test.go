package link

import "testing"

// TestDefaultQueueHoldsTheWay: packets that are on their way are no queue.
func TestDefaultQueueHoldsTheWay(t *testing.T) {
	for text, want := range map[string]int{
		"rtt=60ms,down=20mbit":            DefaultQueuePackets,
		"rtt=800ms,down=30mbit":           4000,
		"rtt=800ms,down=30mbit,queue=50p": 50,
		"rtt=10s,down=9gbit":              mostQueuePackets,
		"rtt=800ms":                       DefaultQueuePackets,
	} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.QueueAt(p.Down).Packets; got != want {
			t.Errorf("%s: a queue of %d packets, want %d", text, got, want)
		}
	}
}
