package repotest

import (
	"bytes"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// registry is the package whose entries are the metrics.
const registry = "internal/metric"

// checkMetrics finds names of metrics in code that is not a test, in Go and in scripts. A name without an underscore
// may be another word.
func checkMetrics(t *Tree) (found []Violation) {
	var names []string
	for _, g := range t.GoFiles {
		if g.Dir == registry && !g.Test {
			names = append(names, namesOf(g)...)
		}
	}
	for _, g := range t.GoFiles {
		if g.Test || g.Dir == registry {
			continue
		}
		ast.Inspect(g.AST, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.BasicLit:
				text, _ := strconv.Unquote(x.Value)
				if name := text[strings.LastIndexByte(text, '/')+1:]; x.Kind == token.STRING && slices.Contains(names, name) {
					found = append(found, g.at(x.Pos(), "names the metric %s by a string; say which by a value of %s", name, registry))
				}
			case *ast.CompositeLit:
				if name := nameIn(x); name != "" && isMeasurement(x.Type) {
					found = append(found, g.at(x.Pos(), "makes a measurement of %q without its metric; use Measure of %s", name, registry))
				}
			}
			return true
		})
	}
	for _, f := range t.Files {
		if path.Ext(f.Path) != ".js" {
			continue
		}
		number := 0
		for line := range bytes.Lines(f.Data) {
			number++
			for _, name := range names {
				if bytes.Contains(line, []byte(`"`+name+`"`)) {
					found = append(found, Violation{f.Path, number, "names the metric " + name + "; the panel serves what is known of metrics"})
				}
			}
		}
	}
	return found
}

// namesOf lists the names of a file's entries.
func namesOf(g GoFile) (names []string) {
	ast.Inspect(g.AST, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if name := nameIn(lit); strings.Contains(name, "_") {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}

// nameIn is the text of the field Name in a literal.
func nameIn(lit *ast.CompositeLit) string {
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, named := kv.Key.(*ast.Ident)
		if value, ok := kv.Value.(*ast.BasicLit); ok && named && key.Name == "Name" {
			text, _ := strconv.Unquote(value.Value)
			return text
		}
	}
	return ""
}

// isMeasurement says whether an expression is the type lab.Measurement.
func isMeasurement(x ast.Expr) bool {
	s, ok := x.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Measurement"
}
