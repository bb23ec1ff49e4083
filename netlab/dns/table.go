package dns

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Table is a Source that answers from memory what was recorded; every other name
// does not exist. Fill it before its first Lookup.
type Table struct {
	answers map[question]Answer
	hosts   map[string][]netip.Addr // by name, in the order of the answer
	names   map[netip.Addr]string   // the first host of an address
	parents map[string]bool         // names under which others exist
	absent  map[string]bool         // names with NXDOMAIN and no other answer: NXDOMAIN for every type (RFC 8020)
}

// NewTable returns an empty Table.
func NewTable() *Table {
	return &Table{
		answers: map[question]Answer{}, hosts: map[string][]netip.Addr{},
		names: map[netip.Addr]string{}, absent: map[string]bool{}, parents: map[string]bool{},
	}
}

// AddAnswer adds a recorded answer. records are in zone-file form; lines that cannot
// be parsed are left out. The first answer to a question counts, except a failure,
// which a later answer replaces.
func (t *Table) AddAnswer(name, qtype, rcode string, records []string) {
	q := question{Canonical(name), dns.StringToType[qtype]}
	code, known := dns.StringToRcode[rcode]
	if old, have := t.answers[q]; have && (!isFailure(old.RCode) || isFailure(code)) || q.qtype == dns.TypeNone || !known {
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
	case isFailure(code):
		return // it is unknown whether the name exists
	case code == dns.RcodeNameError:
		// Some servers answer NXDOMAIN for a name that has addresses, when the query is
		// for a type that they do not know (RFC 4074, 4.2).
		if _, exists := t.hosts[q.name]; !exists {
			t.absent[q.name] = true
		}
		return
	}
	delete(t.absent, q.name)
	t.exists(q.name)
	for _, rr := range a.Chain {
		if alias, ok := rr.(*dns.CNAME); ok {
			t.exists(Canonical(alias.Target))
		}
	}
	if _, ok := t.hosts[q.name]; !ok {
		t.hosts[q.name] = nil
	}
	for _, addr := range a.Origins {
		t.AddHost(q.name, addr)
	}
}

// AddHost adds an address of a host without a recorded answer.
func (t *Table) AddHost(name string, addr netip.Addr) {
	name, addr = Canonical(name), addr.Unmap()
	delete(t.absent, name)
	t.exists(name)
	if slices.Contains(t.hosts[name], addr) {
		return
	}
	t.hosts[name] = append(t.hosts[name], addr)
	if _, ok := t.names[addr]; !ok {
		t.names[addr] = name
	}
}

// exists notes that the names above a name that exists do, too.
func (t *Table) exists(name string) {
	for {
		_, parent, ok := strings.Cut(name, ".")
		if !ok || t.parents[parent] {
			return
		}
		t.parents[parent] = true
		name = parent
	}
}

// Hosts returns the addresses of each name; do not change the map.
func (t *Table) Hosts() map[string][]netip.Addr { return t.hosts }

// Unknown is the Source of a Table's answer about a name that is not in it.
const Unknown = "none"

// Parent is the Source of a Table's answer about a name of which it knows only that others lie under it. It has no
// data, and does exist: a resolver that hears that it does not takes the others for absent as well (RFC 8020).
const Parent = "parent"

// Lookup implements Source.
func (t *Table) Lookup(_ context.Context, name string, qtype uint16) (Answer, error) {
	if t.absent[name] {
		return Answer{RCode: dns.RcodeNameError, Source: "table"}, nil
	}
	a, recorded := t.answers[question{name, qtype}]
	addrs, host := t.hosts[name]
	switch {
	case recorded && isFailure(a.RCode) && len(addrs) == 0:
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
	if t.parents[name] {
		return Answer{RCode: dns.RcodeSuccess, Source: Parent}, nil
	}
	return Answer{RCode: dns.RcodeNameError, Source: Unknown}, nil
}

// sortAnswer separates the records of an answer by their kind.
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
	a.Chain = inOrder(q.name, a.Chain)
	return a
}

// inOrder sorts aliases so that each follows the one that points to it, starting from name: resolvers may send them in any
// order, and many clients read them in this one only. An alias that nothing points to comes last.
func inOrder(name string, chain []dns.RR) []dns.RR {
	for i := range chain {
		next := slices.IndexFunc(chain[i:], func(rr dns.RR) bool { return Canonical(rr.Header().Name) == name })
		if next < 0 {
			break
		}
		chain[i], chain[i+next] = chain[i+next], chain[i]
		if alias, ok := chain[i].(*dns.CNAME); ok {
			name = Canonical(alias.Target)
		}
	}
	return chain
}
