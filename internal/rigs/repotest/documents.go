package repotest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func documentRules() []Rule {
	return []Rule{
		{"links resolve", "a link that leads nowhere sends the reader away", checkLinks},
		{"make targets exist", "what a document tells a reader to type must work", checkTargetsExist},
		{
			"needed programs are installable",
			"a test that fails for want of a program must be mended by make deps, as its message says",
			checkPrograms,
		},
		{"promises have tests", "what docs promise is proved by make test, or nobody would notice that it broke", checkPromises},
		{"who connects is told", "a connection that no rule judges, and no reason excuses, is one that a page can lead somewhere", checkConnects},
		{"what listens is bounded", "a listener without a bound is one that a stranger can fill", checkListens},
		{"attacks have tests", "a table of what was tried, whose tests are gone, or a parser of which it says nothing, tells a reader of a safety that nobody proves", checkAttacks},
		{"make targets are documented", "a target that make help does not list is known to its author only", checkTargetsDocumented},
	}
}

// block is a fenced block of a document.
type block struct {
	line int    // of its first line of text
	info string // "sh", "sh run", "yaml"
	text string
}

// shell says whether the block is something to type.
func (b block) shell() bool { return b.info == "sh" || strings.HasPrefix(b.info, "sh ") }

// document is a Markdown file taken apart as far as the rules need.
type document struct {
	path    string
	blocks  []block
	prose   []string // the lines outside blocks; those inside are ""
	anchors []string // of its headings, as forges make them
}

// documents returns the tree's Markdown files.
func (t *Tree) documents() (docs []document) {
	for _, f := range t.Files {
		if path.Ext(f.Path) == ".md" && !strings.Contains("/"+f.Path, "/testdata/") {
			docs = append(docs, parseDocument(f))
		}
	}
	return docs
}

func parseDocument(f File) document {
	d := document{path: f.Path}
	var open *block
	notInAnchors := regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
	for i, line := range strings.Split(string(f.Data), "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{line: i + 2, info: strings.TrimSpace(info)}
			line = ""
		case fence:
			d.blocks = append(d.blocks, *open)
			open, line = nil, ""
		case open != nil:
			open.text += line + "\n"
			line = ""
		case strings.HasPrefix(line, "#"):
			heading := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			d.anchors = append(d.anchors, strings.ReplaceAll(notInAnchors.ReplaceAllString(heading, ""), " ", "-"))
		}
		d.prose = append(d.prose, line)
	}
	return d
}

func checkLinks(t *Tree) (found []Violation) {
	docs := map[string]document{}
	for _, d := range t.documents() {
		docs[d.path] = d
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)[^)]*\)|(?:src|href|srcset)="([^"]+)"`)
	for _, d := range t.documents() {
		for i, line := range d.prose {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target := m[1] + m[2]
				if strings.Contains(target, ":") { // a URL with a scheme is somebody else's
					continue
				}
				file, anchor, _ := strings.Cut(target, "#")
				where := d.path
				if file != "" {
					where = path.Join(path.Dir(d.path), file)
				}
				switch {
				case !t.has(where):
					found = append(found, Violation{d.path, i + 1, fmt.Sprintf("links to %s, which does not exist", target)})
				case anchor != "" && path.Ext(where) == ".md" && !slices.Contains(docs[where].anchors, anchor):
					found = append(found, Violation{d.path, i + 1, fmt.Sprintf("links to %s, which has no such heading", target)})
				}
			}
		}
	}
	return found
}

// command is something that a document tells the reader to type.
type command struct {
	path  string
	line  int
	words []string // without sudo and variables in front
}

// commands finds the calls of a program in the tree's documents: lines of
// shell blocks, and code spans that begin with its name.
func (t *Tree) commands(program string) (found []command) {
	span := regexp.MustCompile("`([^`]+)`")
	for _, d := range t.documents() {
		add := func(line int, text string) {
			words := strings.Fields(text)
			for len(words) > 0 && (words[0] == "$" || words[0] == "sudo" || words[0] == "!" || strings.Contains(words[0], "=")) {
				words = words[1:]
			}
			if len(words) > 0 && path.Base(words[0]) == program {
				found = append(found, command{d.path, line, words})
			}
		}
		for i, line := range d.prose {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				add(i+1, m[1])
			}
		}
		for _, b := range d.blocks {
			if !b.shell() {
				continue
			}
			joined := strings.ReplaceAll(b.text, "\\\n", " \x00")
			n := b.line
			for _, line := range strings.Split(joined, "\n") {
				plain, _, _ := strings.Cut(strings.ReplaceAll(line, "\x00", ""), " #")
				for _, part := range regexp.MustCompile(`&&|\|\|?|;`).Split(plain, -1) {
					add(n, part)
				}
				n += 1 + strings.Count(line, "\x00")
			}
		}
	}
	return found
}

// target is a rule of a makefile that a person may ask for.
type target struct {
	path       string
	line       int
	name       string
	documented bool // has the "## …" that make help prints
}

// targets returns the named targets of Makefile and mk/*.mk.
func (t *Tree) targets() (found []target) {
	rule := regexp.MustCompile(`^([a-z][a-z0-9%-]*(?: +[a-z][a-z0-9%-]*)*) *:(?:[^=:]|$)`)
	for _, f := range t.Files {
		if f.Path != "Makefile" && path.Ext(f.Path) != ".mk" {
			continue
		}
		for i, line := range strings.Split(string(f.Data), "\n") {
			m := rule.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			for _, name := range strings.Fields(m[1]) {
				found = append(found, target{f.Path, i + 1, name, strings.Contains(line, ": ## ") || strings.Contains(line, " ## ")})
			}
		}
	}
	return found
}

func checkTargetsExist(t *Tree) (found []Violation) {
	targets := t.targets()
	exists := func(word string) bool {
		return slices.ContainsFunc(targets, func(g target) bool {
			before, after, pattern := strings.Cut(g.name, "%")
			if !pattern {
				return g.name == word
			}
			return len(word) > len(before)+len(after) && strings.HasPrefix(word, before) && strings.HasSuffix(word, after)
		})
	}
	for _, c := range t.commands("make") {
		for _, word := range c.words[1:] {
			if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
				break // an option, or a variable whose value may have spaces
			}
			if !exists(word) {
				found = append(
					found,
					Violation{c.path, c.line, fmt.Sprintf("tells the reader to type make %s, which does not exist", word)},
				)
			}
		}
	}
	return found
}

func checkTargetsDocumented(t *Tree) (found []Violation) {
	for _, g := range t.targets() {
		if !g.documented {
			found = append(found, Violation{g.path, g.line, fmt.Sprintf("target %s has no ## text for make help", g.name)})
		}
	}
	return found
}

// checkPrograms compares what tests ask testlab for with the table in scripts/deps.sh.
func checkPrograms(t *Tree) (found []Violation) {
	proofs := []string{"sh", "bash", "go", "make"} // who runs the tests has these
	for _, f := range t.Files {
		if f.Path == "scripts/deps.sh" {
			for _, line := range strings.Split(string(f.Data), "\n") {
				if cells := strings.Split(strings.TrimSpace(line), "|"); len(cells) == 4 {
					for _, proof := range strings.Fields(cells[2]) {
						proofs = append(proofs, path.Base(proof)) // a file may be a program outside the PATH
					}
				}
			}
		}
	}
	for _, g := range t.GoFiles {
		if !g.forTests() || within(g.Dir, "internal/rigs/testlab") {
			continue
		}
		ast.Inspect(g.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "NeedProgram" && sel.Sel.Name != "NeedPackage" {
				return true
			}
			args := call.Args[1:]
			if sel.Sel.Name == "NeedPackage" {
				args = args[1:]
			}
			var names []string
			for _, arg := range args {
				if lit, ok := arg.(*ast.BasicLit); ok {
					if name, err := strconv.Unquote(lit.Value); err == nil {
						names = append(names, name)
					}
				}
			}
			if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(proofs, name) }) {
				found = append(found, g.at(call.Pos(), "needs %s, for which scripts/deps.sh has no line", strings.Join(names, " or ")))
			}
			return true
		})
	}
	return found
}
