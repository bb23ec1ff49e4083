package dns

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

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
