package control

import "strings"

// Capabilities are what a controller can do with its device, as far as it knows.
type Capabilities struct {
	Keyboard bool `json:"keyboard"`
	Pointer  bool `json:"pointer"`  // it can put a mouse at a point of the screen
	Motion   bool `json:"relative"` // it can move a mouse, but not say where that is
	Wheel    bool `json:"wheel"`
	Touch    int  `json:"touch"` // number of fingers; 0 is no touch screen
	// Layout is the keyboard layout that the device must be set to; "" if text arrives on any.
	Layout string `json:"layout,omitempty"`
	// Timing says what the end of an event's interval is.
	Timing string `json:"timing,omitempty"`
	// Limits are what a person must know, one sentence each.
	Limits []string `json:"limits,omitempty"`
}

// Describer is implemented by controllers that say what they can do.
type Describer interface {
	Capabilities() Capabilities
}

// String lists what there is in a few words.
func (c Capabilities) String() string {
	var words []string
	for _, w := range []struct {
		has  bool
		name string
	}{
		{c.Keyboard, "keyboard"}, {c.Pointer, "mouse"}, {c.Motion, "relative mouse"}, {c.Wheel, "wheel"}, {c.Touch > 0, "touch"},
	} {
		if w.has {
			words = append(words, w.name)
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}
