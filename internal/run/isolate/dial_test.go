package isolate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// dials connects both ends in one process, as Run connects two processes.
func dials(t *testing.T, dial Dial) *Dialer {
	t.Helper()
	outside, inside, err := DialSockets()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ServeDials(ctx, outside, dial); close(served) }()
	d, err := NewDialer(inside)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Close()
		cancel()
		<-served
	})
	return d
}

// The inside reaches an echo server through many concurrent connections made outside, and
// each answer goes to its own request.
func TestDialsFromOutside(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	d := dials(t, func(ctx context.Context, network, host, address string) (net.Conn, error) {
		if host != "shop.example" {
			return nil, fmt.Errorf("the host is %q", host)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	})
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			c, err := d.Dial(t.Context(), "tcp", "shop.example", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			text := strings.Repeat(string(rune('a'+n%26)), 100+n)
			if _, err := io.WriteString(c, text); err != nil {
				t.Error(err)
			}
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Error(err)
			}
			if got, err := io.ReadAll(c); err != nil || string(got) != text {
				t.Errorf("connection %d: %q, %v", n, got, err)
			}
		})
	}
	all.Wait()
	if _, err := d.Dial(t.Context(), "unix", "shop.example", "/run/x"); err == nil || !strings.Contains(err.Error(), "not for the inside") {
		t.Errorf("a Unix socket: %v", err)
	}
	if _, err := d.Dial(t.Context(), "tcp", "shop.example", strings.Repeat("x", maxDial)); err == nil {
		t.Error("Dial() accepted an address that is too long")
	}
	// After Close existing connections stay, and there are no new ones.
	old, err := d.Dial(t.Context(), "tcp", "shop.example", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	d.Close()
	if _, err := d.Dial(t.Context(), "tcp", "shop.example", l.Addr().String()); err == nil {
		t.Error("a connection was made after Close")
	}
	if _, err := old.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}

func TestDialsThatFail(t *testing.T) {
	long := errors.New(strings.Repeat("nobody there ", 1000))
	started := make(chan struct{})
	d := dials(t, func(ctx context.Context, _, _, address string) (net.Conn, error) {
		switch address {
		case "long":
			return nil, long
		case "pipe": // not a kernel socket
			a, b := net.Pipe()
			b.Close()
			return a, nil
		}
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if _, err := d.Dial(t.Context(), "tcp", "shop.example", "long"); err == nil || !strings.Contains(err.Error(), "nobody there") {
		t.Errorf("error %v", err)
	}
	if _, err := d.Dial(t.Context(), "tcp", "shop.example", "pipe"); err == nil || !strings.Contains(err.Error(), "cannot be passed on") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	go func() { <-started; cancel() }()
	if _, err := d.Dial(ctx, "tcp", "shop.example", "never"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

// Dial returns if its context ends or the Dialer is closed while its answer is being
// delivered.
func TestDialsThatAreGivenUpAsTheirAnswerComes(t *testing.T) {
	for range 300 {
		ctx, giveUp := context.WithCancel(t.Context())
		d := dials(t, func(context.Context, string, string, string) (net.Conn, error) {
			return nil, errors.New("nobody there")
		})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 4 {
					if _, err := d.Dial(ctx, "tcp", "shop.example", "192.0.2.1:1"); err == nil {
						t.Error("Dial() succeeded; want an error")
					}
				}
			})
		}
		giveUp()
		d.Close()
		all.Wait()
	}
}
