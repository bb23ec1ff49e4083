package power

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// gpioPlace is a line of a chip: "gpiochip0/17".
var gpioPlace = regexp.MustCompile(`^gpiochip[0-9]{1,3}/[0-9]{1,4}$`) // constant

// relay switches the relay at a line of a GPIO chip. The relay is active while the power is away, and the line is given
// back when the power is there again: a box that is switched off leaves the device its power.
func (s *Switch) relay(on bool) error {
	chip, text, _ := strings.Cut(s.part.GPIO, "/")
	offset, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return err
	}
	if s.line == nil {
		if on {
			return nil // it is not active, as it is given back
		}
		file := filepath.Join(s.kernel.Root, "dev", chip)
		if s.line, err = s.kernel.Line(file, uint32(offset), s.part.ActiveLow); err != nil {
			s.line = nil // a typed nil is none
			return fmt.Errorf("gpio: %w", err)
		}
	}
	if err := s.line.Set(!on); err != nil {
		return fmt.Errorf("gpio: %w", err)
	}
	active, err := s.line.Get()
	if err != nil {
		return fmt.Errorf("gpio: %w", err)
	}
	if active == on {
		return fmt.Errorf("gpio: %s is %s after the power was switched %s", s.part.GPIO,
			map[bool]string{false: "inactive", true: "active"}[active], onOff(on))
	}
	if on {
		err, s.line = s.line.Close(), nil
	}
	return err
}
