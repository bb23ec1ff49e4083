package match

import (
	"math"
	"strconv"
	"strings"
)

// Part is what a 206 response holds: the bytes First to Last of Total (RFC 9110, 14.4).
type Part struct {
	First, Last int
	Total       int  // -1 if the origin did not know it ("*")
	ToEnd       bool // it was asked for all from First on
}

// parseContentRange reads "bytes 0-99/200" or "bytes 0-99/*", the answer to a Range. It returns nil for another text
// and for one that does not fit a body of n bytes.
func parseContentRange(s, asked string, n int) *Part {
	span, total, ok := cutContentRange(s)
	if !ok {
		return nil
	}
	first, last, _ := strings.Cut(span, "-")
	p := Part{ToEnd: strings.HasSuffix(strings.TrimSpace(asked), "-")}
	var errs [3]error
	p.First, errs[0] = strconv.Atoi(strings.TrimSpace(first))
	p.Last, errs[1] = strconv.Atoi(strings.TrimSpace(last))
	if p.Total = -1; total != "*" {
		p.Total, errs[2] = strconv.Atoi(total)
	}
	outside := p.First < 0 || p.Last < p.First || total != "*" && p.Total <= p.Last
	if errs[0] != nil || errs[1] != nil || errs[2] != nil || outside || p.Last-p.First+1 != n {
		return nil
	}
	return &p
}

// cutContentRange takes a Content-Range of bytes apart.
func cutContentRange(s string) (span, total string, ok bool) {
	rest, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(s)), "bytes")
	span, total, isCut := strings.Cut(rest, "/")
	return strings.TrimSpace(span), strings.TrimSpace(total), ok && isCut
}

// isComplete tells whether the part is everything.
func (p *Part) isComplete() bool { return p != nil && p.First == 0 && p.Last == p.Total-1 }

// answers tells whether the part has what a Range field asks for, or knows that there is no such range.
func (p *Part) answers(field string) bool {
	if p == nil {
		return false
	}
	first, last, verdict := p.Range(field)
	return verdict == RangeUnsatisfiable || verdict == RangeGood && first >= p.First && last <= p.Last
}

// Range reads a Range field for the representation that p is a part of. Where its length is not known, there is no
// range that counts from its end, and what is asked for to the end ends where the part does, if that was asked for like
// this.
func (p *Part) Range(field string) (first, last int, verdict RangeVerdict) {
	if p.Total >= 0 {
		return ParseRange(field, p.Total)
	}
	first, last, verdict = ParseRange(field, math.MaxInt)
	_, end, _ := strings.Cut(field, "-")
	switch {
	case verdict != RangeGood || first == 0 && strings.Contains(field, "=-"):
		return 0, 0, RangeIgnored
	case strings.TrimSpace(end) == "" && p.ToEnd:
		last = p.Last
	}
	return first, last, verdict
}

// refuses tells whether a 416 that was recorded says that there is no such range: of the length that it names.
func (en *Entry) refuses(field string) bool {
	_, total, ok := cutContentRange(en.Response.Get("Content-Range"))
	n, err := strconv.Atoi(total)
	if !ok || err != nil {
		return false
	}
	_, _, verdict := ParseRange(field, n)
	return verdict == RangeUnsatisfiable
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
