package metric

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of metrics into the documents")

// TestDocs: the tables of metrics in the documents are those of the registry, each in the section that the entries
// name.
func TestDocs(t *testing.T) {
	sections := map[string]map[string][]Entry{} // by file and anchor
	for _, m := range All() {
		e := m.Entry()
		file, anchor, _ := strings.Cut(e.Doc, "#")
		if sections[file] == nil {
			sections[file] = map[string][]Entry{}
		}
		sections[file][anchor] = append(sections[file][anchor], e)
	}
	for _, file := range slices.Sorted(maps.Keys(sections)) {
		path := filepath.Join("..", "..", filepath.FromSlash(file))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		was := string(b)
		now, missing := written(was, sections[file])
		for _, anchor := range missing {
			t.Errorf("%s has no table of #%s: write %s and %s into that section, and run this test with -update", file, anchor, begin(anchor), end)
		}
		switch {
		case now == was:
		case *update:
			if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("%s: a table of metrics differs from the registry; go test ./internal/metric -update writes it", file)
		}
	}
}

const end = "<!-- end of metrics -->"

func begin(anchor string) string { return "<!-- metrics of #" + anchor + " -->" }

// written puts the tables into a document. missing are the sections in which no table begins.
func written(text string, tables map[string][]Entry) (out string, missing []string) {
	section, out := "", text
	at := map[string]string{} // the section in which a table begins
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") {
			section = slug(line)
		} else if strings.HasPrefix(line, "<!-- metrics of ") {
			at[line] = section
		}
	}
	for _, anchor := range slices.Sorted(maps.Keys(tables)) {
		first := begin(anchor)
		before, rest, found := strings.Cut(out, first+"\n")
		_, after, ended := strings.Cut(rest, end)
		if at[first] != anchor || !found || !ended {
			missing = append(missing, anchor)
			continue
		}
		out = before + first + "\n" + table(tables[anchor]) + end + after
	}
	return out, missing
}

// slug is the anchor of a heading.
func slug(heading string) string {
	text := strings.ToLower(strings.TrimSpace(strings.TrimLeft(heading, "#")))
	return strings.ReplaceAll(regexp.MustCompile("[^a-z0-9 -]").ReplaceAllString(text, ""), " ", "-")
}

// table writes entries as Markdown.
func table(entries []Entry) string {
	var b strings.Builder
	b.WriteString("| name | in reports | unit | better | definition | source |\n|---|---|---|---|---|---|\n")
	for _, e := range entries {
		label, better := e.Label, string(e.Better)
		if e.Guard {
			label += " (guard)"
		}
		if e.Better == Neither {
			better = ""
		}
		for _, cell := range []string{"`" + e.Name + "`", label, e.Unit, better, e.Method, e.Source} {
			b.WriteString(strings.TrimRight("| "+cell, " ") + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}
