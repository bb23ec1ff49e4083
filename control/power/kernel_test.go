package power_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"eidetic/control/power"
	"eidetic/control/power/powertest"
	"eidetic/internal/lab"
)

// TestHubs switches ports of hubs of each kind off and on, both halves of one of USB 3, and refuses what cannot be
// switched alone.
func TestHubs(t *testing.T) {
	k := powertest.NewKernel(t)
	var switched []int
	k.AddHub("usb1", powertest.Hub2, nil)
	k.AddHub("1-1", powertest.Hub2, func(port int, on bool) { switched = append(switched, port) })
	k.AddHub("2-1", powertest.Hub3, nil)
	k.AddHub("1-2", powertest.Ganged, nil)
	k.Pair("1-1", "2-1")
	for _, tt := range []struct {
		place string
		at    [][2]int // hub and port
	}{
		{"1-3", [][2]int{{1, 3}}},
		{"1-1.4", [][2]int{{2, 4}, {3, 4}}},
		{"2-1.2", [][2]int{{2, 2}, {3, 2}}},
	} {
		part := lab.PowerPart{USB: tt.place}
		if field, err := power.Check(part); err != nil {
			t.Fatalf("Check() = %q, %v; want nil", field, err)
		}
		s := power.New(part, netip.Addr{}, k.Kernel)
		for _, on := range []bool{false, true} {
			if err := s.Set(t.Context(), on); err != nil {
				t.Fatalf("%s: Set(%t) = %v", tt.place, on, err)
			}
			for _, at := range tt.at {
				if k.On(at[0], at[1]) != on {
					t.Errorf("%s: port %d of hub %d is on: %t; want %t", tt.place, at[1], at[0], !on, on)
				}
			}
		}
	}
	if want := []int{4, 4, 2, 2}; !slices.Equal(switched, want) {
		t.Errorf("the hub 1-1 switched its ports %v; want %v", switched, want)
	}
	k.Stuck = true
	for place, want := range map[string]string{
		"1-1.1": "is on after it was switched off", "1-2.1": "does not switch its ports one by one", "1-1.9": "4 ports, and no port 9",
		"1-7.1": "there is no USB hub 1-7",
	} {
		if err := power.New(lab.PowerPart{USB: place}, netip.Addr{}, k.Kernel).Set(t.Context(), false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Set() = %v; want an error that says %q", place, err, want)
		}
	}
	places, err := k.Kernel.Hubs(t.Context())
	if want := []string{"1-1.[1-4]", "2-1.[1-4]", "1-[1-4]"}; err != nil || !slices.Equal(places, want) {
		t.Errorf("Hubs() = %q, %v; want %q", places, err, want)
	}
}

// TestRelay: the relay is active while the power is away, and the line is given back when it is there.
func TestRelay(t *testing.T) {
	for _, low := range []bool{false, true} {
		k := powertest.NewKernel(t)
		k.AddLine("gpiochip0/17", low, nil)
		part := lab.PowerPart{GPIO: "gpiochip0/17", ActiveLow: low}
		if field, err := power.Check(part); err != nil {
			t.Fatalf("Check() = %q, %v; want nil", field, err)
		}
		s := power.New(part, netip.Addr{}, k.Kernel)
		for _, on := range []bool{false, true, true} {
			if err := s.Set(t.Context(), on); err != nil {
				t.Fatalf("Set(%t) = %v", on, err)
			}
			if away, taken := k.Away("gpiochip0/17"); away == on || taken == on {
				t.Errorf("after Set(%t) the power is away: %t, and the line taken: %t", on, away, taken)
			}
		}
		k.Stuck = true
		if err := s.Set(t.Context(), false); err == nil || !strings.Contains(err.Error(), "is inactive after") {
			t.Errorf("Set() of a line that is stuck = %v; want an error that says so", err)
		}
		missing := power.New(lab.PowerPart{GPIO: "gpiochip0/3"}, netip.Addr{}, k.Kernel)
		if err := missing.Set(t.Context(), false); err == nil {
			t.Error("Set() of a line that the chip lacks = nil; want an error")
		}
	}
}

// TestBoxedParts: what is no port and no line is refused with its field.
func TestBoxedParts(t *testing.T) {
	for field, p := range map[string]lab.PowerPart{
		".usb":    {USB: "1-1/../../etc"},
		".gpio":   {GPIO: "/dev/gpiochip0/1"},
		".boot_s": {USB: "1-1.4", Boot: -1},
		"":        {USB: "1-1.4", GPIO: "gpiochip0/1"},
	} {
		if got, err := power.Check(p); err == nil || got != field {
			t.Errorf("Check(%+v) = %q, %v; want an error of %q", p, got, err, field)
		}
	}
}

// The kernel's structures have the sizes that their ioctls name.
func TestStructures(t *testing.T) {
	for name, size := range power.Sizes() {
		if got, want := size[0], uintptr(size[1]>>16&0x3fff); got != want {
			t.Errorf("%s has %d bytes; want %d", name, got, want)
		}
	}
}
