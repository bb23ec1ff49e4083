package series

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// readRows reads the rows behind the header, each with its line. Until the column is known, every cell that may be of it
// is kept. A row without its last cells has none in them, as spreadsheets leave empty ones out.
func readRows(file string, r *csv.Reader, header []string, limited *io.LimitedReader, end *lastBytes) (
	rows [][]string, lines []int, err error,
) {
	short := error(nil) // of the last row
	for {
		record, err := r.Read()
		switch {
		case limited.N <= 0:
			return nil, nil, fmt.Errorf("%s: more than %d MiB", file, MaxBytes>>20)
		case errors.Is(err, io.EOF) && short != nil && !end.isLineEnd():
			return nil, nil, fmt.Errorf("%w, and no line end behind them: if the file was cut off, get all of it, else remove this line", short)
		case errors.Is(err, io.EOF):
			return rows, lines, nil
		case err != nil:
			return nil, nil, located(file, err)
		}
		line, _ := r.FieldPos(0)
		for len(record) > len(header) && strings.TrimSpace(record[len(record)-1]) == "" {
			record = record[:len(record)-1] // a separator at the end
		}
		if short = nil; len(record) < len(header) {
			short = fmt.Errorf("%s:%d: %d cells, and the header has %d", file, line, len(record), len(header))
		}
		isHeader := func(cell, name string) bool { return strings.TrimSpace(visible(cell)) == name }
		switch {
		case len(record) > len(header):
			return nil, nil, fmt.Errorf("%s:%d: %d cells, and the header has %d: put what has a %q in it in quotes, name every column in the header, "+
				"and remove what stands before the header", file, line, len(record), len(header), r.Comma)
		case short != nil && r.Comma == ' ': // which of them is empty cannot be seen
			return nil, nil, fmt.Errorf("%w: separate the columns by commas or tabs", short)
		case slices.EqualFunc(record, header, isHeader), isRule(record): // of a file that was joined to another
			continue
		}
		row := make([]string, len(header))
		for i, cell := range record {
			row[i] = visible(cell)
		}
		rows, lines = append(rows, row), append(lines, line)
		if len(rows) > 10*MaxRows {
			return nil, nil, fmt.Errorf("%s:%d: %w: at most %d are read", file, line, errTooMany, 10*MaxRows)
		}
	}
}

// visible is a cell without signs that are not seen: the marks of direction that Windows puts around dates, blanks of no
// width, and byte order marks of files that were joined.
func visible(cell string) string {
	isHidden := func(r rune) bool { return unicode.Is(unicode.Cf, r) }
	if !strings.ContainsFunc(cell, isHidden) {
		return cell
	}
	return strings.Map(func(r rune) rune {
		if isHidden(r) {
			return -1
		}
		return r
	}, cell)
}

// isRule tells the line below the header of a table in Markdown, or of one that a database's client printed.
func isRule(record []string) bool {
	const least = "---"
	line := strings.Join(record, "")
	return strings.Contains(line, least) && strings.Trim(line, "-=+|: \t") == ""
}

// lastBytes keeps the last bytes that were written to it.
type lastBytes [2]byte

// Write implements io.Writer.
func (l *lastBytes) Write(p []byte) (int, error) {
	for _, c := range p[max(0, len(p)-len(l)):] {
		l[0], l[1] = l[1], c
	}
	return len(p), nil
}

// isLineEnd tells that they end a line, also in UTF-16.
func (l *lastBytes) isLineEnd() bool {
	isEnd := func(c byte) bool { return c == '\n' || c == '\r' }
	return isEnd(l[1]) || l[1] == 0 && isEnd(l[0])
}
