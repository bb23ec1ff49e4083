package suite

import (
	"errors"
	"fmt"
	"math"

	"eidetic/internal/lab"
)

// Agreement says of each browser whether two results of one suite agree on its geometric mean.
type Agreement struct {
	Browser string `json:"browser"`
	// Ratio is the later geometric mean ÷ the earlier one.
	Ratio lab.Range `json:"ratio"`
	// Within is the bound, in percent, and Finding is equivalent (the interval is within it), slower or faster (it is
	// beyond it as a whole), or unknown.
	Within  float64 `json:"within_percent"`
	Finding string  `json:"finding"`
	// Bound is the least percentage within which they can be said to agree.
	Bound float64 `json:"agrees_within_percent"`
}

// Words says whether they agree.
func (a Agreement) Words() string {
	switch a.Finding {
	case lab.Equivalent:
		return fmt.Sprintf("agrees within %g %%", a.Within)
	case lab.Unknown:
		return fmt.Sprintf("not known within %g %%", a.Within)
	}
	return fmt.Sprintf("the later one is %s by more than %g %%", a.Finding, a.Within)
}

// Agree compares two results of the same suite. Different lists what else differs.
func Agree(earlier, later *Result, percent float64) (all []Agreement, different []string, err error) {
	if earlier.SHA256 != later.SHA256 {
		return nil, nil, fmt.Errorf("they are of two suites, %s (%.12s) and %s (%.12s): marks of different pages are not compared",
			earlier.Suite, earlier.SHA256, later.Suite, later.SHA256)
	}
	s, err := earlier.Source()
	if err != nil {
		return nil, nil, err
	}
	for _, b := range earlier.Browsers {
		before, had := earlier.score(s, b)
		after, has := later.score(s, b)
		if !had || !has {
			continue
		}
		m := between(before, after)
		a := Agreement{Browser: b, Ratio: *rangeOf(m), Within: percent, Finding: lab.Unknown}
		bound := math.Log1p(percent / 100)
		if h := m.half(); !math.IsInf(h, 0) {
			a.Bound = 100 * math.Expm1(math.Abs(m.mean)+h)
			switch {
			case math.Abs(m.mean)+h <= bound:
				a.Finding = lab.Equivalent
			case m.mean-h > bound:
				a.Finding = lab.Slower
			case m.mean+h < -bound:
				a.Finding = lab.Faster
			}
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, nil, errors.New("no browser has a valid trial of every entry in both: there is no geometric mean to compare")
	}
	return all, differences(earlier, later), nil
}

func sq(v float64) float64 { return v * v }

// differences lists what of machine and software is not alike, by the first run of each browser.
func differences(earlier, later *Result) (out []string) {
	tell := func(what, a, b string) {
		if a != b {
			out = append(out, fmt.Sprintf("%s: %s, then %s", what, lab.Clip(a, 120), lab.Clip(b, 120)))
		}
	}
	tell("appliance", earlier.Appliance, later.Appliance)
	a, b := earlier.environment(), later.environment()
	if a == nil || b == nil {
		return out
	}
	tell("browsers", a.Browser, b.Browser)
	tell("kernel", a.Kernel, b.Kernel)
	tell("processor", a.Processor, b.Processor)
	tell("processors", fmt.Sprint(a.Cores), fmt.Sprint(b.Cores))
	tell("screen", a.Screen, b.Screen)
	tell("load average", a.LoadAverage, b.LoadAverage)
	return out
}

// environment is that of the first outcome that has one.
func (r *Result) environment() *lab.Environment {
	for _, o := range r.Entries {
		if o.Environment != nil {
			return o.Environment
		}
	}
	return nil
}
