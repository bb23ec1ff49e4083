package hid

import (
	"maps"
	"strings"
)

// composed ends the name of a layout on a device whose Menu key is the compose key: us+compose.
const composed = "+compose"

// composeKey is the key Menu (Application in the HID usage tables), which desktops of Linux offer as the compose key:
// setxkbmap -option compose:menu.
var composeKey = Stroke{0, 0x65} // constant

// sequences are, for each character, what is pressed after the compose key. X's own table (Compose of en_US.UTF-8) has
// all of them, and so has GTK's.
func sequences() map[rune]string {
	all := map[rune]string{
		'æ': "ae", 'Æ': "AE", 'œ': "oe", 'Œ': "OE", 'ß': "ss", 'ø': "/o", 'Ø': "/O", 'å': "oa", 'Å': "oA", 'ç': ",c", 'Ç': ",C",
		'¡': "!!", '¿': "??", '«': "<<", '»': ">>", '€': "=E", '£': "-L", '¥': "=Y", '§': "os", '©': "oc", '°': "oo",
		'…': "..", '–': "--.", '—': "---", '½': "12", '¼': "14", '¾': "34", '±': "+-", '×': "xx", '÷': ":-", 'µ': "mu",
	}
	for accent, key := range map[string]string{"circumflex": "^", "grave": "`", "acute": "'", "diaeresis": `"`, "tilde": "~"} {
		pairs := []rune(accents()[accent])
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] != ' ' {
				all[pairs[i+1]] = key + string(pairs[i])
			}
		}
	}
	return all
}

// compose adds to a layout what the compose key types that its own keys do not.
func (l *Layout) compose() {
	more := map[rune][]Stroke{} // no sequence is made of what another one types
	for r, sequence := range sequences() {
		if _, ok := l.strokes[r]; ok {
			continue
		}
		strokes := []Stroke{composeKey}
		for _, c := range sequence {
			if s := l.strokes[c]; len(s) == 1 {
				strokes = append(strokes, s[0])
			}
		}
		if len(strokes) == 1+len([]rune(sequence)) { // the layout has all of its keys
			more[r] = strokes
		}
	}
	maps.Copy(l.strokes, more)
	l.Name += composed
}

// cutComposed splits the name of a layout.
func cutComposed(name string) (layout string, composes bool) {
	return strings.CutSuffix(name, composed)
}
