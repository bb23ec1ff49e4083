package series

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// slashed is a date in numbers of which the year does not come first, or has two digits: 3/4/2026, 03-04-26 14:00. Which
// is the day, the rest of its column tells.
var slashed = regexp.MustCompile(`^(\d{1,2})[/-](\d{1,2})[/-](\d{4}|\d{2})((?:,? +|T)\S.*)?$`) // constant

// dateOrder is where in a slashed date its parts stand.
type dateOrder struct{ year, month, day int }

func dateOrders() []dateOrder { return []dateOrder{{3, 1, 2}, {3, 2, 1}, {1, 2, 3}} }

// iso is the cell as a date whose year comes first; false for one that this order cannot be of.
func (o dateOrder) iso(cell string) (string, bool) {
	m := slashed.FindStringSubmatch(strings.TrimSpace(strings.ReplaceAll(cell, "\u202f", " ")))
	if m == nil {
		return cell, true
	}
	if len(m[o.day]) > 2 {
		return cell, false
	}
	year, _ := strconv.Atoi(m[o.year]) // they are digits
	month, _ := strconv.Atoi(m[o.month])
	day, _ := strconv.Atoi(m[o.day])
	if len(m[o.year]) <= 2 {
		year += 2000
	}
	const mostDays = 31
	isDate := month >= 1 && month <= 12 && day >= 1 && day <= mostDays
	return fmt.Sprintf("%04d-%02d-%02d%s", year, month, day, strings.TrimPrefix(m[4], ",")), isDate
}

// instantsOf returns how the cells of a column of times are read. Dates of which the day and the month may be either are
// read where all of them allow one order only, or each order that they allow puts the rows in the same sequence.
func instantsOf(file, name string, rows [][]string, lines []int, column int) (cellReader, error) {
	orders, first := dateOrders(), -1
	if err := oneForm(file, name, rows, lines, column); err != nil {
		return nil, err
	}
	for i, record := range rows {
		if !slashed.MatchString(strings.TrimSpace(record[column])) {
			continue
		}
		if first < 0 {
			first = i
		}
		left := slices.DeleteFunc(slices.Clone(orders), func(o dateOrder) bool { _, ok := o.iso(record[column]); return !ok })
		if len(left) == 0 && i == first {
			return nil, fmt.Errorf("%s:%d: column %q: %w", file, lines[i], name, noTime(record[column]))
		}
		if len(left) == 0 {
			return nil, fmt.Errorf("%s:%d: column %q: %q has its day and month elsewhere than the dates before: write them like 2026-11-23", file, lines[i],
				name, lab.Clip(record[column], 60))
		}
		orders = left
	}
	reader := func(o dateOrder) cellReader {
		return func(cell string) (float64, error) {
			text, _ := o.iso(cell)
			at, err := instant(text)
			if err != nil {
				_, err = instant(cell) // which names it as the file has it
			}
			return at, err
		}
	}
	if first < 0 {
		return instant, nil
	}
	sequence := func(o dateOrder) []int {
		at := make([]float64, len(rows))
		for i, record := range rows {
			at[i], _ = reader(o)(record[column]) // one that is no time is reported when its row is read
		}
		places := make([]int, len(rows))
		for i := range places {
			places[i] = i
		}
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
		return places
	}
	want := sequence(orders[0])
	for _, other := range orders[1:] {
		if !slices.Equal(want, sequence(other)) {
			return nil, fmt.Errorf("%s:%d: column %q: in %q the day may be any of its numbers, and no other date of the column tells which: "+
				"write the dates like 2026-11-23", file, lines[first], name, lab.Clip(rows[first][column], 60))
		}
	}
	return reader(orders[0]), nil
}

// oneForm refuses a column that has both dates and numbers: what the numbers count, and from when, is not known, so
// nothing puts them in order with the dates.
func oneForm(file, name string, rows [][]string, lines []int, column int) error {
	numbers, dates := -1, -1 // the first row of each
	for i, record := range rows {
		_, err := number(strings.TrimPrefix(strings.TrimSpace(record[column]), "@"))
		switch {
		case err == nil && numbers < 0:
			numbers = i
		case err == nil || errors.Is(err, errMissing) || dates >= 0:
		case slashed.MatchString(strings.TrimSpace(record[column])):
			dates = i
		default:
			if _, err := instant(record[column]); err == nil {
				dates = i
			}
		}
		if numbers >= 0 && dates >= 0 {
			return fmt.Errorf("%s:%d: column %q: %q is in another form than %q in line %d: write all times as dates, or all as numbers",
				file, lines[i], name, lab.Clip(record[column], 60), lab.Clip(rows[min(numbers, dates)][column], 60), lines[min(numbers, dates)])
		}
	}
	return nil
}
