package service

import (
	"context"
	"testing"

	"eidetic/internal/run/device"
)

// Asking often looks once in a while, and whoever asks and goes away spoils the list for nobody.
func TestPartList(t *testing.T) {
	looked := 0
	list := &partList{look: func(ctx context.Context) []device.Part {
		if looked++; ctx.Err() != nil {
			return nil
		}
		return []device.Part{{Kind: device.PartPhone, Use: "adb:R58M", Ready: true}}
	}}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	list.list(gone)
	for range 3 {
		if got := list.list(t.Context()); len(got) != 1 || got[0].Use != "adb:R58M" || !got[0].Ready {
			t.Errorf("list() = %+v; want the phone", got)
		}
	}
	if looked != 1 {
		t.Errorf("looked %d times for four questions; want once", looked)
	}
}
