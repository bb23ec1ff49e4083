package hid

import (
	"fmt"

	"eidetic/control"
)

// Usage is a key: an identifier of the keyboard page of the HID Usage Tables.
type Usage byte

// Keys that have no name in control.KeyNames.
const (
	usageA       Usage = 0x04
	usageEnter   Usage = 0x28
	usageTab     Usage = 0x2b
	usageSpace   Usage = 0x2c
	usageCaps    Usage = 0x39
	usageF1      Usage = 0x3a
	usageF13     Usage = 0x68
	usageIntl1   Usage = 0x87 // the key left of the right Shift of Japanese keyboards
	usageIntl3   Usage = 0x89 // the yen key
	usageNonUS   Usage = 0x64 // the key right of the left Shift of European keyboards
	usageBackslA Usage = 0x31 // backslash of ANSI keyboards
	usageBackslI Usage = 0x32 // the key in its place on ISO keyboards
)

// The bits of a keyboard report's first byte.
const (
	bitCtrl  byte = 1 << 0 // left Control
	bitShift byte = 1 << 1 // left Shift
	bitAlt   byte = 1 << 2 // left Alt
	bitMeta  byte = 1 << 3 // left GUI
	bitAltGr byte = 1 << 6 // right Alt
)

// Stroke is one key with the modifiers that are held while it is pressed.
type Stroke struct {
	Modifiers byte // the bits of a keyboard report's first byte
	Key       Usage
}

// modifierBit returns the bit of a chord's modifier.
func modifierBit(m control.Modifier) byte {
	switch m {
	case control.Ctrl:
		return bitCtrl
	case control.Shift:
		return bitShift
	case control.Alt:
		return bitAlt
	default:
		return bitMeta
	}
}

// named returns the key of a name of control.KeyNames.
func named(key string) (Usage, error) {
	var n int
	if _, err := fmt.Sscanf(key, "F%d", &n); err == nil {
		if n <= 12 {
			return usageF1 + Usage(n-1), nil
		}
		return usageF13 + Usage(n-13), nil
	}
	u, ok := map[string]Usage{
		"Enter": usageEnter, "Escape": 0x29, "Backspace": 0x2a, "Tab": usageTab, "Space": usageSpace, "CapsLock": usageCaps,
		"PrintScreen": 0x46, "ScrollLock": 0x47, "Pause": 0x48, "Insert": 0x49, "Home": 0x4a, "PageUp": 0x4b, "Delete": 0x4c,
		"End": 0x4d, "PageDown": 0x4e, "ArrowRight": 0x4f, "ArrowLeft": 0x50, "ArrowDown": 0x51, "ArrowUp": 0x52,
		"NumLock": 0x53, "ContextMenu": 0x65,
		"AudioVolumeMute": 0x7f, "AudioVolumeUp": 0x80, "AudioVolumeDown": 0x81,
	}[key]
	if !ok {
		return 0, fmt.Errorf("a USB keyboard has no key %s: use a chord that does the same, such as Alt+Left for BrowserBack", key)
	}
	return u, nil
}
