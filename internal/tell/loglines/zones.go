package loglines

import (
	"regexp"
	"slices"
	"time"
)

// hoursOf are the abbreviations of zones that mean one offset from UTC, in hours.
var hoursOf = map[string]float64{ // constant
	"HST": -10, "AKST": -9, "AKDT": -8, "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CDT": -5, "EST": -5, "EDT": -4, "NST": -3.5, "NDT": -2.5,
	"BRT": -3, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MEZ": 1, "MESZ": 2, "EET": 2, "EEST": 3, "SAST": 2, "MSK": 3, "PKT": 5, "HKT": 8, "SGT": 8,
	"AWST": 8, "JST": 9, "KST": 9, "ACST": 9.5, "ACDT": 10.5, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13,
}

// severalZones are those that mean one offset here and another one there.
var severalZones = []string{"CST", "IST", "BST", "AST", "SST"} // constant

// zoneWord is what may be the abbreviation of a zone behind a stamp, with what follows it.
var zoneWord = regexp.MustCompile(`^([A-Z]{3,5})\b["\]]?[:,;|\s]*(.*)$`) // constant

// abbreviated reads a stamp by the abbreviation of a zone: of the one that the person names, or one that means the same
// everywhere. isZone says whether the word is one at all.
func abbreviated(layout, text, fraction, word, rest string, o Options) (e Entry, isZone, ok bool) {
	hours, isKnown := hoursOf[word]
	zone := o.Zone
	at, err := time.ParseInLocation(layout, text, zone)
	switch name, _ := at.Zone(); {
	case err == nil && name == word:
	case isKnown:
		zone = time.FixedZone(word, int(hours*3600))
	default:
		return Entry{}, slices.Contains(severalZones, word), false
	}
	e, ok = placed(layout, text, fraction, rest, zone)
	return e, true, ok
}
