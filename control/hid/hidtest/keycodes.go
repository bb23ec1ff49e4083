// Package hidtest is the other end of a USB cable in tests: what a Linux host does with
// the reports of a keyboard, a mouse and a touch screen. Reports flow in; flow out the
// input of an X server, by the XTEST extension, with the keyboard layout that the test
// chose, or a list of what came.
package hidtest

import "eidetic/control/hid"

// Keycode returns the code that Linux gives a key, as in hid_keyboard of drivers/hid/hid-input.c.
func Keycode(u hid.Usage) (byte, bool) {
	codes := [...]byte{
		0, 0, 0, 0, 30, 48, 46, 32, 18, 33, 34, 35, 23, 36, 37, 38,
		50, 49, 24, 25, 16, 19, 31, 20, 22, 47, 17, 45, 21, 44, 2, 3,
		4, 5, 6, 7, 8, 9, 10, 11, 28, 1, 14, 15, 57, 12, 13, 26,
		27, 43, 43, 39, 40, 41, 51, 52, 53, 58, 59, 60, 61, 62, 63, 64,
		65, 66, 67, 68, 87, 88, 99, 70, 119, 110, 102, 104, 111, 107, 109, 106,
		105, 108, 103, 69, 98, 55, 74, 78, 96, 79, 80, 81, 75, 76, 77, 71,
		72, 73, 82, 83, 86, 127, 116, 117, 183, 184, 185, 186, 187, 188, 189, 190,
		191, 192, 193, 194, 134, 138, 130, 132, 128, 129, 131, 137, 133, 135, 136, 113,
		115, 114, 0, 0, 0, 121, 0, 89, 93, 124, 92, 94, 95,
	}
	if int(u) >= len(codes) || codes[u] == 0 {
		return 0, false
	}
	return codes[u], true
}

// modifierCodes are Linux's codes of the bits of a keyboard report's first byte.
func modifierCodes() [8]byte { return [8]byte{29, 42, 56, 125, 97, 54, 100, 126} }
