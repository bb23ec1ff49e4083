package repotest

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

// checkAttacks holds the tables of endsFile that name tests to the code: tests that there are, all fuzz targets, and
// that each of them bounds what one input may take.
func checkAttacks(t *Tree) (found []Violation) {
	told := map[string]bool{}
	named := regexp.MustCompile("`([a-z0-9/]+)` ((?:(?:Test|Fuzz)\\w+(?:, )?)+)")
	for _, d := range t.documents() {
		if d.path != endsFile {
			continue
		}
		for _, r := range append(d.table("attack"), d.table("reads")...) {
			for _, m := range named.FindAllStringSubmatch(r.cells[len(r.cells)-1], -1) {
				for name := range strings.SplitSeq(strings.TrimSuffix(m[2], ", "), ", ") {
					told[m[1]+" "+name] = true
					if t.notATest(m[1], name) == "does not exist" {
						found = append(found, Violation{endsFile, r.line, fmt.Sprintf("names %s of %s, which does not exist", name, m[1])})
					}
				}
			}
		}
	}
	for _, g := range t.GoFiles {
		if !g.Test {
			continue
		}
		for _, d := range g.AST.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			if !told[g.Dir+" "+f.Name.Name] {
				found = append(found, Violation{endsFile, 0, fmt.Sprintf("has no row for %s of %s, in the table of parsers", f.Name.Name, g.Dir)})
			}
			if !isBounded(f) {
				found = append(found, Violation{g.Path, 0, f.Name.Name + " does not bound what one input takes: testlab.Bounded, or testlab.Input"})
			}
		}
	}
	return found
}

// isBounded says whether a fuzz target calls what bounds an input.
func isBounded(f *ast.FuncDecl) (is bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Bounded" || s.Sel.Name == "Input") {
			if of, ok := s.X.(*ast.Ident); ok && of.Name == "testlab" {
				is = true
			}
		}
		return !is
	})
	return is
}
