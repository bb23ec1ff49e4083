package netlab

import (
	"context"
	"time"

	"eidetic/netlab/archive"
	"eidetic/netlab/dns"
	"eidetic/netlab/replay"
)

// liveFrom sets up the way to the origins of what an archive lacks: o.Live and o.Protocols. It
// returns what answers the device's queries, and the table of the names that are known.
func (n *Network) liveFrom(a *archive.Archive, o *replay.Options) (dns.Source, *dns.Table) {
	wall := time.Now
	if start := o.Clock(); !o.Wall.IsZero() {
		begin := o.Wall
		wall = func() time.Time { return begin.Add(o.Clock().Sub(start)) }
	}
	keep := func(archive.DNS) error { return nil }
	var known []archive.DNS
	if o.Fill != nil {
		keep, known = o.Fill.AddDNS, o.Fill.DNS()
	}
	forwarder := n.openUpstream(wall, keep)
	o.Live = n.up
	if o.Protocols == nil {
		o.Protocols = n.up.Protocols
	}
	// Not prepared.table, which sessions share that may not know these names.
	table := tableOf(a)
	for _, d := range known {
		table.AddAnswer(d.Name, d.Type, d.RCode, d.Records)
	}
	return knownFirst{table, forwarder}, table
}

// knownFirst asks a resolver for names that the recording does not have.
type knownFirst struct {
	table     *dns.Table
	forwarder *dns.Forwarder
}

// Lookup implements dns.Source.
func (k knownFirst) Lookup(ctx context.Context, name string, qtype uint16) (dns.Answer, error) {
	if a, err := k.table.Lookup(ctx, name, qtype); err != nil || a.Source != dns.Unknown && a.Source != dns.Parent {
		return a, err
	}
	return k.forwarder.Lookup(ctx, name, qtype)
}
