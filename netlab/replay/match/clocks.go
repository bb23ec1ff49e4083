package match

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// A page's own clock, performance.now(), starts with its document and is not seeded, so a value made of it
// is another one in every load. The recording tells such values: they are about as large as the time that
// had passed since the document when the request was made.
const (
	// earliestLag and latestLag bound how much earlier than its request a value may have been read. It looks
	// later by what the document's own request took to reach the box.
	earliestLag, latestLag = -600.0, 600.0 // ms
	// earliestSure is earliestLag for a value that can only be a clock's, as on a device that takes long to reach the box.
	earliestSure = -3000.0 // ms
	// leastClock is the least value, in ms, that tells anything: counters and flags are small.
	leastClock = 20.0
	// leastSpread is how far apart requests are that show a value to move with the time between them.
	leastSpread = 100.0 // ms
	// mostClockFields bounds the fields of a request that is looked at.
	mostClockFields = 500
)

// reading is a number in a recorded request.
type reading struct {
	text  string
	value float64
	since float64       // ms from the start of the request's document to the request
	start time.Duration // of that document
}

// numberField is a field of requests whose values are numbers: where it is, and its name there.
type numberField struct{ place, name string }

// clocks finds the fields of recorded requests that are a page's own clock, by Request.numberPlace.
func clocks(entries []*Entry) map[string]map[string]bool {
	readings := map[numberField][]reading{}
	other := map[numberField]bool{} // also had a value that is no number
	var docs documents
	for _, en := range entries {
		docs.add(en)
		start, ok := docs.startOf(en)
		if !ok {
			continue
		}
		since := float64(en.Start-start) / float64(time.Millisecond)
		if r := en.request; len(r.path)+len(r.query)+len(r.body) > mostClockFields {
			continue
		}
		place := ""
		en.request.eachField(func(name, text string) {
			if place == "" {
				place = en.request.numberPlace()
			}
			f := numberField{place, name}
			if v, ok := clockValue(text); ok {
				readings[f] = append(readings[f], reading{text, v, since, start})
			} else {
				other[f] = true
			}
		})
	}
	sure := map[numberField]bool{}
	lags := map[time.Duration]span{} // of what is surely a clock, by document
	for f, list := range readings {
		if sure[f] = !other[f] && isClock(f.name, list); !sure[f] {
			continue
		}
		for _, r := range list {
			if lag := r.since - r.value; lag >= earliestLag && lag <= latestLag {
				lags[r.start] = lags[r.start].with(lag)
			}
		}
	}
	out := map[string]map[string]bool{}
	for f, list := range readings {
		if !sure[f] && (other[f] || !isBesideClock(list, lags)) {
			continue
		}
		if out[f.place] == nil {
			out[f.place] = map[string]bool{}
		}
		out[f.place][f.name] = true
	}
	return out
}

// span is the least and the greatest of some numbers.
type span struct {
	least, most float64
	some        bool
}

func (s span) with(v float64) span {
	if !s.some {
		return span{v, v, true}
	}
	return span{min(s.least, v), max(s.most, v), true}
}

// isBesideClock tells values that are as much earlier than their requests as what is surely a clock of their documents:
// one reading of ten is a whole number, which has no other mark.
func isBesideClock(list []reading, lags map[time.Duration]span) bool {
	const slack = 15.0 // ms
	return !slices.ContainsFunc(list, func(r reading) bool {
		near, lag := lags[r.start], r.since-r.value
		return !near.some || r.value < leastClock || lag < near.least-slack || lag > near.most+slack
	})
}

// isClock judges all values that a field had. One that is a number of milliseconds with the digits that only
// performance.now() has may have been read at any time before its request. Others must be near the time of
// theirs, and have a name of time, a part of a millisecond, or move with the time over several requests.
func isClock(name string, list []reading) bool {
	if slices.ContainsFunc(list, reading.isUnmistakable) {
		return !slices.ContainsFunc(list, func(r reading) bool { return r.value > r.since-earliestSure })
	}
	return slices.ContainsFunc([]float64{1, 1e3, 1e-3}, func(unit float64) bool { // ms, s, µs
		for _, r := range list {
			if lag := r.since - r.value*unit; r.value*unit < leastClock || lag < earliestLag || lag > latestLag {
				return false
			}
		}
		return isTimeName(name) || unit == 1 && slices.ContainsFunc(list, reading.hasPart) || moves(list, unit)
	})
}

// isUnmistakable tells the many digits that are left when a browser subtracts two large times: a whole number of 5 µs,
// the finest that browsers tell, but for an error too small for a measured or a typed value.
func (r reading) isUnmistakable() bool {
	_, part, _ := strings.Cut(r.text, ".")
	steps := r.value * 200
	return len(part) >= 6 && r.value >= 1 && math.Abs(steps-math.Round(steps)) < 1e-4
}

// hasPart tells a part of a millisecond as JavaScript writes it.
func (r reading) hasPart() bool {
	_, part, _ := strings.Cut(r.text, ".")
	return len(part) >= 1 && len(part) <= 3 && part[len(part)-1] != '0'
}

// moves tells that values grew by the time that passed between their requests.
func moves(list []reading, unit float64) bool {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b reading) int { return cmp.Compare(a.since, b.since) })
	first, last := list[0], list[len(list)-1]
	if last.since-first.since < leastSpread {
		return false
	}
	for _, r := range list[1:] {
		passed := r.since - first.since
		if math.Abs((r.value-first.value)*unit-passed) > 50+passed/10 {
			return false
		}
	}
	return true
}

// isTimeName tells names that pages give to what they read of a clock. The name of a segment of a path
// says nothing.
func isTimeName(name string) bool {
	name = strings.ToLower(name[strings.LastIndexAny(name, " ./")+1:])
	switch name {
	case "t", "ts", "time", "now", "at", "ms", "dt", "perf", "tick", "ticks", "rt", "delta", "since", "age":
		return true
	}
	parts := []string{"elapsed", "timestamp", "time_", "_time", "perf", "clock", "uptime", "timing", "monoton", "msec", "millis"}
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
}

// clockValue reads a number of the form that a clock's reading has: digits, and perhaps a fraction.
func clockValue(s string) (float64, bool) {
	if len(s) == 0 || len(s) > 24 || s[0] == '.' || s[len(s)-1] == '.' || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// eachField calls f for every part of a request that may hold a clock.
func (r *Request) eachField(f func(name, value string)) {
	for i, p := range r.path {
		f(segmentName(i), p)
	}
	for _, p := range r.query {
		f("query "+p.name, p.value)
	}
	for _, p := range r.body {
		f("body "+p.name, p.value)
	}
}

// segmentName is what a rule calls a segment of the path: "/1" is the first.
func segmentName(i int) string { return "/" + strconv.Itoa(i+1) }

// numberPlace is place with "#" for segments that are numbers.
func (r *Request) numberPlace() string {
	var b strings.Builder
	b.WriteString(r.method + " " + r.origin)
	for _, p := range r.path {
		if _, ok := clockValue(p); ok {
			p = "#"
		}
		b.WriteString("/" + p)
	}
	return b.String()
}

// clocksOf returns the fields of a request that are clocks, by the names of eachField.
func (g *Ignored) clocksOf(r *Request) map[string]bool {
	if len(g.clocks) == 0 { // numberPlace is not cheap
		return nil
	}
	return g.clocks[r.numberPlace()]
}

// isReading tells that a field, by the name of eachField, is a clock and that the value may be one of its readings.
func isReading(clocks map[string]bool, name, value string) bool {
	if !clocks[name] {
		return false
	}
	_, ok := clockValue(value)
	return ok
}

// documents notes when the pages, frames and workers of a recording began.
type documents struct {
	starts map[string]time.Duration // the latest, by URL
	page   time.Duration            // of the latest page
	known  bool                     // there is a page
	// redirected is when the navigation began whose redirects are being followed.
	redirected   time.Duration
	isRedirected bool
}

// add notes an exchange that brought a document or a worker.
func (d *documents) add(en *Entry) {
	dest := strings.ToLower(en.Request.Get("Sec-Fetch-Dest"))
	kind := strings.ToLower(en.Response.Get("Content-Type"))
	isPage := dest == "document" || dest == "" && strings.HasPrefix(kind, "text/html")
	switch dest {
	case "iframe", "frame", "embed", "object", "worker", "sharedworker", "serviceworker":
	default:
		if !isPage || en.Method == "OPTIONS" {
			return
		}
	}
	start := en.Start
	if isPage {
		if d.isRedirected {
			start = d.redirected
		}
		if d.isRedirected = en.Status/100 == 3 && en.Status != notModified; d.isRedirected {
			d.redirected = start
		}
		d.page, d.known = start, true
	}
	if d.starts == nil {
		d.starts = map[string]time.Duration{}
	}
	d.starts[string(lab.AppendURLKey(nil, en.URL))] = start
}

// startOf returns when the document began that asked for an exchange: that of its Referer field, else the latest page.
func (d *documents) startOf(en *Entry) (time.Duration, bool) {
	if from := en.Request.Get("Referer"); from != "" {
		from, _, _ = strings.Cut(from, "#")
		if start, ok := d.starts[string(lab.AppendURLKey(nil, from))]; ok {
			return start, true
		}
	}
	return d.page, d.known
}

// ruleFor returns the flags of appliance archive edit that make requests equal which differ as listed, ready to be
// pasted into a shell; "" if no rule can.
func ruleFor(recorded, asked *Request, list []difference) string {
	const most = 6 // fields; what differs in more is another request
	var names []string
	path, query, _ := strings.Cut(recorded.url, "?")
	_, askedQuery, _ := strings.Cut(asked.url, "?")
	parts := strings.Split(path, "/")
	for _, d := range list {
		name := ""
		switch {
		case d.where == "query":
			name = d.name
		case d.where == "body" && d.name == "" && asked.kind == "bytes":
			name = anything
		case d.where == "body":
			name = strings.TrimPrefix(d.name, ".")
		case strings.HasPrefix(d.where, "path segment "):
			i, err := strconv.Atoi(d.where[len("path segment "):])
			if err != nil || 2+i >= len(parts) { // scheme:, "", host, segments
				return ""
			}
			name, parts[2+i] = segmentName(i-1), "*"
		}
		if name == "" || strings.ContainsFunc(name, unfit) {
			return ""
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	pattern := strings.TrimSuffix(strings.Join(parts, "/"), "*") + "*"
	switch {
	case query != "" && query == askedQuery && slices.Contains(names, anything): // else the query would not count either
		pattern = strings.Join(parts, "/") + "?" + query + "*"
	case query != "" && askedQuery != "":
		pattern = strings.Join(parts, "/") + "?*"
	}
	if len(names) == 0 || len(names) > most || strings.ContainsFunc(pattern, unfit) || len(pattern) > 500 {
		return ""
	}
	out := "--url '" + pattern + "'"
	for _, n := range names {
		out += " --ignore '" + n + "'"
	}
	return out
}

// anything is the name of a rule for all of a query and a body, also for a body without fields.
const anything = "*"

// unfit tells characters that cannot stand between the single quotes of a shell on one line.
func unfit(c rune) bool { return c == '\'' || c < ' ' || c == 0x7f || c == '\ufffd' }

// nestedFields takes apart a value that is JSON, as pages put it into a query or a form: {"at":1} of ctx is ctx.at. Any
// other value stays what it is.
func nestedFields(pairs []pair) []pair {
	isNested := func(p pair) bool { return nestedJSON(p.value) != nil }
	if !slices.ContainsFunc(pairs, isNested) {
		return pairs
	}
	var out []pair
	for _, p := range pairs {
		fields, ok := []pair(nil), false
		if inner := nestedJSON(p.value); inner != nil {
			fields, ok = jsonFields(inner)
		}
		if !ok || len(out)+len(fields) > maxFields {
			out = append(out, p)
			continue
		}
		for _, f := range fields {
			out = append(out, pair{p.name + f.name, f.value})
		}
	}
	return out
}
