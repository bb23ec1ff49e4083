package control

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Modifier is a key that is held while another is pressed.
type Modifier string

// The modifiers, and what else they may be called in a chord. "Cmd" is Meta:
// the key with that place on an Apple keyboard.
const (
	Ctrl  Modifier = "Ctrl"  // Control
	Shift Modifier = "Shift" //
	Alt   Modifier = "Alt"   // Option
	Meta  Modifier = "Meta"  // Super, Cmd, Win
)

// Chord is one key with the modifiers held while it is pressed.
type Chord struct {
	Modifiers []Modifier // in the order in which they are pressed
	// Key is one character ("l", "é", "+") or a name of [KeyNames].
	Key string
}

// String writes the chord as ParseChord reads it.
func (c Chord) String() string {
	var b strings.Builder
	for _, m := range c.Modifiers {
		b.WriteString(string(m) + "+")
	}
	return b.String() + c.Key
}

// KeyNames returns the names of the keys that are no single character. They are
// those of the web (UI Events KeyboardEvent key values) with F1 … F24.
func KeyNames() []string {
	names := []string{"Enter", "Tab", "Escape", "Backspace", "Delete", "Insert", "Home", "End", "PageUp", "PageDown",
		"ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Space",
		"ContextMenu", "PrintScreen", "Pause", "CapsLock", "NumLock", "ScrollLock",
		"BrowserBack", "BrowserForward", "BrowserRefresh", "BrowserHome",
		"AudioVolumeUp", "AudioVolumeDown", "AudioVolumeMute"}
	for i := 1; i <= 24; i++ {
		names = append(names, fmt.Sprintf("F%d", i))
	}
	return names
}

// maxChord bounds what ParseChord looks at.
const maxChord = 100

// ParseChord reads "Ctrl+L", "F5", "Shift+Tab", "Ctrl++", "é". Names are
// compared without case, and Return, Esc, Del, Left, PgUp and the like are
// understood; a single character is taken as it is, so that "Ctrl+L" is the
// key that types l or L, with Ctrl and without Shift.
func ParseChord(s string) (Chord, error) {
	if len(s) > maxChord || !utf8.ValidString(s) {
		return Chord{}, fmt.Errorf("key %.40q: not a key: too long, or not UTF-8", s)
	}
	var c Chord
	rest := norm.NFC.String(s)
	for {
		// The key itself may be "+": a plus that ends the text is no separator.
		i := strings.IndexByte(rest, '+')
		if i <= 0 || i == len(rest)-1 {
			break
		}
		m, ok := modifier(rest[:i])
		if !ok {
			return Chord{}, fmt.Errorf("key %q: %q is not a modifier: use Ctrl, Shift, Alt or Meta", s, rest[:i])
		}
		if slices.Contains(c.Modifiers, m) {
			return Chord{}, fmt.Errorf("key %q: %s is named twice", s, m)
		}
		c.Modifiers = append(c.Modifiers, m)
		rest = rest[i+1:]
	}
	if utf8.RuneCountInString(rest) == 1 {
		r, _ := utf8.DecodeRuneInString(rest)
		if r < ' ' || r == 0x7f {
			return Chord{}, fmt.Errorf("key %q: a control character is not a key: name the key (Enter, Tab, Escape …)", s)
		}
		c.Key = rest
		if rest == " " {
			c.Key = "Space"
		} else if len(c.Modifiers) > 0 {
			c.Key = strings.ToLower(rest)
		}
		return c, nil
	}
	name, ok := keyName(rest)
	if !ok {
		return Chord{}, fmt.Errorf("key %q: there is no key %q: use one character or one of %s", s, rest, strings.Join(KeyNames(), ", "))
	}
	c.Key = name
	return c, nil
}

func modifier(s string) (Modifier, bool) {
	switch strings.ToLower(s) {
	case "ctrl", "control":
		return Ctrl, true
	case "shift":
		return Shift, true
	case "alt", "option":
		return Alt, true
	case "meta", "super", "cmd", "command", "win":
		return Meta, true
	}
	return "", false
}

func keyName(s string) (string, bool) {
	switch strings.ToLower(s) {
	case "return":
		return "Enter", true
	case "esc":
		return "Escape", true
	case "del":
		return "Delete", true
	case "ins":
		return "Insert", true
	case "left", "right", "up", "down":
		s = "Arrow" + s
	case "pgup", "page_up":
		return "PageUp", true
	case "pgdn", "pgdown", "page_down":
		return "PageDown", true
	}
	for _, name := range KeyNames() {
		if strings.EqualFold(name, s) {
			return name, true
		}
	}
	return "", false
}
