package measure

import (
	"context"
	"errors"
	"fmt"
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
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// roundTrips measures with ping.
func (c *Cable) roundTrips(p link.Profile, r *Result, bad func(string, ...any)) error {
	rtts, err := c.Ping(200, 10*time.Millisecond)
	if err != nil {
		return err
	}
	want := p.RTT + p.Down.Transmit(84) + p.Up.Transmit(84) // an echo is 84 bytes of IP
	at := func(q float64) time.Duration { return rtts[min(int(q*float64(len(rtts))), len(rtts)-1)] }
	for _, q := range []struct {
		name string
		q    float64
	}{{"round trip, least", 0}, {"round trip, median", .5}, {"round trip, p99", .99}} {
		r.Rows = append(r.Rows, Row{q.name, ms(want), ms(at(q.q)), "ms"})
	}
	if p.Jitter == 0 && p.DownTrace == nil && p.UpTrace == nil {
		// ping prints three digits and truncates the rest.
		slack := 10 * time.Microsecond
		for next := 10 * time.Millisecond; next <= want; next *= 10 {
			slack *= 10
		}
		if rtts[0] < want-slack {
			bad("a packet was early: a round trip took %v instead of %v", rtts[0], want)
		}
		if at(.99) > want+time.Millisecond {
			bad("the round trip's 99th percentile is %v instead of %v", at(.99), want)
		}
	}
	if lost := 200 - len(rtts); lost > 0 && p.Loss == 0 {
		bad("%d of 200 echoes were lost", lost)
	}
	return nil
}

// Measure lays a cable with the profile and measures it; it takes about ten
// seconds. The caller may make network namespaces.
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
	bad := func(format string, args ...any) { r.Why = append(r.Why, fmt.Sprintf(format, args...)) }
	c.Link.Set(p)
	if f := c.Link.Report().Fault; f != "" {
		return nil, errors.New(f)
	}
	p = p.Begin()            // the rest compares with one profile, without changes
	if o.Backend != "conn" { // which does not delay echoes
		if err := c.roundTrips(p, r, bad); err != nil {
			return nil, err
		}
	}
	if p.Loss == 0 && p.Down >= 0 && p.Up >= 0 {
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
			r.Rows = append(r.Rows, Row{x.name, ms(x.rtts * p.RTT), ms(x.times[1]), "ms"})
		}
		for _, down := range []bool{true, false} {
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
			got, err := c.Transfers(connections, down, max(time.Second, rounds*p.RTT), 3*time.Second)
			if err != nil {
				return nil, err
			}
			ideal := float64(rate) * payloadShare
			r.Rows = append(r.Rows, Row{name, ideal / 1e6, got / 1e6, "Mbit/s"})
			if rate > 0 && trace == nil && (got < .98*ideal || got > 1.02*ideal) {
				bad("%s is %.3f Mbit/s instead of %.3f", name, got/1e6, ideal/1e6)
			}
		}
	}
	r.Report = c.Link.Report()
	r.Good = len(r.Why) == 0
	return r, nil
}
