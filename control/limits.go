package control

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// MaxText bounds the characters of one Text call, MaxNotches those of one Scroll.
const (
	MaxText    = 10_000
	MaxNotches = 1_000
)

// CheckText returns the characters of a text that keys can type. A letter and its accent are one, as on a keyboard: macOS
// writes two (NFD). A line end is one, too, where Windows writes two.
func CheckText(text string) ([]rune, error) {
	runes := []rune(norm.NFC.String(strings.ReplaceAll(text, "\r\n", "\n")))
	if len(runes) == 0 || len(runes) > MaxText {
		return nil, fmt.Errorf("text of %d characters: one call types 1 … %d", len(runes), MaxText)
	}
	for i, r := range runes {
		if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			return nil, fmt.Errorf("text: character %d (%U) is a control character, which no key types", i+1, r)
		}
	}
	return runes, nil
}

// CheckPoint says whether x, y is on a screen.
func CheckPoint(x, y, width, height int) error {
	if x < 0 || y < 0 || x >= width || y >= height {
		return fmt.Errorf("the point %d,%d is not on the screen of %d×%d", x, y, width, height)
	}
	return nil
}

// CheckButton refuses a button that a mouse does not have.
func CheckButton(b Button) error {
	if b < Left || b > Right {
		return fmt.Errorf("click: there is no button %d: 1 is left, 2 middle, 3 right", b)
	}
	return nil
}

// CheckScroll bounds what one call turns the wheel by.
func CheckScroll(dx, dy int) error {
	if max(dx, -dx) > MaxNotches || max(dy, -dy) > MaxNotches {
		return fmt.Errorf("scroll by %d,%d: one call turns the wheel by at most %d notches", dx, dy, MaxNotches)
	}
	return nil
}
