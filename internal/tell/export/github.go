package export

import (
	"fmt"
	"io"
	"strings"

	"eidetic/internal/lab"
)

// mostAnnotations is how many of a kind GitHub shows of one step.
const mostAnnotations = 10

// GitHub writes workflow commands, which GitHub Actions shows as annotations: an error for
// a guard that got worse, a warning for one without an answer, and a notice of the verdict.
func GitHub(w io.Writer, s *Source) error {
	name := title(s.Run)
	count := map[string]int{}
	for _, c := range checks(s.Run) {
		kind := map[state]string{bad: "error", open: "warning"}[c.state]
		if kind == "" {
			continue
		}
		if count[kind]++; count[kind] > mostAnnotations {
			continue
		}
		text := c.says
		if c.effect != nil {
			text = s.Run.Comparison.Words(c.effect) + ": " + text
		}
		if err := command(w, kind, name+": "+c.name, text); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%d trials", len(s.Run.Trials))
	if c := s.Run.Comparison; c != nil {
		text = strings.TrimRight(c.Headline, ".") + ". " + c.Detail
	}
	for _, kind := range []string{"error", "warning"} {
		if more := count[kind] - mostAnnotations; more > 0 {
			text += fmt.Sprintf(" %d more %s not shown.", more, lab.Plural(more, kind, kind+"s"))
		}
	}
	if s.Report != "" {
		text += " Report: " + s.Report
	}
	return command(w, "notice", name, text)
}

// command writes a workflow command with its values escaped as GitHub's toolkit does.
func command(w io.Writer, kind, title, text string) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	_, err := fmt.Fprintf(w, "::%s title=%s::%s\n", kind, property.Replace(oneLine(title)), data.Replace(oneLine(text)))
	return err
}
