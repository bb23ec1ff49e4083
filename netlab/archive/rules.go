package archive

import (
	"fmt"
	"slices"
	"strings"
)

// Rule says which parts of a request do not matter when it is matched with a recording.
type Rule struct {
	// URL selects requests by a pattern; see MatchURL.
	URL string `json:"url"`
	// Ignore names query parameters, form fields and JSON members ("user.session") that do not matter:
	// neither their values nor whether, or how often, they are there. * stands for any text. "/2" is the second
	// segment of the path.
	Ignore []string `json:"ignore"`
}

// maxRules bounds the rules of a file.
const maxRules = 1000

// Validate checks a rule.
func (r Rule) Validate() error {
	if r.URL == "" || len(r.Ignore) == 0 {
		return fmt.Errorf("a rule needs a URL pattern and the name of a parameter")
	}
	for _, name := range r.Ignore {
		if name == "" {
			return fmt.Errorf("the rule for %s ignores a parameter without a name", r.URL)
		}
	}
	return nil
}

func (r Rule) equal(o Rule) bool { return r.URL == o.URL && slices.Equal(r.Ignore, o.Ignore) }

// Ignores tells whether the rule leaves a parameter of a request out.
func (r Rule) Ignores(url, name string) bool {
	if !MatchURL(r.URL, url) {
		return false
	}
	for _, pattern := range r.Ignore {
		isSegment := strings.HasPrefix(name, "/") && !strings.HasPrefix(pattern, "/") // "*" is every parameter
		if pattern == name || strings.Contains(pattern, "*") && !isSegment && MatchURL(pattern, name) {
			return true
		}
	}
	return false
}

// MatchURL matches a pattern in which * stands for any text. A pattern without * matches if the
// URL contains it.
func MatchURL(pattern, url string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return strings.Contains(url, pattern)
	}
	last := parts[len(parts)-1]
	rest, ok := strings.CutPrefix(url, parts[0])
	if !ok || len(rest) < len(last) || !strings.HasSuffix(rest, last) {
		return false
	}
	rest = rest[:len(rest)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return true
}

// parseRules reads the rules field of warcinfo.
func parseRules(text string, b *budget) ([]Rule, error) {
	var rules []Rule
	if err := b.unmarshal([]byte(text), &rules); err != nil {
		return nil, fmt.Errorf("the matching rules cannot be read and are left out: %w", err)
	}
	if len(rules) > maxRules {
		return nil, fmt.Errorf("%d matching rules are too many and are left out (at most %d)", len(rules), maxRules)
	}
	for _, r := range rules {
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("the matching rules are left out: %w", err)
		}
	}
	return rules, nil
}

// WithRules returns the recording with other rules.
func (a *Archive) WithRules(rules []Rule) *Archive {
	o := a.carried()
	o.Rules = rules
	return New(a.exchanges, a.dns, a.pages, o)
}
