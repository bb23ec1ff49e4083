package power_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"eidetic/control/power"
	"eidetic/control/power/powertest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	t.Cleanup(cancel)
	return ctx
}

// TestPlugs switches a plug of each kind off and on, and does not believe one whose relay does not move.
func TestPlugs(t *testing.T) {
	for kind, part := range map[string]func(url string) lab.PowerPart{
		powertest.Shelly1: func(url string) lab.PowerPart { return lab.PowerPart{Shelly: url} },
		powertest.Shelly2: func(url string) lab.PowerPart { return lab.PowerPart{Shelly: url} },
		powertest.Tasmota: func(url string) lab.PowerPart {
			return lab.PowerPart{Tasmota: url, Password: lab.NewSecret(powertest.Password)}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			plug := powertest.New(t, kind, nil)
			p := part(plug.URL)
			if field, err := power.Check(p); err != nil {
				t.Fatalf("Check() = %q, %v; want nil", field, err)
			}
			s := power.New(p, netip.Addr{}, power.ThisMachine())
			for _, on := range []bool{false, true} {
				if err := s.Set(within(t), on); err != nil || plug.On() != on {
					t.Fatalf("Set(%t) = %v, and the plug is on: %t", on, err, plug.On())
				}
			}
			if got := plug.Switched(); !slices.Equal(got, []string{"off", "on"}) {
				t.Errorf("the relay was told %q; want off, on", got)
			}
			plug.Stuck = true
			if err := s.Set(within(t), false); err == nil || !strings.Contains(err.Error(), "it is on after it was switched off") {
				t.Errorf("Set() of a relay that is stuck = %v; want an error that says so", err)
			}
			p.Relay = 7
			if err := power.New(p, netip.Addr{}, power.ThisMachine()).Set(within(t), false); err == nil {
				t.Error("Set() of a relay that the plug lacks = nil; want an error")
			}
			if !p.Password.IsZero() {
				p.Password, p.Relay = lab.NewSecret("wrong-secret"), 0
				err := power.New(p, netip.Addr{}, power.ThisMachine()).Set(within(t), false)
				if err == nil || !strings.Contains(err.Error(), "set password") || strings.Contains(err.Error(), "wrong-secret") {
					t.Errorf("Set() with another password = %v; want an error that asks for it and does not tell it", err)
				}
			}
		})
	}
	gone := power.New(lab.PowerPart{Tasmota: "http://127.0.0.1:1", Password: lab.NewSecret("planted-secret")}, netip.Addr{}, power.ThisMachine())
	if err := gone.Set(within(t), true); err == nil || strings.Contains(err.Error(), "planted-secret") {
		t.Errorf("Set() of a plug that is not there = %v; want an error without the password", err)
	}
}

// TestRestartNeverLeavesItOff: neither a plug that is busy nor the end of the run leaves the device without power.
func TestRestartNeverLeavesItOff(t *testing.T) {
	ctx, cancel := context.WithCancel(within(t))
	plug := powertest.New(t, powertest.Shelly2, func(on bool) {
		if !on {
			cancel()
		}
	})
	plug.Busy(1)
	if err := power.New(lab.PowerPart{Shelly: plug.URL}, netip.Addr{}, power.ThisMachine()).Restart(ctx); !errors.Is(err, context.Canceled) || !plug.On() {
		t.Errorf("Restart() = %v, and the power is on: %t; want that it was cancelled, and true", err, plug.On())
	}
}

// TestWakeOnLAN: a magic packet arrives, and nothing can be switched off by one.
func TestWakeOnLAN(t *testing.T) {
	l, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := power.New(lab.PowerPart{WakeOnLAN: "00:11:22:33:44:55"}, netip.Addr{}, power.ThisMachine())
	s.SendTo(l.LocalAddr().(*net.UDPAddr).AddrPort())
	if err := s.Set(within(t), true); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 200)
	n, err := l.Read(b)
	if want := strings.Repeat("\xff", 6) + strings.Repeat("\x00\x11\x22\x33\x44\x55", 16); err != nil || string(b[:n]) != want {
		t.Errorf("the packet is % x, %v; want % x", b[:n], err, want)
	}
	if err := s.Set(within(t), false); err == nil || s.Restarts() {
		t.Errorf("Set(false) = %v, Restarts() = %t; want an error and false", err, s.Restarts())
	}
}

// TestCheck names the field that is wrong.
func TestCheck(t *testing.T) {
	for want, p := range map[string]lab.PowerPart{
		"":             {},
		".shelly":      {Shelly: "192.168.1.20"},
		".tasmota":     {Tasmota: "http://user:pass@plug/"},
		".wake_on_lan": {WakeOnLAN: "00:11"},
		".relay":       {Shelly: "http://plug", Relay: 40},
		".boot_s":      {Shelly: "http://plug", Boot: 1e6},
	} {
		if field, err := power.Check(p); err == nil || field != want {
			t.Errorf("Check(%+v) = %q, %v; want an error of %q", p, field, err, want)
		}
	}
}
