package repotest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxLines is the length above which a Go file needs a line in longFiles.
const maxLines = 600

// longFiles gives the reason why a file may be longer than maxLines.
func longFiles() map[string]string { return map[string]string{} }

func sourceRules() []Rule {
	return []Rule{
		{"package comments", "a reader meets a package at its comment: what it is for, what flows in and out", checkPackageComments},
		{"documented names", "a public name is a promise, which its comment states", checkDocumented},
		{"no init", "code that runs because it was imported cannot be ordered, passed anything or left out", checkInit},
		{"no mutable package variables", "state that is not passed in is shared between tests and between devices", checkMutable},
		{"context first", "a reader finds the context of every call in one place", checkContext},
		{"tests wait for events", "a sleep is too short on a busy machine and too long on every other", checkSleep},
		{"no silent skips", "a skipped test looks like a passed one; testlab.Need makes CI fail instead", checkSkip},
		{"typed records", "a field of a map has no type, no comment and no place in the schema", checkTyped},
		{"metrics by value", "one name has one entry, which says unit, label, definition and direction wherever it is shown", checkMetrics},
		{"short lines", fmt.Sprintf("a line of more than %d characters does not fit beside another file", maxColumns), checkColumns},
		{
			"short files",
			"a file of more than " + fmt.Sprint(maxLines) + " lines has a second subject, or a reason in internal/rigs/repotest/source.go",
			checkLength,
		},
	}
}

func checkPackageComments(t *Tree) (found []Violation) {
	type comments struct {
		first GoFile
		paths []string
	}
	packages := map[string]*comments{}
	for _, g := range t.GoFiles {
		if g.Test {
			continue
		}
		c := packages[g.Dir]
		if c == nil {
			c = &comments{first: g}
			packages[g.Dir] = c
		}
		if g.AST.Doc == nil {
			continue
		}
		c.paths = append(c.paths, path.Base(g.Path))
		want := "Package " + g.AST.Name.Name + " "
		if g.AST.Name.Name == "main" {
			want = "Command "
		}
		if text := g.AST.Doc.Text(); !strings.HasPrefix(text, want) {
			found = append(found, g.at(g.AST.Doc.Pos(), "the package comment does not start with %q", want))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		switch c := packages[dir]; len(c.paths) {
		case 0:
			found = append(found, c.first.at(c.first.AST.Package, "package %s has no package comment", dir))
		case 1:
		default:
			found = append(
				found,
				c.first.at(
					c.first.AST.Package,
					"package %s has %d package comments, in %s",
					dir,
					len(c.paths),
					strings.Join(c.paths, ", "),
				),
			)
		}
	}
	return found
}

func checkDocumented(t *Tree) (found []Violation) {
	for _, g := range t.GoFiles {
		if g.Test || g.Generated || g.AST.Name.Name == "main" {
			continue
		}
		for _, decl := range g.AST.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && !wellKnown(d) {
					found = append(found, g.at(d.Pos(), "%s has no comment", d.Name.Name))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
						found = append(found, g.at(s.Pos(), "%s has no comment", s.Name.Name))
					}
				}
			}
		}
	}
	return found
}

// wellKnown reports whether a method belongs to a well-known standard interface or to a
// type that is not exported, so that it needs no comment.
func wellKnown(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return false
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if index, ok := receiver.(*ast.IndexExpr); ok {
		receiver = index.X
	}
	if id, ok := receiver.(*ast.Ident); ok && !id.IsExported() {
		return true
	}
	return slices.Contains([]string{
		"Error", "Unwrap", "Is", "String", "Read", "Write", "Close", "ServeHTTP", "RoundTrip", "ServeDNS",
		"Len", "Less", "Swap", "Push", "Pop",
		"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalYAML", "UnmarshalYAML",
		"LocalAddr", "RemoteAddr", "SetDeadline", "SetReadDeadline", "SetWriteDeadline",
		"ColorModel", "Bounds", "At", "Header", "WriteHeader", "Flush",
	}, d.Name.Name)
}

// checkTyped finds map[string]any in exported types of the packages that define the product's records.
func checkTyped(t *Tree) (found []Violation) {
	for _, g := range t.GoFiles {
		if g.Test || !slices.Contains([]string{"internal/lab", "internal/keep/store", "internal/run/execute"}, g.Dir) {
			continue
		}
		for _, decl := range g.AST.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				continue
			}
			for _, spec := range d.Specs {
				s := spec.(*ast.TypeSpec)
				if !s.Name.IsExported() {
					continue
				}
				ast.Inspect(s.Type, func(n ast.Node) bool {
					if m, ok := n.(*ast.MapType); ok && isAny(m.Value) {
						found = append(found, g.at(m.Pos(), "%s has a map of anything: give it a type", s.Name.Name))
					}
					return true
				})
			}
		}
	}
	return found
}

func isAny(x ast.Expr) bool {
	if id, ok := x.(*ast.Ident); ok {
		return id.Name == "any"
	}
	i, ok := x.(*ast.InterfaceType)
	return ok && len(i.Methods.List) == 0
}

func checkInit(t *Tree) (found []Violation) {
	for _, g := range t.GoFiles {
		for _, decl := range g.AST.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				found = append(found, g.at(f.Pos(), "has an init function"))
			}
		}
	}
	return found
}

func checkMutable(t *Tree) (found []Violation) {
	variables := map[string]map[string]bool{} // by folder and package name
	key := func(g GoFile) string { return g.Dir + " " + g.AST.Name.Name }
	for _, g := range t.GoFiles {
		for _, decl := range g.AST.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				s := spec.(*ast.ValueSpec)
				for _, name := range s.Names {
					if name.Name == "_" { // an assertion of a type
						continue
					}
					if variables[key(g)] == nil {
						variables[key(g)] = map[string]bool{}
					}
					variables[key(g)][name.Name] = true
				}
				if kind := stateful(s.Type); kind != "" {
					found = append(found, g.at(s.Pos(), "package variable %s is a %s, which exists to change", s.Names[0].Name, kind))
				}
			}
		}
	}
	for _, g := range t.GoFiles {
		report := func(target ast.Expr) {
			if name := packageVariable(g, target); name != "" && variables[key(g)][name] {
				found = append(found, g.at(target.Pos(), "changes the package variable %s", name))
			}
		}
		ast.Inspect(g.AST, func(n ast.Node) bool {
			switch s := n.(type) {
			case *ast.AssignStmt:
				if s.Tok != token.DEFINE {
					for _, left := range s.Lhs {
						report(left)
					}
				}
			case *ast.IncDecStmt:
				report(s.X)
			}
			return true
		})
	}
	return found
}

// stateful returns the name of a type whose variables are only useful if they change. A
// sync.Pool does not count: it saves work and carries no state from one use to another.
func stateful(typ ast.Expr) string {
	sel, ok := typ.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := sel.X.(*ast.Ident)
	if !ok || pkg.Name != "atomic" && (pkg.Name != "sync" || sel.Sel.Name == "Pool") {
		return ""
	}
	return pkg.Name + "." + sel.Sel.Name
}

// packageVariable returns the name at the root of an assigned expression when
// no local variable has it: v, v.f and v[i] are all changes of v.
func packageVariable(g GoFile, target ast.Expr) string {
	for {
		switch x := target.(type) {
		case *ast.SelectorExpr:
			target = x.X
		case *ast.IndexExpr:
			target = x.X
		case *ast.ParenExpr:
			target = x.X
		case *ast.Ident:
			if x.Obj != nil && g.AST.Scope.Lookup(x.Name) != x.Obj {
				return ""
			}
			return x.Name
		default: // a change through a pointer or a call does not change the variable itself
			return ""
		}
	}
}

func checkContext(t *Tree) (found []Violation) {
	for _, g := range t.GoFiles {
		ast.Inspect(g.AST, func(n ast.Node) bool {
			f, ok := n.(*ast.FuncType)
			if !ok {
				return true
			}
			for i, param := range f.Params.List {
				sel, ok := param.Type.(*ast.SelectorExpr)
				if !ok || i == 0 || sel.Sel.Name != "Context" {
					continue
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "context" && !isTestHandle(f.Params.List[0].Type) {
					found = append(found, g.at(param.Pos(), "the context is not the first parameter"))
				}
			}
			return true
		})
	}
	return found
}

// isTestHandle reports whether a parameter is *testing.T or the like, which may precede a context.
func isTestHandle(typ ast.Expr) bool {
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	sel, ok := typ.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == "testing"
}

func checkSleep(t *Tree) (found []Violation) {
	for _, g := range t.GoFiles {
		if g.forTests() {
			found = append(found, g.calls(func(pkg, name string) bool { return pkg == "time" && name == "Sleep" })...)
		}
	}
	return found
}

func checkSkip(t *Tree) (found []Violation) {
	for _, g := range t.GoFiles {
		if within(g.Dir, "internal/rigs/testlab") {
			continue
		}
		ast.Inspect(g.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) &&
				inTestHands(sel.X) {
				found = append(found, g.at(sel.Pos(), "calls %s; use testlab.Need", sel.Sel.Name))
			}
			return true
		})
	}
	return found
}

// inTestHands reports whether an expression has a usual name of a test handle. Fuzz
// targets are included: they ignore a meaningless input by return.
func inTestHands(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && slices.Contains([]string{"t", "tb", "b", "f"}, id.Name)
}

// maxColumns is the length above which a line of code is broken.
const maxColumns = 140

// checkColumns finds long lines. A line is exempt where strings make up a good part of it, which are
// not broken for their length, and inside of a raw string or a struct tag. Tests are exempt: their
// tables are read by column.
func checkColumns(t *Tree) (found []Violation) {
	const text = 40 // characters of strings on an exempt line
	for _, g := range t.GoFiles {
		if g.Test || g.Generated {
			continue
		}
		strs := map[int]int{} // by line
		ast.Inspect(g.AST, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				from, to := g.Fset.Position(lit.Pos()).Line, g.Fset.Position(lit.End()).Line
				for line := from; line <= to; line++ {
					strs[line] += len(lit.Value)
				}
			}
			return true
		})
		number := 0
		for line := range bytes.Lines(g.Data) {
			number++
			if n := utf8.RuneCount(bytes.TrimRight(line, "\n")); n > maxColumns && strs[number] < text {
				found = append(found, Violation{Path: g.Path, Line: number, What: fmt.Sprintf("has %d characters", n)})
			}
		}
	}
	return found
}

func checkLength(t *Tree) (found []Violation) {
	reasons := longFiles()
	for _, g := range t.GoFiles {
		n := bytes.Count(g.Data, []byte("\n"))
		_, listed := reasons[g.Path]
		switch {
		case n > maxLines && !listed && !g.Generated:
			found = append(found, Violation{Path: g.Path, What: fmt.Sprintf("has %d lines", n)})
		case n <= maxLines && listed:
			found = append(found, Violation{Path: g.Path, What: "is short enough now: remove it from longFiles"})
		}
	}
	return found
}
