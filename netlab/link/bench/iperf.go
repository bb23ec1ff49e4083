package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"eidetic/netlab/link/measure"
)

const iperfPort = "5201"

// goodput is what a TCP connection carried in steady state.
type goodput struct {
	wire  float64 // bits of payload per second that the device's cable shows
	iperf float64 // and that iperf3's receiver counted
	empty int     // tenths of a second in which nothing came
}

// transfer sends with iperf3 from the box to the device (down) or back, for span after
// a time to settle. With listen tcpdump counts too, which works up to 200 Mbit/s.
func (c *cable) transfer(ctx context.Context, down bool, settle, span time.Duration, listen bool) (g goodput, err error) {
	iperf, err := program("iperf3", "iperf3")
	if err != nil {
		return g, err
	}
	// The server may not listen yet when the client first connects.
	stop, err := service(ctx, c.Box, func() error { return nil }, iperf, "-s", "-B", measure.GatewayAddr, "-p", iperfPort)
	if err != nil {
		return g, err
	}
	defer stop()
	args := []string{"-c", measure.GatewayAddr, "-p", iperfPort, "-J", "-C", "cubic", "-i", "0.1",
		"-O", strconv.Itoa(int(settle.Seconds())), "-t", strconv.Itoa(int(span.Seconds()))}
	if down {
		args = append(args, "-R")
	}
	if listen {
		args = append(args, "-l", "1448") // its receiver counts whole blocks only
	}
	var out string
	run := func() error {
		for deadline := time.Now().Add(5 * time.Second); ; <-time.After(20 * time.Millisecond) {
			out, err = c.Device.Output(iperf, args...)
			if err == nil || time.Now().After(deadline) {
				return err
			}
		}
	}
	var packets []seenPacket
	if listen {
		// The receiving end sees what has passed the link.
		if down {
			packets, err = listenWhile(c.Device, "eth0", run)
		} else {
			packets, err = listenWhile(c.Box, "lab0", run)
		}
	} else {
		err = run()
	}
	if err != nil {
		return g, fmt.Errorf("iperf3: %w: %.300s", err, out)
	}
	var r struct {
		Intervals []struct {
			Sum struct {
				Bytes   float64 `json:"bytes"`
				Omitted bool    `json:"omitted"`
			} `json:"sum"`
		} `json:"intervals"`
		End struct {
			Received struct {
				Bits float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return g, fmt.Errorf("iperf3's report: %w", err)
	}
	g.iperf = r.End.Received.Bits
	if listen {
		err = g.fromWire(packets, down, settle, span)
	}
	return g, err
}

// fromWire counts the payload of the largest connection between settle and
// settle+span after its first byte.
func (g *goodput) fromWire(packets []seenPacket, down bool, settle, span time.Duration) error {
	list := transfers(packets, iperfPort, !down)
	if len(list) == 0 {
		return errors.New("iperf3: its connection was not seen")
	}
	t := slices.MaxFunc(list, func(a, b transfer) int { return a.bytes - b.bytes })
	const bin = 100 * time.Millisecond
	bins := make([]int, span/bin)
	var from, to time.Duration
	bytes := 0
	for i, at := range t.came {
		at -= t.came[0] + settle
		if at < 0 || at >= span {
			continue
		}
		bins[min(int(at/bin), len(bins)-1)]++
		if from == 0 {
			from = t.came[i] // counted from after this packet
			continue
		}
		bytes, to = bytes+t.sizes[i], t.came[i]
	}
	if to <= from {
		return errors.New("iperf3: nothing came in steady state")
	}
	for _, n := range bins {
		if n == 0 {
			g.empty++
		}
	}
	g.wire = float64(bytes) * 8 / (to - from).Seconds()
	return nil
}
