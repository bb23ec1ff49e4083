package repotest

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

const (
	// promisesFile has the table that says by which tests of make test each promise is proved.
	promisesFile = "CONTRIBUTING.md"
	// featuresFile lists, below "What you get", all that the program does.
	featuresFile = "docs/features.md"
)

// checkPromises holds the table of promises: a row for each item of the list of features and for each page of docs,
// each with a test that exists and that make test does not leave out.
func checkPromises(t *Tree) (found []Violation) {
	var rows []tableRow
	for _, d := range t.documents() {
		if d.path == promisesFile {
			rows = d.table("Promise")
		}
	}
	for _, d := range t.documents() {
		if d.path == featuresFile {
			for i, name := range d.bold("What you get") {
				if name != "" && !slices.ContainsFunc(rows, func(r tableRow) bool { return strings.Contains(r.cells[0], name) }) {
					found = append(found, Violation{d.path, i + 1, fmt.Sprintf("promises %q, which has no row in %s", name, promisesFile)})
				}
			}
		}
		if strings.HasPrefix(d.path, "docs/") {
			if !slices.ContainsFunc(rows, func(r tableRow) bool { return strings.Contains(r.cells[0], "]("+d.path+")") }) {
				found = append(found, Violation{d.path, 0, "has no row in the table of promises in " + promisesFile})
			}
		}
	}
	span := regexp.MustCompile("`([^`]+) (Test\\w+|Fuzz\\w+)`")
	for _, r := range rows {
		tests := span.FindAllStringSubmatch(r.cells[1], -1)
		if len(tests) == 0 {
			found = append(found, Violation{promisesFile, r.line, "names no test of make test"})
		}
		for _, m := range tests {
			if why := t.notATest(m[1], m[2]); why != "" {
				found = append(found, Violation{promisesFile, r.line, fmt.Sprintf("names %s of %s, which %s", m[2], m[1], why)})
			}
		}
	}
	return found
}

// notATest says why a name is none of a test that make test runs, or nothing.
func (t *Tree) notATest(dir, name string) string {
	for _, g := range t.GoFiles {
		if !g.Test || g.Dir != dir {
			continue
		}
		for _, d := range g.AST.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || f.Name.Name != name {
				continue
			}
			for _, s := range f.Body.List {
				if e, ok := s.(*ast.ExprStmt); ok && isLong(e.X) {
					return "is left to make test-all"
				}
			}
			return ""
		}
	}
	return "does not exist"
}

func isLong(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == "testlab" && s.Sel.Name == "Long"
}

// tableRow is a row of a Markdown table, with at least two cells.
type tableRow struct {
	line  int
	cells []string
}

// table returns the rows of the table whose first heading begins with a word.
func (d document) table(heading string) (rows []tableRow) {
	in := false
	for i, line := range d.prose {
		if !strings.HasPrefix(line, "|") {
			in = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		switch {
		case strings.HasPrefix(cells[0], heading):
			in = true
		case in && len(cells) > 1 && !strings.HasPrefix(line, "|-"):
			rows = append(rows, tableRow{i + 1, cells})
		}
	}
	return rows
}

// bold returns, for each line below a heading, the bold words with which an item of a list begins.
func (d document) bold(heading string) []string {
	names := make([]string, len(d.prose))
	item := regexp.MustCompile(`^- \*\*(?:\[)?([^*\]]+)`)
	in := false
	for i, line := range d.prose {
		if strings.HasPrefix(line, "## ") {
			in = strings.TrimPrefix(line, "## ") == heading
		}
		if m := item.FindStringSubmatch(line); in && m != nil {
			names[i] = strings.Trim(m[1], ".?:” ")
		}
	}
	return names
}
