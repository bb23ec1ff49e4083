package series

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"eidetic/internal/lab"
)

// numberLike is the share of a word that is no letters; 0 without a digit, and for a time.
func numberLike(word string) float64 {
	if !strings.ContainsAny(word, "0123456789") || slashed.MatchString(strings.TrimSpace(word)) {
		return 0
	}
	if _, err := instant(word); err == nil {
		return 0
	}
	others := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return -1
		}
		return r
	}, word)
	return float64(len(others)) / float64(len(word))
}

// errMissing says that a cell has no number, and does not claim to.
var errMissing = errors.New("no value") // constant

// united is a number with a unit behind it, priced one with a currency's sign before it.
var (
	united = regexp.MustCompile("^(.*[0-9.,])[ \u00a0\u202f]?([%‰µ\\p{Sc}a-zA-Z][µa-zA-Z/]{0,6})$") // constant
	priced = regexp.MustCompile("^([-+]?)(\\p{Sc})[ \u00a0\u202f]?([0-9.,].*)$")                    // constant
)

// cutUnit takes the unit off a cell, and quotes that no CSV has: "12 ms" is 12 in ms. The Greek letter of μs is the sign
// of micro.
func cutUnit(cell string) (text, unit string) {
	text = strings.TrimSpace(cell)
	if n := len(text); n > 1 && text[0] == '\'' && text[n-1] == '\'' {
		text = text[1 : n-1]
	}
	text = strings.ReplaceAll(text, "\u03bc", "\u00b5")
	if m := united.FindStringSubmatch(text); m != nil {
		return m[1], m[2]
	}
	if m := priced.FindStringSubmatch(text); m != nil {
		return m[1] + m[3], m[2]
	}
	return text, ""
}

// plainDigits writes the digits of any script, and their signs, as ASCII.
func plainDigits(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u2212':
			return '-'
		case r == '\u066b':
			return '.'
		case r == '\u066c':
			return '\u00a0' // between thousands
		case r < utf8.RuneSelf || !unicode.Is(unicode.Nd, r):
			return r
		}
		for _, list := range unicode.Nd.R16 {
			if rune(list.Lo) <= r && r <= rune(list.Hi) {
				return '0' + (r-rune(list.Lo))%10 // the ten of a script stand together
			}
		}
		return r
	}, text)
}

// spreadsheetError is what a spreadsheet writes where a formula has no value: #N/A, #DIV/0!, in German #NV.
var spreadsheetError = regexp.MustCompile(`^#\p{Lu}[\p{Lu}0-9/]+[!?]?$`) // constant

// number reads a cell.
func number(cell string) (float64, error) {
	text, _ := cutUnit(plainDigits(cell))
	text = withoutGroups(text)
	switch strings.ToLower(text) {
	case "", "na", "n/a", "n.a.", "<na>", "nan", "null", "(null)", `\n`, "none", "nil", "undefined", "missing",
		"-", "--", "–", "—", ".", "?":
		return 0, errMissing
	}
	if spreadsheetError.MatchString(text) {
		return 0, errMissing
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || math.Abs(v) > 1e150 {
		return 0, fmt.Errorf("%q is not a number: write it like 1234.5, and leave the cell empty where there is none", lab.Clip(text, 60))
	}
	return v, nil
}

// grouped is a number whose thousands are set apart by what is no point or comma: a blank, also a narrow one or one
// that does not break a line, or an apostrophe.
var grouped = regexp.MustCompile("^[-+]?[0-9]{1,3}(?:[ \u00a0\u202f\u2009'’][0-9]{3})+(?:[.,][0-9]+)?$") // constant

// pointed is a number with commas between its thousands, or lakhs, and a decimal point.
var pointed = regexp.MustCompile(`^[-+]?[0-9]{1,3}(?:,[0-9]{2,3})*,[0-9]{3}\.[0-9]+$`) // constant

// withoutGroups removes what stands between thousands: "1 234,5" is 1234,5, and "1 2" stays what it is.
func withoutGroups(text string) string {
	if pointed.MatchString(text) {
		return strings.ReplaceAll(text, ",", "")
	}
	if !grouped.MatchString(text) {
		return text
	}
	return strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", "\u2009", "", "'", "", "’", "").Replace(text)
}

// decimals describes the comma and the point as decimal signs. certain matches numbers in which the sign cannot separate
// thousands: other than three digits follow it, or 0 or more than three digits precede it, or the other sign separates
// thousands. grouped matches whole numbers whose thousands the other sign separates.
var decimals = map[rune]struct{ certain, grouped *regexp.Regexp }{ // constant
	',': {regexp.MustCompile(`^[-+]?(?:[0-9]*,(?:[0-9]{1,2}|[0-9]{4,})|(?:0?|[0-9]{4,}),[0-9]{3}|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+)$`),
		regexp.MustCompile(`^[-+]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+$`)},
	'.': {regexp.MustCompile(`^[-+]?(?:[0-9]*\.(?:[0-9]{1,2}|[0-9]{4,})|(?:0?|[0-9]{4,})\.[0-9]{3})$`), // "1,234.5": see withoutGroups
		regexp.MustCompile(`^[-+]?[1-9][0-9]{0,2}(?:,[0-9]{2,3})*,[0-9]{3}$`)},
}

// unclear is the decimal sign of a column whose points may separate thousands.
const unclear = '!'

// decimalsOf returns the decimal sign of each column, 0 where it is unknown: in a column with 7,5 the cell 1.234 is more
// than a thousand. A column that does not show its sign has that of the other columns, if they agree; else one with 950
// and 1.050 is unclear.
func decimalsOf(rows [][]string, columns int) (signs []rune) {
	const both = '?'
	join := func(a, b rune) rune {
		if a == 0 || a == b {
			return b
		}
		return both
	}
	signs = make([]rune, columns)
	all := rune(0)
	isUnclear := make([]bool, columns)
	for i := range signs {
		isWhole, isGrouped := false, false
		for _, record := range rows {
			if len(record[i]) > longestNumber {
				continue
			}
			text, _ := cutUnit(plainDigits(record[i]))
			if !strings.ContainsAny(text, ".,") {
				isWhole = isWhole || len(text) >= len("100") && strings.Trim(text, "0123456789") == ""
				continue
			}
			text = withoutGroups(text)
			isGrouped = isGrouped || decimals[','].grouped.MatchString(text)
			for sign, numbers := range decimals {
				if numbers.certain.MatchString(text) {
					signs[i] = join(signs[i], sign)
				}
			}
		}
		if signs[i] != 0 {
			all = join(all, signs[i])
		}
		isUnclear[i] = isWhole && isGrouped
	}
	for i, sign := range signs {
		if sign == 0 {
			sign = all
		}
		if signs[i] = sign; sign == both {
			signs[i] = 0
		}
		if signs[i] == 0 && isUnclear[i] {
			signs[i] = unclear
		}
	}
	return signs
}

// longestNumber bounds the cells that are looked at, in bytes.
const longestNumber = 1000

// cellReader reads the number in a cell.
type cellReader func(cell string) (float64, error)

// numbersOf reads the cells of a column with this decimal sign. If it is unknown (0), a comma is the decimal sign where
// it separates no cells, or stands in quotes.
func numbersOf(separator, decimal rune) cellReader {
	return func(cell string) (float64, error) {
		if len(cell) > longestNumber {
			return 0, fmt.Errorf("%q is not a number", lab.Clip(cell, 60))
		}
		text, _ := cutUnit(plainDigits(cell))
		text = withoutGroups(text)
		if decimal == unclear && separator == ';' && decimals[','].grouped.MatchString(text) {
			return 0, fmt.Errorf("%q may mean two numbers: write it like 1234.5, without a sign between thousands", lab.Clip(text, 60))
		}
		if decimal != 0 && decimal != unclear && decimals[decimal].grouped.MatchString(text) {
			return number(strings.Map(func(r rune) rune {
				if r == ',' || r == '.' {
					return -1
				}
				return r
			}, text))
		}
		whole, part, ok := strings.Cut(text, ",")
		switch {
		case !ok:
			return number(text)
		case strings.ContainsAny(part, ",.") ||
			decimal != ',' && separator != ';' && len(part) == 3 && !strings.Contains(whole, "."):
			return 0, fmt.Errorf("%q may mean two numbers: write it like 1234.5, without a sign between thousands", lab.Clip(text, 60))
		}
		return number(strings.ReplaceAll(whole, ".", "") + "." + part)
	}
}
