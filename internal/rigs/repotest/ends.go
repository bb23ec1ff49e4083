package repotest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// endsFile has the tables of what connects to others, and of what listens.
const endsFile = "docs/security.md"

// checkConnects and checkListens hold the two tables of endsFile to the code.
func checkConnects(t *Tree) []Violation {
	return t.checkEnds("Connects", `^(net\.(Dial\w*|Dialer)|tls\.(Dial\w*|Dialer)|http\.(Client|Transport|DefaultClient|DefaultTransport|Get|Head|Post|PostForm)|`+
		`http3\.Transport|quic\.Dial\w*|websocket\.Dial|minio\.New|pgxpool\.New\w*|pgx\.Connect\w*)$`)
}

func checkListens(t *Tree) []Violation {
	return t.checkEnds("Listens", `^(net\.(Listen\w*|File(Listener|PacketConn))|tls\.Listen|http\.ListenAndServe\w*|quic\.Listen\w*|server4\.New\w+)$`)
}

// checkEnds finds the packages that use one of some names and have no row in the table, rows of packages that do not,
// and numbers in rows that are not those of the constants that the row names.
func (t *Tree) checkEnds(heading, names string) (found []Violation) {
	used := map[string]string{} // the first use in each package
	name := regexp.MustCompile(names)
	for _, g := range t.GoFiles {
		if g.forTests() || within(g.Dir, "internal/rigs") || g.AST.Name.Name == "main" && !within(g.Dir, "cmd") {
			continue
		}
		ast.Inspect(g.AST, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if of, ok := s.X.(*ast.Ident); ok && name.MatchString(of.Name+"."+s.Sel.Name) && !isType(s.Sel.Name) && used[g.Dir] == "" {
					used[g.Dir] = of.Name + "." + s.Sel.Name
				}
			}
			return true
		})
	}
	rows := map[string]tableRow{}
	span := regexp.MustCompile("`([a-z0-9/]+)`")
	for _, d := range t.documents() {
		if d.path != endsFile {
			continue
		}
		for _, r := range d.table(heading) {
			of := span.FindAllStringSubmatch(r.cells[0], -1)
			for _, m := range of {
				rows[m[1]] = r
			}
			found = append(found, t.wrongNumbers(r, of)...)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(used)) {
		if _, ok := rows[dir]; !ok {
			found = append(found, Violation{endsFile, 0, fmt.Sprintf("has no row for %s, which uses %s, in the table %q", dir, used[dir], heading)})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(rows)) {
		if !t.has(dir) {
			found = append(found, Violation{endsFile, rows[dir].line, fmt.Sprintf("names %s, which does not exist", dir)})
		}
	}
	return found
}

// isType tells the name of an interface: to name it opens nothing.
func isType(name string) bool { return name == "Listener" }

// wrongNumbers compares each number that a row gives a constant for, such as 30 s (`headerTimeout`).
func (t *Tree) wrongNumbers(r tableRow, packages [][]string) (found []Violation) {
	number := regexp.MustCompile("([0-9][0-9,]*)( s| KiB| MiB)?(?: [a-z ]+)? \\(`(\\w+)`\\)")
	units := map[string]int64{"": 1, " s": 1, " KiB": 1 << 10, " MiB": 1 << 20}
	for _, m := range number.FindAllStringSubmatch(strings.Join(r.cells[1:], " | "), -1) {
		said, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
		if err != nil {
			continue // no number is so long
		}
		said *= units[m[2]]
		is, known := int64(0), false
		for _, p := range packages {
			if n, ok := t.constant(p[1], m[3]); ok {
				is, known = n, true
			}
		}
		switch {
		case !known:
			found = append(found, Violation{endsFile, r.line, fmt.Sprintf("names the constant %s, which none of its packages has", m[3])})
		case is != said:
			found = append(found, Violation{endsFile, r.line, fmt.Sprintf("says that %s is %d, and it is %d", m[3], said, is)})
		}
	}
	return found
}

// constant returns a constant of a package, a time in seconds.
func (t *Tree) constant(dir, name string) (n int64, ok bool) {
	for _, g := range t.GoFiles {
		if g.Test || g.Dir != dir {
			continue
		}
		for _, d := range g.AST.Decls {
			decl, isDecl := d.(*ast.GenDecl)
			if !isDecl || decl.Tok != token.CONST {
				continue
			}
			for _, s := range decl.Specs {
				spec := s.(*ast.ValueSpec)
				for i, id := range spec.Names {
					if id.Name == name && i < len(spec.Values) {
						return valueOf(spec.Values[i])
					}
				}
			}
		}
	}
	return 0, false
}

// valueOf computes a constant expression, as far as bounds need it.
func valueOf(e ast.Expr) (n int64, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return n, err == nil
	case *ast.SelectorExpr:
		n, ok := map[string]int64{"Second": 1, "Minute": 60, "Hour": 3600}[e.Sel.Name]
		return n, ok
	case *ast.BinaryExpr:
		x, okX := valueOf(e.X)
		y, okY := valueOf(e.Y)
		switch {
		case okX && okY && e.Op == token.MUL:
			return x * y, true
		case okX && okY && e.Op == token.SHL && y < 63:
			return x << y, true
		}
	}
	return 0, false
}
