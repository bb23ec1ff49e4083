package dns

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"
	"pgregory.net/rapid"

	"eidetic/internal/lab"
	"eidetic/internal/testlab"
)

// exchange asks with these bytes and returns the answer's.
func exchange(t interface{ Fatal(...any) }, c net.Conn, question []byte) []byte {
	if _, err := c.Write(question); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(testlab.Hang)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, dns.MaxMsgSize)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// wide is table() with a name of which the answer is too long for a packet.
func wide() *Table {
	t := table()
	for i := range 120 {
		t.AddHost("wide.shop.test", netip.AddrFrom4([4]byte{203, 0, 114, byte(i)}))
	}
	return t
}

// question is any that a device might ask, in any spelling.
func anyQuestion(r *rapid.T) *dns.Msg {
	name := rapid.SampledFrom([]string{
		"www.shop.test", "cdn.shop.test", "six.shop.test", "none.shop.test", "gone.shop.test", "alias.shop.test", "api.shop.test",
		"wide.shop.test", "box.test", "captive.apple.com", "use-application-dns.net", "unknown.test", "1.77.168.192.in-addr.arpa",
	}).Draw(r, "name")
	b := []byte(name)
	for i, up := range rapid.SliceOfN(rapid.Bool(), len(b), len(b)).Draw(r, "upper") {
		if up {
			b[i] = strings.ToUpper(name)[i]
		}
	}
	m := new(dns.Msg).SetQuestion(dns.Fqdn(string(b)), rapid.SampledFrom([]uint16{
		dns.TypeA, dns.TypeA, dns.TypeA, dns.TypeAAAA, dns.TypeAAAA, dns.TypeHTTPS, dns.TypePTR, dns.TypeMX,
	}).Draw(r, "type"))
	m.Id = rapid.Uint16().Draw(r, "id")
	m.RecursionDesired, m.CheckingDisabled = rapid.Bool().Draw(r, "rd"), rapid.Bool().Draw(r, "cd")
	m.AuthenticatedData, m.Zero = rapid.Bool().Draw(r, "ad"), rapid.Bool().Draw(r, "z")
	if rapid.Bool().Draw(r, "edns") {
		m.SetEdns0(rapid.SampledFrom([]uint16{0, 512, 600, 1232, 4096}).Draw(r, "size"), rapid.Bool().Draw(r, "do"))
		opt := m.IsEdns0()
		if rapid.IntRange(0, 9).Draw(r, "version") == 0 {
			opt.SetVersion(1)
		}
		if rapid.Bool().Draw(r, "cookie") {
			opt.Option = append(opt.Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "24a5ac1223344556"})
		}
	}
	return m
}

func TestKeptAnswersAreTheOthers(t *testing.T) {
	for _, prefix6 := range []netip.Prefix{v6, {}} {
		logs := make(chan Query, 4)
		s := start(t, prefix6, func(c *Config) { c.OnQuery = func(q Query) { logs <- q } })
		c := dial(t, s.Addr().String())
		fast := 0
		rapid.Check(t, func(r *rapid.T) {
			s.Use(wide()) // nothing is kept
			q := anyQuestion(r)
			packed, err := q.Pack()
			if err != nil {
				r.Fatal(err)
			}
			first := exchange(r, c, packed)
			slow := <-logs
			if s.kept.Load().of(packed[idSize:]) != nil {
				fast++
			}
			packed[0] ^= 0x55 // the ID
			again := exchange(r, c, packed)
			first[0] ^= 0x55
			if !bytes.Equal(first, again) {
				r.Fatalf("%v was answered with\n%x, then with\n%x", q, first, again)
			}
			if d := cmp.Diff(slow, <-logs, cmpopts.IgnoreFields(Query{}, "Time", "Elapsed"), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})); d != "" {
				r.Fatalf("%v was logged otherwise the second time (-first +second):\n%s", q, d)
			}
		})
		if fast == 0 {
			t.Error("no answer was kept")
		}
	}
}

func TestAnotherSourceForgetsAnswers(t *testing.T) {
	s := start(t, netip.Prefix{}, nil)
	for i, want := range []int{dns.RcodeSuccess, dns.RcodeNameError} {
		s.Use([]Source{table(), NewTable()}[i])
		for range 2 {
			if r := s.ask(t, "udp", "api.shop.test", dns.TypeA); r.Rcode != want {
				t.Errorf("from source %d the answer is %s, want %s", i, dns.RcodeToString[r.Rcode], dns.RcodeToString[want])
			}
		}
	}
}

func TestKeptAnswersAreBounded(t *testing.T) {
	k := newKept(NewTable())
	for i := range 3 * maxKept {
		m := new(dns.Msg).SetQuestion("www.shop.test.", dns.TypeA)
		if i%2 == 0 {
			m.Rcode = dns.RcodeNameError
		}
		k.keep(fmt.Sprint(i), &keptAnswer{query: Query{RCode: dns.RcodeToString[m.Rcode]}}, m)
	}
	negatives := 0
	for _, a := range k.answers {
		if a.query.RCode != "NOERROR" {
			negatives++
		}
	}
	if len(k.answers) != maxKept || negatives != k.negatives || negatives > maxKeptNegative {
		t.Errorf("%d answers are kept, %d of them negative, counted as %d", len(k.answers), negatives, k.negatives)
	}
}

func TestKeptAnswersAreDelayed(t *testing.T) {
	const want = 60 * time.Millisecond
	var sizes atomic.Int64
	s := start(t, netip.Prefix{}, func(c *Config) {
		c.Delay = func(up, down int) time.Duration { sizes.Add(int64(up<<16 + down)); return want }
	})
	s.Use(table())
	before := int64(0)
	for i := range 3 {
		begin := time.Now()
		s.ask(t, "udp", "api.shop.test", dns.TypeA)
		if d := time.Since(begin); d < want {
			t.Errorf("answer %d took %v, want at least %v", i, d, want)
		}
		total := sizes.Load()
		if i > 0 && total != before/int64(i)*int64(i+1) {
			t.Errorf("answer %d counted other bytes than those before", i)
		}
		before = total
	}
}

// TestAnswersComeFromTheAddressAsked has clients that take answers from it
// alone, of a server that listens on all addresses.
func TestAnswersComeFromTheAddressAsked(t *testing.T) {
	pool, err := NewPool(v4, netip.Prefix{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen(Config{Addr: "0.0.0.0:0", Pool: pool, Clock: lab.Monotonic})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Use(table())
	packed, err := new(dns.Msg).SetQuestion("api.shop.test.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, ip := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.1"} {
		c := dial(t, netip.AddrPortFrom(netip.MustParseAddr(ip), s.Addr().Port()).String())
		for range 3 {
			if got := exchange(t, c, packed); !bytes.Equal(got[:idSize], packed[:idSize]) {
				t.Errorf("%s answers %x", ip, got)
			}
		}
	}
}
