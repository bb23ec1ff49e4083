package v4l2

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Control is a knob of a device: exposure, gain, colour range.
type Control struct {
	Name     string `json:"name"`
	Min      int    `json:"min"`
	Max      int    `json:"max"`
	Step     int    `json:"step"`
	Default  int    `json:"default"`
	Value    int    `json:"value"`
	ReadOnly bool   `json:"read_only,omitempty"`

	id uint32
}

// maxControls bounds what a driver may list.
const maxControls = 1024

// controls lists a device's knobs that have a number.
func controls(dev device, set settings) ([]Control, error) {
	var list []Control
	var q query
	for range maxControls {
		setU32(q[:], 0, u32(q[:], 0)|controlNext)
		err := dev.ioctl(reqQueryControl, pointer(&q))
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTTY) {
			return list, nil // that was the last, or there are none
		}
		if err != nil {
			return nil, fmt.Errorf("list controls: %w", err)
		}
		switch u32(q[:], 4) {
		case controlInteger, controlBoolean, controlMenu, controlButton, controlBitmask, controlChoice:
		default:
			continue // texts, areas and the headings of groups
		}
		flags := u32(q[:], 56)
		if flags&controlDisabled != 0 {
			continue
		}
		number := func(at int) int { return int(int32(u32(q[:], at))) }
		c := Control{
			Name: unix.ByteSliceToString(q[8:40]), Min: number(40), Max: number(44), Step: number(48), Default: number(52),
			ReadOnly: flags&controlReadOnly != 0, id: u32(q[:], 0),
		}
		if v, err := set.control(c.id); err == nil { // a button has no value
			c.Value = v
		}
		list = append(list, c)
	}
	return list, nil
}

// setControls sets knobs by name, compared without case.
func setControls(dev device, set settings, values map[string]int) error {
	if len(values) == 0 {
		return nil
	}
	list, err := controls(dev, set)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(list, func(c Control) bool { return strings.EqualFold(c.Name, name) })
		if i < 0 {
			names := make([]string, len(list))
			for i, c := range list {
				names[i] = c.Name
			}
			return fmt.Errorf("the device has no control %q; it has: %s", name, strings.Join(names, ", "))
		}
		c, value := list[i], values[name]
		if c.ReadOnly {
			return fmt.Errorf("control %q can only be read", c.Name)
		}
		if value < c.Min || value > c.Max {
			return fmt.Errorf("control %q: %d is outside %d … %d", c.Name, value, c.Min, c.Max)
		}
		if err := set.setControl(c.id, value); err != nil {
			return fmt.Errorf("set control %q to %d: %w", c.Name, value, err)
		}
	}
	return nil
}
