package loglines

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	// dayLine has the day first and the month by its name, or between dots: [27-Nov-2026 09:22:11 UTC] (PHP),
	// 27 Nov 2026 09:22:11.250 (Redis), 27.11.2026 09:22:11.
	dayLine = regexp.MustCompile(`^\[?(?:[A-Z][a-z]{2}, )?(\d{1,2})[-/ .](\d\d|[A-Z][a-z]{2})[-/ .](\d{4})[ :]{1,2}(\d\d:\d\d:\d\d)([.,]\d{1,9})?` +
		`(?: (UTC|GMT|Z|[A-Z]\w+(?:/\w+){1,2}|[+-]\d\d:?\d\d))?\]?[:,;\s]+(.*)$`)
	// halfDayLine is the first line of an entry of java.util.logging: Nov 27, 2026 9:22:11 AM.
	halfDayLine = regexp.MustCompile(`^([A-Z][a-z]{2} \d{1,2}, \d{4})[, ]{1,2}(\d{1,2}:\d\d:\d\d)([.,]\d{1,9})?[ \x{202f}]([AP]M)[:\s]+(.*)$`)
	// basicLine is ISO 8601 without signs between: 20261127T092211.250Z.
	basicLine = regexp.MustCompile(`^\[?(\d{8}[T-]\d{6})([.,]\d{1,9})?(Z|[+-]\d\d:?\d\d)?\]?[:\s]+(.*)$`)
)

// dated reads a stamp whose day comes first, or with the half of the day, or without signs between its parts.
func dated(line string, o Options) (Entry, bool) {
	if m := halfDayLine.FindStringSubmatch(line); m != nil {
		return placed("Jan 2, 2006 3:04:05 PM", m[1]+" "+m[2]+" "+m[4], m[3], m[5], o.Zone)
	}
	if m := basicLine.FindStringSubmatch(line); m != nil {
		return zoned("20060102T150405", strings.Replace(m[1], "-", "T", 1), m[2], m[3], m[4], o)
	}
	m := dayLine.FindStringSubmatch(line)
	if m == nil || isDotted(m[2]) && !strings.HasPrefix(strings.TrimPrefix(line, "[")[len(m[1]):], ".") {
		return Entry{}, false // with other signs than dots, day and month may be either
	}
	layout := "2-Jan-2006 15:04:05"
	if isDotted(m[2]) {
		layout = "2-01-2006 15:04:05"
	}
	return zoned(layout, m[1]+"-"+m[2]+"-"+m[3]+" "+m[4], m[5], m[6], m[7], o)
}

func isDotted(month string) bool { return month[0] >= '0' && month[0] <= '9' }

// zoned parses a stamp with a zone: an offset, a name, or none.
func zoned(layout, text, fraction, zone, rest string, o Options) (Entry, bool) {
	switch zone = strings.ReplaceAll(zone, ":", ""); {
	case zone == "":
		if m := zoneWord.FindStringSubmatch(rest); m != nil {
			if e, isZone, ok := abbreviated(layout, text, fraction, m[1], m[2], o); isZone {
				return e, ok
			}
		}
		return placed(layout, text, fraction, rest, o.Zone)
	case zone == "Z", zone == "UTC", zone == "GMT":
		return placed(layout, text, fraction, rest, time.UTC)
	case strings.Contains(zone, "/"):
		where, err := time.LoadLocation(zone)
		if err != nil {
			return Entry{}, false
		}
		return placed(layout, text, fraction, rest, where)
	case len(zone) == len("+01"):
		zone += "00"
	}
	return placed(layout+" -0700", text+" "+zone, fraction, rest, o.Zone)
}

// prefixed reads a stamp that stands behind a few words: INFO [2026-11-27 09:22:11,250], web-1 | 2026-11-27T09:22:11Z.
func prefixed(line string, o Options) (Entry, bool) {
	const longest, most = 64, 8 // bytes and words before it
	tried := 0
	for i := 1; i < min(len(line), longest) && tried < most; i++ {
		if !strings.ContainsRune(" \t[|,\"", rune(line[i-1])) || line[i] < '0' || line[i] > '9' && (line[i] < 'A' || line[i] > 'Z') {
			continue
		}
		tried++
		for _, parse := range []func(string, Options) (Entry, bool){rfc3339, dated, nginxError} {
			if e, ok := parse(line[i:], o); ok {
				e.Text = strings.TrimSpace(strings.TrimRight(line[:i], " \t[|,\"") + " " + e.Text)
				return e, true
			}
		}
	}
	return Entry{}, false
}

// stampOf is the text of a stamp in JSON: a text, a number, or an object of MongoDB, Google's Cloud or log4j.
func stampOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts struct {
		Date    json.RawMessage `json:"$date"`
		Seconds json.Number     `json:"seconds"`
		Nanos   int64           `json:"nanos"`
		Epoch   json.Number     `json:"epochSecond"`
		OfEpoch int64           `json:"nanoOfSecond"`
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	switch {
	case len(parts.Date) > 0 && parts.Date[0] != '{':
		return stampOf(parts.Date)
	case parts.Seconds != "":
		return fmt.Sprintf("%s.%09d", parts.Seconds, parts.Nanos)
	case parts.Epoch != "":
		return fmt.Sprintf("%s.%09d", parts.Epoch, parts.OfEpoch)
	}
	return string(raw)
}

// guesses are the formats that may also be part of a text: they count for lines as long as no other format does.
func guesses(f format) bool { return slices.Contains([]string{"clock", "prefixed"}, f.name) }
