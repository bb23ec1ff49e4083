package store

import (
	"strings"

	"eidetic/internal/lab"
)

// onOf says which box and device of a fleet carried a run out, as BOX/DEVICE; nil outside a fleet.
func onOf(run *lab.Run) []string {
	box := run.Environment.Box
	if box == nil || box.Name == "" {
		return nil
	}
	where, device := box.Name, run.Plan.Device
	if _, after, both := strings.Cut(device, "/"); both { // a plan may name both
		device = after
	}
	if device != "" {
		where += "/" + device
	}
	return []string{clip(where)}
}
