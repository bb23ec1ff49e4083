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

// inZone parses a stamp by the abbreviation of a zone, where that means one: in the zone that the person names, or
// anywhere. isZone says that the word is such an abbreviation.
func inZone(layout, text, word string, o Options) (at time.Time, isZone, ok bool) {
	hours, known := hoursOf[word]
	at, err := time.ParseInLocation(layout, text, o.Zone)
	if err != nil {
		return at, known, false
	}
	name, _ := at.Zone()
	switch {
	case name == word:
		return at, true, true
	case known:
		at, err = time.ParseInLocation(layout, text, time.FixedZone(word, int(hours*3600)))
		return at, true, err == nil
	}
	return at, slices.Contains(severalZones, word), false
}
