package match

import (
	"strconv"
	"strings"
)

// Part is what a 206 response holds: the bytes First to Last of Total (RFC 9110, 14.4).
type Part struct{ First, Last, Total int }

// parseContentRange reads "bytes 0-99/200". It returns nil for another text and for
// one that does not fit a body of n bytes.
func parseContentRange(s string, n int) *Part {
	rest, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(s)), "bytes ")
	if !ok {
		return nil
	}
	span, total, _ := strings.Cut(rest, "/")
	first, last, _ := strings.Cut(span, "-")
	var p Part
	var errs [3]error
	p.First, errs[0] = strconv.Atoi(strings.TrimSpace(first))
	p.Last, errs[1] = strconv.Atoi(strings.TrimSpace(last))
	p.Total, errs[2] = strconv.Atoi(strings.TrimSpace(total))
	if errs[0] != nil || errs[1] != nil || errs[2] != nil || p.First < 0 || p.Last < p.First || p.Total <= p.Last || p.Last-p.First+1 != n {
		return nil
	}
	return &p
}

// isComplete tells whether the part is everything.
func (p *Part) isComplete() bool { return p != nil && p.First == 0 && p.Last == p.Total-1 }

// covers tells whether a Range field's one range lies inside the part.
func (p *Part) covers(field string) bool {
	if p == nil {
		return false
	}
	first, last, verdict := ParseRange(field, p.Total)
	return verdict == RangeGood && first >= p.First && last <= p.Last
}

// RangeVerdict says what to do with a Range field.
type RangeVerdict int

// The verdicts.
const (
	RangeIgnored       RangeVerdict = iota // not understood, or several ranges: answer with everything
	RangeGood                              // one range, clipped to the body
	RangeUnsatisfiable                     // outside the body: 416
)

// ParseRange reads a Range field with one range for a body of n bytes
// (RFC 9110, 14.1.2). Several ranges at once are ignored, as servers may.
func ParseRange(field string, n int) (first, last int, verdict RangeVerdict) {
	spec, ok := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(field, " ", "")), "bytes=")
	if !ok || strings.Contains(spec, ",") {
		return 0, 0, RangeIgnored
	}
	a, b, ok := strings.Cut(spec, "-")
	if !ok {
		return 0, 0, RangeIgnored
	}
	if a == "" {
		length, err := strconv.Atoi(b)
		switch {
		case err != nil || length < 0:
			return 0, 0, RangeIgnored
		case length == 0 || n == 0:
			return 0, 0, RangeUnsatisfiable
		}
		return max(0, n-length), n - 1, RangeGood
	}
	first, err := strconv.Atoi(a)
	if err != nil || first < 0 {
		return 0, 0, RangeIgnored
	}
	last = n - 1
	if b != "" {
		end, err := strconv.Atoi(b)
		if err != nil || end < first {
			return 0, 0, RangeIgnored
		}
		last = min(last, end)
	}
	if first >= n {
		return 0, 0, RangeUnsatisfiable
	}
	return first, last, RangeGood
}
