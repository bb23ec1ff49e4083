// Package report writes report.html, the page that shows a run to a person. Its input is
// a run (lab.Run) and the artifacts in its folder. Its output is one file that opens from
// disk without a server: styles, scripts and data are inline, videos and pictures are
// linked relative to the file, and nothing is fetched from elsewhere.
//
// The page's content security policy (CSP Level 3) allows only its own scripts and styles,
// by their digests, so a string from a hostile page under test does nothing even if it
// escapes its quotes. The load charts are drawn by uPlot 1.6.32 (MIT, assets/uPlot.LICENSE).
package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/keep/redact"
	"eidetic/internal/lab"
)

// FileName is the name of the report in a run's folder.
const FileName = "report.html"

//go:embed assets
var assets embed.FS

// Write writes report.html and timeline.html into dir, the folder of the run, atomically. Artifacts that the
// run names but that are missing are left out; a damaged replay log is shown up to the
// damage, with the error. An unfinished run gets a report of the trials so far.
func Write(dir string, run *lab.Run) error {
	files, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	defer files.Close()
	hide := redact.OfRun(run)
	run = hide.Run(run)
	write := writeOne
	if run.Plan.IsMany() {
		write = writeMany
	}
	if err := write(files, dir, run, place{Report: FileName, Timeline: TimelineName, hide: hide}); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// place is where the report of a run, or of one of its cells, stands.
type place struct {
	Report, Timeline string // files in the run's folder
	Up               string // the report of the whole run; "" for that itself
	Cell             string // the name of the cell; "" for the whole run
	hide             *redact.Redactor
}

// hidden is what a page shows, without the secrets of the run that are in its files.
func hidden[T any](at place, page T) T {
	if at.hide == nil {
		return page
	}
	return redact.Copy(page, at.hide.Known)
}

// writeOne writes the report of a run of one page.
func writeOne(files *os.Root, dir string, run *lab.Run, at place) error {
	b, err := render(files, run, at)
	if err != nil {
		return err
	}
	lines, err := writeTimelines(files, run, at)
	if err != nil {
		return err
	}
	for _, page := range []struct {
		name    string
		content []byte
	}{{at.Timeline, lines}, {at.Report, b}} {
		if err := atomicfile.WriteFile(filepath.Join(dir, page.name), page.content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func render(files *os.Root, run *lab.Run, at place) ([]byte, error) {
	p := pageOf(files, run)
	p.At = at
	for i := range p.Trials {
		p.Trials[i].Lines = at.Timeline
	}
	p = hidden(at, p)
	text := map[string]string{}
	for _, name := range []string{"page.gohtml", "trial.gohtml", "steps.gohtml", "style.css", "csv.js", "report.js", "uPlot.iife.min.js", "uPlot.min.css"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, err
		}
		text[name] = strings.TrimSpace(string(b))
	}
	p.Style = template.CSS(text["uPlot.min.css"] + "\n" + text["style.css"])
	p.Plot = template.JS(text["uPlot.iife.min.js"])
	p.Script = template.JS(text["csv.js"] + "\n" + text["report.js"])
	p.Policy = policy([]string{string(p.Plot), string(p.Script)}, string(p.Style))
	page, err := template.New("page").Funcs(template.FuncMap{
		"number": number, "precise": precise, "count": count[int],
	}).Parse(text["page.gohtml"])
	if err != nil {
		return nil, err
	}
	if _, err := page.New("trial").Parse(text["trial.gohtml"]); err != nil {
		return nil, err
	}
	if _, err := page.New("steps").Parse(text["steps.gohtml"]); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, "page", p); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// policy is the page's content security policy. It lists file: besides 'self', because
// Chromium does not count the folder of a page opened from disk as 'self'.
func policy(scripts []string, style string) string {
	var b strings.Builder
	b.WriteString("default-src 'none'; script-src")
	for _, s := range scripts {
		b.WriteString(" " + digest(s))
	}
	b.WriteString("; style-src " + digest(style))
	b.WriteString("; img-src 'self' file:; media-src 'self' file:; base-uri 'none'; form-action 'none'")
	return b.String()
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
