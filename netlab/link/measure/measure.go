package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"eidetic/netlab/link"
)

// Row is one line of a comparison: what was configured, what was achieved.
type Row struct {
	Name       string  `json:"name"`
	Configured float64 `json:"configured"` // 0: nothing was
	Achieved   float64 `json:"achieved"`
	Unit       string  `json:"unit"`
}

// Result of Measure.
type Result struct {
	Rows   []Row       `json:"rows"`
	Report link.Report `json:"report"`
	// Good says whether the link kept to its profile: no early packet, round
	// trips within a millisecond at the 99th percentile, goodput within 2 %.
	Good bool     `json:"good"`
	Why  []string `json:"why,omitempty"` // what was not good
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Measure lays a cable with the profile and measures it; it takes about ten
// seconds. The caller is in a network namespace of its own.
func Measure(ctx context.Context, p link.Profile) (*Result, error) {
	c, err := NewCable(link.Profile{Name: "native"})
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
	rtts, err := c.Ping(200, 10*time.Millisecond)
	if err != nil {
		return nil, err
	}
	serial := p.Down.Transmit(84) + p.Up.Transmit(84) // an echo is 84 bytes of IP
	want := p.RTT + serial
	at := func(q float64) time.Duration { return rtts[min(int(q*float64(len(rtts))), len(rtts)-1)] }
	for _, q := range []struct {
		name string
		q    float64
	}{{"round trip, least", 0}, {"round trip, median", .5}, {"round trip, p99", .99}} {
		r.Rows = append(r.Rows, Row{q.name, ms(want), ms(at(q.q)), "ms"})
	}
	if p.Jitter == 0 {
		// ping prints three digits and cuts the rest off.
		slack := 10 * time.Microsecond
		for next := 10 * time.Millisecond; next <= want; next *= 10 {
			slack *= 10
		}
		if rtts[0] < want-slack {
			bad("a packet was early: %v instead of %v", rtts[0], want)
		}
		if at(.99) > want+time.Millisecond {
			bad("the round trip's 99th percentile is %v instead of %v", at(.99), want)
		}
	}
	if lost := 200 - len(rtts); lost > 0 && p.Loss == 0 {
		bad("%d of 200 echoes were lost", lost)
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
			name, rate := "goodput down", p.Down
			if !down {
				name, rate = "goodput up", p.Up
			}
			c.Link.Set(p) // counts anew
			got, err := c.Transfer(down, max(time.Second, 8*p.RTT), 3*time.Second)
			if err != nil {
				return nil, err
			}
			ideal := float64(rate) * payloadShare
			r.Rows = append(r.Rows, Row{name, ideal / 1e6, got / 1e6, "Mbit/s"})
			if rate > 0 && (got < .98*ideal || got > 1.02*ideal) {
				bad("%s is %.3f Mbit/s instead of %.3f", name, got/1e6, ideal/1e6)
			}
		}
	}
	r.Report = c.Link.Report()
	r.Good = len(r.Why) == 0
	return r, nil
}

// Benchmark is one line of a benchmark's file.
type Benchmark struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Better    string  `json:"better"`
	Peer      string  `json:"peer"`
	PeerValue float64 `json:"peer_value"`
	Ratio     float64 `json:"ratio"`
	Goal      float64 `json:"goal"`
}

// Bench measures the accuracy of the packet link: errors of round trips, of
// goodput and of TCP's first round trips, and what native forwards.
func Bench(ctx context.Context) ([]Benchmark, error) {
	c, err := NewCable(link.Profile{Name: "native"})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	end, err := c.serve(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var out []Benchmark
	add := func(name string, value float64, unit, better string, goal float64) {
		out = append(out, Benchmark{Name: name, Value: value, Unit: unit, Better: better, Goal: goal})
	}
	if _, err := c.Ping(2, 10*time.Millisecond); err != nil {
		return nil, err
	}
	for _, rtt := range []time.Duration{0, 20, 100, 300} {
		rtt *= time.Millisecond
		c.Link.Set(link.Profile{Name: "custom", RTT: rtt})
		got, err := c.Ping(300, 5*time.Millisecond)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("rtt %d ms", rtt/time.Millisecond)
		add(name+": error p50", ms(got[len(got)/2]-rtt), "ms", "lower", 0)
		add(name+": error p99", ms(got[len(got)*99/100]-rtt), "ms", "lower", .3)
		add(name+": earliest", ms(got[0]-rtt), "ms", "higher", 0)
		if rtt < 20*time.Millisecond {
			continue
		}
		var worst [3]time.Duration
		for range 3 {
			a, b, d, err := c.Fetch()
			if err != nil {
				return nil, err
			}
			for i, t := range []time.Duration{a - rtt, b - 2*rtt, d - 4*rtt} {
				worst[i] = max(worst[i], t.Abs())
			}
		}
		for i, what := range []string{"connect is 1 RTT", "first byte is 2", "100 kB are 4"} {
			add(name+": "+what+", error", ms(worst[i]), "ms", "lower", 1)
		}
	}
	for _, rate := range []link.Rate{400e3, 1.6e6, 10e6, 100e6} {
		p := link.Profile{Name: "custom", RTT: 20 * time.Millisecond, Down: rate, Up: rate, Queue: link.Queue{Packets: 100}}
		c.Link.Set(p)
		got, err := c.Transfer(true, 2*time.Second, 4*time.Second)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%g Mbit/s", float64(rate)/1e6)
		ideal := float64(rate) * payloadShare
		add(name+": goodput error", 100*(got-ideal)/ideal, "%", "lower", .3)
		bins := c.Link.Report().Bins
		empty := 0
		for _, b := range bins[min(20, len(bins)):max(min(20, len(bins)), len(bins)-2)] {
			if b.Down == 0 {
				empty++
			}
		}
		add(name+": empty tenths of a second", float64(empty), "bins", "lower", 0)
	}
	c.Link.Set(link.Profile{Name: "native"})
	got, err := c.Transfer(true, time.Second, 3*time.Second)
	if err != nil {
		return nil, err
	}
	add("native: goodput", got/1e9, "Gbit/s", "higher", 1)
	return out, nil
}
