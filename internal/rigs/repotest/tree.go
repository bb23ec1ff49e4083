// Package repotest tests the rules of this repository: which package may import
// which, what every package and document must have, and that the commands and
// files that the documents name exist and work.
//
// In flows the source tree, out flow violations, each with its place and
// the reason of its rule. Every rule is itself tested on a small tree that
// breaks it.
package repotest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Rule is a property that must hold everywhere in the repository.
type Rule struct {
	Name  string
	Why   string
	Check func(*Tree) []Violation
}

// Violation is one breach of a rule. Line is 0 when it concerns a whole file.
type Violation struct {
	Path string
	Line int
	What string
}

func (v Violation) String() string {
	if v.Line == 0 {
		return fmt.Sprintf("%s: %s", v.Path, v.What)
	}
	return fmt.Sprintf("%s:%d: %s", v.Path, v.Line, v.What)
}

// Tree is the checked-out repository, without build results.
type Tree struct {
	Files   []File
	GoFiles []GoFile
}

// File is any file, its path relative to the repository's root.
type File struct {
	Path string
	Data []byte
}

// Text reports whether the file is text: it has no NUL byte near its start, which is
// git's own test.
func (f File) Text() bool { return !bytes.Contains(f.Data[:min(len(f.Data), 8000)], []byte{0}) }

// GoFile is a parsed Go file.
type GoFile struct {
	File
	Dir       string // folder, which is the import path without the module's name
	Test      bool   // its name ends in _test.go
	Generated bool
	Fset      *token.FileSet
	AST       *ast.File
}

// at returns a violation at a position of the file.
func (g GoFile) at(pos token.Pos, format string, args ...any) Violation {
	return Violation{g.Path, g.Fset.Position(pos).Line, fmt.Sprintf(format, args...)}
}

// Load reads a tree. Go files in folders that git ignores or that contain test data are not
// parsed; .git, bin and out are skipped entirely.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "out"}, p) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || p == ".git" { // a file in a linked work tree
			return nil
		}
		data, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		f := File{Path: p, Data: data}
		t.Files = append(t.Files, f)
		if path.Ext(p) != ".go" || strings.Contains("/"+p, "/testdata/") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, p, data, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		t.GoFiles = append(t.GoFiles, GoFile{
			File: f, Dir: path.Dir(p), Test: strings.HasSuffix(p, "_test.go"),
			Generated: ast.IsGenerated(file), Fset: fset, AST: file,
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load the tree: %w", err)
	}
	return t, nil
}

// has reports whether the tree has a file or folder with the path.
func (t *Tree) has(p string) bool {
	return slices.ContainsFunc(t.Files, func(f File) bool {
		return f.Path == p || strings.HasPrefix(f.Path, strings.TrimSuffix(p, "/")+"/")
	})
}

// Rules returns all rules.
func Rules() []Rule {
	return slices.Concat(importRules(), sourceRules(), textRules(), documentRules())
}
