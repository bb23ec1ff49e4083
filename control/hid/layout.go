package hid

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"eidetic/control"
)

// Layout says which keys type a character on a device whose keyboard layout it is.
type Layout struct {
	Name    string
	strokes map[rune][]Stroke
}

// Layouts returns the names of the layouts. "fr" is what Linux, ChromeOS and Android
// call French; "fr-windows" is that of Windows, where AltGr+2 and AltGr+7 are dead keys.
func Layouts() []string {
	var names []string
	for _, b := range blueprints() {
		names = append(names, b.name)
	}
	return names
}

// NewLayout returns the layout of that name; "" is "us". NAME+compose has the compose key as well.
func NewLayout(name string) (*Layout, error) {
	base, composes := cutComposed(cmp.Or(name, "us"))
	for _, b := range blueprints() {
		if b.name != base {
			continue
		}
		l := b.build()
		if composes {
			l.compose()
		}
		return l, nil
	}
	return nil, fmt.Errorf("there is no keyboard layout %.40q: use one of %s; with +compose if the device's Menu key is a compose key", name,
		strings.Join(Layouts(), ", "))
}

// Strokes returns the keys that type a character: one, or a dead key and another.
func (l *Layout) Strokes(r rune) ([]Stroke, error) {
	switch r {
	case '\n', '\r':
		return []Stroke{{0, usageEnter}}, nil
	case '\t':
		return []Stroke{{0, usageTab}}, nil
	}
	s, ok := l.strokes[r]
	if !ok {
		return nil, fmt.Errorf("the keyboard layout %s has no key that types %q", l.Name, r)
	}
	return s, nil
}

// Chord returns the key of a chord, with all that is held.
func (l *Layout) Chord(c control.Chord) (Stroke, error) {
	var s Stroke
	if utf8.RuneCountInString(c.Key) == 1 {
		r, _ := utf8.DecodeRuneInString(c.Key)
		strokes, err := l.Strokes(r)
		if err == nil && len(strokes) > 1 {
			err = fmt.Errorf("the keyboard layout %s types %q with a dead key, which is no chord", l.Name, r)
		}
		if err != nil {
			return s, err
		}
		s = strokes[0]
	} else {
		key, err := named(c.Key)
		if err != nil {
			return s, err
		}
		s.Key = key
	}
	for _, m := range c.Modifiers {
		s.Modifiers |= modifierBit(m)
	}
	return s, nil
}

// blueprint is a layout as it is written down: the characters of each row of keys, one
// string for each level. A "·" is a key that types nothing of use at that level.
type blueprint struct {
	name               string
	plain, shift, high [4]string // high is with AltGr
	iso                bool      // the keyboard has ISO's form of the key left of, or above, Enter
	more               map[rune]Stroke
	dead               map[string]Stroke // accents, by their name in accents
}

// rows are the keys of a blueprint's rows. The last key of the third row is
// usageBackslA on keyboards of ANSI's form.
func rows(iso bool) [4][]Usage {
	backslash := usageBackslA
	if iso {
		backslash = usageBackslI
	}
	return [4][]Usage{
		{0x35, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x2d, 0x2e},
		{0x14, 0x1a, 0x08, 0x15, 0x17, 0x1c, 0x18, 0x0c, 0x12, 0x13, 0x2f, 0x30},
		{0x04, 0x16, 0x07, 0x09, 0x0a, 0x0b, 0x0d, 0x0e, 0x0f, 0x33, 0x34, backslash},
		{usageNonUS, 0x1d, 0x1b, 0x06, 0x19, 0x05, 0x11, 0x10, 0x36, 0x37, 0x38},
	}
}

const nothing = '·'

// accents are, for each dead key, pairs of a key pressed after it and what both type. A
// pair is here only if Windows, X and Android agree.
func accents() map[string]string {
	return map[string]string{
		"circumflex": " ^aâeêiîoôuûAÂEÊIÎOÔUÛ",
		"grave":      " `aàeèiìoòuùAÀEÈIÌOÒUÙ",
		"acute":      "aáeéiíoóuúyýAÁEÉIÍOÓUÚYÝ",
		"diaeresis":  "aäeëiïoöuüyÿAÄEËIÏOÖUÜ",
		"tilde":      " ~aãnñoõAÃNÑOÕ",
	}
}

// build makes the table of a layout. The stroke with fewer keys wins: plain before
// Shift before AltGr before a dead key.
func (b blueprint) build() *Layout {
	l := &Layout{Name: b.name, strokes: map[rune][]Stroke{' ': {{0, usageSpace}}}}
	put := func(r rune, s ...Stroke) {
		if _, ok := l.strokes[r]; !ok && r != nothing {
			l.strokes[r] = s
		}
	}
	for _, level := range []struct {
		bits byte
		text [4]string
	}{{0, b.plain}, {bitShift, b.shift}, {bitAltGr, b.high}} {
		for i, keys := range rows(b.iso) {
			for k, r := range []rune(level.text[i]) {
				put(r, Stroke{level.bits, keys[k]})
			}
		}
	}
	for r, s := range b.more {
		put(r, s)
	}
	for _, accent := range []string{"circumflex", "grave", "acute", "diaeresis", "tilde"} { // in order: the first that has a character wins
		dead, ok := b.dead[accent]
		pairs := []rune(accents()[accent])
		for i := 0; ok && i+1 < len(pairs); i += 2 {
			if base, known := l.strokes[pairs[i]]; known && len(base) == 1 {
				put(pairs[i+1], dead, base[0])
			}
		}
	}
	return l
}
