package service

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/base/slots"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/slowclients"
	"eidetic/internal/web/panel"
	"eidetic/netlab/nstest"
	"eidetic/systemd"
)

// watchdog is the period of the service's watchdog.
const watchdog = 4 * time.Second

// calm is between the connections of a page: fewer than the address of somebody who is logged in may make.
const calm = 25 * time.Millisecond

// besieged is a service in a namespace whose neighbour, lab, has the addresses 10.9.0.2 to 10.9.0.10.
type besieged struct {
	lab       *nstest.Namespace
	base, own string // the panel's URL and token
	at        netip.AddrPort
	pings     atomic.Int64 // of the watchdog
}

func besiege(t *testing.T) *besieged {
	t.Helper()
	here, lab := nstest.Here(t), nstest.New(t)
	nstest.Veth(t, here, "up", lab, "lab")
	here.Address(t, "up", "10.9.0.1/24")
	for i := 2; i < 11; i++ {
		lab.Address(t, "lab", fmt.Sprintf("10.9.0.%d/24", i))
	}
	listener, err := panel.Listen(t.Context(), "10.9.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	v := &besieged{lab: lab, base: "https://" + listener.Addr().String(), at: netip.MustParseAddrPort(listener.Addr().String())}
	notifier := systemd.NewNotifier(func(s string) error {
		if s == "WATCHDOG=1" {
			v.pings.Add(1)
		}
		return nil
	}, watchdog, time.Now)
	own := newToken()
	v.own = own.Reveal()
	data := t.TempDir()
	s := New(Options{Config: DefaultConfig(), Data: data, Token: own, TLS: Certificate(DefaultConfig(), data, slog.New(slog.DiscardHandler)),
		Notifier: notifier, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return v
}

// page is a client of 10.9.0.10 that is logged in.
func (v *besieged) page(t *testing.T) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(10, 9, 0, 10)}}
	page, err := logIn(v.base, v.own, func(ctx context.Context, network, to string) (c net.Conn, err error) {
		err = v.lab.Do(func() error { c, err = dialer.DialContext(ctx, network, to); return err })
		return c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(page.CloseIdleConnections)
	return page
}

// Connections that hold the panel's slots in every way take neither the
// watchdog nor the page from those who may use it.
func TestStrangersCannotSilenceTheWatchdog(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	v := besiege(t)
	page := v.page(t)
	var open sync.Map
	defer slowclients.Close(&open)
	var attack sync.WaitGroup
	for i := 2; i < 10; i++ { // of eight addresses
		attack.Go(func() {
			err := v.lab.Do(func() error {
				return slowclients.Open(t.Context(), netip.AddrFrom4([4]byte{10, 9, 0, byte(i)}), v.at, 250, &open)
			})
			if err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		})
	}
	attacked := make(chan struct{})
	go func() { attack.Wait(); close(attacked) }()
	asked, longest, during := 0, time.Duration(0), v.pings.Load()
	often := time.NewTicker(calm)
	defer often.Stop()
	for over := false; !over || v.pings.Load() < during+2; asked++ {
		select {
		case <-attacked:
			over, attacked = true, nil
		case <-often.C:
		}
		began := time.Now()
		if err := fetch(page, v.base+"/api/v1/runs"); err != nil {
			t.Fatalf("a logged-in page beside the attack: %v", err)
		}
		longest = max(longest, time.Since(began))
		page.CloseIdleConnections() // every other request needs a slot of its own
	}
	made, kept := 0, 0
	open.Range(func(c, _ any) bool {
		made++
		if isOpen(c.(net.Conn)) {
			kept++
		}
		return true
	})
	if kept > 300 {
		t.Errorf("%d of %d hostile connections are open, want at most the strangers' slots", kept, made)
	}
	t.Logf("%d hostile connections, %d kept; %d requests of the page, the longest took %v; %d pings of the watchdog",
		made, kept, asked, longest, v.pings.Load()-during)
}

// Strangers who come back whenever they are dropped are kept out by the kernel, before they cost the service anything;
// whoever is logged in, or comes from another address, is served.
func TestStrangersWhoComeBack(t *testing.T) {
	addresses := testlab.Repeat(2, 8)
	if !nstest.Inside(t) {
		return
	}
	v := besiege(t)
	page := v.page(t)
	var count slowclients.Count
	limits := slots.DefaultLimits()
	// Twice PerAddress may come at once; the kernel completes more while a busy machine keeps the program from
	// accepting.
	most := int64(addresses * 16 * limits.PerAddress)
	var attack sync.WaitGroup
	for i := range addresses {
		for range 8 {
			attack.Go(func() {
				_ = v.lab.Do(func() error {
					slowclients.Return(t.Context(), netip.AddrFrom4([4]byte{10, 9, 0, byte(2 + i)}), v.at, &count, func() bool {
						return count.Made.Load() > most || count.Silent.Load() > int64(20*addresses)
					})
					return nil
				})
			})
		}
	}
	over := make(chan struct{})
	go func() { attack.Wait(); close(over) }()
	often := time.NewTicker(calm)
	defer often.Stop()
	for during, ended := v.pings.Load(), false; !ended || v.pings.Load() < during+1; {
		select {
		case <-over:
			ended, over = true, nil
		case <-often.C:
		}
		if err := fetch(page, v.base+"/api/v1/runs"); err != nil {
			t.Fatalf("a logged-in page beside strangers who come back: %v", err)
		}
		page.CloseIdleConnections()
	}
	if made := count.Made.Load(); made > most {
		t.Errorf("strangers of %d addresses made %d connections; want them kept out after %d of each address",
			addresses, made, 2*limits.PerAddress)
	}
	t.Logf("%d connections of strangers, and %d that got no answer", count.Made.Load(), count.Silent.Load())
}

// logIn returns a client that is logged in.
func logIn(base, token string, dial func(ctx context.Context, network, to string) (net.Conn, error)) (*http.Client, error) {
	jar := &oneCookie{}
	c := &http.Client{Timeout: testlab.Hang, Transport: &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	answer, err := c.Post(base+"/api/v1/session", "text/plain", strings.NewReader(token))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if len(answer.Cookies()) != 1 {
		return nil, fmt.Errorf("log-in: %s", answer.Status)
	}
	jar.cookie = answer.Cookies()[0]
	jar.next = c.Transport
	c.Transport = jar
	return c, nil
}

// oneCookie sends a cookie with every request.
type oneCookie struct {
	cookie *http.Cookie
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (j *oneCookie) RoundTrip(r *http.Request) (*http.Response, error) {
	r.AddCookie(j.cookie)
	return j.next.RoundTrip(r)
}

// CloseIdleConnections is for http.Client.
func (j *oneCookie) CloseIdleConnections() { j.next.(*http.Transport).CloseIdleConnections() }

func fetch(c *http.Client, url string) error {
	answer, err := c.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s, %w", answer.Status, err)
	}
	return nil
}

// isOpen says whether the other side has not closed a connection.
func isOpen(c net.Conn) bool {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Control(func(fd uintptr) {
		info, err := getTCPState(int(fd))
		open = err == nil && info == tcpEstablished
	})
	return err == nil && open
}

const tcpEstablished = 1 // of include/net/tcp_states.h

// getTCPState reads the state of a connection.
func getTCPState(fd int) (int, error) {
	v, err := syscall.GetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_INFO)
	return v & 0xff, err // tcpi_state is the first byte
}
