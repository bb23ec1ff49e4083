package dns

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// HostsFile is the file of names that Linux programs look at before they ask a name
// server (hosts(5)).
const HostsFile = "/etc/hosts"

// maxHosts and maxHostsLine bound what is read of such a file.
const (
	maxHosts     = 100_000
	maxHostsLine = 64 << 10
)

// hostTTL is the time to live of an answer from a hosts file, in seconds.
const hostTTL = 60

// Hosts are addresses by canonical name.
type Hosts map[string][]netip.Addr

// ReadHosts reads a file such as HostsFile. A missing file has no hosts.
func ReadHosts(file string) (Hosts, error) {
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the names of this machine: %w", err)
	}
	defer f.Close()
	hosts, err := parseHosts(f)
	if err != nil {
		return nil, fmt.Errorf("read the names of this machine, %s: %w", file, err)
	}
	return hosts, nil
}

// parseHosts ignores lines without an address, as the C library does.
func parseHosts(r io.Reader) (Hosts, error) {
	hosts, n := Hosts{}, 0
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxHostsLine)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) < 2 {
			continue
		}
		a, err := netip.ParseAddr(words[0])
		if err != nil {
			continue
		}
		for _, w := range words[1:] {
			if n++; n > maxHosts {
				return nil, fmt.Errorf("more than %d names", maxHosts)
			}
			name := Canonical(w)
			hosts[name] = append(hosts[name], a.Unmap().WithZone(""))
		}
	}
	return hosts, lines.Err()
}

// local returns the addresses of a name that no name server is asked for: one of this
// machine's hosts file, or localhost (RFC 6761, 6.3).
func (f *Forwarder) local(name string) (addrs []netip.Addr, known bool) {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, true
	}
	addrs, known = f.Hosts[name]
	return addrs, known
}

// answerLocal answers a query from the hosts file, and records it once.
func (f *Forwarder) answerLocal(q question, addrs []netip.Addr) Answer {
	a := Answer{RCode: dns.RcodeSuccess, Source: "hosts"}
	rec := Recorded{Name: q.name, Type: dns.TypeToString[q.qtype], RCode: "NOERROR", Elapsed: time.Duration(0), Server: HostsFile}
	for _, addr := range addrs {
		if addr.Is4() == (q.qtype == dns.TypeA) && (q.qtype == dns.TypeA || q.qtype == dns.TypeAAAA) {
			a.Origins = append(a.Origins, addr)
			rec.Records = append(rec.Records, fmt.Sprintf("%s\t%d\tIN\t%s\t%v", dns.Fqdn(q.name), hostTTL, rec.Type, addr))
		}
	}
	f.mu.Lock()
	_, again := f.known[q]
	if !again && len(f.known) < maxPinned {
		done := make(chan struct{})
		close(done)
		f.known[q] = &pinned{done: done, answer: a}
	}
	f.mu.Unlock()
	if !again && f.record != nil {
		f.record(rec)
	}
	return a
}
