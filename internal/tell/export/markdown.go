package export

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

const (
	// mostMarkdown bounds a summary: GitHub takes 1 MiB of all steps together.
	mostMarkdown = 256 << 10
	// mostText bounds one text of a summary.
	mostText = 500
	mostRows = 100
)

// Markdown writes a summary in the Markdown of GitHub and GitLab: the verdict, the guards,
// what was run, and what to be careful about.
func Markdown(w io.Writer, s *Source) error {
	run := s.Run
	b := &strings.Builder{}
	fmt.Fprintf(b, "### %s %s\n\n", sign(run), prose(headline(run)))
	if c := run.Comparison; c != nil {
		fmt.Fprintf(b, "%s.\n\n", prose(strings.TrimRight(c.Detail, ".")))
	}
	if s.Picture != "" {
		fmt.Fprintf(b, "![What a typical trial of each arm showed](<%s>)\n\n", address(s.Picture))
	}
	switch c := run.Comparison; {
	case c != nil && run.Plan.IsMany():
		cells(b, run)
	case c != nil:
		guards(b, c)
		servers(b, run.Servers)
	default:
		for i, view := range run.Views() {
			if name := run.Plan.Cells()[i].Name; name != "" {
				fmt.Fprintf(b, "**%s**\n\n", prose(name))
			}
			medians(b, view)
		}
	}
	budgets(b, run)
	notes(b, run)
	about(b, s)
	text := b.String()
	if len(text) > mostMarkdown {
		text = strings.ToValidUTF8(text[:mostMarkdown], "") + "\n\n… cut off here.\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// sign shows the verdict at a glance.
func sign(run *lab.Run) string {
	if run.Comparison == nil {
		if ended(run).state == good {
			return "📋"
		}
		return "⚠️"
	}
	switch run.Comparison.Verdict {
	case lab.Slower, lab.Mixed:
		return "🔴"
	case lab.Faster:
		return "🟢"
	case lab.NoChange, lab.Equivalent:
		return "⚪"
	}
	return "⚠️"
}

func headline(run *lab.Run) string {
	if run.Comparison != nil {
		return run.Comparison.Headline
	}
	return title(run) + ": " + ended(run).says
}

// budgets says of each budget whether it is kept.
func budgets(b *strings.Builder, run *lab.Run) {
	all := run.Budgets()
	for i, found := range all {
		if i == mostRows {
			b.WriteString("- …\n")
			break
		}
		sign := map[string]string{lab.OverBudget: "🔴", lab.WithinBudget: "🟢"}[found.Finding]
		fmt.Fprintf(b, "- %s %s\n", cmp.Or(sign, "⚠️"), prose(found.Words(metric.Label(found.Metric))))
	}
	if len(all) > 0 {
		b.WriteString("\n")
	}
}

// guards is the table of what the verdict rests on.
func guards(b *strings.Builder, c *lab.Comparison) {
	b.WriteString("| | Control | Treatment | Change | 95 % interval | |\n|---|--:|--:|--:|--:|---|\n")
	rows := 0
	for i := range c.Effects {
		e := &c.Effects[i]
		if !e.Guard {
			continue
		}
		if rows++; rows > mostRows {
			b.WriteString("| … | | | | | |\n")
			break
		}
		guardRow(b, metric.Label(e.Metric), c, e)
	}
	b.WriteString("\n")
	unadjusted(b, c)
}

// unadjusted says of each guard that was adjusted what it is without.
func unadjusted(b *strings.Builder, c *lab.Comparison) {
	rows := 0
	for i := range c.Effects {
		e := &c.Effects[i]
		a := e.Adjustment
		if !e.Guard || a == nil || rows == mostRows {
			continue
		}
		if rows++; rows == 1 {
			fmt.Fprintf(b, "Adjusted by what was known before each load (%s). Unadjusted:\n\n", prose(strings.Join(a.Covariates, ", ")))
		}
		fmt.Fprintf(b, "- %s: %s, 95 %% interval %s … %s, p %.2g; %.0f %% of the variance explained\n", prose(metric.Label(e.Metric)),
			prose(change(a.Raw.Value, e.Unit)), lab.Signed(a.Raw.Low, 1), lab.Signed(a.Raw.High, 1), a.RawP, 100*a.Explained)
	}
	if rows > 0 {
		b.WriteString("\n")
	}
}

// servers says whether the servers of two addresses differ.
func servers(b *strings.Builder, rows []lab.ServerRow) {
	for i, r := range rows {
		if i == mostRows {
			break
		}
		fmt.Fprintf(b, "- Server: %s\n", prose(r.String()))
	}
	if len(rows) > 0 {
		b.WriteString("\n")
	}
}

// intervalOf is the 95 % interval of a difference, or that there is none.
func intervalOf(e *lab.Effect) string {
	if !e.Bounded() {
		return "too few pairs"
	}
	return lab.Signed(e.Shift.Low, 1) + " … " + lab.Signed(e.Shift.High, 1)
}

// guardRow is a line of a table of guards.
func guardRow(b *strings.Builder, name string, c *lab.Comparison, e *lab.Effect) {
	said := c.Words(e)
	if e.Finding == lab.Slower || e.Finding == lab.Faster {
		said = "**" + said + "**"
	}
	more := percent(e)
	if e.Unit == "%" {
		more = ""
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s%s | %s | %s |\n", prose(name), prose(value(e.Control, e.Unit)),
		prose(value(e.Treatment, e.Unit)), prose(change(e.Shift.Value, e.Unit)), more, intervalOf(e), said)
}

// cells is the table of a run of many: all together, and each page and user.
func cells(b *strings.Builder, run *lab.Run) {
	b.WriteString("| | Control | Treatment | Change | 95 % interval | |\n|---|--:|--:|--:|--:|---|\n")
	row := func(name string, c *lab.Comparison) {
		if c == nil {
			return
		}
		if e := c.Telling(); e != nil {
			guardRow(b, name+": "+metric.Label(e.Metric), c, e)
		} else {
			fmt.Fprintf(b, "| %s | | | | | not compared |\n", prose(name))
		}
	}
	row("All together", run.Comparison)
	for i, found := range run.Cells {
		if i == mostRows {
			b.WriteString("| … | | | | | |\n")
			break
		}
		row(found.Name, found.Comparison)
	}
	b.WriteString("\n")
}

// medians is the table of a run that compares nothing.
func medians(b *strings.Builder, run *lab.Run) {
	if len(run.Summary) == 0 {
		return
	}
	bounds := "95 % interval"
	if !slices.ContainsFunc(run.Summary, func(m lab.Summary) bool { return m.Bounded() }) {
		bounds = "Smallest … largest"
	}
	fmt.Fprintf(b, "| | Median | %s | Trials |\n|---|--:|--:|--:|\n", bounds)
	for i, m := range run.Summary {
		if i == mostRows {
			b.WriteString("| … | | | |\n")
			break
		}
		low, high, of := m.Low, m.High, ""
		if !m.Bounded() {
			if low, high = m.Min, m.Max; bounds == "95 % interval" {
				of = "all: "
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s%s … %s | %d |\n", prose(metric.Label(m.Metric)), prose(value(m.Median, m.Unit)), of,
			value(low, ""), value(high, ""), m.N)
	}
	b.WriteString("\n")
	if bounds != "95 % interval" {
		fmt.Fprintf(b, "Fewer than %d valid trials do not give a 95 %% interval of the median.\n\n", lab.LeastForInterval)
	}
}

// notes lists what qualifies the numbers, folded away.
func notes(b *strings.Builder, run *lab.Run) {
	var all []string
	all = append(all, run.Warnings...)
	for _, c := range checks(run) {
		if c.effect == nil || run.Plan.IsMany() { // whose guards are in the report of each
			continue
		}
		for _, text := range c.more {
			all = append(all, c.name+": "+text)
		}
	}
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "<details><summary>%d %s</summary>\n\n", len(all), lab.Plural(len(all), "note", "notes"))
	for i, text := range all {
		if i == mostRows {
			b.WriteString("- …\n")
			break
		}
		fmt.Fprintf(b, "- %s\n", prose(text))
	}
	b.WriteString("\n</details>\n\n")
}

// about says what was run.
func about(b *strings.Builder, s *Source) {
	run := s.Run
	words := []string{code(run.Page)}
	if n := len(run.Cells); n > 1 {
		words[0] += fmt.Sprintf(" and %d more", n-1)
	}
	if name := run.Link.Name; name != "" {
		words = append(words, "link "+code(name))
	}
	if run.Environment.Browser != "" {
		words = append(words, prose(run.Environment.Browser))
	}
	words = append(words, fmt.Sprintf("%d trials in %v", len(run.Trials), time.Duration(run.Elapsed*float64(time.Second)).Round(time.Second)))
	fmt.Fprintf(b, "%s; run %s", strings.Join(words, ", "), code(run.ID))
	if s.Report != "" {
		fmt.Fprintf(b, "; [report](<%s>)", address(s.Report))
	}
	b.WriteString("\n")
}

// oneLine makes a text that others wrote one line without control characters.
func oneLine(text string) string {
	runes := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	cut := len(runes) > mostText
	runes = runes[:min(len(runes), mostText)]
	for i, r := range runes {
		switch {
		case unicode.IsSpace(r) && r != '\u202f' && r != '\u00a0':
			runes[i] = ' '
		case !unicode.IsPrint(r) && !unicode.IsSpace(r):
			runes[i] = '\uFFFD'
		}
	}
	if cut {
		return string(runes) + "…"
	}
	return string(runes)
}

// joiner is the word joiner. Within a name or an address it has no width, and it keeps GitHub
// from making a mention, a reference or a link of it.
const joiner = "\u2060"

// prose escapes a text that others wrote for the running text of a document.
func prose(text string) string {
	text = oneLine(text)
	var b strings.Builder
	numbered := true // all so far are digits, so that a dot would make a list
	for i, r := range text {
		switch {
		case strings.ContainsRune("&<>", r):
			fmt.Fprintf(&b, "&#%d;", r)
		case strings.ContainsRune("\\`*_{}[]()#!|~^$", r), i == 0 && strings.ContainsRune("+-=", r), numbered && i > 0 && r == '.':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		if strings.ContainsRune("@#", r) || r == ':' && strings.HasPrefix(text[i:], "://") {
			b.WriteString(joiner)
		}
		numbered = numbered && '0' <= r && r <= '9'
	}
	return strings.NewReplacer("www.", "www"+joiner+".", "WWW.", "WWW"+joiner+".").Replace(b.String())
}

// code shows a text that others wrote as it is; outside of tables.
func code(text string) string {
	text = oneLine(text)
	if strings.TrimSpace(text) == "" {
		return "–"
	}
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 || strings.HasPrefix(text, " ") {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// address makes what was given as a link safe to stand between < and >.
func address(link string) string {
	u, err := url.Parse(oneLine(link))
	if err != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "data" {
		return "#"
	}
	return strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20", "\\", "%5C").Replace(u.String())
}
