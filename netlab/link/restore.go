package link

import (
	"fmt"
	"slices"
)

// EnableOffloads switches offloads of an interface on again, by the names that
// Offloads returned before they were switched off.
func EnableOffloads(name string, which []string) error {
	return eachOffload(name, func(what string, _, set uint32, call func(uint32, *uint32) error) error {
		on := uint32(1)
		if !slices.Contains(which, what) {
			return nil
		}
		if err := call(set, &on); err != nil {
			return fmt.Errorf("switch on again: %w", err)
		}
		return nil
	})
}
