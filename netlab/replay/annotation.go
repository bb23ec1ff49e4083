package replay

import (
	"encoding/json"
	"strings"
	"unicode"
)

// labelMost is the most runes of a label.
const labelMost = 100

// Label is the text that the page gave the annotation, as in lab.done("cart
// shown"), made fit to be shown: printable, on one line, at most 100 runes. It is
// "" where the body names none or is not the JSON that our script sends.
func (a Annotation) Label() string {
	var body struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(a.Body, &body) != nil {
		return ""
	}
	printable := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // control characters, and those that turn the direction of text
			return ' '
		}
		return r
	}, body.Name)
	label := []rune(strings.Join(strings.Fields(printable), " "))
	if len(label) > labelMost {
		label = append(label[:labelMost-1], '…')
	}
	return string(label)
}
