package pack

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// ReadList reads a list of lines; # begins a comment, and blank lines are skipped.
func ReadList(r io.Reader) ([]string, error) {
	var lines []string
	for s := bufio.NewScanner(r); ; {
		if !s.Scan() {
			return lines, s.Err()
		}
		line, _, _ := strings.Cut(s.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
}

// Globs matches paths against patterns. ** stands for any characters, * for any except
// a slash. A pattern also matches every path below a match. A pattern with a leading !
// excludes its matches again; the last matching pattern decides.
type Globs struct {
	rules []rule
}

type rule struct {
	re   *regexp.Regexp
	keep bool
}

// NewGlobs compiles patterns.
func NewGlobs(patterns []string) (*Globs, error) {
	g := &Globs{}
	for _, p := range patterns {
		text, keep := strings.CutPrefix(p, "!")
		var b strings.Builder
		for _, part := range regexp.MustCompile(`\*\*|\*|[^*]+`).FindAllString(text, -1) {
			switch part {
			case "**":
				b.WriteString(".*")
			case "*":
				b.WriteString("[^/]*")
			default:
				b.WriteString(regexp.QuoteMeta(part))
			}
		}
		re, err := regexp.Compile("^" + b.String() + "(/.*)?$")
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p, err)
		}
		g.rules = append(g.rules, rule{re, keep})
	}
	return g, nil
}

// Match reports whether the patterns match a path.
func (g *Globs) Match(name string) bool {
	for i := len(g.rules) - 1; i >= 0; i-- {
		if g.rules[i].re.MatchString(name) {
			return !g.rules[i].keep
		}
	}
	return false
}
