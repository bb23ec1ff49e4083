package service

import (
	"context"
	"testing"

	"eidetic/internal/run/device"
)

// Asking often looks once in a while.
func TestPartList(t *testing.T) {
	looked := 0
	list := &partList{look: func(context.Context) []device.Part {
		looked++
		return []device.Part{{Kind: device.PartPhone, Use: "adb:R58M", Ready: true}}
	}}
	for range 3 {
		if got := list.list(t.Context()); len(got) != 1 || got[0].Use != "adb:R58M" || !got[0].Ready {
			t.Errorf("list() = %+v; want the phone", got)
		}
	}
	if looked != 1 {
		t.Errorf("looked %d times for three questions; want once", looked)
	}
}
