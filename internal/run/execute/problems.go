package execute

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"

	"eidetic/internal/lab"
)

// maxProblems bounds the problems that are kept, and maxTold those that a person is told.
const (
	maxProblems = 1000
	maxTold     = 5
)

// OriginProblems collects, while a page is recorded, the requests that origins did not
// answer. The zero value is empty. Add may be called from many goroutines.
type OriginProblems struct {
	mu    sync.Mutex
	byURL map[string]string
	more  int
}

// Add is for replay.RecordOptions.Log. A request that the device gave up says nothing of its origin, and one
// that is answered when it is repeated has no problem.
func (p *OriginProblems) Add(s lab.Served) {
	if s.Aborted {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Error == "" {
		delete(p.byURL, s.URL)
		return
	}
	if p.byURL == nil {
		p.byURL = map[string]string{}
	}
	if len(p.byURL) >= maxProblems {
		p.more++
		return
	}
	p.byURL[s.URL] = s.Error
}

// Take empties p. It returns an error if the page itself was not answered, and else a
// sentence for each other request, of which the last may stand for several.
func (p *OriginProblems) Take(page string) (others []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	problems, more := p.byURL, p.more
	p.byURL, p.more = nil, 0
	if why, ok := problems[document(page)]; ok {
		return nil, fmt.Errorf("%s was not answered by its origin: %s", page, why)
	}
	for n, asked := range slices.Sorted(maps.Keys(problems)) {
		if n == maxTold {
			others = append(others, fmt.Sprintf("not recorded: %d more requests without an answer", len(problems)-maxTold+more))
			break
		}
		others = append(others, fmt.Sprintf("not recorded: %s: %s", asked, problems[asked]))
	}
	return others, nil
}

// document is the URL that a browser asks for when it opens a page.
func document(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return page
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}
