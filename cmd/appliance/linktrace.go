package main

import (
	"errors"
	"fmt"
	"net/netip"

	"eidetic/internal/tell/terminal"
	"eidetic/netlab/link"
	"eidetic/netlab/link/packet"
)

// LinkTraceCmd groups what is done with traces.
type LinkTraceCmd struct {
	Record LinkTraceRecordCmd `cmd:"" help:"Make a trace file of a packet log."`
}

// LinkTraceRecordCmd makes a trace.
type LinkTraceRecordCmd struct {
	Pcap   string     `xor:"log" required:"" type:"existingfile" placeholder:"FILE" help:"Packets that tcpdump -w or dumpcap wrote where they came out of the link."`
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
	trace, isCut, err := c.trace()
	if err != nil {
		return usage(err)
	}
	if err := writeNamed(c.Out, trace.Write); err != nil {
		return cannot(fmt.Errorf("write %s: %w", c.Out, err))
	}
	if isCut {
		fmt.Fprintf(std.err, "%s ends within a packet, which is left out.\n", terminal.Visible(c.Pcap))
	}
	fmt.Fprintf(std.out, "%s: %d packets in %v, %.4g Mbit/s on average\n", c.Out, len(trace.At), trace.Period, float64(trace.Rate())/1e6)
	return nil
}

// trace makes the trace of the log that the flags name.
func (c *LinkTraceRecordCmd) trace() (t *link.Trace, isCut bool, err error) {
	if c.Pcap == "" {
		if t, err = link.TraceOfReport(c.Report, c.Up); err != nil {
			return nil, false, fmt.Errorf("--report %w", err)
		}
		return t, false, nil
	}
	if !c.To.IsValid() {
		return nil, false, errors.New("--pcap: say with --to which address the packets went to, so that only one direction counts")
	}
	if t, isCut, err = packet.TraceOfPcap(c.Pcap, c.To); err != nil {
		return nil, false, fmt.Errorf("--pcap %w", err)
	}
	return t, isCut, nil
}
