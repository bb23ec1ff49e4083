package replay

import (
	"strconv"
	"strings"
)

// contentRange is what a 206 holds: bytes first to last of total (RFC 9110, 14.4).
type contentRange struct{ first, last, total int }

// parseContentRange reads "bytes 0-99/200"; nil when it is something else or
// does not fit a body of n bytes.
func parseContentRange(s string, n int) *contentRange {
	rest, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(s)), "bytes ")
	if !ok {
		return nil
	}
	span, total, _ := strings.Cut(rest, "/")
	first, last, _ := strings.Cut(span, "-")
	var c contentRange
	var errs [3]error
	c.first, errs[0] = strconv.Atoi(strings.TrimSpace(first))
	c.last, errs[1] = strconv.Atoi(strings.TrimSpace(last))
	c.total, errs[2] = strconv.Atoi(strings.TrimSpace(total))
	if errs[0] != nil || errs[1] != nil || errs[2] != nil || c.first < 0 || c.last < c.first || c.total <= c.last || c.last-c.first+1 != n {
		return nil
	}
	return &c
}

// whole tells whether the part is everything.
func (c *contentRange) whole() bool { return c != nil && c.first == 0 && c.last == c.total-1 }

// covers tells whether a Range field's one range lies inside the part.
func (c *contentRange) covers(field string) bool {
	if c == nil {
		return false
	}
	first, last, state := parseRange(field, c.total)
	return state == rangeGood && first >= c.first && last <= c.last
}

type rangeState int

const (
	rangeIgnored       rangeState = iota // not understood, or several: answer with all
	rangeGood                            // one range, clipped to the body
	rangeUnsatisfiable                   // outside the body: 416
)

// parseRange reads a Range field with one range for a body of n bytes
// (RFC 9110, 14.1.2). Several ranges at once are ignored, as servers may.
func parseRange(field string, n int) (first, last int, state rangeState) {
	spec, ok := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(field, " ", "")), "bytes=")
	if !ok || strings.Contains(spec, ",") {
		return 0, 0, rangeIgnored
	}
	a, b, ok := strings.Cut(spec, "-")
	if !ok {
		return 0, 0, rangeIgnored
	}
	if a == "" {
		length, err := strconv.Atoi(b)
		switch {
		case err != nil || length < 0:
			return 0, 0, rangeIgnored
		case length == 0 || n == 0:
			return 0, 0, rangeUnsatisfiable
		}
		return max(0, n-length), n - 1, rangeGood
	}
	first, err := strconv.Atoi(a)
	if err != nil || first < 0 {
		return 0, 0, rangeIgnored
	}
	last = n - 1
	if b != "" {
		end, err := strconv.Atoi(b)
		if err != nil || end < first {
			return 0, 0, rangeIgnored
		}
		last = min(last, end)
	}
	if first >= n {
		return 0, 0, rangeUnsatisfiable
	}
	return first, last, rangeGood
}
