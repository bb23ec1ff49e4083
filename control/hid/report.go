package hid

import "encoding/binary"

// Report is a state of an input device: a Keyboard, a Pointer, a Motion or a Touch.
type Report interface {
	// Append appends the report as it is on the bus.
	Append(b []byte) []byte
}

// Keyboard is the state of a keyboard: the boot protocol's report.
type Keyboard struct {
	Modifiers byte
	Keys      [6]Usage // keys that are down; 0 is none
}

// KeyboardBytes is the length of a keyboard report.
const KeyboardBytes = 8

// Append appends the report.
func (k Keyboard) Append(b []byte) []byte {
	b = append(b, k.Modifiers, 0)
	for _, u := range k.Keys {
		b = append(b, byte(u))
	}
	return b
}

// Full is the largest coordinate of an absolute pointer and of a touch: what Windows
// accepts, from version 7 on.
const Full = 32767

// Pointer is the state of an absolute mouse, and by how much its wheels have turned.
type Pointer struct {
	Buttons    byte   // bit 0 is left, 1 right, 2 middle
	X, Y       uint16 // 0 … Full
	Wheel, Pan int8   // wheel: up is positive; pan: right is positive
}

// PointerBytes is the length of a pointer report.
const PointerBytes = 7

// Append appends the report.
func (p Pointer) Append(b []byte) []byte {
	b = append(b, p.Buttons)
	b = binary.LittleEndian.AppendUint16(b, p.X)
	b = binary.LittleEndian.AppendUint16(b, p.Y)
	return append(b, byte(p.Wheel), byte(p.Pan))
}

// Motion is the state of a relative mouse, and by how much it and its wheels have moved.
type Motion struct {
	Buttons    byte
	DX, DY     int8
	Wheel, Pan int8
}

// MotionBytes is the length of a motion report.
const MotionBytes = 5

// Append appends the report.
func (m Motion) Append(b []byte) []byte {
	return append(b, m.Buttons, byte(m.DX), byte(m.DY), byte(m.Wheel), byte(m.Pan))
}

// MaxContacts is the number of fingers that the touch screen has.
const MaxContacts = 5

// Contact is a finger on the touch screen, or, with Down false, one that has just left.
type Contact struct {
	ID   byte // stays the same while the finger is down
	Down bool
	X, Y uint16 // 0 … Full
}

// Touch is the state of a touch screen.
type Touch struct {
	Contacts []Contact // at most MaxContacts
	Scan     uint16    // time of the state in units of 100 µs; it wraps
}

// TouchBytes is the length of a touch report.
const TouchBytes = MaxContacts*6 + 3

// Append appends the report.
func (t Touch) Append(b []byte) []byte {
	for i := range MaxContacts {
		var c Contact
		if i < len(t.Contacts) {
			c = t.Contacts[i]
		}
		tip := byte(0)
		if c.Down {
			tip = 3 // tip switch and in range
		}
		b = append(b, tip, c.ID)
		b = binary.LittleEndian.AppendUint16(b, c.X)
		b = binary.LittleEndian.AppendUint16(b, c.Y)
	}
	b = binary.LittleEndian.AppendUint16(b, t.Scan)
	return append(b, byte(min(len(t.Contacts), MaxContacts)))
}

// Scale returns where pixel at of size pixels is on an axis of 0 … steps-1: the step
// nearest to the pixel's centre, so that a host that rounds either way finds the same pixel again.
func Scale(at, size, steps int) uint16 {
	return uint16(min(((2*at+1)*steps+size)/(2*size), steps-1))
}
