package boottest

import (
	"strings"
	"testing"
	"time"

	"eidetic/image/fat"
)

// What was written and synced before the power went is there after; a
// configuration put on the EFI partition is taken over; a hung system is reset
// by the hardware's watchdog.
func TestPower(t *testing.T) {
	b := StartBox(t, BoxOptions{})
	token := b.Run(t, "cat /etc/appliance/token")
	b.Run(t, "echo whole > /var/lib/appliance/kept && sync /var/lib/appliance/kept")
	b.Run(t, "(yes partial > /var/lib/appliance/torn &) ; sleep 0.3")
	if err := b.CutPower(); err != nil {
		t.Fatal(err)
	}
	const config = "box:\n  hostname: lab7\n"
	if err := b.ESP(func(v *fat.Volume) error {
		return v.Create("appliance.yaml", int64(len(config)), strings.NewReader(config), time.Now())
	}); err != nil {
		t.Fatal(err)
	}
	b.On(t)
	if name := b.Run(t, "hostname"); name != "lab7" {
		t.Errorf("host name %q, configured on the EFI partition: lab7", name)
	}
	if out := b.Run(t, "cat /var/lib/appliance/kept; cat /etc/appliance/token"); out != "whole\n"+token {
		t.Errorf("after the power cut: %q, want the file and the token as before", out)
	}
	// systemd's crash handler freezes process 1: nobody feeds the watchdog.
	hung := time.Now()
	b.Restarts(t, func() { b.Run(t, "kill -SEGV 1") })
	t.Logf("healthy again %.1f s after the system hung", time.Since(hung).Seconds())
}
