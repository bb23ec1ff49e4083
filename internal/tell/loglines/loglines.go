// Package loglines reads the logs of programs, a line an entry, and puts them onto the box's clock. In flow the text of a
// log, which anyone may have written, the clocks of the machine that wrote it, as pairs of a stamp and an interval on
// the box's clock, and rules; out flow annotations with the bounds of their times. The stamps are those of RFC 3339
// (and ISO 8601), of seconds since 1970, of syslog (RFC 3164 and RFC 5424), of journald (journalctl -o json), of
// Android's logcat (-v threadtime and -v time), of web servers (access and error), of Chromium's console
// (--enable-logging=stderr), of Google's glog, of ctime(3), of PHP, Redis and java.util.logging (dated), of lines of JSON
// and of names with values (logfmt), of the kernel's monotonic clock ([  123.456789]), those behind a few words
// (prefixed), and those that have a time of the day alone.
package loglines

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of a log.
const (
	maxLine  = 64 << 10
	maxBytes = 1 << 30
)

// Entry is a line of a log. Its time, by the clock of the machine that wrote it, lies in [At, At+Grain].
type Entry struct {
	At    time.Time
	Grain time.Duration
	Text  string
	// Monotonic is the stamp of that machine's monotonic clock, where the line has one; −1 else.
	Monotonic time.Duration
}

// Options say what a line does not.
type Options struct {
	// Format is one of Formats; "" finds out by the first lines.
	Format string
	// Near is a time at which the log was written, for stamps without a year; Zone is that of stamps without one.
	Near time.Time
	Zone *time.Location
}

type format struct {
	name  string
	parse func(line string, o Options) (Entry, bool)
}

// formats in the order in which they are tried: the narrower before the wider.
func formats() []format {
	return []format{
		{"journald", journald}, {"json", jsonLine}, {"nginx", nginx}, {"nginx-error", nginxError}, {"logcat", logcat},
		{"console", console}, {"syslog", syslog}, {"ctime", ctime}, {"glog", glog}, {"rfc3339", rfc3339},
		{"dated", dated}, {"monotonic", monotonic}, {"epoch", epoch}, {"logfmt", logfmt}, {"prefixed", prefixed}, {"clock", clock},
	}
}

// Formats are the names of all formats.
func Formats() (names []string) {
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// Read calls take with each entry of a log. Lines without a stamp are counted and left out, and so is what of a line is
// beyond 64 KiB. A log of more than 1 GiB is an error.
func Read(r io.Reader, o Options, take func(Entry) error) (left int, err error) {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	try := formats()
	if o.Format != "" {
		var one []format
		for _, f := range try {
			if f.name == o.Format {
				one = append(one, f)
			}
		}
		if try = one; len(try) == 0 {
			return 0, fmt.Errorf("format %.20q: choose from %s", o.Format, strings.Join(Formats(), ", "))
		}
	}
	limited := &io.LimitedReader{R: r, N: maxBytes + 1}
	in, err := plainText(limited)
	if err != nil {
		return 0, err
	}
	for {
		text, err := in.ReadSlice('\n')
		line := string(text)
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = in.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return left, err
		}
		if line = strings.Trim(withoutColours(strings.TrimPrefix(line, "\ufeff")), "\r\n"); strings.TrimSpace(line) != "" {
			e, f, ok := parse(strings.TrimLeft(line, " \t"), o, try)
			switch {
			case !ok || e.Monotonic < 0 && (e.At.Year() < 1970 || e.At.Year() > 2200):
				left++
			default:
				if o.Format == "" {
					try[0], try[f] = try[f], try[0] // most lines of a log are like the one before
				}
				if !guesses(try[0]) {
					try = slices.DeleteFunc(try, guesses)
				}
				if err := take(e); err != nil {
					return left, err
				}
			}
		}
		switch {
		case err == nil:
		case limited.N <= 0:
			return left, fmt.Errorf("it has more than %d GiB: give the part of the run", maxBytes>>30)
		default:
			return left, nil
		}
	}
}

func parse(line string, o Options, try []format) (Entry, int, bool) {
	for i, f := range try {
		if e, ok := f.parse(line, o); ok {
			return e, i, true
		}
	}
	return Entry{}, 0, false
}

// stamped is an entry of the wall clock. The grain is that of the stamp's last digit.
func stamped(at time.Time, fraction string, text string) (Entry, bool) {
	digits := min(len(strings.TrimLeft(fraction, ".,")), 9)
	return Entry{At: at, Grain: time.Duration(math.Pow10(9 - digits)), Text: strings.TrimSpace(text), Monotonic: -1}, true
}

// The stamps, each at the beginning of a line.
var (
	rfc3339Line = regexp.MustCompile(`^["\[]?(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d)[Tt _\t](\d\d:\d\d:\d\d)([.,]\d{1,12})?` +
		`(?:( ?(?:[Zz]|UTC|GMT|[+-]\d\d:?\d\d)|[+-]\d\d)["\]]?[:,;|\s]+|\]?[:\s]+)(.*)$`)
	epochLine     = regexp.MustCompile(`^\[?(\d{9,10})(\.\d{1,9})?\]?[:\s]+(.*)$`)
	finerLine     = regexp.MustCompile(`^\[?(\d{13}|\d{16}|\d{19})(?:\.\d{1,9})?\]?[:\s]+(.*)$`)
	monotonicLine = regexp.MustCompile(`^(?:<\d{1,3}>)?\[\s*(\d{1,9})(\.\d{3,9})\]\s*(.*)$`)
	syslogLine    = regexp.MustCompile(`^(?:<\d{1,3}>)?([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)(\.\d{1,9})? \S+ (.*)$`)
	logcatLine    = regexp.MustCompile(`^(\d\d-\d\d \d\d:\d\d:\d\d)(\.\d{3,9})(?: ([+-]\d{4}))?\s+` +
		`(?:(?:\S+\s+)?(\d+)\s+(\d+) ([VDIWEFAS]) |[VDIWEFAS]/)(.*)$`)
	nginxLine = regexp.MustCompile(`^(\S+ \S+ .*?)\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d)` +
		`([.,]\d{1,9})?( [+-]\d{4})?\] (.*)$`)
	nginxISOLine = regexp.MustCompile(`^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F:]*:[0-9a-fA-F:]+|[A-Za-z][\w.-]*) \S+ \S+ ` +
		`\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*)\] (.*)$`)
	nginxErrorLine = regexp.MustCompile(`^(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)([.,]\d{1,9})?\]?:? (.*)$`)
	consoleLine    = regexp.MustCompile(`^\[(?:\d+:\d+:)?(\d{4}/\d{6})(\.\d{1,9})?:(\S+)\] (.*)$`)
)

func rfc3339(line string, o Options) (Entry, bool) {
	m := rfc3339Line.FindStringSubmatch(line)
	if m == nil {
		return Entry{}, false
	}
	return zoned("2006-01-02 15:04:05", m[1]+" "+m[2], m[3], strings.ToUpper(strings.TrimSpace(m[4])), m[5], o)
}

// placed parses a stamp and adds its fraction of a second.
func placed(layout, text, fraction, rest string, zone *time.Location) (Entry, bool) {
	at, err := time.ParseInLocation(layout, text, zone)
	if err != nil {
		return Entry{}, false
	}
	return stamped(at.Add(fractionOf(fraction)), fraction, rest)
}

// fractionOf is .123 or ,123 of a second.
func fractionOf(text string) time.Duration {
	text = strings.TrimLeft(text, ".,")
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt((text + "000000000")[:9], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n)
}

func epoch(line string, _ Options) (Entry, bool) {
	if m := finerLine.FindStringSubmatch(line); m != nil { // in ms, µs or ns
		n, err := strconv.ParseInt((m[1] + "000000")[:19], 10, 64)
		if err != nil {
			return Entry{}, false
		}
		return stamped(time.Unix(0, n), "."+m[1][10:], m[2])
	}
	m := epochLine.FindStringSubmatch(line)
	if m == nil {
		return Entry{}, false
	}
	s, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return Entry{}, false
	}
	return stamped(time.Unix(s, 0).Add(fractionOf(m[2])), m[2], m[3])
}

func monotonic(line string, _ Options) (Entry, bool) {
	m := monotonicLine.FindStringSubmatch(line)
	if m == nil {
		return Entry{}, false
	}
	s, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return Entry{}, false
	}
	e, ok := stamped(time.Time{}, m[2], m[3])
	e.Monotonic = time.Duration(s)*time.Second + fractionOf(m[2])
	return e, ok
}

// yearly parses a stamp without a year: that which is nearest to o.Near.
func yearly(layout, text, fraction, rest string, o Options) (Entry, bool) {
	best, found := Entry{}, false
	for _, year := range []int{o.Near.Year() - 1, o.Near.Year(), o.Near.Year() + 1} {
		e, ok := placed("2006 "+layout, fmt.Sprintf("%04d %s", year, text), fraction, rest, o.Zone)
		if ok && (!found || e.At.Sub(o.Near).Abs() < best.At.Sub(o.Near).Abs()) {
			best, found = e, true
		}
	}
	return best, found
}

// rfc5424Line is a line of newer syslog daemons: the time, the host, the program, its process, the message's ID, and its
// structured data with the text.
var rfc5424Line = regexp.MustCompile(`^<\d{1,3}>\d{1,3} (\d{4}-\S+) \S+ (\S+) (\S+) \S+ (?:- ?)?(?:\x{feff})?(.*)$`) // constant

func syslog(line string, o Options) (Entry, bool) {
	if m := rfc5424Line.FindStringSubmatch(line); m != nil {
		return rfc3339(strings.Replace(m[1]+" "+m[2]+"["+m[3]+"]: "+m[4], "[-]", "", 1), o)
	}
	m := syslogLine.FindStringSubmatch(line)
	if m == nil {
		return Entry{}, false
	}
	return yearly("Jan _2 15:04:05", m[1], m[2], m[3], o)
}

func logcat(line string, o Options) (Entry, bool) {
	m := logcatLine.FindStringSubmatch(line)
	switch {
	case m == nil:
		return Entry{}, false
	case m[3] != "":
		return yearly("01-02 15:04:05 -0700", m[1]+" "+m[3], m[2], m[7], o)
	}
	return yearly("01-02 15:04:05", m[1], m[2], m[7], o)
}

func nginx(line string, o Options) (Entry, bool) {
	if m := nginxISOLine.FindStringSubmatch(line); m != nil {
		return rfc3339(m[1]+" "+m[2], o)
	}
	m := nginxLine.FindStringSubmatch(line)
	switch {
	case m == nil:
		return Entry{}, false
	case m[4] != "":
		return placed("02/Jan/2006:15:04:05 -0700", m[2]+m[4], m[3], m[5], o.Zone)
	}
	return placed("02/Jan/2006:15:04:05", m[2], m[3], m[5], o.Zone)
}

// nginxError reads the stamp of nginx's log of errors, which Go's package log has, too.
func nginxError(line string, o Options) (Entry, bool) {
	m := nginxErrorLine.FindStringSubmatch(line)
	if m == nil {
		return Entry{}, false
	}
	return placed("2006/01/02 15:04:05", m[1], m[2], m[3], o.Zone)
}

// console reads Chromium's log (base/logging.cc): [PID:TID:MMDD/HHMMSS.micros:LEVEL:FILE(LINE)] text.
func console(line string, o Options) (Entry, bool) {
	m := consoleLine.FindStringSubmatch(line)
	if m == nil {
		return Entry{}, false
	}
	return yearly("0102/150405", m[1], m[2], m[4], o)
}

// journald reads an object of systemd.journal-fields(7), whose values are texts, or lists of bytes for texts that are
// none.
func journald(line string, _ Options) (Entry, bool) {
	if !strings.HasPrefix(line, "{") {
		return Entry{}, false
	}
	var fields struct {
		Real       string          `json:"__REALTIME_TIMESTAMP"`
		Source     string          `json:"_SOURCE_REALTIME_TIMESTAMP"`
		Monotonic  string          `json:"__MONOTONIC_TIMESTAMP"`
		Message    json.RawMessage `json:"MESSAGE"`
		Identifier string          `json:"SYSLOG_IDENTIFIER"`
	}
	if json.Unmarshal([]byte(line), &fields) != nil {
		return Entry{}, false
	}
	us, err := strconv.ParseInt(fields.Real, 10, 64)
	if source, errSource := strconv.ParseInt(fields.Source, 10, 64); errSource == nil && source > 0 {
		us, err = source, nil // when the program wrote it, not when journald got it
	}
	if err != nil || us <= 0 {
		return Entry{}, false
	}
	var text string
	if json.Unmarshal(fields.Message, &text) != nil {
		var bytes []uint8
		var numbers []int
		if json.Unmarshal(fields.Message, &numbers) != nil {
			return Entry{}, false
		}
		for _, n := range numbers {
			bytes = append(bytes, uint8(n))
		}
		text = string(bytes)
	}
	if fields.Identifier != "" {
		text = fields.Identifier + ": " + text
	}
	e, ok := stamped(time.UnixMicro(us), ".000000", text)
	if own, err := strconv.ParseInt(fields.Monotonic, 10, 64); err == nil && fields.Source == "" && own >= 0 && own < math.MaxInt64/1000 {
		e.Monotonic = time.Duration(own) * time.Microsecond
	}
	return e, ok
}
