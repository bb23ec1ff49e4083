package x11

import (
	"unicode"

	"github.com/jezek/xgb/xproto"

	"eidetic/control/keysym"
)

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
			return xproto.Keysym(keysym.OfRune(unicode.ToUpper(rune(lower))))
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
