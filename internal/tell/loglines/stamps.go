package loglines

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/encoding/unicode"

	"eidetic/internal/base/bounded"
)

// plainText is the text of a log. Windows' programs write UTF-16.
func plainText(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, maxLine)
	head, _ := in.Peek(8) // there may be less
	order := unicode.LittleEndian
	switch packed := bounded.Packed(head); {
	case packed != nil:
		return nil, packed
	case bytes.HasPrefix(head, []byte("LPKSHHRH")): // never shorter
		return nil, errors.New("it is a journal of systemd: journalctl --file FILE -o json writes it as text")
	case bytes.HasPrefix(head, []byte("\xff\xfe")), len(head) >= 4 && head[0] != 0 && head[1]|head[3] == 0:
	case bytes.HasPrefix(head, []byte("\xfe\xff")), len(head) >= 4 && head[1] != 0 && head[0]|head[2] == 0:
		order = unicode.BigEndian
	default:
		return in, nil
	}
	return bufio.NewReaderSize(unicode.UTF16(order, unicode.UseBOM).NewDecoder().Reader(in), maxLine), nil
}

// colours are the sequences by which terminals colour a text (ECMA-48, SGR).
var colours = regexp.MustCompile(`\x1b\[[0-9;:]*m`) // constant

func withoutColours(line string) string {
	if !strings.Contains(line, "\x1b[") {
		return line
	}
	return colours.ReplaceAllString(line, "")
}

var (
	ctimeLine = regexp.MustCompile(`^\[?[A-Z][a-z]{2} ([A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d)([.,]\d{1,9})?` +
		`(?: ([A-Z]{3,5}))? (\d{4})\]?[:\s]*(.*)$`)
	glogLine  = regexp.MustCompile(`^[IWEFD](\d{4} \d\d:\d\d:\d\d)(\.\d{1,9})?\s+\d+ (.*)$`)
	clockLine = regexp.MustCompile(`^\[?(\d\d:\d\d:\d\d)([.,]\d{1,9})?\]?[:\s]+(.*)$`)
)

// ctime reads the stamp of ctime(3), as Apache's log of errors and dmesg -T have it: [Sun Mar  1 10:22:11.250 2026].
func ctime(line string, o Options) (Entry, bool) {
	m := ctimeLine.FindStringSubmatch(line)
	if m == nil {
		return Entry{}, false
	}
	const layout = "Jan _2 15:04:05 2006"
	text := m[1] + " " + m[4]
	if zone := m[3]; zone != "" && zone != "UTC" && zone != "GMT" {
		e, _, ok := abbreviated(layout, text, m[2], zone, m[5], o)
		return e, ok
	}
	return zoned(layout, text, m[2], m[3], m[5], o)
}

// glog reads a line of Google's logs, and of Kubernetes': I0301 10:22:11.250000 7 cart.go:3] text.
func glog(line string, o Options) (Entry, bool) {
	m := glogLine.FindStringSubmatch(line)
	if m == nil {
		return Entry{}, false
	}
	return yearly("0102 15:04:05", m[1], m[2], m[3], o)
}

// clock reads a stamp without a date: that of the day which is nearest to o.Near.
func clock(line string, o Options) (Entry, bool) {
	m := clockLine.FindStringSubmatch(line)
	if m == nil {
		return Entry{}, false
	}
	best, found := Entry{}, false
	for day := -1; day <= 1; day++ {
		date := o.Near.In(o.Zone).AddDate(0, 0, day).Format(time.DateOnly)
		e, ok := placed("2006-01-02 15:04:05", date+" "+m[1], m[2], m[3], o.Zone)
		if ok && (!found || e.At.Sub(o.Near).Abs() < best.At.Sub(o.Near).Abs()) {
			best, found = e, true
		}
	}
	return best, found
}

// valued reads the stamp of a value: a date, or a number since 1970.
func valued(value, text string, o Options) (Entry, bool) {
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		if strings.ContainsAny(value, "eE") {
			value = strconv.FormatFloat(n, 'f', -1, 64)
		}
		whole, fraction, _ := strings.Cut(value, ".")
		value = strings.TrimSuffix(whole+"."+fraction[:min(len(fraction), 9)], ".")
	}
	e, ok := epoch(value+" ", o)
	if !ok {
		e, ok = rfc3339(strings.TrimSpace(value)+" ", o)
	}
	if !ok {
		e, ok = dated(strings.TrimSpace(value)+" ", o)
	}
	e.Text = strings.TrimSpace(text)
	return e, ok
}

// jsonLine reads an object with a time and a text by the names that loggers have for them: pino, zap, bunyan, Docker,
// Elastic's schema, GELF, Serilog.
func jsonLine(line string, o Options) (Entry, bool) {
	if !strings.HasPrefix(line, "{") {
		return Entry{}, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(line), &fields) != nil {
		return Entry{}, false
	}
	text := line
	lower := make(map[string]json.RawMessage, len(fields))
	for name, value := range fields {
		if key := strings.ToLower(name); lower[key] == nil || key == name {
			lower[key] = value
		}
	}
	fields = lower
	for _, name := range []string{
		"message", "msg", "log", "short_message", "textpayload", "@m", "@mt", "text", "body", "eventmessage", "event", "request",
	} {
		if json.Unmarshal(fields[name], &text) == nil {
			break
		}
	}
	for _, name := range []string{
		"@timestamp", "timestamp", "time", "ts", "@t", "t", "date", "datetime", "asctime", "instant", "timemillis", "time_iso8601", "time_local",
	} {
		if e, ok := valued(stampOf(fields[name]), text, o); ok {
			return e, true
		}
	}
	return Entry{}, false
}

var (
	logfmtTime = regexp.MustCompile(`^(?:[\w.@-]+=(?:"[^"]*"|\S*)\s+){0,8}?` +
		`(?:time|ts|t|timestamp|@timestamp)=(?:"([^"]*)"|(\S+))`)
	logfmtText = regexp.MustCompile(`(?:^|\s)(?:msg|message)=(?:("(?:[^"\\]|\\.)*")|(\S+))`)
)

// logfmt reads names with values: time=2026-03-01T10:22:11Z level=info msg="cart loaded".
func logfmt(line string, o Options) (Entry, bool) {
	m := logfmtTime.FindStringSubmatch(line)
	if m == nil {
		return Entry{}, false
	}
	text := line
	if m := logfmtText.FindStringSubmatch(line); m != nil {
		if text = m[2]; m[1] != "" {
			if plain, err := strconv.Unquote(m[1]); err == nil {
				text = plain
			} else {
				text = strings.Trim(m[1], `"`)
			}
		}
	}
	return valued(m[1]+m[2], text, o)
}
