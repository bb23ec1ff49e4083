// Package report writes report.html, the page that shows a run to a person.
// In go a run (lab.Run) and the artifacts in its folder; out comes one file
// that opens from disk with no server: styles, scripts and data are inside,
// videos and pictures are linked relative to it, and nothing is fetched from
// anywhere else.
//
// The page carries a content security policy (CSP Level 3) that allows its
// own scripts and styles by their digests and nothing else, so that a string
// from a hostile page under test could do nothing even if it escaped its
// quotes. The load charts are drawn by uPlot 1.6.32 (MIT, assets/uPlot.LICENSE).
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

	"eidetic/internal/atomicfile"
	"eidetic/internal/lab"
)

// FileName is the report's name in a run's folder.
const FileName = "report.html"

//go:embed assets
var assets embed.FS

// Write writes report.html into dir, the folder of the run. Artifacts that
// the run names and that are missing are left out of the page; a replay log
// that is damaged is shown as far as it goes, with what is wrong. The file is
// replaced in one step. A run that is not done yet gets a report of what there is.
func Write(dir string, run *lab.Run) error {
	files, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	defer files.Close()
	b, err := render(files, run)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, FileName), b, 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func render(files *os.Root, run *lab.Run) ([]byte, error) {
	p := pageOf(files, run)
	text := map[string]string{}
	for _, name := range []string{"page.gohtml", "trial.gohtml", "style.css", "report.js", "uPlot.iife.min.js", "uPlot.min.css"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, err
		}
		text[name] = strings.TrimSpace(string(b))
	}
	p.Style = template.CSS(text["uPlot.min.css"] + "\n" + text["style.css"])
	p.Plot = template.JS(text["uPlot.iife.min.js"])
	p.Script = template.JS(text["report.js"])
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
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, "page", p); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// policy is the page's content security policy. Chromium does not count the
// page's own folder as 'self' when it is opened from disk, so file: stands
// beside it.
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
