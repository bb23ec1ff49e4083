package panel

import (
	"context"
	"net/http"
	"strings"
)

// Bounds of the runs that are read at once, in bytes of run.json. One of 2,000 trials has 11 MB; to read it, change it
// for its reader and answer takes several times as much, in as many requests as a client likes.
const (
	freeRun  = 256 << 10 // whoever reads one that is smaller waits for nobody
	mostRuns = 32 << 20
)

// large has requests that read large runs wait for each other, as long as their clients do, until they are answered.
func (p *Panel) large(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, err := p.read(r.Context(), p.runsOf(r)...)
		if err != nil {
			problem(w, http.StatusServiceUnavailable, "others read large runs: ask again")
			return
		}
		defer done()
		next.ServeHTTP(w, r)
	})
}

// read waits until these runs may be read.
func (p *Panel) read(ctx context.Context, runs ...string) (done func(), err error) {
	weight := int64(0)
	for _, id := range runs {
		weight += p.Store.RunBytes(id)
	}
	if weight < freeRun {
		return func() {}, nil
	}
	weight = min(weight, mostRuns)
	leave, err := p.readers.Front(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := p.reading.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return func() { p.reading.Release(weight) }, nil
}

// runsOf are the runs that a request reads, and of which it keeps what it read until it is answered.
func (p *Panel) runsOf(r *http.Request) []string {
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v1/runs/")
	id, of, _ := strings.Cut(path, "/")
	switch {
	case !ok, of == "events", of == "pin", strings.HasPrefix(of, "artifacts"): // events reads the run once, in its turn
		return nil
	case of == "comparison":
		reference := r.URL.Query().Get("reference")
		if strings.Contains(reference, "@") { // a branch's, which is like it
			reference = id
		}
		return []string{id, reference}
	}
	return []string{id}
}
