package repotest

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

func importRules() []Rule {
	return []Rule{
		{
			"import directions",
			"the directions are the design: a new one is a decision, made in internal/rigs/repotest/imports.go with its reason",
			checkDirections,
		},
		{"lab is a leaf", "every package imports internal/lab, so its dependencies would be everybody's", checkLabIsALeaf},
		{
			"analysis is pure",
			"the same frames must give the same numbers, and the same requests the same answers, anywhere and at any time",
			checkPurity,
		},
		{"test packages", "what only tests need must not be linked into the binary", checkTestPackages},
		{"test libraries", "what only tests need must not be linked into the binary", checkTestLibraries},
	}
}

// within reports whether dir is root or below it.
func within(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }

// imports calls f with every import of the file.
func (g GoFile) imports(f func(importPath string, spec *ast.ImportSpec)) {
	for _, spec := range g.AST.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			f(p, spec)
		}
	}
}

// forTests reports whether the file is a test, or belongs to a package whose name ends in
// "test", as net/http/httptest does: fakes and helpers that only tests import.
func (g GoFile) forTests() bool { return g.Test || strings.HasSuffix(g.AST.Name.Name, "test") }

func checkDirections(t *Tree) (found []Violation) {
	for _, g := range t.GoFiles {
		var rule *direction
		for _, d := range directions() {
			if within(g.Dir, d.from) && (rule == nil || len(d.from) > len(rule.from)) {
				rule = &d
			}
		}
		if rule == nil {
			found = append(found, g.at(g.AST.Package, "%s has no line in the table of import directions", g.Dir))
			continue
		}
		g.imports(func(p string, spec *ast.ImportSpec) {
			target, ours := strings.CutPrefix(p, module)
			if !ours || within(target, rule.from) || g.forTests() && within(target, "internal/rigs/testlab") {
				return
			}
			if target == "internal/rigs/benchtable" && g.AST.Name.Name == "main" {
				return // every benchmark leaves the same list behind
			}
			if within(target, "internal/rigs/testlab") {
				found = append(found, g.at(spec.Pos(), "internal/rigs/testlab is for tests only"))
				return
			}
			if !slices.ContainsFunc(rule.may, func(root string) bool { return within(target, root) }) {
				found = append(found, g.at(spec.Pos(), "%s must not import %s: %s", g.Dir, target, rule.why))
			}
		})
	}
	return found
}

func checkLabIsALeaf(t *Tree) (found []Violation) {
	for _, g := range t.GoFiles {
		if g.Test || !within(g.Dir, "internal/lab") {
			continue
		}
		g.imports(func(p string, spec *ast.ImportSpec) {
			if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
				found = append(found, g.at(spec.Pos(), "imports %s, which is not of the standard library", p))
			}
		})
	}
	return found
}

// pure lists the packages without I/O and clock.
func pure() []string { return []string{"analysis", "netlab/replay/match"} }

func checkPurity(t *Tree) (found []Violation) {
	impure := []string{"os", "net", "syscall", "log", "io/ioutil", "golang.org/x/sys", "math/rand", "crypto/rand"}
	for _, g := range t.GoFiles {
		if g.Test || !slices.ContainsFunc(pure(), func(root string) bool { return within(g.Dir, root) }) || g.AST.Name.Name == "main" {
			continue
		}
		g.imports(func(p string, spec *ast.ImportSpec) {
			// math/rand/v2 has seedable sources; its global ones are caught below. net/url
			// only parses text.
			if p != "math/rand/v2" && p != "net/url" && slices.ContainsFunc(impure, func(root string) bool { return within(p, root) }) {
				found = append(found, g.at(spec.Pos(), "imports %s", p))
			}
		})
		found = append(found, g.calls(func(pkg, name string) bool {
			switch pkg {
			case "time":
				return slices.Contains(
					[]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
					name,
				)
			case "rand":
				return !strings.HasPrefix(name, "New") && !slices.Contains([]string{"Rand", "Source", "PCG", "ChaCha8", "Zipf"}, name)
			}
			return false
		})...)
	}
	return found
}

func checkTestPackages(t *Tree) (found []Violation) {
	forTests := map[string]bool{}
	for _, g := range t.GoFiles {
		if !g.Test && g.forTests() {
			forTests[module+g.Dir] = true
		}
	}
	for _, g := range t.GoFiles {
		if g.forTests() || g.AST.Name.Name == "main" && !within(g.Dir, "cmd") { // a benchmark's or a generator's program
			continue
		}
		g.imports(func(p string, spec *ast.ImportSpec) {
			if forTests[p] {
				found = append(found, g.at(spec.Pos(), "imports %s outside a test", p))
			}
		})
	}
	return found
}

func checkTestLibraries(t *Tree) (found []Violation) {
	libraries := []string{"github.com/google/go-cmp", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/santhosh-tekuri/jsonschema", "testing/fstest", "net/http/httptest"}
	for _, g := range t.GoFiles {
		if g.forTests() || within(g.Dir, "internal/rigs/testlab") { // only tests can import it: see checkDirections
			continue
		}
		g.imports(func(p string, spec *ast.ImportSpec) {
			if slices.ContainsFunc(libraries, func(root string) bool { return within(p, root) }) {
				found = append(found, g.at(spec.Pos(), "imports %s outside a test", p))
			}
		})
	}
	return found
}

// calls finds uses of pkg.Name for which bad returns true. It identifies packages by the
// last element of their path, which is also the name that our code uses.
func (g GoFile) calls(bad func(pkg, name string) bool) (found []Violation) {
	ast.Inspect(g.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// An identifier without an object is a package: locals have one.
		if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil && bad(x.Name, sel.Sel.Name) {
			found = append(found, g.at(sel.Pos(), "uses %s.%s", x.Name, sel.Sel.Name))
		}
		return true
	})
	return found
}
