package loglines

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
)

// Bounds of a file of rules.
const (
	MaxRules     = 64 << 10 // bytes
	mostRules    = 100
	mostPatterns = 2000 // bytes of one
)

// Rule says what becomes of the lines that it matches; the first that matches a line counts. $1 or ${name} in its texts
// is what a group of the pattern matched.
type Rule struct {
	// Match is a regular expression of RE2.
	Match string `yaml:"match"`
	// As is mark (the default), begin, end, pause, resume or set, as of annotations; span for an interval that has
	// ended with the line, after the ms that MS says; or skip.
	As     string `yaml:"as"`
	Text   string `yaml:"text"`  // "" is the line's
	Group  string `yaml:"group"` // "" is the log's
	Colour string `yaml:"colour"`
	MS     string `yaml:"ms"`

	pattern *regexp.Regexp
}

// Rules make annotations of entries.
type Rules struct {
	list  []*Rule
	group string
}

// skip and span are what a rule may do besides what annotations do.
const (
	skip = "skip"
	span = lab.AnnotateSpan
)

// NewRules reads a file of rules, a YAML list; without any each line is a mark. group is the row of what no rule puts
// elsewhere.
func NewRules(text []byte, group string) (*Rules, error) {
	text = bounded.Source(text)
	r := &Rules{group: group}
	if len(text) > MaxRules {
		return nil, fmt.Errorf("the rules have %d bytes; at most %d", len(text), MaxRules)
	}
	if strings.TrimSpace(string(text)) == "" {
		return r, nil
	}
	if err := bounded.YAML(text, func() error { return bounded.Strict(text, &r.list) }); err != nil {
		return nil, bounded.Plain(err)
	}
	if len(r.list) > mostRules {
		return nil, fmt.Errorf("%d rules; at most %d", len(r.list), mostRules)
	}
	for i, rule := range r.list {
		if err := rule.check(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return r, nil
}

func (r *Rule) check() (err error) {
	switch {
	case r == nil || r.Match == "":
		return fmt.Errorf("match: write a regular expression, such as 'GET (\\S+) took (\\d+) ms'")
	case len(r.Match) > mostPatterns:
		return fmt.Errorf("match: %d bytes; at most %d", len(r.Match), mostPatterns)
	}
	if r.As == "" {
		r.As = lab.AnnotateMark
	}
	known := append(lab.AnnotateOps(), skip)
	switch {
	case !slices.Contains(known, r.As):
		return fmt.Errorf("as: %.20q: choose from %s", r.As, strings.Join(known, ", "))
	case (r.As == span) != (r.MS != ""):
		return fmt.Errorf("ms: say it with as: span, and only there: how long the interval lasted that ends with the line, such as $2")
	case r.Colour != "" && !lab.IsColour(r.Colour):
		return fmt.Errorf("colour: %.20q: write it as #rrggbb", r.Colour)
	}
	if r.pattern, err = regexp.Compile(r.Match); err != nil {
		return fmt.Errorf("match: %w", err)
	}
	return nil
}

// Annotation is what becomes of an entry that lies in [earliest, latest]; false for nothing.
func (r *Rules) Annotation(e Entry, earliest, latest lab.Time) (lab.Annotation, bool) {
	a := lab.Annotation{Op: lab.AnnotateMark, Text: e.Text, Group: r.group, Source: "log", Earliest: earliest, Latest: latest}
	for _, rule := range r.list {
		m := rule.pattern.FindStringSubmatchIndex(e.Text)
		if m == nil {
			continue
		}
		if rule.As == skip {
			return a, false
		}
		filled := func(template string) string { return string(rule.pattern.ExpandString(nil, template, e.Text, m)) }
		a.Op, a.Colour = rule.As, rule.Colour
		if rule.Text != "" {
			a.Text = filled(rule.Text)
		}
		if rule.Group != "" {
			a.Group = filled(rule.Group)
		}
		if rule.As == span {
			ms, err := strconv.ParseFloat(strings.TrimSpace(filled(rule.MS)), 64)
			if err != nil || !(ms >= 0 && ms < 86400e3) {
				a.Op = lab.AnnotateMark // the line is there, and its length is not known
				break
			}
			a.Lasts = max(int64(ms*1e6), 1)
			a.Earliest, a.Latest = a.Earliest-lab.Time(a.Lasts), a.Latest-lab.Time(a.Lasts)
		}
		break
	}
	a = a.Clean()
	return a, a.Check() == nil
}
