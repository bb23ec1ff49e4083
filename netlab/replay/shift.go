package replay

import (
	"net/http"
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
	return at.Add(by).UTC().Format(http.TimeFormat)
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
		t, err := cookieTime(strings.TrimSpace(value))
		if err == nil && t.After(s.recorded) {
			parts[i] = name + "=" + t.Add(s.delta).UTC().Format(http.TimeFormat)
		}
	}
	return strings.Join(parts, ";")
}

// cookieTime reads the forms of RFC 6265 that servers use.
func cookieTime(v string) (time.Time, error) {
	if t, err := http.ParseTime(v); err == nil {
		return t, nil
	}
	t, err := time.Parse("Mon, 02-Jan-2006 15:04:05 MST", v)
	if err != nil {
		t, err = time.Parse("Monday, 02-Jan-06 15:04:05 MST", v)
	}
	return t, err
}
