package dns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"eidetic/internal/base/slots"
	"eidetic/internal/lab"
)

const (
	// ttl of addresses, in seconds: long enough for loading a page, and short for
	// the tester who changes to the next archive.
	ttl = 60
	// negativeTTL of names that do not exist, in seconds.
	negativeTTL = 5
	// maxInFlight bounds the queries that are being answered; more are dropped.
	maxInFlight = 1024
	// ednsSize is the packet size of DNS flag day 2020.
	ednsSize = 1232
)

// tcpLimits bound the connections over TCP, which a device makes for an answer that UDP has no room for.
var tcpLimits = slots.Limits{ // constant
	Strangers: tcpConnections, PerAddress: tcpOfAddress, Local: tcpConnections, PerSecond: tcpPerSecond, AddressPerSecond: tcpAddressPerSecond,
}

const (
	tcpConnections, tcpOfAddress      = 128, 32
	tcpPerSecond, tcpAddressPerSecond = 200, 50
)

// Config of a Server. Addr, Pool and Clock are required.
type Config struct {
	// Addr is where UDP and TCP listen: "0.0.0.0:53". With port 0 the server
	// chooses a port that is free for both.
	Addr string
	// Pool gives the synthetic addresses.
	Pool *Pool
	// Box maps names that the box answers itself to its addresses. They take
	// precedence over every Source; the Source takes precedence over Fallback, where
	// "*.example.com" stands for all names below that one.
	Box, Fallback map[string][]netip.Addr
	// BoxLabel is a first label of names that are the box's own, too: they have the addresses of BoxName.
	BoxLabel, BoxName string
	// HTTP3 reports whether a host is served over HTTP/3, so that its HTTPS
	// records may say so; nil means that no host is.
	HTTP3 func(host string) bool
	// Delay returns how long the server waits before it answers, given the
	// bytes of the query and of the answer; nil means not at all.
	Delay func(up, down int) time.Duration
	// OnQuery is called for every query that was answered. It must not block.
	OnQuery func(Query)
	// Control, when set, prepares both sockets before they are bound.
	Control func(network, address string, c syscall.RawConn) error
	Clock   lab.Clock
	Log     *slog.Logger
}

// Server answers a device.
type Server struct {
	c        Config
	source   atomic.Pointer[Source]
	udp      syscall.RawConn // the UDP socket
	servers  []*dns.Server
	addr     netip.AddrPort
	inFlight chan struct{}
	dropped  atomic.Int64
	ctx      context.Context // ends the waits of the answers in flight
	cancel   context.CancelFunc
	done     sync.WaitGroup
	closing  sync.Once
}

// Listen starts a Server. Until Use it knows only the box's own names.
func Listen(c Config) (*Server, error) {
	udp, tcp, err := listen(c.Addr, net.ListenConfig{Control: c.Control})
	if err != nil {
		return nil, fmt.Errorf("start the name server: %w", err)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{c: c, addr: tcp.Addr().(*net.TCPAddr).AddrPort(), inFlight: make(chan struct{}, maxInFlight)}
	if s.udp, err = udp.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the name server: %w", err), udp.Close(), tcp.Close())
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, d := range []*dns.Server{{PacketConn: udp}, {Listener: slots.New(tcp, tcpLimits)}} {
		d.Handler = s
		d.UDPSize = ednsSize
		d.ReadTimeout, d.WriteTimeout = 5*time.Second, 5*time.Second
		d.IdleTimeout = func() time.Duration { return 10 * time.Second }
		d.MaxTCPQueries = 1000
		started := make(chan struct{})
		d.NotifyStartedFunc = func() { close(started) }
		s.servers = append(s.servers, d)
		s.done.Go(func() {
			if err := d.ActivateAndServe(); err != nil && s.ctx.Err() == nil {
				c.Log.Error("the name server stopped", "error", err)
			}
		})
		<-started
	}
	return s, nil
}

// listen binds the same port for UDP and TCP.
func listen(addr string, lc net.ListenConfig) (*net.UDPConn, net.Listener, error) {
	ctx := context.Background() // binding does not block
	lc.SetMultipathTCP(false)   // its sockets ask no filter of package slots
	var errs error
	for range 10 { // a port that is free for TCP can be taken for UDP
		tcp, err := lc.Listen(ctx, "tcp", addr)
		if err != nil {
			return nil, nil, err
		}
		udp, err := lc.ListenPacket(ctx, "udp", tcp.Addr().String())
		if err == nil {
			return udp.(*net.UDPConn), tcp, nil
		}
		_ = tcp.Close()
		errs = err
		if !strings.HasSuffix(addr, ":0") {
			break
		}
	}
	return nil, nil, errs
}

// Addr returns the address that both protocols listen on.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Dropped returns how many queries got no answer, because too many were in flight
// or because the UDP socket had no room.
func (s *Server) Dropped() int64 { return s.dropped.Load() }

// Use makes the server answer from src; nil leaves only the box's own names.
func (s *Server) Use(src Source) {
	if src == nil {
		s.source.Store(nil)
		return
	}
	s.source.Store(&src)
}

// Close stops listening and waits for the answers in flight.
func (s *Server) Close() (err error) {
	s.closing.Do(func() {
		s.cancel()
		for _, d := range s.servers {
			err = errors.Join(err, d.Shutdown())
		}
		s.done.Wait()
	})
	return err
}

// Canonical returns a name in the form that tables and logs use: lower case, no
// final dot.
func Canonical(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// ServeDNS implements dns.Handler.
func (s *Server) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	start := s.c.Clock()
	select {
	case s.inFlight <- struct{}{}:
		defer func() { <-s.inFlight }()
	default:
		s.dropped.Add(1)
		return
	}
	m := new(dns.Msg)
	if rcode := asks(r); rcode != dns.RcodeSuccess {
		m.SetRcode(r, rcode)
		extend(m, r)
		s.write(w, m)
		return
	}
	q := Query{
		Time: start, Name: Canonical(r.Question[0].Name), Type: dns.Type(r.Question[0].Qtype).String(),
		Transport: w.LocalAddr().Network(),
	}
	q.Client, _ = netip.ParseAddrPort(w.RemoteAddr().String())
	q.Client = netip.AddrPortFrom(q.Client.Addr().Unmap(), q.Client.Port())
	m.SetReply(r)
	m.Authoritative, m.RecursionAvailable = false, true
	s.answer(m, &q)
	q.RCode = dns.RcodeToString[m.Rcode]

	size := extend(m, r)
	if q.Transport == "udp" {
		m.Truncate(size)
	}
	if s.c.Delay != nil {
		s.wait(s.c.Delay(r.Len(), m.Len()))
	}
	s.write(w, m)
	if s.c.OnQuery != nil {
		q.Elapsed = s.c.Clock().Sub(start)
		s.c.OnQuery(q)
	}
}

// asks returns the code with which a message is refused that is no query for a name, or RcodeSuccess.
func asks(r *dns.Msg) (rcode int) {
	switch {
	case r.Opcode != dns.OpcodeQuery:
		return dns.RcodeNotImplemented
	case len(r.Question) != 1:
		return dns.RcodeFormatError
	case r.Question[0].Qclass != dns.ClassINET && r.Question[0].Qclass != dns.ClassANY: // as version.bind
		return dns.RcodeRefused
	}
	return dns.RcodeSuccess
}

// extend answers the extension of a query (RFC 6891), and returns how large the answer over UDP may be.
func extend(m, r *dns.Msg) (size int) {
	opt := r.IsEdns0()
	if opt == nil {
		return dns.MinMsgSize
	}
	m.SetEdns0(ednsSize, opt.Do())
	if opt.Version() != 0 {
		m.Answer, m.Ns, m.Rcode = nil, nil, dns.RcodeBadVers
	}
	return max(dns.MinMsgSize, int(min(opt.UDPSize(), ednsSize)))
}

// write sends an answer. An answer for which the UDP socket has no room is
// dropped, and the device asks again: answers to addresses that nobody on the cable
// has stay in the socket's buffer for seconds, and after a flood of forged queries
// the answers to the device would wait behind them.
func (s *Server) write(w dns.ResponseWriter, m *dns.Msg) {
	packed, err := m.Pack()
	if err != nil {
		s.c.Log.Error("an answer cannot be packed", "question", m.Question, "error", err)
		return
	}
	if w.LocalAddr().Network() == "udp" && !s.hasRoom() {
		s.dropped.Add(1)
		return
	}
	_, _ = w.Write(packed) // fails when the device has gone
}

// hasRoom reports whether the UDP socket takes an answer without blocking.
func (s *Server) hasRoom() (room bool) {
	if s.udp == nil { // of a server that does not listen
		return true
	}
	err := s.udp.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(fds, 0)
		room = n > 0 || err != nil // on an error (EINTR) the write below decides
	})
	return room || err != nil
}

// wait returns after d, or when the server is closed.
func (s *Server) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// answer fills m and q.
func (s *Server) answer(m *dns.Msg, q *Query) {
	qtype := m.Question[0].Qtype
	negative := func(rcode int, source string) {
		m.Rcode, q.Source = rcode, source
		m.Ns = append(m.Ns, &dns.SOA{
			Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: negativeTTL},
			Ns:  "box.test.", Mbox: "box.test.", Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: negativeTTL,
		})
	}
	if qtype == dns.TypeANY {
		qtype = dns.TypeA // one of the sets is enough (RFC 8482, 4.1)
	}
	if rcode, addrs, known := special(q.Name, qtype); known {
		for _, a := range addrs {
			q.Answers = append(q.Answers, a)
			m.Answer = append(m.Answer, record(m.Question[0].Name, a))
		}
		if q.Source = "policy"; len(addrs) == 0 {
			negative(rcode, "policy")
		}
		return
	}
	if addrs, ok := s.own(q.Name); ok {
		s.box(m, q, qtype, addrs, negative)
		return
	}
	if qtype == dns.TypePTR {
		s.reverse(m, q, negative)
		return
	}
	found, err := s.lookup(q.Name, qtype)
	if err != nil {
		m.Rcode, q.Source, q.Error = dns.RcodeServerFailure, found.Source, err.Error()
		return
	}
	if addrs, ok := s.fallback(q.Name); ok && (found.RCode != dns.RcodeSuccess || found.Source == Parent) {
		s.box(m, q, qtype, addrs, negative)
		return
	}
	if isFailure(found.RCode) {
		m.Rcode, q.Source = found.RCode, found.Source
		return
	}
	if isRoot := q.Name == "" || q.Name == "."; found.Source == Unknown && (isRoot || s.isParent(q.Name)) {
		negative(dns.RcodeSuccess, Parent)
		return
	}
	if qtype == dns.TypeAAAA && !s.c.Pool.IPv6() && found.RCode == dns.RcodeSuccess {
		q.Origins = found.Origins
		negative(dns.RcodeSuccess, "policy")
		return
	}
	if qtype == dns.TypeA && found.RCode == dns.RcodeSuccess && len(found.Origins) == 0 && !s.c.Pool.IPv6() {
		// The device's network has only IPv4, so a host that has only IPv6 addresses
		// gets synthetic IPv4 addresses.
		if six, err := s.lookup(q.Name, dns.TypeAAAA); err == nil && len(six.Origins) > 0 {
			found.Origins, found.Chain = six.Origins, six.Chain
		}
	}
	q.Source, q.Origins = found.Source, found.Origins
	for _, rr := range found.Chain {
		m.Answer = append(m.Answer, withTTL(dns.Copy(rr)))
	}
	owner := m.Question[0].Name
	for _, rr := range found.Chain { // the addresses belong to the last alias
		if c, ok := rr.(*dns.CNAME); ok {
			owner = c.Target
		}
	}
	for _, rr := range found.Records {
		if rr = reachable(rr, s.c.HTTP3 != nil && s.c.HTTP3(serviceHost(q.Name))); rr != nil && s.leads(rr) {
			m.Answer = append(m.Answer, withTTL(rr))
		}
	}
	for _, origin := range found.Origins {
		a, err := s.c.Pool.Synthetic(origin)
		if err != nil {
			m.Answer, m.Rcode, q.Error = nil, dns.RcodeServerFailure, err.Error()
			return
		}
		s.c.Pool.name(a, q.Name)
		if !slices.Contains(q.Answers, a) {
			q.Answers = append(q.Answers, a)
			m.Answer = append(m.Answer, record(owner, a))
		}
	}
	if len(m.Answer) == len(found.Chain) {
		negative(found.RCode, found.Source)
	}
}

// isParent tells a name under which there is one of the box or a fallback, see Parent.
func (s *Server) isParent(name string) bool {
	under := "." + name
	for _, names := range []map[string][]netip.Addr{s.c.Box, s.c.Fallback} {
		for one := range names {
			if strings.HasSuffix(one, under) {
				return true
			}
		}
	}
	return false
}

// own returns the addresses of a name of the box.
func (s *Server) own(name string) ([]netip.Addr, bool) {
	if label, _, more := strings.Cut(name, "."); more && s.c.BoxLabel != "" && label == s.c.BoxLabel {
		name = s.c.BoxName
	}
	addrs, ok := s.c.Box[name]
	return addrs, ok
}

// lookup asks the source, for the types that sources know.
func (s *Server) lookup(name string, qtype uint16) (Answer, error) {
	src := s.source.Load()
	if src == nil {
		return Answer{RCode: dns.RcodeNameError, Source: Unknown}, nil
	}
	switch qtype {
	case dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS, dns.TypeSVCB, dns.TypeCNAME, dns.TypeTXT, dns.TypeSRV, dns.TypePTR:
		return (*src).Lookup(s.ctx, name, qtype)
	}
	// For other types (MX, zone transfers) a device only learns whether the name
	// exists, if that is known.
	if _, forwards := (*src).(*Forwarder); forwards {
		return Answer{Source: "policy"}, nil
	}
	a, err := (*src).Lookup(s.ctx, name, dns.TypeA)
	return Answer{RCode: a.RCode, Source: a.Source}, err
}

// reverse answers a PTR query for a synthetic address with the recorded pointers of
// the origin's address.
func (s *Server) reverse(m *dns.Msg, q *Query, negative func(int, string)) {
	addr, ok := reversed(q.Name)
	if !ok {
		negative(dns.RcodeNameError, "policy")
		return
	}
	pointer := func(name string) dns.RR {
		return &dns.PTR{
			Hdr: dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: ttl},
			Ptr: dns.Fqdn(name),
		}
	}
	for name, box := range s.c.Box {
		if slices.Contains(box, addr) {
			q.Source = "box"
			m.Answer = append(m.Answer, pointer(name))
			return
		}
	}
	origin, ok := s.c.Pool.Origin(addr)
	if !ok { // no synthetic address
		negative(dns.RcodeNameError, "policy")
		return
	}
	arpa, err := dns.ReverseAddr(origin.String())
	var found Answer
	if err == nil {
		found, err = s.lookup(Canonical(arpa), dns.TypePTR)
	}
	if err != nil {
		m.Rcode, q.Source, q.Error = dns.RcodeServerFailure, found.Source, err.Error()
		return
	}
	q.Source, q.Origins = found.Source, []netip.Addr{origin}
	if isFailure(found.RCode) {
		m.Rcode = found.RCode
		return
	}
	for _, rr := range found.Records {
		if p, ok := rr.(*dns.PTR); ok {
			m.Answer = append(m.Answer, pointer(p.Ptr))
		}
	}
	if len(m.Answer) == 0 {
		negative(found.RCode, found.Source)
	}
}

func withTTL(rr dns.RR) dns.RR {
	rr.Header().Ttl = ttl
	return rr
}

// box answers with those of the box's addresses that have the queried type.
func (s *Server) box(m *dns.Msg, q *Query, want uint16, addrs []netip.Addr, negative func(int, string)) {
	for _, a := range addrs {
		if a.Is4() && want == dns.TypeA || a.Is6() && want == dns.TypeAAAA {
			q.Answers = append(q.Answers, a)
			m.Answer = append(m.Answer, record(m.Question[0].Name, a))
		}
	}
	if q.Source = "box"; len(q.Answers) == 0 {
		negative(dns.RcodeSuccess, "box")
	}
}

func record(name string, a netip.Addr) dns.RR {
	if a.Is4() {
		return &dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}, A: a.AsSlice()}
	}
	return &dns.AAAA{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeAAAA, Class: dns.ClassINET, Ttl: ttl}, AAAA: a.AsSlice()}
}
