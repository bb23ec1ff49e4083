package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// oneSeat is the device "desk"; it notes what it is asked for.
type oneSeat struct {
	panel.Seats
	driver panel.Driver
	notes  []string
}

func (s *oneSeat) Drive(device string, who panel.Driver) (panel.Turn, error) {
	if device != "desk" {
		return panel.Turn{}, &panel.Refusal{Status: http.StatusNotFound, Err: fmt.Errorf("there is no device %q", device)}
	}
	s.driver, s.notes = who, append(s.notes, "drive")
	return panel.Turn{Driver: who.Name, Seconds: 60}, nil
}

func (s *oneSeat) Release(_ string, who panel.Driver) error {
	if s.driver == who {
		s.notes = append(s.notes, "release")
	}
	return nil
}

func (s *oneSeat) Input(_ context.Context, _ string, who panel.Driver, steps string) ([]lab.Event, error) {
	if s.driver != who {
		return nil, fmt.Errorf("%s drives the device", s.driver.Name)
	}
	s.notes = append(s.notes, steps)
	return []lab.Event{{Name: "key", Detail: "Tab", Earliest: 5e9, Latest: 5e9 + 4e6}}, nil
}

// A device of a box is driven from elsewhere: its controls are taken, used and given back.
func TestControlOnABox(t *testing.T) {
	b := newTestBox(t, alone)
	if _, _, said := commandsOf(t, b)("control", "--device", "desk"); !strings.Contains(said, "say what the device is to do") {
		t.Errorf("without steps it said %q", said)
	}
	for _, c := range []struct {
		args         []string
		status       int
		out, problem string
	}{
		{[]string{"desk", "key Tab"}, exitGood, "      0.0 … 4.0 ms  key Tab\n", ""},
		{[]string{"desk", "key Tab", "--json"}, exitGood,
			`{"name":"key","detail":"Tab","earliest_ns":5000000000,"latest_ns":5004000000}` + "\n", ""},
		{[]string{"desk", "key Tab", "--layout", "de"}, exitUsage, "", "as the box's configuration says"},
		{[]string{"desk", "key Hyper+x"}, exitUsage, "", "not a modifier"},
		{[]string{"desk", "wait still 1s"}, exitUsage, "", "a box looks for no picture here"},
		{[]string{"sofa", "key Tab"}, exitUsage, "", `there is no device "sofa"`},
	} {
		status, out, said := commandsOf(t, b)(append([]string{"control", "--device"}, c.args...)...)
		if status != c.status || out != c.out || !strings.Contains(said, c.problem) {
			t.Errorf("%q: status %d, %q, %q; want %d, %q, %q", c.args, status, out, said, c.status, c.out, c.problem)
		}
	}
	if want := []string{"drive", "key Tab", "release", "drive", "key Tab", "release"}; !slices.Equal(b.seats.notes, want) {
		t.Errorf("the device was asked for %q; want %q", b.seats.notes, want)
	}
}
