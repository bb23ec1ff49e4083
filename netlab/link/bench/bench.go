package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"eidetic/internal/rigs/benchtable"
	"eidetic/netlab/link"
	"eidetic/netlab/link/measure"
)

// bench runs the parts of the benchmark, one after the other.
type bench struct {
	parts     *regexp.Regexp
	peers     bool
	toxiproxy string
	results   []benchtable.Result
}

const (
	pings    = 400
	interval = 5 * time.Millisecond
	fetches  = 15
	// payloadShare of a full packet: 1448 of 1500 bytes.
	payloadShare = 1448.0 / 1500
)

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// at returns the quantile q of sorted times.
func at(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// add adds a result; NaN as goal or peerValue leaves it out.
func (b *bench) add(name string, value float64, unit, better string, goal float64, peer string, peerValue float64) {
	r := benchtable.Result{Name: name, Value: value, Unit: unit, Better: better}
	if !math.IsNaN(goal) {
		r = r.Aim(goal)
	}
	if !math.IsNaN(peerValue) {
		r = r.Against(peer, peerValue)
	}
	b.results = append(b.results, r)
}

func (b *bench) measure(ctx context.Context) error {
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"rtt", b.delays}, {"tcp", b.handshakes}, {"ask", b.questions}, {"rate", b.rates}, {"native", b.native}, {"cpu", b.processor}} {
		if !b.parts.MatchString(part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// with runs f on a cable whose ARP tables are filled, with a packet link or, without
// a profile, a bare one.
func with(profile *link.Profile, f func(*cable) error) error {
	var m *measure.Cable
	var err error
	if profile == nil {
		m, err = measure.NewBareCable()
	} else {
		m, err = measure.NewCable(*profile, measure.Options{Forwarder: []string{"/proc/self/exe", forward}})
	}
	if err != nil {
		return err
	}
	defer m.Close()
	c := &cable{m}
	if _, _, err := c.ping(3, 10*time.Millisecond); err != nil {
		return err
	}
	return f(c)
}

// delays compares round trips with the configured RTT and with those of the bare
// cable.
func (b *bench) delays(context.Context) error {
	var floor []time.Duration
	if err := with(nil, func(c *cable) (err error) {
		floor, _, err = c.ping(pings, interval)
		slices.Sort(floor)
		return err
	}); err != nil {
		return err
	}
	none := math.NaN()
	b.add("bare cable: round trip p99", ms(at(floor, .99)), "ms", "lower", none, "", none)
	return with(&link.Profile{Name: "native"}, func(c *cable) error {
		for _, rtt := range []time.Duration{0, 20, 100, 300} {
			rtt *= time.Millisecond
			c.Link.Set(link.Profile{Name: "custom", RTT: rtt})
			got, lost, err := c.ping(pings, interval)
			if err != nil {
				return err
			}
			slices.Sort(got)
			name := fmt.Sprintf("rtt %d ms", rtt/time.Millisecond)
			b.add(name+": error p50", ms(at(got, .5)-rtt), "ms", "lower", none, "bare cable", ms(at(floor, .5)))
			b.add(name+": error p99", ms(at(got, .99)-rtt), "ms", "lower", .3, "bare cable", ms(at(floor, .99)))
			b.add(name+": error of the earliest", ms(got[0]-rtt), "ms", "higher", 0, "bare cable", ms(floor[0]))
			b.add(name+": lost", float64(lost), "echoes", "lower", 0, "", none)
		}
		return nil
	})
}

// handshakes compares the first round trips of TCP with the RTT, and with the time
// that programs and kernel need for them on the bare cable.
func (b *bench) handshakes(ctx context.Context) error {
	var floor milestones
	if err := with(nil, func(c *cable) (err error) {
		floor, err = c.milestones(ctx, 0)
		return err
	}); err != nil {
		return err
	}
	none := math.NaN()
	return with(&link.Profile{Name: "native"}, func(c *cable) error {
		for _, rtt := range []time.Duration{20, 100, 300} {
			rtt *= time.Millisecond
			c.Link.Set(link.Profile{Name: "custom", RTT: rtt})
			errs, err := c.milestones(ctx, rtt)
			if err != nil {
				return err
			}
			prefix := fmt.Sprintf("rtt %d ms: ", rtt/time.Millisecond)
			for _, m := range []struct {
				what        string
				errs, floor []time.Duration
			}{{"connect is 1 RTT", errs.connect, floor.connect}, {"first byte is 2 RTT", errs.first, floor.first},
				{"100 kB are 4 RTT", errs.whole, floor.whole}} {
				b.add(prefix+m.what+", error p50", ms(at(m.errs, .5)), "ms", "lower", none, "bare cable", ms(at(m.floor, .5)))
				b.add(prefix+m.what+", error worst", ms(at(m.errs, 1)), "ms", "lower", 1, "bare cable", ms(at(m.floor, 1)))
			}
			b.add(prefix+"of it the link's, p50", ms(at(errs.link, .5)), "ms", "lower", none, "", none)
			b.add(prefix+"of it the link's, worst", ms(at(errs.link, 1)), "ms", "lower", none, "", none)
		}
		return nil
	})
}

// milestones are the differences of connect, first byte and last byte from 1, 2 and
// 4 RTT, and the link's part of the last, each sorted.
type milestones struct{ connect, first, whole, link []time.Duration }

// milestones fetches the page several times.
func (c *cable) milestones(ctx context.Context, rtt time.Duration) (m milestones, err error) {
	stop, err := c.serve(ctx)
	if err != nil {
		return m, err
	}
	defer stop()
	list, device, box, err := c.fetch(ctx, fetches, httpPort)
	if err != nil {
		return m, err
	}
	for _, t := range list {
		m.connect = append(m.connect, t.connect-rtt)
		m.first = append(m.first, t.first-2*rtt)
		m.whole = append(m.whole, t.whole-4*rtt)
		d, b := device[t.client], box[t.client]
		if b == nil || len(d.down) != len(b.down) || len(d.up) != len(b.up) {
			return m, fmt.Errorf("fetch: the box's end of the cable did not carry what the device's did")
		}
		m.link = append(m.link, linkPart(*d, *b, t.end, rtt))
	}
	for _, list := range [][]time.Duration{m.connect, m.first, m.whole, m.link} {
		slices.Sort(list)
	}
	return m, nil
}

// questions measures how long a small answer over an open connection takes, beside
// toxiproxy, which can delay it too.
func (b *bench) questions(ctx context.Context) error {
	for _, rtt := range []time.Duration{20, 100, 300} {
		rtt *= time.Millisecond
		times := min(100, int(8*time.Second/rtt))
		theirs := [2]float64{math.NaN(), math.NaN()} // least and p99
		if b.peers {
			if err := with(nil, func(c *cable) error {
				stop, err := c.serve(ctx)
				if err != nil {
					return err
				}
				defer stop()
				end, err := c.toxi(ctx, b.toxiproxy, rtt)
				if err != nil {
					return err
				}
				defer end()
				got, err := c.ask(ctx, times, toxiPort)
				if err != nil {
					return err
				}
				slices.Sort(got)
				theirs = [2]float64{ms(got[0] - rtt), ms(at(got, .99) - rtt)}
				return nil
			}); err != nil {
				return err
			}
		}
		if err := with(&link.Profile{Name: "custom", RTT: rtt}, func(c *cable) error {
			stop, err := c.serve(ctx)
			if err != nil {
				return err
			}
			defer stop()
			got, err := c.ask(ctx, times, httpPort)
			if err != nil {
				return err
			}
			slices.Sort(got)
			name := fmt.Sprintf("rtt %d ms: answer over an open connection, error", rtt/time.Millisecond)
			b.add(name+" of the earliest", ms(got[0]-rtt), "ms", "lower", math.NaN(), "toxiproxy", theirs[0])
			b.add(name+" p99", ms(at(got, .99)-rtt), "ms", "lower", math.NaN(), "toxiproxy", theirs[1])
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// rates compares goodput with the rate less the headers.
func (b *bench) rates(ctx context.Context) error {
	none := math.NaN()
	for _, rate := range []link.Rate{400e3, 1.6e6, 10e6, 100e6} {
		settle, span := 3*time.Second, 8*time.Second
		if rate < 5e6 {
			settle, span = 5*time.Second, 20*time.Second
		}
		ideal := float64(rate) * payloadShare
		tbf := none
		var tbfEmpty int
		if b.peers {
			if err := with(nil, func(c *cable) error {
				if err := c.tbf(rate); err != nil {
					return err
				}
				g, err := c.transfer(ctx, true, settle, span, true)
				tbf, tbfEmpty = 100*(g.wire-ideal)/ideal, g.empty
				return err
			}); err != nil {
				return err
			}
		}
		// With a shorter queue TCP would leave a slow link idle after a drop.
		p := link.Profile{Name: "custom", RTT: 20 * time.Millisecond, Down: rate, Up: rate, Queue: link.Queue{Time: 200 * time.Millisecond}}
		if err := with(&p, func(c *cable) error {
			for _, down := range []bool{true, false} {
				c.Link.Set(p)
				g, err := c.transfer(ctx, down, settle, span, true)
				if err != nil {
					return err
				}
				name := fmt.Sprintf("%g Mbit/s", float64(rate)/1e6)
				if !down {
					b.add(name+" up: goodput error", 100*(g.wire-ideal)/ideal, "%", "lower", .3, "", none)
					continue
				}
				b.add(name+": goodput error", 100*(g.wire-ideal)/ideal, "%", "lower", .3, "tc tbf", tbf)
				b.add(name+": goodput error by iperf3", 100*(g.iperf-ideal)/ideal, "%", "lower", none, "", none)
				b.add(name+": empty tenths of a second", float64(g.empty), "bins", "lower", 0, "tc tbf", float64(tbfEmpty))
				b.add(name+": most that waited", ms(rate.Transmit(int(c.Link.Report().Down.QueuePeak))), "ms", "lower", none, "", none)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// native measures the goodput of a link without a rate.
func (b *bench) native(ctx context.Context) error {
	var bare goodput
	if err := with(nil, func(c *cable) (err error) {
		bare, err = c.transfer(ctx, true, time.Second, 5*time.Second, false)
		return err
	}); err != nil {
		return err
	}
	return with(&link.Profile{Name: "native"}, func(c *cable) error {
		g, err := c.transfer(ctx, true, time.Second, 5*time.Second, false)
		b.add("native: goodput", g.iperf/1e9, "Gbit/s", "higher", 1, "bare cable", bare.iperf/1e9)
		return err
	})
}

// processor measures the link's processor time at 20 Mbit/s.
func (b *bench) processor(ctx context.Context) error {
	p := link.Profile{Name: "custom", RTT: 20 * time.Millisecond, Down: 20e6, Up: 20e6, Queue: link.Queue{Time: 100 * time.Millisecond}}
	return with(&p, func(c *cable) error {
		c.Link.Set(p)
		before, begun := c.Link.Report().CPU, time.Now()
		if _, err := c.transfer(ctx, true, time.Second, 5*time.Second, false); err != nil {
			return err
		}
		r := c.Link.Report()
		none := math.NaN()
		b.add("20 Mbit/s: processor", 100*(r.CPU-before).Seconds()/time.Since(begun).Seconds(), "% of a core", "lower", 15, "", none)
		b.add(
			"20 Mbit/s: departures late, p99",
			ms(max(r.Down.Errors.Quantile(.99), r.Up.Errors.Quantile(.99))),
			"ms",
			"lower",
			none,
			"",
			none,
		)
		return nil
	})
}
