package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// sources is what the plan knows about a package from its source files.
type sources struct {
	path       string
	dir        string
	tests      []string // Test, Fuzz and Example functions
	long       []string // those of which a part is left to make test-all
	onlyLong   bool     // nothing of the package is part of make test
	longHelper bool     // a function that is no test leaves parts to make test-all: any test may have such parts
	machine    bool     // a test calls a function testlab.Need…
	concurrent bool     // it starts goroutines or shares memory between them, in more than a benchmark
}

// hasLong reports whether make test leaves out a part of the package.
func (s sources) hasLong() bool { return s.longHelper || len(s.long) > 0 }

// longPattern returns go test's -run for the tests of which make test leaves out a part; an empty one means all.
func (s sources) longPattern() string {
	if s.longHelper || len(s.long) == len(s.tests) {
		return ""
	}
	return "^(" + strings.Join(s.long, "|") + ")$"
}

// survey lists the packages with the go command and inspects their files.
func survey(ctx context.Context) (all []sources, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p struct {
			ImportPath, Dir                    string
			GoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		s := sources{path: p.ImportPath, dir: p.Dir, onlyLong: true}
		for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			path := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			if err := s.inspect(path, text); err != nil {
				return nil, err
			}
		}
		s.onlyLong = s.onlyLong && len(s.tests) > 0
		s.concurrent = s.concurrent && !contains(unraced(), s.path)
		all = append(all, s)
	}
}

// inspect adds what one source file of the package tells.
func (s *sources) inspect(name string, text []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.concurrent = s.concurrent || concurrent(file)
	if !strings.HasSuffix(name, "_test.go") || s.path == module+"internal/rigs/testlab" {
		return nil // calls in testlab itself are no needs
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		uses := map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			if name := ofTestlab(n); name != "" {
				uses[name] = true
			}
			return true
		})
		for name := range uses {
			s.machine = s.machine || strings.HasPrefix(name, "Need") || name == "EachBrowser"
		}
		long := uses["Long"] || uses["EachBrowser"] || uses["Repeat"]
		switch {
		case f.Recv == nil && isTest(f.Name.Name):
			s.tests = append(s.tests, f.Name.Name)
			s.onlyLong = s.onlyLong && leaves(f)
			if long {
				s.long = append(s.long, f.Name.Name)
			}
		case long:
			s.longHelper, s.onlyLong = true, false
		}
	}
	return nil
}

func isTest(name string) bool {
	kinds := []string{"Test", "Fuzz", "Example"}
	return name != "TestMain" && slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(name, kind) })
}

// leaves reports whether a statement of the function itself leaves all of it to make test-all.
func leaves(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Body.List, func(s ast.Stmt) bool {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			return false
		}
		call, ok := e.X.(*ast.CallExpr)
		return ok && ofTestlab(call.Fun) == "Long"
	})
}

// ofTestlab returns the name of a function of package testlab.
func ofTestlab(n ast.Node) string {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if of, ok := s.X.(*ast.Ident); !ok || of.Name != "testlab" {
		return ""
	}
	return s.Sel.Name
}

// concurrent says whether a file starts goroutines or shares memory between them. Benchmarks do not count, as no test
// runs them.
func concurrent(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return !slices.ContainsFunc(n.Type.Params.List, func(f *ast.Field) bool { return types.ExprString(f.Type) == "*testing.B" })
		case *ast.GoStmt, *ast.ChanType:
			found = true
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			found = found || of != nil && of.Name == "sync"
		}
		return !found
	})
	return found
}
