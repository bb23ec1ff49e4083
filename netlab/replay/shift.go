package replay

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// shifter moves the dates of a header by the time since it was recorded, so that
// every lifetime is as recorded.
type shifter struct {
	recorded time.Time     // when the exchange was recorded
	delta    time.Duration // from then to now
	steady   time.Duration // from the recording's start to the session's: the same for each request
}

// date returns a date moved by a duration, or value, the recorded text, if nothing moves.
func (s shifter) date(value string, at time.Time, by time.Duration) string {
	if s.delta == 0 {
		return value
	}
	return moved(value, at, by)
}

// moved is the text of a date moved by a duration. The end of the year 9999, which servers write for never, stays: no
// browser reads a later year.
func moved(value string, at time.Time, by time.Duration) string {
	if at = at.Add(by).UTC(); at.Year() > 9999 {
		return value
	}
	return at.Format(http.TimeFormat)
}

// cookie moves an expiry that was in the future; one in the past deletes the cookie
// and stays.
func (s shifter) cookie(v string) string {
	if s.delta == 0 {
		return v
	}
	parts := strings.Split(v, ";")
	for i, p := range parts {
		name, value, ok := strings.Cut(p, "=")
		if !ok || i == 0 || !strings.EqualFold(strings.TrimSpace(name), "expires") {
			continue
		}
		t, err := looseTime(value)
		if err == nil && t.After(s.recorded) {
			parts[i] = name + "=" + moved(value, t, s.delta)
		}
	}
	return strings.Join(parts, ";")
}

var errNoTime = errors.New("it is no time") // constant

// looseTime reads a time as browsers do (RFC 6265, 5.1.1): its parts, whatever stands between and behind them.
func looseTime(v string) (time.Time, error) {
	clock, day, month, year := time.Duration(-1), 0, time.Month(0), -1
	for token := range strings.FieldsFuncSeq(v, func(r rune) bool { return r < 0x80 && r != ':' && !isAlphanumeric(byte(r)) }) {
		n, digits := number(token)
		switch {
		case clock < 0 && strings.Count(token, ":") >= 2:
			clock = clockOf(token)
		case day == 0 && (digits == 1 || digits == 2):
			day = n
		case month == 0 && monthOf(token) != 0:
			month = monthOf(token)
		case year < 0 && digits >= 2 && digits <= 4:
			if year = n; n < 70 {
				year += 2000
			} else if n < 100 {
				year += 1900
			}
		}
	}
	t := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	if clock < 0 || day == 0 || month == 0 || year < 1601 || t.Day() != day {
		return time.Time{}, errNoTime
	}
	return t.Add(clock), nil
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// number reads the digits that a token begins with.
func number(token string) (n, digits int) {
	digits = len(token) - len(strings.TrimLeft(token, "0123456789"))
	n, _ = strconv.Atoi(token[:min(digits, 4)])
	return n, digits
}

// clockOf reads 8:05:09, or is negative.
func clockOf(token string) time.Duration {
	var t time.Duration
	for i, part := range strings.SplitN(token, ":", 3) {
		n, digits := number(part)
		if most := [...]int{23, 59, 59}[i]; digits < 1 || digits > 2 || n > most || i < 2 && digits < len(part) {
			return -1
		}
		t = 60*t + time.Duration(n)*time.Second
	}
	return t
}

// monthOf reads the month that a token begins with; 0 for none.
func monthOf(token string) time.Month {
	const all = "janfebmaraprmayjunjulaugsepoctnovdec"
	if len(token) < 3 {
		return 0
	}
	if at := strings.Index(all, strings.ToLower(token[:3])); at >= 0 && at%3 == 0 {
		return time.Month(1 + at/3)
	}
	return 0
}
