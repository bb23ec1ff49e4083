package bisection

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	encoding "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"eidetic/analysis/bisect"
)

// Revision is a state of the software under test.
type Revision struct {
	Name string `json:"name"`
	// Words are what the list says of it, such as the subject of a commit.
	Words string `json:"words,omitempty"`
	// Author made it, as far as the list says.
	Author string `json:"author,omitempty"`
	// Change is the Change-Id of its message, as Gerrit has it.
	Change string `json:"change,omitempty"`
}

// The bounds of a list of revisions.
const (
	maxList = 4 << 20
	maxName = 200
	maxLine = 4 << 10
)

// ReadRevisions reads a list of revisions, the oldest first, one a line: a name, and behind a space any words, as "git
// log --reverse --format='%H %s'" and "git rev-list --reverse" print them. Lines that are empty or begin with # do not
// count. It returns those from good to bad, which is the last of all if it is empty. Either may be the unique beginning
// of a name. Good may be missing in the list, as it is in what git prints for good..bad: it is then put before the
// first.
func ReadRevisions(file string, r io.Reader, good, bad string) ([]Revision, error) {
	all, err := ParseRevisions(file, r)
	if err != nil {
		return nil, err
	}
	last := len(all) - 1
	if bad != "" {
		if last, err = find(file, all, bad); err != nil {
			return nil, fmt.Errorf("--bad: %w", err)
		}
	}
	first, err := find(file, all, good)
	var absent *absentError
	switch {
	case errors.As(err, &absent) && bad != "" && last == 0 && len(all) > 1:
		return nil, fmt.Errorf("%s: --bad %s is the first of %d: the oldest revision comes first (git rev-list --reverse GOOD..BAD)", file, bad, len(all))
	case errors.As(err, &absent):
		if err := checkName(good); err != nil {
			return nil, fmt.Errorf("--good %q: %w", good, err)
		}
		all, first, last = slices.Insert(all, 0, Revision{Name: good}), 0, last+1
	case err != nil:
		return nil, fmt.Errorf("--good: %w", err)
	}
	if first >= last {
		return nil, fmt.Errorf("%s: --good %s is not before --bad %s: the oldest revision comes first (git rev-list --reverse GOOD..BAD)", file, good, bad)
	}
	if n := last - first + 1; n > bisect.MaxRevisions {
		return nil, fmt.Errorf("%s: %d revisions from --good to --bad; at most %d are possible", file, n, bisect.MaxRevisions)
	}
	return all[first : last+1], nil
}

// CheckRevisions returns an error for a list that no bisect can have. The first is good, the last bad.
func CheckRevisions(all []Revision) error {
	if len(all) < 2 || len(all) > bisect.MaxRevisions {
		return fmt.Errorf("%d revisions; from 2, the good one first and the bad one last, to %d", len(all), bisect.MaxRevisions)
	}
	seen := map[string]int{}
	for i, r := range all {
		if err := checkName(r.Name); err != nil {
			return fmt.Errorf("revision %d, %.200q: %w", i+1, r.Name, err)
		}
		if before, twice := seen[r.Name]; twice {
			return fmt.Errorf("revision %d, %s, is the %d. already", i+1, r.Name, before+1)
		}
		seen[r.Name] = i
	}
	return nil
}

// ParseRevisions reads a whole list; see [ReadRevisions].
func ParseRevisions(file string, r io.Reader) (all []Revision, err error) {
	in := bufio.NewScanner(io.LimitReader(transform.NewReader(r, encoding.BOMOverride(transform.Nop)), maxList+1)) // also as Windows writes it
	in.Buffer(nil, maxLine)
	seen := map[string]int{}
	size := 0
	for n := 1; in.Scan(); n++ {
		text := in.Text()
		if size += len(text) + 1; size > maxList {
			return nil, fmt.Errorf("%s:%d: the list has more than %d MiB", file, n, maxList>>20)
		}
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		name, words := text, ""
		if end := strings.IndexAny(text, " \t"); end > 0 {
			name, words = text[:end], text[end:]
		}
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("%s:%d: %q: %w", file, n, name, err)
		}
		if before, twice := seen[name]; twice {
			return nil, fmt.Errorf("%s:%d: revision %s is in line %d already", file, n, name, before)
		}
		seen[name] = n
		all = append(all, Revision{Name: name, Words: strings.TrimSpace(words)})
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: a line is longer than %d KiB", file, maxLine>>10)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s lists no revision: one a line, the oldest first", file)
	}
	return all, nil
}

// checkName refuses what no program and no path takes well.
func checkName(name string) error {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r)
	}) {
		return fmt.Errorf("a revision has 1 to %d bytes of text, without spaces", maxName)
	}
	if name[0] == '-' {
		return errors.New("a revision may not begin with a dash: a command would take it for a flag")
	}
	if strings.Contains(name, "..") {
		return errors.New("a revision may not have two dots side by side: it becomes part of paths")
	}
	return nil
}

// absentError says that a name is not in the list.
type absentError struct{ file, name string }

func (e *absentError) Error() string { return fmt.Sprintf("%s does not list %q", e.file, e.name) }

// find returns the index of the revision with this name, or whose name alone begins with it.
func find(file string, all []Revision, name string) (int, error) {
	at := -1
	for i, r := range all {
		if r.Name == name {
			return i, nil
		}
		if name != "" && strings.HasPrefix(r.Name, name) {
			if at >= 0 {
				return 0, fmt.Errorf("%q begins the names of several revisions in %s: %s and %s", name, file, all[at].Name, r.Name)
			}
			at = i
		}
	}
	if at < 0 {
		return 0, &absentError{file, name}
	}
	return at, nil
}
