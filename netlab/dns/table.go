package dns

import (
	"context"
	"net/netip"
	"slices"

	"github.com/miekg/dns"
)

// Table is a Source that answers from memory, as it was recorded; every other
// name does not exist. Fill it before it is used.
type Table struct {
	answers map[question]Answer
	hosts   map[string][]netip.Addr // by name, in the order to be given out
	names   map[netip.Addr]string   // the first host of an address
	absent  map[string]bool         // NXDOMAIN and nothing else, so for every type (RFC 8020)
}

// NewTable returns an empty Table.
func NewTable() *Table {
	return &Table{
		answers: map[question]Answer{}, hosts: map[string][]netip.Addr{},
		names: map[netip.Addr]string{}, absent: map[string]bool{},
	}
}

// AddAnswer adds a recorded answer: records are in zone-file form, and lines
// that cannot be read are left out. The first answer to a question holds, but
// a failure only until the resolver knew more.
func (t *Table) AddAnswer(name, qtype, rcode string, records []string) {
	q := question{Canonical(name), dns.StringToType[qtype]}
	code, known := dns.StringToRcode[rcode]
	if old, have := t.answers[q]; have && (!failure(old.RCode) || failure(code)) || q.qtype == dns.TypeNone || !known {
		return
	}
	var rrs []dns.RR
	for _, line := range records {
		if rr, err := dns.NewRR(line); err == nil && rr != nil {
			rrs = append(rrs, rr)
		}
	}
	a := sortAnswer(q, rrs)
	a.RCode, a.Source = code, "table"
	t.answers[q] = a
	switch {
	case failure(code):
		return // nobody knows whether there is such a name
	case code == dns.RcodeNameError:
		// Some servers say so of a name that has addresses, when they are asked
		// for a type that they do not know (RFC 4074, 4.2).
		if _, exists := t.hosts[q.name]; !exists {
			t.absent[q.name] = true
		}
		return
	}
	delete(t.absent, q.name)
	if _, ok := t.hosts[q.name]; !ok {
		t.hosts[q.name] = nil
	}
	for _, addr := range a.Origins {
		t.AddHost(q.name, addr)
	}
}

// AddHost adds an address of a host of which no answer may have been recorded.
func (t *Table) AddHost(name string, addr netip.Addr) {
	name, addr = Canonical(name), addr.Unmap()
	delete(t.absent, name)
	if slices.Contains(t.hosts[name], addr) {
		return
	}
	t.hosts[name] = append(t.hosts[name], addr)
	if _, ok := t.names[addr]; !ok {
		t.names[addr] = name
	}
}

// Hosts returns the addresses of each name; do not change them.
func (t *Table) Hosts() map[string][]netip.Addr { return t.hosts }

// Lookup implements Source.
func (t *Table) Lookup(_ context.Context, name string, qtype uint16) (Answer, error) {
	if t.absent[name] {
		return Answer{RCode: dns.RcodeNameError, Source: "table"}, nil
	}
	a, recorded := t.answers[question{name, qtype}]
	addrs, host := t.hosts[name]
	switch {
	case recorded && failure(a.RCode) && len(addrs) == 0:
		return a, nil
	case recorded && a.RCode != dns.RcodeNameError && (len(a.Origins) > 0 || qtype != dns.TypeA && qtype != dns.TypeAAAA):
		return a, nil
	case host:
		a.Source, a.RCode = "table", dns.RcodeSuccess
		for _, addr := range addrs {
			if addr.Is4() && qtype == dns.TypeA || addr.Is6() && qtype == dns.TypeAAAA {
				a.Origins = append(a.Origins, addr)
			}
		}
		return a, nil
	case qtype == dns.TypePTR:
		if addr, ok := reversed(name); ok && t.names[addr] != "" {
			return Answer{Source: "table", Records: []dns.RR{&dns.PTR{
				Hdr: dns.RR_Header{Name: dns.Fqdn(name), Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: ttl},
				Ptr: dns.Fqdn(t.names[addr]),
			}}}, nil
		}
	}
	return Answer{RCode: dns.RcodeNameError, Source: "none"}, nil
}

// sortAnswer takes apart what was said to a question.
func sortAnswer(q question, rrs []dns.RR) Answer {
	var a Answer
	for _, rr := range rrs {
		rrtype := rr.Header().Rrtype
		if addr, ok := address(rr); ok {
			if rrtype == q.qtype {
				a.Origins = append(a.Origins, addr)
			}
			continue
		}
		switch rrtype {
		case q.qtype:
			a.Records = append(a.Records, rr)
		case dns.TypeCNAME:
			a.Chain = append(a.Chain, rr)
		}
	}
	return a
}
