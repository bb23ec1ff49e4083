package suite

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// Release is a browser of a result, as a point of the series of its releases.
type Release struct {
	Family  string    `json:"family" doc:"chromium, firefox, or what the browser was named" example:"chromium"`
	Version string    `json:"version" doc:"What the browser said of itself" example:"Chromium 156.0.8078.108"`
	Browser string    `json:"browser" doc:"As the result names it" example:"chromium"`
	Begun   time.Time `json:"begun" doc:"When the result was begun"`
	Score   lab.Range `json:"score" doc:"The geometric mean"`
	Ratio   *Ratio    `json:"ratio,omitempty" doc:"How many times as long it takes as the release before it in the series; absent for the first"`

	moment moment
}

// ErrNoScore is returned by [Releases] for results in which nothing can be compared.
var ErrNoScore = errors.New("no browser has a valid trial of every entry: there is no geometric mean to compare")

// Releases makes the series of each browser from results of one suite: its releases by their versions, those of one
// version by time. Findings are corrected by Holm's method over all of them.
func Releases(results []*Result) ([]Release, error) {
	var all []Release
	for _, r := range results {
		if r.SHA256 != results[0].SHA256 {
			return nil, fmt.Errorf("they are of two suites, %s (%.12s) and %s (%.12s): marks of different pages are not compared",
				results[0].Suite, results[0].SHA256, r.Suite, r.SHA256)
		}
		s, err := r.Source()
		if err != nil {
			return nil, err
		}
		for _, b := range r.Browsers {
			if m, ok := r.score(s, b); ok {
				all = append(all, Release{Family: familyOf(b), Version: r.version(b), Browser: b, Begun: r.Begun, Score: *rangeOf(m), moment: m})
			}
		}
	}
	if len(all) == 0 {
		return nil, ErrNoScore
	}
	slices.SortStableFunc(all, func(a, b Release) int {
		return cmp.Or(strings.Compare(a.Family, b.Family), slices.Compare(numbersOf(a.Version), numbersOf(b.Version)), a.Begun.Compare(b.Begun))
	})
	var tested []*Ratio
	for i := range all {
		if i == 0 || all[i].Family != all[i-1].Family {
			continue
		}
		all[i].Ratio = ratioOf(between(all[i-1].moment, all[i].moment), 0)
		tested = append(tested, all[i].Ratio)
	}
	adjust(tested)
	return all, nil
}

// between is the moment of how much later than the one before a geometric mean is, of independent results.
func between(before, after moment) moment {
	m := moment{after.mean - before.mean, before.variance + after.variance, 0}
	if before.freedom > 0 && after.freedom > 0 {
		m.freedom = math.Inf(1)
		if below := sq(before.variance)/before.freedom + sq(after.variance)/after.freedom; below > 0 {
			m.freedom = sq(m.variance) / below
		}
	}
	return m
}

// familyOf is what versions of a browser have in common: its family, or its name.
func familyOf(browser string) string {
	b := lab.Browser{Name: browser}
	if strings.ContainsRune(browser, '/') {
		b = lab.Browser{Command: browser}
	}
	return cmp.Or(b.Family(), browser)
}

// version is what a browser of the result said of itself, by the environment of the first run that has it.
func (r *Result) version(browser string) string {
	for _, o := range r.Entries {
		if o.Environment == nil || !slices.Contains(o.Browsers, browser) {
			continue
		}
		parts := strings.Split(o.Environment.Browser, " and ")
		names := func(browser string) func(part string) bool {
			return func(part string) bool { return strings.Contains(part, "("+browser) }
		}
		for _, is := range []func(part string) bool{
			names(browser),
			// The machine's own browser is not named; one of its family that was named by its path is another.
			func(part string) bool {
				return strings.Contains(strings.ToLower(part), familyOf(browser)) &&
					!slices.ContainsFunc(o.Browsers, func(other string) bool { return other != browser && names(other)(part) })
			},
		} {
			if i := slices.IndexFunc(parts, is); i >= 0 {
				return lab.Clip(parts[i], 120)
			}
		}
	}
	return ""
}

var (
	versionPattern = regexp.MustCompile(`\d+(\.\d+)*`) // never written
	// earlyPattern is what follows the version of a release that is still to come.
	earlyPattern = regexp.MustCompile(`(?i)^[-.~_ ]?(alpha|a|nightly|dev|beta|b|pre|rc)[-._]?(\d{0,3})(?:[^a-z0-9]|$)`) // never written
)

// The end of a version, which comes before another number, and what comes before the release of that version.
const (
	versionEnd = -1
	beforeEnd  = -2
)

// numbersOf are the numbers of the first version in a text, for order: 152.0b9, 152.0b10, 152.0, 152.0.1.
func numbersOf(version string) (all []int) {
	at := versionPattern.FindStringIndex(version)
	if at == nil {
		return nil
	}
	for _, n := range strings.Split(version[at[0]:at[1]], ".") {
		v, err := strconv.Atoi(n)
		if err != nil {
			return all
		}
		all = append(all, v)
	}
	if m := earlyPattern.FindStringSubmatch(version[at[1]:]); m != nil {
		rank := map[string]int{"beta": 1, "b": 1, "pre": 2, "rc": 2}[strings.ToLower(m[1])]
		count, _ := strconv.Atoi("0" + m[2]) // of digits, perhaps of none
		return append(all, beforeEnd, rank, count)
	}
	return append(all, versionEnd)
}
