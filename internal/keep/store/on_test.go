package store

import (
	"slices"
	"testing"

	"eidetic/internal/lab"
)

func TestOnOf(t *testing.T) {
	for _, c := range []struct {
		box    *lab.BoxState
		device string
		want   []string
	}{
		{nil, "virtual", nil},
		{&lab.BoxState{}, "virtual", nil},
		{&lab.BoxState{Name: "lab-1"}, "virtual", []string{"lab-1/virtual"}},
		{&lab.BoxState{Name: "lab-1"}, "lab-1/desk", []string{"lab-1/desk"}},
		{&lab.BoxState{Name: "lab-1"}, "", []string{"lab-1"}},
	} {
		run := &lab.Run{Plan: lab.Plan{Device: c.device}, Environment: lab.Environment{Box: c.box}}
		if got := onOf(run); !slices.Equal(got, c.want) {
			t.Errorf("onOf(%+v, device %q) = %q, want %q", c.box, c.device, got, c.want)
		}
	}
}
