package replay

import (
	"strings"

	"eidetic/netlab/archive"
)

// learned is what of a request makes no difference.
type learned struct {
	// idle names query parameters, for each method and path.
	idle  map[string]map[string]bool
	rules []archive.Rule // of the recording
}

// ruled tells whether a rule leaves a parameter or body field out.
func (l *learned) ruled(url, name string) bool {
	for _, r := range l.rules {
		if r.Ignores(url, name) {
			return true
		}
	}
	return false
}

// place is what learned is kept by.
func (s *shape) place() string { return s.method + " " + s.origin + "/" + strings.Join(s.path, "/") }

// learn compares requests of a recording that differ in the value of one
// query parameter: where the answers are always equal, it does not matter.
func learn(entries []*entry) map[string]map[string]bool {
	const most = 24 // parameters; longer queries are not worth the time
	type first struct{ value, answer string }
	seen := map[string]first{}
	idle, matters := map[string]map[string]bool{}, map[string]bool{}
	for _, en := range entries {
		s := en.shape
		if len(s.query) == 0 || len(s.query) > most || en.Truncated != "" || len(en.Response.Body) == 0 {
			continue
		}
		for i, p := range s.query {
			rest := make([]pair, 0, len(s.query))
			rest = append(append(rest, s.query[:i]...), s.query[i+1:]...)
			key := s.place() + "?" + normalPairs(rest, func(string) bool { return false }) + " " + p.name + " " + s.sum
			answer := en.body.sum
			old, ok := seen[key]
			switch {
			case !ok:
				seen[key] = first{p.value, answer}
			case old.value == p.value:
			case old.answer != answer:
				matters[s.place()+" "+p.name] = true
			default:
				if idle[s.place()] == nil {
					idle[s.place()] = map[string]bool{}
				}
				idle[s.place()][p.name] = true
			}
		}
	}
	for place, names := range idle {
		for name := range names {
			if matters[place+" "+name] {
				delete(names, name)
			}
		}
	}
	return idle
}
