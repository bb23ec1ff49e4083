package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// hostileResolver answers for "many.test." with 3,000 aliases, in 64 KiB that mean megabytes, and for every other name
// with a text of 50 kB.
func hostileResolver(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ready, done := make(chan struct{}), make(chan struct{})
	srv := &dns.Server{Listener: l, NotifyStartedFunc: func() { close(ready) },
		Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
			m := new(dns.Msg).SetReply(r)
			m.Compress = true
			name := r.Question[0].Name
			header := func(rrtype uint16) dns.RR_Header {
				return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: 5}
			}
			if name == "many.test." {
				for range 3000 {
					m.Answer = append(m.Answer, &dns.CNAME{Hdr: header(dns.TypeCNAME), Target: name})
				}
			} else {
				text := &dns.TXT{Hdr: header(dns.TypeTXT)}
				for range 200 {
					text.Txt = append(text.Txt, strings.Repeat("x", 250))
				}
				m.Answer = append(m.Answer, text)
			}
			_ = w.WriteMsg(m)
		})}
	go func() { _ = srv.ActivateAndServe(); close(done) }()
	<-ready
	t.Cleanup(func() { _ = srv.Shutdown(); <-done })
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String()) // as after an answer that was truncated
	}
}

// What the owners of names answer takes a bounded part of the memory, and what does not fit is an error that says so;
// what was answered before stays.
func TestAnswersAreBounded(t *testing.T) {
	kept := 0
	f := NewForwarder(fakeResolver(t), hostileResolver(t), func(r Recorded) { kept += len(strings.Join(r.Records, "")) })
	if f.room != maxAnswers {
		t.Errorf("there is room for %d bytes; want %d", f.room, maxAnswers)
	}
	f.room = 1 << 20
	if _, err := f.Lookup(t.Context(), "many.test", dns.TypeA); err == nil || !strings.Contains(err.Error(), "3000 records") {
		t.Errorf("Lookup() of 3,000 aliases = %v; want an error that counts them", err)
	}
	fit := 0
	var last error
	for i := range 100 {
		if _, last = f.Lookup(t.Context(), fmt.Sprintf("%d.test", i), dns.TypeTXT); last == nil {
			fit++
		}
	}
	if fit < 10 || fit > 20 || kept > 1<<20 || last == nil || !strings.Contains(last.Error(), "MiB") {
		t.Errorf("of 100 texts of 50 kB %d fit into 1 MiB, %d bytes were recorded, and the last is refused with %v; want 10 … 20, and an error that says why",
			fit, kept, last)
	}
	if a, err := f.Lookup(t.Context(), "0.test", dns.TypeTXT); err != nil || len(a.Records) != 1 {
		t.Errorf("Lookup() of what was answered before = %+v, %v; want it again", a, err)
	}
}

// oddResolver has no TCP. It answers each query with the bytes that answer returns, nil with none.
func oddResolver(t *testing.T, answer func(*dns.Msg) []byte) netip.AddrPort {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			m := new(dns.Msg)
			if m.Unpack(b[:n]) != nil || answer == nil {
				continue
			}
			if out := answer(m); out != nil {
				_, _ = pc.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { _ = pc.Close(); <-done })
	return pc.LocalAddr().(*net.UDPAddr).AddrPort()
}

func packed(t *testing.T, m *dns.Msg) []byte {
	b, err := m.Pack()
	if err != nil {
		t.Error(err)
	}
	return b
}

// TestOddResolvers: the resolvers of old routers and of programs, which know no EDNS, send more than it allows, cut an
// answer, or have no TCP.
func TestOddResolvers(t *testing.T) {
	good := func(m *dns.Msg, n int) *dns.Msg {
		a := new(dns.Msg).SetReply(m)
		for i := range n {
			rr, _ := dns.NewRR(fmt.Sprintf("%s 5 IN A 203.0.113.%d", m.Question[0].Name, 1+i%250))
			a.Answer = append(a.Answer, rr)
		}
		return a
	}
	plain := func(m *dns.Msg) bool { return m.IsEdns0() == nil }
	refusing := func(rcode int) func(*dns.Msg) []byte {
		return func(m *dns.Msg) []byte {
			if plain(m) {
				return packed(t, good(m, 2))
			}
			bare := &dns.Msg{MsgHdr: dns.MsgHdr{Id: m.Id, Response: true, Rcode: rcode}} // without the question
			return packed(t, bare)
		}
	}
	for name, c := range map[string]struct {
		answer func(*dns.Msg) []byte
		want   int
	}{
		"FORMERR":     {refusing(dns.RcodeFormatError), 2},
		"NOTIMP":      {refusing(dns.RcodeNotImplemented), 2},
		"large":       {func(m *dns.Msg) []byte { return packed(t, good(m, 150)) }, 150},
		"after noise": {func(m *dns.Msg) []byte { m.Id++; out := packed(t, good(m, 1)); m.Id--; return out }, -1},
		"about another name": {func(m *dns.Msg) []byte {
			a := good(m, 1)
			a.Question[0].Name = "other.test."
			return packed(t, a)
		}, -1},
		"about another type": {func(m *dns.Msg) []byte {
			a := good(m, 1)
			a.Question[0].Qtype = dns.TypeAAAA
			return packed(t, a)
		}, -1},
		"an echo":              {func(m *dns.Msg) []byte { a := good(m, 1); a.Response = false; return packed(t, a) }, -1},
		"in capitals":          {func(m *dns.Msg) []byte { a := good(m, 2); a.Question[0].Name = "WWW.LIVE.TEST."; return packed(t, a) }, 2},
		"without the question": {func(m *dns.Msg) []byte { a := good(m, 2); a.Question = nil; return packed(t, a) }, 2},
		"silent about EDNS": {func(m *dns.Msg) []byte {
			if plain(m) {
				return packed(t, good(m, 3))
			}
			return nil
		}, 3},
		"truncated, UDP alone": {func(m *dns.Msg) []byte { a := good(m, 4); a.Truncated = true; return packed(t, a) }, 4},
		"cut within a record": {func(m *dns.Msg) []byte {
			a := good(m, 4)
			a.Truncated = true
			out := packed(t, a)
			return out[:len(out)-3]
		}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewForwarder(oddResolver(t, c.answer), nil, nil)
			f.waits = []time.Duration{50 * time.Millisecond, 50 * time.Millisecond, time.Second}
			a, err := f.Lookup(t.Context(), "www.live.test", dns.TypeA)
			if c.want < 0 {
				if err == nil {
					t.Errorf("Lookup() = %v; want an error", a.Origins)
				}
				return
			}
			if err != nil || len(a.Origins) != c.want || !slices.Contains(a.Origins, netip.MustParseAddr("203.0.113.1")) {
				t.Errorf("Lookup() = %d addresses, %v; want %d", len(a.Origins), err, c.want)
			}
		})
	}
}
