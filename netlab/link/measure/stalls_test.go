package measure

import (
	"strings"
	"testing"
	"time"

	"eidetic/netlab/link"
	"eidetic/netlab/nstest"
)

// A stall of what measures is told apart from a fault of the link.
func TestSettle(t *testing.T) {
	type try struct {
		off   float64 // share by which the goodput differs
		late  int     // echoes
		stall time.Duration
	}
	for _, c := range []struct {
		name                 string
		tries                []try
		tried, again, unsure int
		why                  string
	}{
		{"as the profile says", []try{{}}, 1, 0, 0, ""},
		{"stalls that spoil nothing", []try{{stall: time.Second}}, 1, 0, 0, ""},
		{"a fault on an idle machine", []try{{off: .03}}, 1, 0, 0, "goodput"},
		{"a stall, then good", []try{{late: 4, stall: 5 * time.Millisecond}, {}}, 2, 1, 0, ""},
		{"more late echoes than a stall explains", []try{{late: 100, stall: 5 * time.Millisecond}}, 1, 0, 0, "echoes"},
		{"a slow link on a busy machine", []try{{off: .1, stall: 3 * time.Millisecond}}, 1, 0, 0, "goodput"},
		{"a stall hides a fault once", []try{{off: .1, stall: 90 * time.Millisecond}, {off: .1}}, 2, 1, 0, "goodput"},
		{"both faults, of which one is explained", []try{{off: .1, late: 1, stall: 3 * time.Millisecond}}, 1, 0, 0, "goodput"},
		{"stalls each time", []try{{late: 4, stall: 5 * time.Millisecond}}, tries, tries - 1, 1, ""},
	} {
		r, tried := &Result{}, 0
		now := func() try { return c.tries[min(tried, len(c.tries))-1] }
		watch := func() func() stalls {
			return func() stalls {
				if s := now().stall; s > 0 {
					return stalls{s}
				}
				return nil
			}
		}
		err := r.settle(watch, func() (rows []Row, faults []fault, err error) {
			tried++
			if n := now().late; n > 0 {
				faults = append(faults, fault{"late echoes", lateEchoes(n, echoInterval)})
			}
			if off := now().off; off > 0 {
				faults = append(faults, fault{"goodput", lostTime(off, 3*time.Second)})
			}
			return []Row{{Name: "row"}}, faults, nil
		})
		if why := strings.Join(r.Why, "; "); err != nil || tried != c.tried || len(r.Again) != c.again || len(r.Unsure) != c.unsure || len(r.Rows) != 1 ||
			(c.why == "") != (why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %d tries, %+v, %v; want %d tries, %d again, %d unsure, why %q", c.name, tried, r, err, c.tried, c.again, c.unsure, c.why)
		}
	}
}

// A link that is slower than its profile is at fault, however busy this machine is.
func TestFaultIsNotHidden(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	p, err := link.Parse("rtt=20ms,down=8mbit,up=4mbit")
	if err != nil {
		t.Fatal(err)
	}
	wrong := p
	wrong.RTT += 5 * time.Millisecond
	c, err := NewCable(wrong, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := &Result{}
	if err := r.settle(watchStalls, func() ([]Row, []fault, error) { return c.roundTrips(p) }); err != nil {
		t.Fatal(err)
	}
	if len(r.Why) == 0 || !strings.Contains(r.Why[0], "every echo was late") {
		t.Errorf("round trips of a link that is late by 5 ms: why %q, unsure %q, again %q; want that every echo was late", r.Why, r.Unsure, r.Again)
	}
}
