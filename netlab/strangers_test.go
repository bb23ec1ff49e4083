package netlab

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"testing"

	mdns "github.com/miekg/dns"

	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/slowclients"
)

// Strangers hold connections to each listener of a device's port in every slow way, and come back when they are
// dropped; the device is served beside them.
func TestStrangersAtEachListener(t *testing.T) { besideStrangers(t, 300) }

func TestManyStrangersAtEachListener(t *testing.T) {
	testlab.Long(t, "two thousand connections to each of four listeners")
	besideStrangers(t, 2000)
}

// besideStrangers opens so many connections to each listener at once, and as many again.
func besideStrangers(t *testing.T, strangers int) {
	const each, addresses = 25, 8 // connections that a stranger holds, and addresses of strangers
	n, authority := startNetwork(t, nil)
	at := n.Addrs()
	var attack sync.WaitGroup
	var counts []*slowclients.Count
	for _, to := range []netip.AddrPort{at.HTTP, at.HTTPS, at.Proxy, at.DNS} {
		count := &slowclients.Count{}
		counts = append(counts, count)
		for i := range strangers / each {
			from := netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i%addresses)})
			attack.Go(func() {
				slowclients.Return(t.Context(), from, to, count, func() bool { return count.Made.Load() >= int64(2*strangers) })
			})
		}
	}
	over := make(chan struct{})
	go func() { attack.Wait(); close(over) }()
	d := newDevice(t, n, authority, false)
	proxied := http.Client{Timeout: testlab.Hang, Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: at.Proxy.String()}), DisableKeepAlives: true,
	}}
	names := mdns.Client{Net: "tcp", Timeout: testlab.Hang}
	for ended := false; !ended; {
		select {
		case <-over:
			ended = true
		default:
		}
		for _, page := range []string{"http://" + BoxHost + "/red", "https://" + BoxHost + "/red"} {
			if status, _, _ := d.get(t, page); status != http.StatusOK {
				t.Errorf("GET %s beside strangers = %d; want 200", page, status)
			}
		}
		d.CloseIdleConnections() // each request needs a connection
		if r, err := proxied.Get("http://" + BoxHost + "/red"); err != nil {
			t.Errorf("through the proxy beside strangers: %v", err)
		} else {
			r.Body.Close()
		}
		// The strangers' addresses are this machine's, too, so the device's connection can be the oldest of them all: it
		// asks again, as resolvers do.
		m := new(mdns.Msg).SetQuestion(BoxHost+".", mdns.TypeA)
		var r *mdns.Msg
		err := errors.ErrUnsupported
		for tries := 0; err != nil && tries < 5; tries++ {
			r, _, err = names.Exchange(m, at.DNS.String())
		}
		if err != nil || len(r.Answer) != 1 {
			t.Errorf("a name over TCP beside strangers: %v, %v; want an address", r, err)
		}
	}
	for i, count := range counts {
		if count.Made.Load() < int64(strangers) {
			t.Errorf("listener %d: %d connections were made, and %d got no answer; want %d", i, count.Made.Load(), count.Silent.Load(), strangers)
		}
	}
}
