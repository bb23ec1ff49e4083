package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"eidetic/netlab/link"
	"eidetic/netlab/link/conn"
)

// Row is one line of a comparison of what was configured and what was achieved.
type Row struct {
	Name       string  `json:"name"`
	Configured float64 `json:"configured"` // 0: not configured
	Achieved   float64 `json:"achieved"`
	Unit       string  `json:"unit"`
}

// Result of Measure.
type Result struct {
	Rows   []Row       `json:"rows"`
	Report link.Report `json:"report"`
	// Good says whether the link kept to its profile: no early packet, the 99th
	// percentile of the round trips within a millisecond, goodput within 2 %.
	Good bool     `json:"good"`
	Why  []string `json:"why,omitempty"` // why it is not good
	// Unsure lists what cannot be told, because this machine stalled in each try.
	Unsure []string `json:"unsure,omitempty"`
	// Again lists what was measured again, because this machine had stalled.
	Again []string `json:"again,omitempty"`
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// echoes is how many echoes are sent, at which interval.
const (
	echoes       = 200
	echoInterval = 10 * time.Millisecond
)

// roundTrips measures with ping.
func (c *Cable) roundTrips(p link.Profile) (rows []Row, faults []fault, err error) {
	rtts, err := c.Ping(echoes, echoInterval)
	if err != nil {
		return nil, nil, err
	}
	want := p.RTT + p.Down.Transmit(84) + p.Up.Transmit(84) // an echo is 84 bytes of IP
	at := func(q float64) time.Duration { return rtts[min(int(q*float64(len(rtts))), len(rtts)-1)] }
	for _, q := range []struct {
		name string
		q    float64
	}{{"round trip, least", 0}, {"round trip, median", .5}, {"round trip, p99", .99}} {
		rows = append(rows, Row{q.name, ms(want), ms(at(q.q)), "ms"})
	}
	bad := func(excused func(stalls) bool, format string, args ...any) {
		faults = append(faults, fault{fmt.Sprintf(format, args...), excused})
	}
	if p.Jitter == 0 && p.DownTrace == nil && p.UpTrace == nil {
		// ping prints three digits and truncates the rest.
		slack := 10 * time.Microsecond
		for next := 10 * time.Millisecond; next <= want; next *= 10 {
			slack *= 10
		}
		if rtts[0] < want-slack {
			bad(never, "a packet was early: a round trip took %v instead of %v", rtts[0], want)
		}
		latest := want + time.Millisecond
		switch {
		case rtts[0] > latest:
			bad(never, "every echo was late: the fastest took %v instead of %v", rtts[0], want)
		case at(.99) > latest:
			late, _ := slices.BinarySearch(rtts, latest+1)
			bad(lateEchoes(len(rtts)-late, echoInterval), "the round trip's 99th percentile is %v instead of %v", at(.99), want)
		}
	}
	if lost := echoes - len(rtts); lost > 0 && p.Loss == 0 {
		bad(never, "%d of %d echoes were lost", lost, echoes)
	}
	return rows, faults, nil
}

// fetches measures connections, of three the middle one.
func (c *Cable) fetches(p link.Profile) (rows []Row, err error) {
	var connect, first, whole []time.Duration
	for range 3 {
		a, b, d, err := c.Fetch()
		if err != nil {
			return nil, err
		}
		connect, first, whole = append(connect, a), append(first, b), append(whole, d)
	}
	for _, x := range []struct {
		name  string
		times []time.Duration
		rtts  time.Duration
	}{{"TCP connect (1 RTT)", connect, 1}, {"first byte (2 RTT)", first, 2}, {"100 kB (4 RTT and its transmission)", whole, 4}} {
		slices.Sort(x.times)
		rows = append(rows, Row{x.name, ms(x.rtts * p.RTT), ms(x.times[1]), "ms"})
	}
	return rows, nil
}

// goodput measures transfers in one direction.
func (c *Cable) goodput(p link.Profile, down bool) (rows []Row, faults []fault, err error) {
	name, rate, trace := "goodput down", p.Down, p.DownTrace
	if !down {
		name, rate, trace = "goodput up", p.Up, p.UpTrace
	}
	if trace != nil {
		rate = trace.Rate() // for the row; it holds over whole periods only
	}
	c.Link.Set(p) // resets the counters
	connections, rounds := 1, time.Duration(8)
	if p.Underway(rate) > link.DefaultQueuePackets {
		connections, rounds = 8, 12 // cubic leaves slow start early, and then grows slowly
	}
	const span = 3 * time.Second
	got, err := c.Transfers(connections, down, max(time.Second, rounds*p.RTT), span)
	if err != nil {
		return nil, nil, err
	}
	ideal := float64(rate) * payloadShare
	if off := math.Abs(got/ideal - 1); rate > 0 && trace == nil && off > .02 {
		faults = append(faults, fault{fmt.Sprintf("%s is %.3f Mbit/s instead of %.3f", name, got/1e6, ideal/1e6), lostTime(off, span)})
	}
	return []Row{{name, ideal / 1e6, got / 1e6, "Mbit/s"}}, faults, nil
}

// Measure lays a cable with the profile and measures it; it takes about ten
// seconds, and longer where this machine stalls. The caller may make network namespaces.
func Measure(ctx context.Context, p link.Profile, o Options) (*Result, error) {
	begin := link.Profile{Name: "native"}
	if o.Backend == "conn" {
		if cannot := conn.Cannot(p); len(cannot) > 0 {
			return nil, fmt.Errorf("the back end conn cannot do this profile: %s", strings.Join(cannot, "; "))
		}
		begin = p // a connection that is accepted under a native profile stays untouched
	}
	c, err := NewCable(begin, o)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	end, err := c.serve(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if _, err := c.Ping(2, 10*time.Millisecond); err != nil { // fills the ARP tables
		return nil, err
	}
	r := &Result{}
	c.Link.Set(p)
	if f := c.Link.Report().Fault; f != "" {
		return nil, errors.New(f)
	}
	if err := c.compare(p.Begin(), o, r); err != nil { // with one profile, without changes
		return nil, err
	}
	r.Report = c.Link.Report()
	r.Good = len(r.Why) == 0 && len(r.Unsure) == 0
	return r, nil
}

// compare measures all that can be compared with a profile.
func (c *Cable) compare(p link.Profile, o Options, r *Result) error {
	if o.Backend != "conn" { // which does not delay echoes
		if err := r.settle(watchStalls, func() ([]Row, []fault, error) { return c.roundTrips(p) }); err != nil {
			return err
		}
	}
	if p.Loss != 0 || p.Down < 0 || p.Up < 0 {
		return nil
	}
	rows, err := c.fetches(p)
	if err != nil {
		return err
	}
	r.Rows = append(r.Rows, rows...)
	for _, down := range []bool{true, false} {
		if err := r.settle(watchStalls, func() ([]Row, []fault, error) { return c.goodput(p, down) }); err != nil {
			return err
		}
	}
	return nil
}
