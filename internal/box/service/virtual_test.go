package service

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Looking at the panel does not disturb what is measured: a good answer holds
// for a while, and during a run nothing is tried at all.
func TestVirtualDeviceIsAskedSeldom(t *testing.T) {
	asked := 0
	answer := errors.New("no Xvfb")
	v := &virtualDevice{check: func(context.Context) error { asked++; return answer }}
	for n := 1; n <= 2; n++ {
		if d := v.describe(t.Context()); d.Ready || d.Problem != "no Xvfb" || asked != n {
			t.Errorf("a machine that lacks something: %+v, asked %d times", d, asked)
		}
	}
	answer = nil
	for range 3 {
		if d := v.describe(t.Context()); !d.Ready || asked != 3 {
			t.Errorf("a good machine: %+v, asked %d times", d, asked)
		}
	}
	v.good, answer = time.Time{}, errors.New("no Xvfb")
	v.setBusy(true)
	if d := v.describe(t.Context()); !d.Ready || asked != 3 {
		t.Errorf("during a run: %+v, asked %d times", d, asked)
	}
	v.setBusy(false)
	if d := v.describe(t.Context()); d.Ready || asked != 4 {
		t.Errorf("after it: %+v, asked %d times", d, asked)
	}
}
