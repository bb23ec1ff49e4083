package execute

import (
	"fmt"
	"maps"
	"net/http"
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
	byURL map[string]problem
	more  int
}

// problem is why a request got no answer, or, with an answer's status, what was wrong with that.
type problem struct {
	why        string
	isAnswered bool
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
		delete(p.byURL, document(s.URL))
		return
	}
	if p.byURL == nil {
		p.byURL = map[string]problem{}
	}
	if len(p.byURL) >= maxProblems {
		p.more++
		return
	}
	p.byURL[document(s.URL)] = problem{s.Error, s.Status > 0 && s.Status < http.StatusBadRequest}
}

// Take empties p. It returns an error if the page itself was not answered, and else a
// sentence for each other request, of which the last may stand for several.
func (p *OriginProblems) Take(page string) (others []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	problems, more := p.byURL, p.more
	p.byURL, p.more = nil, 0
	if it, ok := problems[document(page)]; ok {
		if it.isAnswered {
			return nil, fmt.Errorf("%s was answered, but not whole: %s", page, it.why)
		}
		return nil, fmt.Errorf("%s was not answered by its origin: %s", page, it.why)
	}
	for n, asked := range slices.Sorted(maps.Keys(problems)) {
		if n == maxTold {
			others = append(others, fmt.Sprintf("not recorded: %d more requests without an answer", len(problems)-maxTold+more))
			break
		}
		what := "not recorded"
		if problems[asked].isAnswered {
			what = "not recorded whole"
		}
		others = append(others, fmt.Sprintf("%s: %s: %s", what, asked, problems[asked].why))
	}
	return others, nil
}

// document is the URL that a browser asks for when it opens a page.
func document(page string) string {
	return string(lab.AppendURLKey(nil, lab.ParseURL(page).Sent()))
}
