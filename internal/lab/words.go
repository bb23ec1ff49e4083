package lab

import (
	"math"
	"strconv"
	"strings"
)

// Signed formats a difference for people, rounded half away from zero to at most digits
// decimals: +1 240 with a narrow space, −3.5 with a true minus, 0 without a sign.
func Signed(v float64, digits int) string {
	scale := math.Pow10(digits)
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(math.Round(math.Abs(v)*scale)/scale, 'f', digits, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "\u202f" + whole[i:]
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	switch {
	case whole == "0":
		return whole
	case v < 0:
		return "−" + whole
	}
	return "+" + whole
}

// Change formats a difference with as many digits as are meaningful.
func Change(v float64) string {
	if math.Abs(v) < 10 {
		return Signed(v, 1)
	}
	return Signed(v, 0)
}

// Clip shortens a text to at most so many characters, and says with … that there were more.
func Clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Plural chooses the singular or the plural by n.
func Plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
