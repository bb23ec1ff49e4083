package link

import (
	"strings"
	"testing"
	"time"
)

func TestInvalid(t *testing.T) {
	errors := func(n int64, worst time.Duration) Direction {
		return Direction{Errors: Histogram{Count: n, Max: worst}}
	}
	lossy := Profile{RTT: time.Millisecond}
	for _, test := range []struct {
		name string
		r    Report
		want string // part of the reason; "" is valid
	}{
		{"good", Report{Backend: "packet", Down: errors(100, time.Millisecond)}, ""},
		{"late packets, about which the plan decides", Report{Backend: "packet", Slips: 99, Up: errors(100, 90*time.Millisecond)}, ""},
		{"merged segments", Report{Backend: "packet", Profile: lossy, Merged: 2}, "switch the offloads of the device's interface off"},
		{"merged segments of a native link", Report{Backend: "packet", Merged: 2}, ""},
		{"packets that the kernel dropped", Report{Backend: "packet",
			Up: Direction{Drops: map[string]int64{DropUnread: 7}}}, "the kernel dropped 7 packets"},
		{"a process that died", Report{Backend: "packet", Fault: "the process has ended"}, "the process has ended"},
		{"nothing emulated", Report{Backend: "native", Slips: 9, Down: errors(9, time.Second)}, ""},
	} {
		if got := test.r.Invalid(); got == "" && test.want != "" || !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: Invalid() = %q, want %q", test.name, got, test.want)
		}
	}
}
