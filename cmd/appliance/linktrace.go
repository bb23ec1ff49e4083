package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"eidetic/netlab/link"
	"eidetic/netlab/link/packet"
)

// LinkTraceCmd groups what is done with traces.
type LinkTraceCmd struct {
	Record LinkTraceRecordCmd `cmd:"" help:"Make a trace file of a packet log."`
}

// LinkTraceRecordCmd makes a trace.
type LinkTraceRecordCmd struct {
	Pcap   string     `xor:"log" required:"" type:"existingfile" placeholder:"FILE" help:"Packets that tcpdump -w wrote where they came out of the link."`
	To     netip.Addr `placeholder:"ADDR" help:"With --pcap: the address that the packets went to."`
	Report string     `xor:"log" required:"" type:"existingfile" placeholder:"link.json" help:"What an emulated link did in a trial, by tenths of a second."`
	Up     bool       `help:"With --report: what the device sent, instead of what it got."`
	Out    string     `required:"" type:"path" placeholder:"FILE" help:"Trace file to write, in mahimahi's format."`
}

// Help is the example below the flags.
func (LinkTraceRecordCmd) Help() string {
	return `A trace says when a link could carry a packet, so it must be recorded while there was always one to carry: fill the link with
a download, listen on the device with tcpdump, and stop both before the download ends.

  tcpdump -i wlan0 -s 96 -w lte.pcap host 203.0.113.7
  appliance link trace record --pcap lte.pcap --to 192.0.2.5 --out lte.trace
  appliance demo --link "rtt=50ms,downtrace=lte.trace,up=10mbit"`
}

// Run reads the log and writes the trace.
func (c *LinkTraceRecordCmd) Run(std *streams) error {
	var log []event
	var err error
	if c.Pcap != "" {
		log, err = c.readPcap()
	} else {
		log, err = c.readReport()
	}
	if err != nil {
		return usage(err)
	}
	trace, err := link.NewTrace(c.Pcap+c.Report, func(yield func(time.Duration, int) bool) {
		for _, e := range log {
			if !yield(e.at, e.bytes) {
				return
			}
		}
	})
	if err != nil {
		return usage(err)
	}
	f, err := os.Create(c.Out)
	if err != nil {
		return cannot(err)
	}
	if err := errors.Join(trace.Write(f), f.Close()); err != nil {
		return cannot(fmt.Errorf("write %s: %w", c.Out, err))
	}
	fmt.Fprintf(std.out, "%s: %d packets in %v, %.4g Mbit/s on average\n", c.Out, len(trace.At), trace.Period, float64(trace.Rate())/1e6)
	return nil
}

// event is what a link carried at an instant.
type event struct {
	at    time.Duration
	bytes int
}

// mostEvents bounds a log: as many packets as a trace may have lines.
const mostEvents = 6_000_000

func (c *LinkTraceRecordCmd) readPcap() (log []event, err error) {
	if !c.To.IsValid() {
		return nil, errors.New("--pcap: say with --to which address the packets went to, so that only one direction counts")
	}
	f, err := os.Open(c.Pcap)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = packet.ReadPcap(c.Pcap, f, c.To, func(at time.Duration, bytes int) {
		if len(log) <= mostEvents {
			log = append(log, event{at, bytes})
		}
	})
	switch {
	case err != nil:
		return nil, err
	case len(log) == 0:
		return nil, fmt.Errorf("--pcap %s: no packet in it went to %v", c.Pcap, c.To)
	case len(log) > mostEvents:
		return nil, fmt.Errorf("--pcap %s: more than %d packets; cut it with tcpdump -c", c.Pcap, mostEvents)
	}
	return log, nil
}

// readReport spreads each bin evenly over its tenth of a second.
func (c *LinkTraceRecordCmd) readReport() (log []event, err error) {
	f, err := os.Open(c.Report)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 64 << 20
	var r link.Report
	if err := json.NewDecoder(io.LimitReader(f, most)).Decode(&r); err != nil {
		return nil, fmt.Errorf("--report %s: it is no link.json of a trial: %w", c.Report, err)
	}
	log = []event{{}} // the link begins at once
	for i, bin := range r.Bins {
		bytes := bin.Down
		if c.Up {
			bytes = bin.Up
		}
		packets := max(1, bytes/link.TracePacket)
		for n := range packets {
			at := time.Duration(i)*link.BinWidth + time.Duration(n+1)*link.BinWidth/time.Duration(packets)
			log = append(log, event{at, bytes*(n+1)/packets - bytes*n/packets})
		}
		if len(log) > mostEvents {
			return nil, fmt.Errorf("--report %s: more than %d packets", c.Report, mostEvents)
		}
	}
	return log, nil
}
