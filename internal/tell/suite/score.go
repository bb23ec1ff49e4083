package suite

import (
	"cmp"
	"math"
	"slices"

	moremath "github.com/aclements/go-moremath/stats"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// confidence is that of all intervals.
const confidence = 0.95

// Table is what a result says: a row for each entry, and all together.
type Table struct {
	Browsers []string `json:"browsers"`
	Rows     []Row    `json:"rows"`
	// Scores are the geometric means of the rows, a browser each; nil for one that lacks a row.
	Scores []*lab.Range `json:"scores"`
	// Ratios say how many times as long each browser takes as the first, over all rows; nil for the first.
	Ratios []*Ratio `json:"ratios"`
	// Missing names the entries that were measured and are not in the table, with the reason, and Unmeasured those that
	// were not measured yet.
	Missing    []string `json:"missing,omitempty"`
	Unmeasured []string `json:"unmeasured,omitempty"`
}

// Row is an entry of the table.
type Row struct {
	Entry  string  `json:"entry"`
	Type   string  `json:"type"`
	Weight float64 `json:"weight"`
	// Visual and Interactive are the medians, a browser each; nil without a value.
	Visual      []*float64 `json:"visual,omitempty"`
	Interactive []*float64 `json:"interactive,omitempty"`
	Ratios      []*Ratio   `json:"ratios"` // of each browser to the first
	Valid       []int      `json:"valid"`  // trials
}

// Ratio is how many times as long a browser takes as another.
type Ratio struct {
	lab.Range
	Pairs int `json:"pairs"`
	// P is that of the test that the ratio is 1, and Adjusted the same by Holm's method over all rows, or over all
	// browsers.
	P        float64 `json:"p"`
	Adjusted float64 `json:"p_adjusted"`

	log moment
}

// Finding is slower, faster, none or unknown.
func (r *Ratio) Finding() string {
	switch {
	case r == nil || r.log.freedom <= 0:
		return lab.Unknown
	case r.Adjusted > 1-confidence:
		return lab.NoChange
	case r.Value > 1:
		return lab.Slower
	}
	return lab.Faster
}

// cost is a mark as a time: of a rate it is the period. It is 0 for what has no logarithm.
func cost(name string, v float64) float64 {
	e := metric.Parse(name).Entry()
	switch {
	case v <= 0:
		return 0
	case e.Better == metric.Higher && e.Unit == "frames/s":
		return 1000 / v
	case e.Better == metric.Higher:
		return 1 / v
	}
	return v
}

// logOf is the mean of the logarithms of a trial's marks.
func (e Entry) logOf(t Trial) (float64, bool) {
	sum, n := 0.0, 0
	for _, name := range []string{e.Visual, e.Interactive} {
		if name == "" {
			continue
		}
		c := cost(name, t.Values[name])
		if c <= 0 {
			return 0, false
		}
		sum, n = sum+math.Log(c), n+1
	}
	return sum / float64(max(n, 1)), n > 0
}

// moment is a mean with its variance and degrees of freedom.
type moment struct{ mean, variance, freedom float64 }

func momentOf(values []float64) moment {
	n := float64(len(values))
	m := moment{mean: moremath.Mean(values), freedom: n - 1}
	if n > 1 {
		m.variance = moremath.Variance(values) / n
	}
	return m
}

// together is the weighted mean of independent moments, with the degrees of freedom of Welch and Satterthwaite.
func together(all []moment, weights []float64) (m moment) {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	below := 0.0
	for i, one := range all {
		w := weights[i] / total
		v := w * w * one.variance
		m.mean, m.variance = m.mean+w*one.mean, m.variance+v
		if one.freedom <= 0 {
			return moment{mean: m.mean}
		}
		below += v * v / one.freedom
	}
	m.freedom = math.Inf(1)
	if below > 0 {
		m.freedom = m.variance * m.variance / below
	}
	return m
}

// half is the half-width of the interval of the mean.
func (m moment) half() float64 {
	if m.freedom <= 0 {
		return math.Inf(1)
	}
	return stats.StudentQuantile(m.freedom, 1-confidence) * math.Sqrt(m.variance)
}

// p is that of the test that the mean is 0.
func (m moment) p() float64 {
	switch {
	case m.freedom <= 0:
		return 1
	case m.variance == 0:
		if m.mean == 0 {
			return 1
		}
		return 0
	}
	return stats.StudentP(m.mean/math.Sqrt(m.variance), m.freedom)
}

// rangeOf is the exponential of a moment with its interval; nil without one.
func rangeOf(m moment) *lab.Range {
	h := m.half()
	if math.IsInf(h, 0) {
		return &lab.Range{Value: math.Exp(m.mean), Low: math.Exp(m.mean), High: math.Exp(m.mean)}
	}
	return &lab.Range{Value: math.Exp(m.mean), Low: math.Exp(m.mean - h), High: math.Exp(m.mean + h), Confidence: confidence}
}

func ratioOf(m moment, pairs int) *Ratio {
	return &Ratio{Range: *rangeOf(m), Pairs: pairs, P: m.p(), Adjusted: m.p(), log: m}
}

// pairsOf are the differences of the logarithms of the valid trials of another browser and the first: the first of each
// in a block, the second …
func (e Entry) pairsOf(o *Outcome, other string) (logs []float64) {
	type place struct{ block, n int }
	sides := [2]map[place]float64{{}, {}}
	counts := [2]map[int]int{{}, {}}
	var order []place
	for _, t := range o.Trials {
		v, ok := e.logOf(t)
		if !t.Valid || !ok {
			continue
		}
		side := slices.Index([]string{o.Browsers[0], other}, t.Browser)
		if side < 0 {
			continue
		}
		at := place{t.Block, counts[side][t.Block]}
		counts[side][t.Block]++
		sides[side][at] = v
		if side == 0 {
			order = append(order, at)
		}
	}
	for _, at := range order {
		if theirs, ok := sides[1][at]; ok {
			logs = append(logs, theirs-sides[0][at])
		}
	}
	return logs
}

// valid lists a browser's valid trials of an entry, in all outcomes.
func (r *Result) valid(entry, browser string) (all []Trial) {
	for _, o := range r.Entries {
		if o.Entry != entry {
			continue
		}
		for _, t := range o.Trials {
			if t.Valid && t.Browser == browser {
				all = append(all, t)
			}
		}
	}
	return all
}

// medianOf is that of a metric over trials, or nil.
func medianOf(trials []Trial, name string) *float64 {
	var values []float64
	for _, t := range trials {
		if v, ok := t.Values[name]; ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	m := stats.Median(values)
	return &m
}

// Table makes the table of a result.
func (r *Result) Table() (*Table, error) {
	s, err := r.Source()
	if err != nil {
		return nil, err
	}
	t := &Table{Browsers: r.Browsers, Rows: []Row{}}
	for _, e := range s.Entries {
		if e.Visual == "" && e.Interactive == "" {
			continue
		}
		row := Row{Entry: e.Name, Type: e.Type, Weight: e.Counts()}
		for _, b := range r.Browsers {
			trials := r.valid(e.Name, b)
			row.Valid = append(row.Valid, len(trials))
			row.Visual = append(row.Visual, medianOf(trials, e.Visual))
			row.Interactive = append(row.Interactive, medianOf(trials, e.Interactive))
		}
		row.Ratios = make([]*Ratio, len(r.Browsers))
		for i := 1; i < len(r.Browsers); i++ {
			if o := r.Find(e.Name); o != nil {
				if logs := e.pairsOf(o, r.Browsers[i]); len(logs) > 0 {
					row.Ratios[i] = ratioOf(momentOf(logs), len(logs))
				}
			}
		}
		if r.Find(e.Name) == nil {
			t.Unmeasured = append(t.Unmeasured, e.Name)
			continue
		}
		if slices.Max(row.Valid) == 0 {
			t.Missing = append(t.Missing, e.Name+": "+r.why(e.Name))
			continue
		}
		t.Rows = append(t.Rows, row)
	}
	t.sum(r, s)
	return t, nil
}

// why says why an entry has no valid trial.
func (r *Result) why(entry string) string {
	for _, o := range r.Entries {
		if o.Entry != entry {
			continue
		}
		for _, t := range o.Trials {
			if len(t.Invalid) > 0 {
				return "no valid trial; " + t.Invalid[0]
			}
		}
		return cmp.Or(o.Error, "the run is "+o.State)
	}
	return "not measured yet"
}

// sum fills in what holds for all rows.
func (t *Table) sum(r *Result, s *Suite) {
	t.Scores, t.Ratios = make([]*lab.Range, len(t.Browsers)), make([]*Ratio, len(t.Browsers))
	for i := range t.Browsers {
		if m, ok := r.score(s, t.Browsers[i]); ok {
			t.Scores[i] = rangeOf(m)
		}
	}
	var each []*Ratio
	for i := 1; i < len(t.Browsers); i++ {
		var all []moment
		var weights []float64
		pairs := 0
		for _, row := range t.Rows {
			if ratio := row.Ratios[i]; ratio != nil {
				all, weights = append(all, ratio.log), append(weights, row.Weight)
				pairs += ratio.Pairs
				each = append(each, ratio)
			}
		}
		if len(all) > 0 {
			t.Ratios[i] = ratioOf(together(all, weights), pairs)
		}
	}
	adjust(each)
	adjust(slices.DeleteFunc(slices.Clone(t.Ratios), func(r *Ratio) bool { return r == nil }))
}

// adjust fills in the p-values by Holm's method.
func adjust(all []*Ratio) {
	p := make([]float64, len(all))
	for i, r := range all {
		p[i] = r.P
	}
	for i, v := range stats.Holm(p) {
		all[i].Adjusted = v
	}
}

// score is the logarithm of a browser's geometric mean over all entries that have marks; false where one has no valid
// trial.
func (r *Result) score(s *Suite, browser string) (moment, bool) {
	var all []moment
	var weights []float64
	for _, e := range s.Entries {
		if e.Visual == "" && e.Interactive == "" {
			continue
		}
		var logs []float64
		for _, t := range r.valid(e.Name, browser) {
			if v, ok := e.logOf(t); ok {
				logs = append(logs, v)
			}
		}
		if len(logs) == 0 {
			return moment{}, false
		}
		all, weights = append(all, momentOf(logs)), append(weights, e.Counts())
	}
	if len(all) == 0 {
		return moment{}, false
	}
	return together(all, weights), true
}
