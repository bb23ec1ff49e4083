package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/slowclients"
	"eidetic/netlab/nstest"
	"eidetic/systemd"
)

// Two thousand connections that hold the panel's slots in every way take neither the
// watchdog nor the page from those who may use it.
func TestStrangersCannotSilenceTheWatchdog(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	here, lab := nstest.Here(t), nstest.New(t)
	nstest.Veth(t, here, "up", lab, "lab")
	here.Address(t, "up", "10.9.0.1/24")
	for i := 2; i < 11; i++ {
		lab.Address(t, "lab", fmt.Sprintf("10.9.0.%d/24", i))
	}
	listener, err := net.Listen("tcp", "10.9.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const watchdog = 4 * time.Second
	var pings, ready atomic.Int64
	notifier := systemd.NewNotifier(func(s string) error {
		if strings.HasPrefix(s, "READY=1") {
			ready.Add(1)
		}
		if s == "WATCHDOG=1" {
			pings.Add(1)
		}
		return nil
	}, watchdog, time.Now)
	data, own := t.TempDir(), newToken()
	s := New(Options{Config: DefaultConfig(), Data: data, Token: own, TLS: Certificate(DefaultConfig(), data, slog.New(slog.DiscardHandler)),
		Notifier: notifier, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(10, 9, 0, 10)}}
	page, err := logIn("https://"+listener.Addr().String(), own, func(ctx context.Context, network, to string) (c net.Conn, err error) {
		err = lab.Do(func() error { c, err = dialer.DialContext(ctx, network, to); return err })
		return c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer page.CloseIdleConnections()

	var open sync.Map
	defer slowclients.Close(&open)
	to := netip.MustParseAddrPort(listener.Addr().String())
	var attack sync.WaitGroup
	before := descriptors(t)
	for i := 2; i < 10; i++ { // of eight addresses
		attack.Go(func() {
			err := lab.Do(func() error {
				return slowclients.Open(ctx, netip.AddrFrom4([4]byte{10, 9, 0, byte(i)}), to, 250, &open)
			})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	attacked := make(chan struct{})
	go func() { attack.Wait(); close(attacked) }()
	asked, longest, during := 0, time.Duration(0), pings.Load()
	for over := false; !over || pings.Load() < during+2; asked++ {
		select {
		case <-attacked:
			over = true
		default:
		}
		began := time.Now()
		if err := fetch(page, "https://"+listener.Addr().String()+"/api/v1/runs"); err != nil {
			t.Fatalf("a logged-in page beside the attack: %v", err)
		}
		longest = max(longest, time.Since(began))
		page.CloseIdleConnections() // every other request needs a slot of its own
	}
	kept := 0
	open.Range(func(c, _ any) bool {
		if isOpen(c.(net.Conn)) {
			kept++
		}
		return true
	})
	if kept > 300 {
		t.Errorf("%d of 2000 hostile connections are open, want at most the strangers' slots", kept)
	}
	t.Logf("2000 hostile connections, %d kept, %d descriptors more; %d requests of the page, the longest took %v; %d pings of the watchdog",
		kept, descriptors(t)-before-2000, asked, longest, pings.Load()-during)
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

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(errors.Join(err))
	}
	return len(all)
}
