// Package keysym names keys as X11 does, and with it VNC: a chord's key or a
// character flows in, a number flows out.
//
// Standards: X Window System Protocol 11, appendix A; X11/keysymdef.h and
// XF86keysym.h.
package keysym

import (
	"fmt"
	"unicode/utf8"

	"eidetic/control"
)

// The keys that are held while others are pressed.
const (
	Shift  = 0xffe1 // Shift_L
	Ctrl   = 0xffe3 // Control_L
	Alt    = 0xffe9 // Alt_L
	Meta   = 0xffeb // Super_L: the key that others call Windows or Command
	Level3 = 0xfe03 // ISO_Level3_Shift: AltGr
)

// The first keysym of characters beyond Latin-1.
const unicode = 0x01000000

// Named returns the keysym of a name of control.KeyNames.
func Named(key string) (uint32, bool) {
	var n int
	if _, err := fmt.Sscanf(key, "F%d", &n); err == nil && n >= 1 && n <= 24 {
		return 0xffbe + uint32(n-1), true
	}
	sym, ok := map[string]uint32{
		"Enter": 0xff0d, "Tab": 0xff09, "Escape": 0xff1b, "Backspace": 0xff08, "Delete": 0xffff, "Insert": 0xff63,
		"Home": 0xff50, "End": 0xff57, "PageUp": 0xff55, "PageDown": 0xff56,
		"ArrowLeft": 0xff51, "ArrowUp": 0xff52, "ArrowRight": 0xff53, "ArrowDown": 0xff54, "Space": 0x20,
		"ContextMenu": 0xff67, "PrintScreen": 0xff61, "Pause": 0xff13,
		"CapsLock": 0xffe5, "NumLock": 0xff7f, "ScrollLock": 0xff14,
		"BrowserBack": 0x1008ff26, "BrowserForward": 0x1008ff27, "BrowserRefresh": 0x1008ff29, "BrowserHome": 0x1008ff18,
		"AudioVolumeUp": 0x1008ff13, "AudioVolumeDown": 0x1008ff11, "AudioVolumeMute": 0x1008ff12,
	}[key]
	return sym, ok
}

// OfModifier returns the keysym of a modifier.
func OfModifier(m control.Modifier) uint32 {
	switch m {
	case control.Ctrl:
		return Ctrl
	case control.Shift:
		return Shift
	case control.Alt:
		return Alt
	default:
		return Meta
	}
}

// OfRune returns the keysym of a character: Latin-1 is itself, all others are
// 0x01000000 + the code point. A new line is Enter's, a tabulator Tab's.
func OfRune(r rune) uint32 {
	switch {
	case r == '\n' || r == '\r':
		return 0xff0d
	case r == '\t':
		return 0xff09
	case r >= 0x20 && r <= 0x7e || r >= 0xa0 && r <= 0xff:
		return uint32(r)
	default:
		return unicode + uint32(r)
	}
}

// OfKey returns the keysym of a chord's key.
func OfKey(key string) uint32 {
	if s, ok := Named(key); ok {
		return s
	}
	r, _ := utf8.DecodeRuneInString(key)
	return OfRune(r)
}
