// Package export writes what a run found in formats of other programs: for a build server's
// list of tests, a dashboard, a spreadsheet, a comment on a change. Its input is a run as it
// was kept, its output one document. All text in a run comes from pages, plans and people
// that the reader of the document does not know, so each format escapes it in its own way.
//
// A format is a line of the table in Formats, and a function.
package export

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"eidetic/internal/keep/redact"
	"eidetic/internal/lab"
)

// Source is what a document is made of.
type Source struct {
	Run *lab.Run
	// Files is the run's folder; nil if all there is of the run is its run.json or report.json.
	Files *os.Root
	// Report is the address of the run's report, and Picture that of the picture of both arms,
	// for documents with links; "" leaves the link out.
	Report, Picture string
	// Addresses keeps users, queries and fragments of addresses, and other secrets of the plan, which are removed
	// without it: a document may be shown to anybody.
	Addresses bool
	// Trial is the one that a document of timelines is about; 0 for all.
	Trial int
}

// Format is a format that a run can be written in.
type Format struct {
	Name string
	Type string // media type
	File string // name of a file with the document
	Says string // what it is for, in a few words
	// Folder is set if the format is made of the files in the run's folder.
	Folder bool
	Write  func(io.Writer, *Source) error
}

// Formats lists the formats, in the order in which they are shown to people.
func Formats() []Format {
	return []Format{
		{"junit", "application/xml", "junit.xml", "JUnit XML: a test for each guard of the verdict, for build servers", false, JUnit},
		{"perfherder", "application/json", "perfherder.json", "Perfherder's JSON: the medians of each arm, for dashboards", false, Perfherder},
		{"csv", "text/csv; charset=utf-8", "run.csv", "CSV: a line for each trial and metric", false, CSV},
		{"markdown", "text/markdown; charset=utf-8", "run.md", "Markdown: a summary for a change under review", false, Markdown},
		{"github", "text/plain; charset=utf-8", "annotations.txt", "annotations, as workflow commands of GitHub Actions", false, GitHub},
		{"picture", "image/png", "run.png", "PNG: what a typical trial of each arm showed, one below the other", true, Picture},
		{"trace", "application/json", "trace.json", "timelines as Chrome's trace events, for Perfetto and developer tools", true, Trace},
		{"har", "application/json", "run.har", "HAR: the requests of the trials, with the box's times", true, HAR},
		{"causes", "text/csv; charset=utf-8", "causes.csv", "CSV: why the arms differ, from the traced trials", false, Causes},
		{"paths", "text/csv; charset=utf-8", "paths.csv", "CSV: the critical path of a typical trial of each arm, step by step", false, Paths},
		{"memory", "text/csv; charset=utf-8", "memory.csv", "CSV: the memory of each process of traced browsers, over each trial", true, Memory},
		{"spans", "text/csv; charset=utf-8", "spans.csv", "CSV: steps and annotated intervals of each arm, summed", true, Spans},
	}
}

// Find returns the format of a name.
func Find(name string) (Format, error) {
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
	}
	return Format{}, fmt.Errorf("format %q is not one of %s", name, strings.Join(Names(), ", "))
}

// Names lists the names of the formats.
func Names() (names []string) {
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return names
}

// WriteTo writes the document, and refuses a format for which files are missing.
func (f Format) WriteTo(w io.Writer, s *Source) error {
	if f.Folder && s.Files == nil {
		return fmt.Errorf("the format %s is made of the run's folder, and this is only one of its files", f.Name)
	}
	public := *s
	public.Run = redact.Copy(s.Run, printable)
	if !s.Addresses {
		public.Run = redact.OfRun(s.Run).Run(public.Run)
	}
	if f.Type == "application/json" {
		w = PlainJSON(w)
	}
	return f.Write(w, &public)
}

// printable replaces what orders a terminal about, and what makes it show text in another order than it has: a document
// may be printed, and its texts come from pages.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		isSpace := unicode.IsSpace(r) && r > '\u0085' || strings.ContainsRune("\t\r\n", r)
		if isSpace || unicode.IsPrint(r) || r == '\u200c' || r == '\u200d' { // joiners are parts of words
			return r
		}
		return '\uFFFD'
	}, text)
}
