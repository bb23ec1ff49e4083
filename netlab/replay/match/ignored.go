package match

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ignored says which parts of a request make no difference: those that the
// recording shows not to matter, and those that its rules name.
type Ignored struct {
	// idle names query parameters, by Request.place.
	idle map[string]map[string]bool
	// telling holds places (Request.widePlace) where a UUID or a long number in the path tells things
	// apart: the recording has several, with different answers.
	telling map[string]bool
	// numbers names query parameters, by Request.place, whose long numbers tell things apart in the same way, and are
	// no times.
	numbers map[string]map[string]bool
	// clocks holds fields that are a page's own clock, by Request.numberPlace and the names of eachField.
	clocks map[string]map[string]bool
	// functions names query parameters, by Request.place, that name the function which the answer calls.
	functions map[string]map[string]bool
	// rule tells whether a rule leaves a query parameter or body field of a request
	// with a URL out; nil without rules.
	rule func(url, name string) bool
}

// byRule tells whether a rule leaves a query parameter, a body field or a segment of the path ("/1") out. One for
// an object leaves out all that is in it.
func (g *Ignored) byRule(url, name string) bool {
	if g.rule == nil {
		return false
	}
	for i := 1; i < len(name); i++ {
		if name[i] == '.' && g.rule(url, name[:i]) {
			return true
		}
	}
	return g.rule(url, name)
}

// mostParameters bounds the queries that are compared; longer ones are not worth the time.
const mostParameters = 24

// place is the part of a URL that idle parameters belong to, with the method.
func (r *Request) place() string { return r.method + " " + r.origin + "/" + strings.Join(r.path, "/") }

// Learn compares requests of a recording that differ in the value of one query
// parameter: the parameter does not matter if their answers are always equal. Nor do fields that are the page's
// own clock.
// rule, which may be nil, tells the query parameters and body fields that the
// recording's rules leave out.
func Learn(entries []*Entry, rule func(url, name string) bool) *Ignored {
	return &Ignored{
		idle: idleParameters(entries), telling: tellingPaths(entries), numbers: tellingNumbers(entries), clocks: clocks(entries),
		functions: functionParameters(entries), rule: rule,
	}
}

// passes tells that a segment of the path is a value of time or chance, which may be another one, or is left out by a
// rule.
func (g *Ignored) passes(r *Request, segment int) bool {
	v := r.path[segment]
	if _, ok := clockValue(v); ok && isReading(g.clocksOf(r), segmentName(segment), v) {
		return true
	}
	if g.rule != nil && g.rule(r.url, segmentName(segment)) {
		return true
	}
	return isVolatile(v) && !(len(g.telling) > 0 && mayIdentify(v) && g.telling[r.widePlace()])
}

// mayIdentify tells values that have the form of chance or time and may be identifiers all the same:
// UUIDs and long numbers.
func mayIdentify(v string) bool { return isUUID(v) || isVolatile(v) && isDigits(v) }

// widePlace is place with "*" for such values.
func (r *Request) widePlace() string {
	var b strings.Builder
	b.WriteString(r.method + " " + r.origin)
	for _, p := range r.path {
		if mayIdentify(p) {
			p = "*"
		}
		b.WriteString("/" + p)
	}
	return b.String()
}

// tellingPaths finds paths that were recorded with several such values and different answers: there
// they are identifiers, and no values of time or chance.
func tellingPaths(entries []*Entry) map[string]bool {
	type first struct{ place, answer string }
	seen, telling := map[string]first{}, map[string]bool{}
	for _, en := range entries {
		r := en.request
		if !slices.ContainsFunc(r.path, mayIdentify) || en.Truncated != "" {
			continue
		}
		wide := r.widePlace()
		old, ok := seen[wide]
		switch {
		case !ok:
			seen[wide] = first{r.place(), en.answerSum}
		case old.place != r.place() && old.answer != en.answerSum:
			telling[wide] = true
		}
	}
	return telling
}

// tellingNumbers finds query parameters that were recorded with several long numbers and different answers. The
// numbers of a poll that asks what has come since a time are times of the recording.
func tellingNumbers(entries []*Entry) map[string]map[string]bool {
	type first struct{ value, answer string }
	seen, telling := map[string]first{}, map[string]map[string]bool{}
	for _, en := range entries {
		r := en.request
		if en.Truncated != "" || len(r.query) > mostParameters {
			continue
		}
		for i, p := range r.queryByName {
			if !isDigits(p.value) || !isVolatile(p.value) || (pair{p.name, "x"}).isVolatile() || isNear(p.value, en.Wall) {
				continue
			}
			rest := slices.Concat(r.queryByName[:i], r.queryByName[i+1:])
			key := string(appendPairs([]byte(r.place()+"?"), rest, pair.isVolatile)) + " " + p.name + " " + r.sum
			old, ok := seen[key]
			switch {
			case !ok:
				seen[key] = first{p.value, en.answerSum}
			case old.value != p.value && old.answer != en.answerSum:
				if telling[r.place()] == nil {
					telling[r.place()] = map[string]bool{}
				}
				telling[r.place()][p.name] = true
			}
		}
	}
	return telling
}

// isNear tells that a number of seconds, ms or µs since 1970 is a time of about a year around another; without that
// one, every number may be.
func isNear(digits string, wall time.Time) bool {
	const year = 366 * 24 * time.Hour
	n, err := strconv.ParseInt(digits[:min(len(digits), 10)], 10, 64)
	return err != nil || wall.IsZero() || time.Unix(n, 0).Sub(wall).Abs() < year
}

func idleParameters(entries []*Entry) map[string]map[string]bool {
	type first struct{ value, answer string }
	seen := map[string]first{}
	idle, matters := map[string]map[string]bool{}, map[string]bool{}
	for _, en := range entries {
		r := en.request
		if len(r.query) == 0 || len(r.query) > mostParameters || en.Truncated != "" || len(en.Response.Body) == 0 {
			continue
		}
		for i, p := range r.queryByName {
			rest := make([]pair, 0, len(r.query))
			rest = append(append(rest, r.queryByName[:i]...), r.queryByName[i+1:]...)
			key := string(appendPairs([]byte(r.place()+"?"), rest, pair.isVolatile)) + " " + p.name + " " + r.sum
			old, ok := seen[key]
			switch {
			case !ok:
				seen[key] = first{p.value, en.answerSum}
			case old.value == p.value:
			case old.answer != en.answerSum:
				matters[r.place()+" "+p.name] = true
			default:
				if idle[r.place()] == nil {
					idle[r.place()] = map[string]bool{}
				}
				idle[r.place()][p.name] = true
			}
		}
	}
	for place, names := range idle {
		for name := range names {
			if matters[place+" "+name] {
				delete(names, name)
			}
		}
	}
	return idle
}
