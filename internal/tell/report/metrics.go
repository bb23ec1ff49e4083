package report

import (
	"math"
	"strconv"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// headline lists the metrics at the top of every report, the most telling first. The
// other metrics follow in the order of the run's summary.
func headline() []metric.ID {
	return []metric.ID{metric.TimeToStable, metric.FirstChange, metric.LastChange, metric.SpeedIndex, metric.UniqueRate}
}

// describe returns the entry of a run's metric, under the name that it has there. One that the registry does not know
// has the unit that the run says.
func describe(name, unit string) metric.Entry {
	r := metric.Parse(name)
	e := r.Entry()
	if r.ID == 0 {
		e.Unit = unit
	}
	if e.Says == "" {
		e.Says = e.Label + " is"
	}
	e.Name, e.Label = name, r.Label()
	return e
}

// number formats v for people: three or four significant digits, thousands separated by a
// narrow space, a true minus.
func number(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	digits := 0
	switch a := math.Abs(v); {
	case a == 0 || a >= 100 || unit == "ms" && a >= 10:
	case a >= 10:
		digits = 1
	case a >= 0.1:
		digits = 2
	default:
		digits = 3
	}
	return grouped(strconv.FormatFloat(v, 'f', digits, 64))
}

// precise formats v for tables, with one digit more than number.
func precise(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	digits := 1
	switch a := math.Abs(v); {
	case a > 0 && a < 0.1: // a layout's instability of 0.02 is one to look at
		digits = 4
	case a < 10:
		digits = 2
	}
	return grouped(strconv.FormatFloat(v, 'f', digits, 64))
}

func grouped(s string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		sign, s = "−", rest
	}
	whole, frac, dot := strings.Cut(s, ".")
	var b strings.Builder
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(c)
	}
	if dot {
		b.WriteByte('.')
		b.WriteString(frac)
	}
	if strings.Trim(b.String(), "0.") == "" {
		sign = ""
	}
	return sign + b.String()
}

// count formats an integer with its thousands separated.
func count[T int | int64](n T) string { return grouped(strconv.FormatInt(int64(n), 10)) }

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n < 0:
		return "–"
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1_000_000:
		return number(float64(n)/1e3, "") + " kB"
	case n < 1_000_000_000:
		return number(float64(n)/1e6, "") + " MB"
	default:
		return number(float64(n)/1e9, "") + " GB"
	}
}

// millis is the time from zero to t in ms.
func millis(t, zero lab.Time) float64 { return float64(t-zero) / 1e6 }
