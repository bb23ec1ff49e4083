package series

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"eidetic/internal/lab"
)

// Table is the column of a file.
type Table struct {
	File, Column string
	Rows         []Row
	Missing      int
}

// Row is a number with its place in the file.
type Row struct {
	Value float64
	Line  int
	Time  string
	at    float64 // by which rows are ordered
}

// The bounds of a file.
const (
	MaxBytes   = 64 << 20
	MaxRows    = 10_000
	maxColumns = 1000
)

// Read reads a column of a CSV file (RFC 4180) with a header. column and times are names of the header, or "#3" for the
// third. Without a column there must be one with numbers only, besides that of times. Without times the rows are in
// order of time; with it they are put in order: the cells are RFC 3339, a date, a date with a time, or a number. If
// last is more than 0, the newest so many count.
func Read(file string, in io.Reader, column, times string, last int) (*Table, error) {
	limited := &io.LimitedReader{R: in, N: MaxBytes + 1}
	var end lastBytes
	raw := bufio.NewReader(io.TeeReader(limited, &end))
	start, _ := raw.Peek(16) // there may be less
	if what := otherFile(start); what != "" {
		return nil, fmt.Errorf("%s:1: %s", file, what)
	}
	buffered := withoutMark(raw)
	if first := jsonBegin(buffered); first != 0 {
		each := ""
		if first == '[' {
			each = ".[] | "
		}
		return nil, fmt.Errorf("%s:1: this is JSON, and a CSV file is needed: make one, such as with jq -r '%s[.date, .ms] | @csv', "+
			"and put a header before it", file, each)
	}
	separator, isSaid := separatorOf(buffered)
	number := numbersOf(separator, 0)
	r := csv.NewReader(buffered)
	r.Comma, r.ReuseRecord, r.FieldsPerRecord = separator, true, -1
	r.TrimLeadingSpace = separator != '\t' // it would take empty cells away
	if isSaid {
		_, _ = r.Read() // it was looked at
	}
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:1: the file is empty: a header is needed, and a row for each value", file)
	} else if err != nil {
		return nil, located(file, err)
	}
	header = slices.Clone(header)
	for i, name := range header {
		header[i] = strings.TrimSpace(visible(name))
	}
	if len(header) > maxColumns {
		return nil, fmt.Errorf("%s:1: %d columns; at most %d are possible", file, len(header), maxColumns)
	}
	if !slices.ContainsFunc(header, func(cell string) bool { _, err := number(cell); return err != nil }) {
		return nil, fmt.Errorf("%s:1: %w", file, errNoHeader)
	}
	timeAt := -1
	if times != "" {
		if timeAt, err = find(file, header, "--time", times); err != nil {
			return nil, err
		}
	}
	at := -1
	if column != "" {
		if at, err = find(file, header, "--column", column); err != nil {
			return nil, err
		}
	}
	rows, lines, err := readRows(file, r, header, limited, &end)
	if err != nil {
		return nil, err
	}
	signs := decimalsOf(rows, len(header))
	numbers := func(column int) cellReader { return numbersOf(separator, signs[column]) }
	if at < 0 {
		if at, err = onlyNumbers(file, header, rows, lines, timeAt, numbers); err != nil {
			return nil, err
		}
		if _, err := number(header[at]); err == nil {
			return nil, fmt.Errorf("%s:1: %w", file, errNoHeader)
		}
	}
	moment := cellReader(instant)
	if timeAt >= 0 {
		if moment, err = instantsOf(file, header[timeAt], rows, lines, timeAt); err != nil {
			return nil, err
		}
	}
	t := &Table{File: file, Column: header[at]}
	number = numbers(at)
	unit := ""
	for i, record := range rows {
		row := Row{Line: lines[i], at: float64(i)}
		if row.Value, err = number(record[at]); errors.Is(err, errMissing) {
			t.Missing++
			continue
		} else if err != nil {
			return nil, fmt.Errorf("%s:%d: column %q: %w", file, row.Line, header[at], err)
		}
		if _, own := cutUnit(record[at]); len(t.Rows) == 0 {
			unit = own
		} else if own != unit {
			return nil, fmt.Errorf("%s:%d: column %q: %q is in another unit than the values before, %q", file, row.Line, header[at],
				lab.Clip(record[at], 60), unit)
		}
		if timeAt >= 0 {
			row.Time = lab.Clip(record[timeAt], 60)
			if row.at, err = moment(record[timeAt]); err != nil {
				return nil, fmt.Errorf("%s:%d: column %q: %w", file, row.Line, header[timeAt], err)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	if n := len(t.Rows); n > 1 && t.Rows[0].at > t.Rows[n-1].at { // the newest first, also of those with the same time
		slices.Reverse(t.Rows)
	}
	slices.SortStableFunc(t.Rows, func(a, b Row) int { return cmp.Compare(a.at, b.at) })
	if last > 0 && len(t.Rows) > last {
		t.Rows = t.Rows[len(t.Rows)-last:]
	}
	if len(t.Rows) > MaxRows {
		return nil, fmt.Errorf("%s: %w: column %q has %d values, and at most %d can be looked at: --last %d takes the newest", file, errTooMany,
			t.Column, len(t.Rows), MaxRows, MaxRows)
	}
	return t, nil
}

// errNoHeader says that the first row has values.
var errNoHeader = errors.New("the first row is numbers: a header with the columns' names is needed") // constant

// withoutMark decodes UTF-16, also without a mark, and Windows-1252, leaves out the mark that spreadsheets put before
// UTF-8 and comments before the header, and makes lines of an old Macintosh's.
func withoutMark(r io.Reader) *bufio.Reader {
	const size = 64 << 10
	b := bufio.NewReaderSize(r, size)
	order, mark := unicode.BigEndian, unicode.UseBOM
	switch head, _ := b.Peek(4); {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")): // Excel's Unicode text
		b = bufio.NewReaderSize(unicode.UTF16(order, mark).NewDecoder().Reader(b), size)
	case len(head) == 4 && head[0]|head[2] == 0:
		b = bufio.NewReaderSize(unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder().Reader(b), size)
	case len(head) == 4 && head[1]|head[3] == 0:
		b = bufio.NewReaderSize(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder().Reader(b), size)
	}
	if mark, err := b.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		_, _ = b.Discard(3) // they were there
	}
	if head, _ := b.Peek(size); isWestern(head) {
		b = bufio.NewReaderSize(charmap.Windows1252.NewDecoder().Reader(b), size)
	}
	if head, _ := b.Peek(size); bytes.IndexByte(head, '\r') >= 0 && bytes.IndexByte(head, '\n') < 0 {
		b = bufio.NewReaderSize(oldLines{b}, size)
	}
	head, _ := b.Peek(size)
	_, _ = b.Discard(comments(head)) // it was there
	return b
}

// isWestern tells a text in Windows-1252, as spreadsheets in the west of Europe save CSV, from one in UTF-8.
func isWestern(head []byte) bool {
	odd, good := 0, 0
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		switch {
		case n > 1:
			good++
		case r == utf8.RuneError && utf8.FullRune(head):
			odd++
		}
		head = head[n:]
	}
	return odd > good
}

// jsonBegin is the first sign of what begins like a JSON object or list, else 0.
func jsonBegin(b *bufio.Reader) byte {
	const look = 64
	head, _ := b.Peek(look)
	head = bytes.TrimSpace(head)
	if len(head) < 2 || head[0] != '{' && head[0] != '[' {
		return 0
	}
	if next := bytes.TrimSpace(head[1:]); len(next) == 0 || bytes.IndexByte([]byte(`"{[]}-0123456789`), next[0]) < 0 {
		return 0
	}
	return head[0]
}

// otherFile says what a file is that begins as no text does, and how it becomes a CSV file; "" of a text.
func otherFile(start []byte) string {
	for magic, what := range map[string]string{
		"PK\x03\x04":       "this is a workbook (xlsx, ods) or another zip file: save the sheet as CSV",
		"\xd0\xcf\x11\xe0": "this is a workbook (xls): save the sheet as CSV",
		"\x1f\x8b":         "this is compressed by gzip: decompress it (gunzip -k), and give what comes of it",
		"PAR1":             "this is Parquet: write it as CSV, such as with duckdb -csv -c \"select * from 'FILE'\"",
		"SQLite format 3":  "this is a database of SQLite: write a table as CSV, such as with sqlite3 -csv -header FILE 'select …'",
		"<!doctype html":   "this is a page in HTML, perhaps one that asks for a sign-in where the file was to be: download the file again",
		"<html":            "this is a page in HTML, perhaps one that asks for a sign-in where the file was to be: download the file again",
		"\xff\xfe<\x00":    "this is XML or HTML: save the table as CSV",
		"window.BENCHMARK": "this is the data of github-action-benchmark: make a CSV file of it, such as with sed 's/^[^{]*//' FILE | " +
			"jq -r '.entries[][] | [.date, .benches[0].value] | @csv', and put a header before it",
		"goos: ": "this is what go test -bench prints: benchstat -format csv makes CSV of several, or write a row for each",
		"<?xml":  "this is XML: save the table as CSV",
	} {
		if len(start) >= len(magic) && strings.EqualFold(string(start[:len(magic)]), magic) {
			return what
		}
	}
	return ""
}

// oldLines makes line feeds of carriage returns.
type oldLines struct{ r io.Reader }

// Read implements io.Reader.
func (o oldLines) Read(p []byte) (int, error) {
	n, err := o.r.Read(p)
	for i, c := range p[:n] {
		if c == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// comments is the length of the lines that begin with "#" at the front of a file. The last one is its header if the
// line behind it has as many cells, and a number.
func comments(head []byte) (n int) {
	last := 0
	for bytes.HasPrefix(head[n:], []byte("#")) {
		end := bytes.IndexByte(head[n:], '\n')
		if end < 0 {
			return last
		}
		last, n = n, n+end+1
	}
	if n == 0 {
		return 0
	}
	line := head[n:]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	cells := func(line []byte) []string {
		return strings.FieldsFunc(string(line), func(r rune) bool { return strings.ContainsRune(",;\t|", r) })
	}
	behind := cells(line)
	hasNumber := slices.ContainsFunc(behind, func(cell string) bool { _, err := number(cell); return err == nil })
	if end := bytes.IndexByte(head[last:], '\n'); hasNumber && len(cells(head[last:last+end])) == len(behind) {
		return last
	}
	return n
}

// located adds the file to an error of the CSV reader, which names the line.
func located(file string, err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) && (errors.Is(err, csv.ErrBareQuote) || errors.Is(err, csv.ErrQuote)) {
		return fmt.Errorf("%s:%d: %w: a cell with quotes in it stands in quotes, with each of them doubled (\"3.5\"\" disk\")", file, parse.Line, parse.Err)
	}
	if errors.As(err, &parse) {
		return fmt.Errorf("%s:%d: %w", file, parse.Line, parse.Err)
	}
	return fmt.Errorf("%s: %w", file, err)
}

// find returns the place of a column by its name or number.
func find(file string, header []string, flag, name string) (int, error) {
	if i := slices.Index(header, name); i >= 0 && slices.Contains(header[i+1:], name) {
		return 0, fmt.Errorf("%s:1: %s %q: several columns have this name: choose by number; there are: %s", file, flag, name, list(header))
	} else if i >= 0 {
		return i, nil
	}
	if digits, ok := strings.CutPrefix(name, "#"); ok {
		if n, err := strconv.Atoi(digits); err == nil && n >= 1 && n <= len(header) {
			return n - 1, nil
		}
	}
	return 0, fmt.Errorf("%s:1: %s %q: there is no such column; there are: %s", file, flag, name, list(header))
}

// list is the header for an error.
func list(header []string) string {
	var names []string
	for i, h := range header[:min(len(header), 20)] {
		names = append(names, fmt.Sprintf("%q (#%d)", lab.Clip(h, 60), i+1))
	}
	return strings.Join(names, ", ")
}

// mostOdd is how many other words a column of numbers may have before it is none.
const mostOdd = 100

// onlyNumbers finds the one column that has numbers in all rows.
func onlyNumbers(file string, header []string, rows [][]string, lines []int, not int, numbers func(int) cellReader) (int, error) {
	var found []int
	// Of the columns that have a number and another word, what the one with most numbers has; without such a one, the word
	// that is most like a number.
	most, nearest, like, guess := 0, "", 0.0, ""
	for i := range header {
		if i == not {
			continue
		}
		number, good, bad, odd := numbers(i), 0, 0, ""
		for k, record := range rows {
			if bad > mostOdd {
				break // it is a column of words
			}
			if _, err := number(record[i]); err == nil {
				good++
			} else if !errors.Is(err, errMissing) {
				if bad++; bad == 1 {
					odd = fmt.Sprintf("; line %d: column %q: %v", lines[k], lab.Clip(header[i], 60), err)
				}
				if share := numberLike(record[i]); bad == 1 && share > like {
					like, guess = share, odd
				}
			}
		}
		if bad == 0 && good > 0 {
			found = append(found, i)
		} else if good > most {
			most, nearest = good, odd
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	doubt := ""
	if slices.ContainsFunc(header, func(cell string) bool { _, err := number(cell); return err == nil }) {
		doubt = "; if these are values, a header with the columns' names is missing"
	}
	if len(found) == 0 {
		doubt = cmp.Or(nearest, guess) + doubt
	}
	return 0, fmt.Errorf("%s:1: %d columns have numbers only: choose with --column; there are: %s%s", file, len(found), list(header), doubt)
}

// quotedPart is a cell in quotes: what it has of signs separates nothing.
var quotedPart = regexp.MustCompile(`"[^"]*"`) // constant

// separatorOf is what separates the cells of a file: a comma, or what stands in the header instead of one, a semicolon
// (spreadsheets where the comma is the decimal sign), a tab or a bar.
func separatorOf(r *bufio.Reader) (separator rune, isSaid bool) {
	head, _ := r.Peek(r.Size()) // of a shorter file, all of it
	line, _, _ := strings.Cut(string(head), "\n")
	if said, ok := strings.CutPrefix(strings.Trim(line, "\"\r"), "sep="); ok && len(said) == 1 && strings.Contains(",;\t|", said) {
		return rune(said[0]), true // Excel's first line
	}
	best := ','
	unquoted := quotedPart.ReplaceAllString(line, "")
	for _, other := range ";\t|" {
		if strings.Count(unquoted, string(other)) > strings.Count(unquoted, string(best)) {
			best = other
		}
	}
	if _, rest, _ := strings.Cut(string(head), "\n"); !strings.ContainsRune(line, best) { // blanks, if they part the next line, too
		next, _, _ := strings.Cut(rest, "\n")
		if n := len(strings.Fields(line)); n > 1 && n == len(strings.Fields(next)) {
			return ' ', false
		}
	}
	return best, false
}

// week is one of ISO 8601.
var week = regexp.MustCompile(`^(\d{4})-?W(\d\d)$`) // constant

// zoneName is a time zone's name behind its offset, as programs print it: "GMT+0100 (Central European Standard Time)"
// (JavaScript), "+01:00[Europe/Berlin]" (Java), "+0100 CET m=+0.1" (Go).
var zoneName = regexp.MustCompile(`(Z|[-+][0-9]{2}:?[0-9]{2}) ?(?:\([^)]*\)|\[[^\]]*\]|[A-Z]{2,5}(?: m=[-+][0-9.]+)?)$`) // constant

// instant reads the cell of a time: as RFC 3339, git, spreadsheets, logs and benchmarks write it: year first, month by
// name, or with dots, day first. See instantsOf for dates whose day and month may be either.
func instant(cell string) (float64, error) {
	text := zoneName.ReplaceAllString(strings.TrimSpace(strings.ReplaceAll(cell, "\u202f", " ")), "$1")
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]") // as in the log of a web server
	for _, layout := range []string{time.RFC1123Z, time.RFC1123, "Mon Jan _2 15:04:05 2006 -0700", time.UnixDate, time.ANSIC,
		"2.1.2006", "2.1.2006 15:04", "2.1.2006 15:04:05", "2.1.2006, 15:04:05", "20060102T150405Z07:00", "Jan 2, 2006", "Jan 2, 2006 15:04:05",
		"January 2, 2006", "2 Jan 2006", "2 January 2006", "2-Jan-2006", "2-Jan-06", "2-Jan-06 15:04:05",
		"Mon Jan 02 2006 15:04:05 GMT-0700", "02/Jan/2006:15:04:05 -0700",
		"Jan 2, 2006, 3:04 PM", "Jan 2, 2006, 3:04:05 PM", "January 2, 2006, 3:04 PM", "January 2, 2006, 3:04:05 PM",
	} {
		if at, err := time.Parse(layout, text); err == nil {
			return float64(at.UnixMilli()), nil
		}
	}
	plain := text
	for _, zone := range []string{" UTC", " GMT", " Z"} {
		plain = strings.TrimSuffix(plain, zone)
	}
	if day, rest := plain[:min(len(plain), len(time.DateOnly))], plain[min(len(plain), len(time.DateOnly)):]; len(day) == len(time.DateOnly) {
		plain = strings.NewReplacer(".", "-", "/", "-").Replace(day) + strings.Replace(rest, "T", " ", 1)
	}
	if m := week.FindStringSubmatch(text); m != nil {
		year, _ := strconv.Atoi(m[1]) // they are digits
		number, _ := strconv.Atoi(m[2])
		first := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC) // is in the first week (ISO 8601)
		return float64(first.AddDate(0, 0, 7*(number-1)-int(first.Weekday()+6)%7).UnixMilli()), nil
	}
	for _, half := range []string{"am", "pm"} { // of the day
		plain = strings.Replace(plain, " "+half, " "+strings.ToUpper(half), 1)
	}
	for _, layout := range []string{
		"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02 3:04:05 PM", "2006-01-02 3:04 PM", time.DateOnly, "2006-01",
	} {
		for _, zone := range []string{"", "Z07:00", " Z07:00", "-0700", " -0700", "-07", " -07"} { // -07 is PostgreSQL's
			if strings.HasSuffix(zone, "-07") && !strings.Contains(layout, ":") {
				continue
			}
			if at, err := time.Parse(layout+zone, plain); err == nil {
				return float64(at.UnixMilli()), nil
			}
		}
	}
	if v, err := number(strings.TrimPrefix(text, "@")); err == nil { // date's and git's seconds
		return v, nil
	}
	return 0, noTime(text)
}

func noTime(cell string) error {
	return fmt.Errorf("%q is not a time: write it like 2026-11-23T07:14:00Z, 2026-11-23 or as a number", lab.Clip(cell, 60))
}
