package noise

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"eidetic/analysis/stats"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/benchtable"
)

// target is the metric whose spread is explained.
const target = metric.FirstChange

// Step is the time between one mark and the next.
type Step struct {
	Name   string // name of the mark at which it ends
	Median float64
	Spread float64 // standard deviation of its length
	// Share is the step's share of the variance of the first change, in percent: the
	// covariance of its length with the first change, divided by that variance. The shares
	// of all steps add up to 100. A step that compensates for another has a negative share.
	Share float64
	// Tail is how much longer the step is in the slowest quarter than in the middle half, in ms.
	Tail float64
}

// Attribute explains the spread of the first change by the steps of the loads. Every load must have all marks.
func Attribute(loads []Load, marks []string) (steps []Step) {
	total := make([]float64, len(loads))
	for i, l := range loads {
		total[i] = l.Marks[markSeen]
	}
	before := make([]float64, len(loads))
	for _, name := range marks {
		length := make([]float64, len(loads))
		for i, l := range loads {
			length[i] = l.Marks[name] - before[i]
			before[i] = l.Marks[name]
		}
		s := Step{Name: name, Median: stats.Median(length), Spread: math.Sqrt(covariance(length, length)), Tail: tail(length, total)}
		if v := covariance(total, total); v > 0 {
			s.Share = 100 * covariance(length, total) / v
		}
		steps = append(steps, s)
		if name == markSeen {
			break
		}
	}
	return steps
}

// tail returns the mean of values where by is in its highest quarter, minus the mean where by is in its middle half.
func tail(values, by []float64) float64 {
	sorted := slices.Sorted(slices.Values(by))
	low, high := stats.Quantile(sorted, 0.25), stats.Quantile(sorted, 0.75)
	var slow, middle []float64
	for i, v := range values {
		switch {
		case by[i] >= high:
			slow = append(slow, v)
		case by[i] >= low:
			middle = append(middle, v)
		}
	}
	return mean(slow) - mean(middle)
}

// Variant describes the loads of one kind.
type Variant struct {
	Name               string
	Valid, All         int
	Median, Spread     float64
	Low, High          float64 // 95 % of the standard deviation, by resampling
	MiddleHalf         float64
	IndexSpread        float64 // standard deviation of SpeedIndex
	Steps              []Step
	Work               []Step // Share is the correlation with the first change, in percent
	Orders, CommonMost int    // different orders of requests up to the last style sheet's, and loads with the most frequent
}

// Report is everything that loads tell.
type Report struct{ Variants []Variant }

// NewReport describes loads, variant by variant, in the order of their first loads.
func NewReport(loads []Load) Report {
	var r Report
	var names []string
	by := map[string][]Load{}
	all := map[string]int{}
	for _, l := range loads {
		if all[l.Variant]++; all[l.Variant] == 1 {
			names = append(names, l.Variant)
		}
		if _, ok := l.Metrics[target.String()]; ok && l.Valid {
			by[l.Variant] = append(by[l.Variant], l)
		}
	}
	for _, name := range names {
		v := describe(by[name])
		v.Name, v.All = name, all[name]
		r.Variants = append(r.Variants, v)
	}
	return r
}

func describe(loads []Load) Variant {
	v := Variant{Valid: len(loads)}
	if len(loads) < 4 {
		return v
	}
	values, index := make([]float64, len(loads)), make([]float64, len(loads))
	orders := map[string]int{}
	for i, l := range loads {
		values[i], index[i] = l.Metrics[target.String()], l.Metrics[metric.SpeedIndex.String()]
		orders[strings.Join(upToStyles(l.Order), " ")]++
	}
	sorted := slices.Sorted(slices.Values(values))
	v.Median, v.MiddleHalf = stats.Quantile(sorted, 0.5), stats.Quantile(sorted, 0.75)-stats.Quantile(sorted, 0.25)
	v.Spread, v.IndexSpread = math.Sqrt(covariance(values, values)), math.Sqrt(covariance(index, index))
	v.Low, v.High = spreadBounds(values)
	v.Orders = len(orders)
	for _, n := range orders {
		v.CommonMost = max(v.CommonMost, n)
	}
	v.Steps = Attribute(loads, Common(loads))
	v.Work = work(loads, values)
	return v
}

// work says how each kind of work goes along with the first change.
func work(loads []Load, total []float64) (out []Step) {
	for kind := range loads[0].Work {
		values := make([]float64, len(loads))
		for i, l := range loads {
			values[i] = l.Work[kind]
		}
		s := Step{Name: kind, Median: stats.Median(values), Spread: math.Sqrt(covariance(values, values)), Tail: tail(values, total)}
		if both := s.Spread * math.Sqrt(covariance(total, total)); both > 0 {
			s.Share = 100 * covariance(values, total) / both
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Step) int { return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Name, b.Name)) })
	return out
}

// upToStyles is what was asked for up to the last style sheet.
func upToStyles(order []string) []string {
	last := 0
	for i, url := range order {
		if strings.HasSuffix(url, ".css") {
			last = i + 1
		}
	}
	return order[:last]
}

// Print writes the tables.
func (r Report) Print(w io.Writer, markdown bool) error {
	rows := [][]string{
		{
			"loads",
			"valid",
			"first change, median",
			"standard deviation (95 %)",
			"middle half spans",
			"SpeedIndex, standard deviation",
			"orders of requests before the styles",
		},
	}
	for _, v := range r.Variants {
		rows = append(
			rows,
			[]string{
				v.Name,
				fmt.Sprintf("%d of %d", v.Valid, v.All),
				ms(v.Median),
				fmt.Sprintf("%.1f (%.1f–%.1f) ms", v.Spread, v.Low, v.High),
				ms(v.MiddleHalf),
				ms(v.IndexSpread),
				fmt.Sprintf("%d; %d loads have the commonest", v.Orders, v.CommonMost),
			},
		)
	}
	if err := write(w, "Equal loads, by turns", rows, markdown); err != nil {
		return err
	}
	for _, v := range r.Variants {
		rows := [][]string{{"step, up to", "median", "standard deviation", "share of the variance", "longer in the slowest quarter"}}
		for _, s := range v.Steps {
			rows = append(
				rows,
				[]string{s.Name, ms(s.Median), ms(s.Spread), fmt.Sprintf("%.0f %%", s.Share), fmt.Sprintf("%+.1f ms", s.Tail)},
			)
		}
		if err := write(w, "What the first change owes its spread to: "+v.Name, rows, markdown); err != nil {
			return err
		}
		if len(v.Work) == 0 {
			continue
		}
		rows = [][]string{
			{
				"work after the last style sheet",
				"median",
				"standard deviation",
				"correlation with the first change",
				"longer in the slowest quarter",
			},
		}
		for _, s := range v.Work {
			rows = append(
				rows,
				[]string{s.Name, ms(s.Median), ms(s.Spread), fmt.Sprintf("%.2f", s.Share/100), fmt.Sprintf("%+.1f ms", s.Tail)},
			)
		}
		if err := write(w, "The browser's work: "+v.Name, rows, markdown); err != nil {
			return err
		}
	}
	return nil
}

func write(w io.Writer, title string, rows [][]string, markdown bool) error {
	if len(rows) < 2 {
		return nil
	}
	if markdown {
		text := title + ":\n\n"
		for i, row := range rows {
			text += "| " + strings.Join(row, " | ") + " |\n"
			if i == 0 {
				text += "|" + strings.Repeat("---|", len(row)) + "\n"
			}
		}
		_, err := io.WriteString(w, text+"\n")
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, title)
	for _, row := range rows {
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	fmt.Fprintln(out)
	return out.Flush()
}

// Results lists the spread of each variant beside that of the first.
func (r Report) Results() (list []benchtable.Result) {
	for i, v := range r.Variants {
		one := benchtable.Less(v.Name+": first visual change, standard deviation", v.Spread, "ms")
		if i > 0 && v.Spread > 0 {
			one = one.Against(r.Variants[0].Name, r.Variants[0].Spread)
		}
		list = append(list, one)
	}
	return list
}
