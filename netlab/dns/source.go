package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Answer is what a Source knows about a name.
type Answer struct {
	RCode   int          // dns.RcodeSuccess, dns.RcodeNameError, …
	Origins []netip.Addr // for A and AAAA
	Chain   []dns.RR     // the CNAMEs that lead to them
	Records []dns.RR     // for other types
	Source  string       // for Query.Source
}

// Source answers queries. Its methods are called from many goroutines.
type Source interface {
	// Lookup answers for a canonical name (lower case, no final dot).
	Lookup(ctx context.Context, name string, qtype uint16) (Answer, error)
}

// Recorded is an upstream resolver's answer, in the form of a recording.
type Recorded struct {
	Name    string   // canonical
	Type    string   // "A", "AAAA", "HTTPS", …
	RCode   string   // "NOERROR", "NXDOMAIN", "SERVFAIL", …
	Records []string // zone-file form, CNAMEs included
	Elapsed time.Duration
	Server  string
}

// Forwarder is a Source that asks an upstream resolver, once for each name and
// type. The first answer is valid for the Forwarder's whole life, so that the device
// and the recorder use the same addresses. A refusal or a failure of the resolver is
// passed on, and the next query asks again. Make it with NewForwarder.
type Forwarder struct {
	// Hosts are names that the resolver is not asked for; set them before the first Lookup.
	Hosts Hosts
	// IPv6First says that this machine reaches nobody over IPv4, so that Addrs prefers IPv6; nil is that it does.
	IPv6First func() bool

	resolver netip.AddrPort
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	record   func(Recorded)
	waits    []time.Duration // for an answer over UDP, before each retry

	mu     sync.Mutex
	known  map[question]*pinned
	room   int               // bytes that further answers may have
	failed map[question]bool // whose failure was recorded
}

type question struct {
	name  string
	qtype uint16
}

type pinned struct {
	done      chan struct{}
	answer    Answer
	err       error
	cancelled bool // the context of the query that asked ended before the answer
}

// Whoever owns a name chooses what is answered, and a page as many names as it likes. An answer of 64 KiB may have 4,000
// records, whose names take megabytes once they are unpacked.
const (
	maxPinned       = 100_000
	maxRecords      = 500       // of one answer
	maxAnswers      = 128 << 20 // bytes of all answers
	recordBytes     = 250       // what a record takes besides its text
	largestAnswer   = 16 << 10  // over UDP: some resolvers send more than EDNS allows them
	upstreamTimeout = 5 * time.Second
)

// NewForwarder returns a Forwarder that asks resolver through dial (nil: net.Dialer).
// record, when not nil, is called once for each answer.
func NewForwarder(resolver netip.AddrPort, dial func(ctx context.Context, network, addr string) (net.Conn, error),
	record func(Recorded)) *Forwarder {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return &Forwarder{
		resolver: resolver, dial: dial, record: record, known: map[question]*pinned{}, room: maxAnswers, failed: map[question]bool{},
		waits: []time.Duration{time.Second, 2 * time.Second, 2 * time.Second},
	}
}

// Lookup implements Source.
func (f *Forwarder) Lookup(ctx context.Context, name string, qtype uint16) (Answer, error) {
	if addrs, ok := f.local(name); ok {
		return f.answerLocal(question{name, qtype}, addrs), nil
	}
	for {
		p, err := f.lookup(ctx, question{name, qtype})
		if err != nil {
			return Answer{RCode: dns.RcodeServerFailure}, err
		}
		if !p.cancelled || ctx.Err() != nil {
			return p.answer, p.err
		} // the query that asked was cancelled, so this one asks
	}
}

// lookup asks the resolver, or waits for an equal query that asks already.
func (f *Forwarder) lookup(ctx context.Context, q question) (*pinned, error) {
	f.mu.Lock()
	p := f.known[q]
	if p == nil {
		if len(f.known) >= maxPinned {
			f.mu.Unlock()
			return nil, fmt.Errorf("resolve %s: there are answers to more than %d questions already", q.name, maxPinned)
		}
		p = &pinned{done: make(chan struct{})}
		f.known[q] = p
		f.mu.Unlock()
		p.answer, p.err = f.ask(ctx, q)
		p.cancelled = p.err != nil && ctx.Err() != nil
		if p.err != nil || isFailure(p.answer.RCode) { // the next query asks again
			f.mu.Lock()
			delete(f.known, q)
			f.mu.Unlock()
		}
		close(p.done)
		return p, nil
	}
	f.mu.Unlock()
	select {
	case <-p.done:
		return p, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Addrs returns the addresses of a host for a recorder's dialler: the IPv4 addresses,
// or without any the IPv6 addresses. With IPv6First it is the other way round.
func (f *Forwarder) Addrs(ctx context.Context, host string) ([]netip.Addr, error) {
	if addrs, ok := f.local(Canonical(host)); ok {
		return addrs, nil
	}
	var out []netip.Addr
	var errs []error
	order := []uint16{dns.TypeA, dns.TypeAAAA}
	if f.IPv6First != nil && f.IPv6First() {
		slices.Reverse(order)
	}
	for _, qtype := range order {
		a, err := f.Lookup(ctx, Canonical(host), qtype)
		if err == nil && isFailure(a.RCode) {
			err = fmt.Errorf("resolve %s: the resolver %v answers %s", host, f.resolver, dns.RcodeToString[a.RCode])
		}
		if err != nil {
			errs = append(errs, err)
		}
		out = append(out, a.Origins...)
		if len(out) > 0 {
			return out, nil // the second family is queried only if there is none of the first
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return nil, &NoAddressError{host, f.resolver}
}

// NoAddressError says that a name server answered, and that a host has no address.
type NoAddressError struct {
	Host     string
	Resolver netip.AddrPort
}

func (e *NoAddressError) Error() string {
	return fmt.Sprintf("the name server %v knows no address of %s", e.Resolver, e.Host)
}

func (f *Forwarder) ask(ctx context.Context, q question) (Answer, error) {
	if !f.resolver.IsValid() {
		return Answer{RCode: dns.RcodeServerFailure, Source: "upstream"},
			fmt.Errorf("resolve %s: this machine has no name server (%s); name one with --resolver IP:PORT", q.name, ResolvConf)
	}
	ctx, cancel := context.WithTimeout(ctx, upstreamTimeout)
	defer cancel()
	m := new(dns.Msg).SetQuestion(dns.Fqdn(q.name), q.qtype)
	m.SetEdns0(ednsSize, false)
	start := time.Now()
	r, err := f.exchange(ctx, m, "udp", f.waits)
	if err == nil && (r.Rcode == dns.RcodeFormatError || r.Rcode == dns.RcodeNotImplemented || r.Rcode == dns.RcodeBadVers) {
		m.Extra = nil // the resolver does not know EDNS (RFC 6891, 7)
		r, err = f.exchange(ctx, m, "udp", f.waits)
	}
	if err == nil && r.Truncated {
		whole, byTCP := f.exchange(ctx, m, "tcp", []time.Duration{upstreamTimeout})
		if byTCP == nil {
			r = whole
		} else if len(r.Answer) == 0 { // else a resolver without TCP has sent as much as it can
			err = byTCP
		}
	}
	if err != nil {
		return Answer{RCode: dns.RcodeServerFailure, Source: "upstream"}, fmt.Errorf("resolve %s %s at %v: %w", q.name,
			dns.TypeToString[q.qtype], f.resolver, err)
	}
	if isFailure(r.Rcode) {
		r.Answer = nil // it says nothing of the name
	}
	if err := f.take(r.Answer); err != nil {
		return Answer{RCode: dns.RcodeServerFailure, Source: "upstream"}, fmt.Errorf("resolve %s %s at %v: %w", q.name,
			dns.TypeToString[q.qtype], f.resolver, err)
	}
	a := sortAnswer(q, r.Answer)
	a.RCode, a.Source = r.Rcode, "upstream"
	rec := Recorded{
		Name: q.name, Type: dns.TypeToString[q.qtype], RCode: dns.RcodeToString[r.Rcode],
		Elapsed: time.Since(start), Server: f.resolver.String(),
	}
	for _, rr := range r.Answer {
		rec.Records = append(rec.Records, rr.String())
	}
	if f.record != nil && f.first(q, r.Rcode) {
		f.record(rec)
	}
	return a, nil
}

// take takes room for the records of an answer.
func (f *Forwarder) take(records []dns.RR) error {
	if len(records) > maxRecords {
		return fmt.Errorf("its answer has %d records, more than %d", len(records), maxRecords)
	}
	bytes := recordBytes
	for _, rr := range records {
		bytes += len(rr.String()) + recordBytes
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytes > f.room {
		return fmt.Errorf("all answers together have more than %d MiB", maxAnswers>>20)
	}
	f.room -= bytes
	return nil
}

// first reports whether an answer is to be recorded; repeated failures are not.
func (f *Forwarder) first(q question, rcode int) bool {
	if !isFailure(rcode) {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed[q] || len(f.failed) >= maxPinned {
		return false
	}
	f.failed[q] = true
	return true
}

// isFailure reports whether a code says nothing about the name: SERVFAIL, REFUSED and
// every other that is neither an answer nor NXDOMAIN.
func isFailure(rcode int) bool { return rcode != dns.RcodeSuccess && rcode != dns.RcodeNameError }

// exchange sends the query once for each of waits, since packets can be lost. The last one over UDP has no EDNS, because
// some resolvers do not answer queries with it. All are sent from one socket, so that a late answer to an earlier one
// counts too.
func (f *Forwarder) exchange(ctx context.Context, m *dns.Msg, network string, waits []time.Duration) (r *dns.Msg, err error) {
	conn, err := f.dial(ctx, network, f.resolver.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends the read
	co := &dns.Conn{Conn: conn, UDPSize: largestAnswer}
	for i, wait := range waits {
		if network == "udp" && i > 0 && i == len(waits)-1 {
			m = m.Copy()
			m.Extra = nil
		}
		if r, err = once(co, m, wait); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return r, err
}

// once sends a query and waits for its answer.
func once(co *dns.Conn, m *dns.Msg, wait time.Duration) (r *dns.Msg, err error) {
	if err := co.SetDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	if err := co.WriteMsg(m); err != nil {
		return nil, err
	}
	for {
		r, err = co.ReadMsg()
		if r != nil && (r.Id != m.Id || !r.Response || !isAbout(r, m)) {
			continue // of an earlier query of this socket, or an echo, or of another question
		}
		if err != nil && r != nil && r.Truncated { // in the middle of a record
			r.Answer, err = nil, nil
		}
		return r, err
	}
}

// isAbout tells whether an answer is to a query's question (RFC 5452, 9.1). A refusal need not repeat it.
func isAbout(r, m *dns.Msg) bool {
	if len(r.Question) == 0 {
		return true
	}
	got, want := r.Question[0], m.Question[0]
	return got.Qtype == want.Qtype && got.Qclass == want.Qclass && strings.EqualFold(got.Name, want.Name)
}

func address(rr dns.RR) (netip.Addr, bool) {
	var ip net.IP
	switch rr := rr.(type) {
	case *dns.A:
		ip = rr.A
	case *dns.AAAA:
		ip = rr.AAAA
	}
	a, ok := netip.AddrFromSlice(ip)
	if _, is4 := rr.(*dns.A); is4 {
		a = a.Unmap()
	}
	return a, ok
}
