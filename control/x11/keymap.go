package x11

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/jezek/xgb/xproto"

	"eidetic/control"
)

// Keysyms that are not characters (X11/keysymdef.h and XF86keysym.h).
const (
	symShift  xproto.Keysym = 0xffe1 // Shift_L
	symCtrl   xproto.Keysym = 0xffe3 // Control_L
	symAlt    xproto.Keysym = 0xffe9 // Alt_L
	symMeta   xproto.Keysym = 0xffeb // Super_L: the key that others call Windows or Command
	symLevel3 xproto.Keysym = 0xfe03 // ISO_Level3_Shift: AltGr
)

func named(key string) (xproto.Keysym, bool) {
	var n int
	if _, err := fmt.Sscanf(key, "F%d", &n); err == nil && n >= 1 && n <= 24 {
		return 0xffbe + xproto.Keysym(n-1), true
	}
	sym, ok := map[string]xproto.Keysym{
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

func modifierSym(m control.Modifier) xproto.Keysym {
	switch m {
	case control.Ctrl:
		return symCtrl
	case control.Shift:
		return symShift
	case control.Alt:
		return symAlt
	default:
		return symMeta
	}
}

// keysymOf returns the keysym of a character: Latin-1 is itself, all others
// are 0x01000000 + the code point (X Protocol, appendix A).
func keysymOf(r rune) xproto.Keysym {
	switch {
	case r == '\n' || r == '\r':
		return 0xff0d
	case r == '\t':
		return 0xff09
	case r >= 0x20 && r <= 0x7e || r >= 0xa0 && r <= 0xff:
		return xproto.Keysym(r)
	default:
		return 0x01000000 + xproto.Keysym(r)
	}
}

// sym returns the keysym of a chord's key.
func sym(key string) xproto.Keysym {
	if s, ok := named(key); ok {
		return s
	}
	r, _ := utf8.DecodeRuneInString(key)
	return keysymOf(r)
}

// stroke is the key that types a keysym, and what must be held.
type stroke struct {
	code   xproto.Keycode
	shift  bool
	level3 bool
}

// keymap is the server's table: per keysyms for each keycode from first on.
type keymap struct {
	first xproto.Keycode
	per   int
	syms  []xproto.Keysym
}

// at returns the keysym of a keycode's column, with the protocol's rule that a
// missing second column of a letter is its capital.
func (k keymap) at(code, column int) xproto.Keysym {
	if column >= k.per {
		return 0
	}
	s := k.syms[code*k.per+column]
	if s == 0 && column == 1 {
		if lower := k.syms[code*k.per]; lower < 0x100 && unicode.IsLower(rune(lower)) {
			return keysymOf(unicode.ToUpper(rune(lower)))
		}
	}
	return s
}

// find returns the simplest stroke for the keysym: fewest held keys, then the
// lowest keycode. Columns 0 and 1 are plain and Shift, 4 and 5 are the same
// with AltGr (XKB's core mapping); 2 and 3 belong to a second layout, which is
// not the active one.
func (k keymap) find(s xproto.Keysym) (stroke, bool) {
	if s == 0 {
		return stroke{}, false
	}
	for _, column := range []int{0, 1, 4, 5} {
		for code := 0; code*k.per < len(k.syms); code++ {
			if k.at(code, column) == s {
				return stroke{k.first + xproto.Keycode(code), column%2 == 1, column >= 4}, true
			}
		}
	}
	return stroke{}, false
}

// spare returns the keycodes to which nothing is bound.
func (k keymap) spare() []xproto.Keycode {
	var out []xproto.Keycode
next:
	for code := len(k.syms)/max(k.per, 1) - 1; code >= 0; code-- {
		for _, s := range k.syms[code*k.per:][:k.per] {
			if s != 0 {
				continue next
			}
		}
		out = append(out, k.first+xproto.Keycode(code))
	}
	return out
}
