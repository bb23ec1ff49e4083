package archive

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// Change makes a new archive of one: requests are left out, and answers are changed.
type Change struct {
	// LeaveOut are URL patterns (see [MatchURL]) of requests that are left out.
	LeaveOut []string `json:"leave_out,omitempty"`
	// Keep are URL patterns: without a match a request is left out.
	Keep []string `json:"keep,omitempty"`
	// Pages are the URLs of pages whose requests are kept: see [Archive.OfPages].
	Pages []string `json:"pages,omitempty"`
	// Until keeps what was asked for in the first so long.
	Until time.Duration `json:"until_ns,omitempty"`
	// Used are the replay logs of trials: what none of them was served is left out.
	Used []string `json:"used,omitempty"`
	// Answers are changed after that, one edit after the other.
	Answers []AnswerChange `json:"answers,omitempty"`
}

// AnswerChange changes the answers to requests whose URL matches a pattern.
type AnswerChange struct {
	URL  string `json:"url"`
	Edit Edit   `json:"edit"`
}

// ErrNoChange says that a change leaves an archive as it is.
var ErrNoChange = errors.New("no request matches, so nothing is changed") // constant

// Changed returns the archive with the change made, and how many requests it lacks and how many answers differ.
func (a *Archive) Changed(c Change) (made *Archive, left, edited int, err error) {
	keep, err := a.keeps(c)
	if err != nil {
		return nil, 0, 0, err
	}
	kept, others := a.Split(keep)
	touched := map[int]bool{}
	for _, change := range c.Answers {
		found := false
		for i, e := range kept {
			if !MatchURL(change.URL, e.URL) {
				continue
			}
			found, touched[i] = true, true
			if kept[i], err = change.Edit.Apply(e); err != nil {
				return nil, 0, 0, err
			}
		}
		if !found {
			return nil, 0, 0, fmt.Errorf("no request that is kept matches %q, whose answer is to be changed", change.URL)
		}
	}
	switch {
	case len(kept) == 0:
		return nil, 0, 0, errors.New("nothing would be left: no request is kept")
	case len(others) == 0 && len(touched) == 0:
		return nil, 0, 0, ErrNoChange
	}
	return a.With(kept).WithPages(c.Pages), len(others), len(touched), nil
}

// WithPages returns an archive that lists these pages alone; all of them if urls is empty.
func (a *Archive) WithPages(urls []string) *Archive {
	if len(urls) == 0 {
		return a
	}
	pages := slices.DeleteFunc(slices.Clone(a.pages), func(p Page) bool { return !slices.Contains(urls, p.URL) })
	return New(a.exchanges, a.dns, pages, a.carried())
}

// keeps returns what a change keeps.
func (a *Archive) keeps(c Change) (func(*lab.Exchange) bool, error) {
	used := map[string]bool{}
	for _, path := range c.Used {
		if err := ReadServed(path, used); err != nil {
			return nil, err
		}
	}
	ofPages := func(*lab.Exchange) bool { return true }
	if len(c.Pages) > 0 {
		var err error
		if ofPages, err = a.OfPages(c.Pages); err != nil {
			return nil, err
		}
	}
	leave, keep := Selection{URL: c.LeaveOut}, Selection{URL: c.Keep}
	return func(e *lab.Exchange) bool {
		return !leave.Has(e) && (keep.Empty() || keep.Has(e)) && ofPages(e) && (c.Until <= 0 || e.Start <= c.Until) &&
			(len(c.Used) == 0 || used[e.ID])
	}, nil
}

// documentSlack is how far the time of a page may be from that of its document: programs note it before or after the
// request.
const documentSlack = 10 * time.Second

// OfPages tells the requests of pages, which are named by their URLs. Those of a page begin with its document and end
// before the next page's; what came before the first page belongs to it.
func (a *Archive) OfPages(urls []string) (func(*lab.Exchange) bool, error) {
	pages := slices.Clone(a.pages)
	slices.SortStableFunc(pages, func(x, y Page) int { return x.Wall.Compare(y.Wall) })
	for _, url := range urls {
		if !slices.ContainsFunc(pages, func(p Page) bool { return p.URL == url }) {
			return nil, fmt.Errorf("the recording has no page %s", oneLine(url))
		}
	}
	begins := make([]int, len(pages)) // the index of the first exchange of each page
	for i, p := range pages {
		begins[i] = a.beginOf(p)
		if i == 0 {
			begins[i] = 0
		} else {
			begins[i] = max(begins[i], begins[i-1])
		}
	}
	kept := map[*lab.Exchange]bool{}
	for i, p := range pages {
		end := len(a.exchanges)
		if i+1 < len(pages) {
			end = begins[i+1]
		}
		if slices.Contains(urls, p.URL) {
			for _, e := range a.exchanges[begins[i]:end] {
				kept[e] = true
			}
		}
	}
	return func(e *lab.Exchange) bool { return kept[e] }, nil
}

// beginOf is the index of a page's first exchange: its document, or what was asked for when it was opened, whichever is
// first.
func (a *Archive) beginOf(p Page) int {
	document, _, _ := strings.Cut(p.URL, "#")
	begin, near := len(a.exchanges), documentSlack
	if p.Wall.IsZero() { // an import that does not say when
		return max(0, slices.IndexFunc(a.exchanges, func(e *lab.Exchange) bool { return e.URL == document }))
	}
	for i, e := range a.exchanges {
		if !e.Wall.Before(p.Wall) {
			begin = min(begin, i)
		}
	}
	for i, e := range a.exchanges {
		if away := e.Wall.Sub(p.Wall).Abs(); e.URL == document && away <= near {
			near, begin = away, min(begin, i)
		}
	}
	return begin
}
