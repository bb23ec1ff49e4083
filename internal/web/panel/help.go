package panel

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"unicode"

	"github.com/labstack/echo/v4"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"eidetic/docs"
)

// helpPage is what help.html needs of a document.
type helpPage struct {
	page
	Text template.HTML
}

// help serves the documents of this version as pages, which everybody may read: they are equal for all.
func (p *Panel) help(e *echo.Echo, show func(c echo.Context, status int, file string, data any) error, shared page) {
	documents := map[string]func() (helpPage, error){}
	_ = fs.WalkDir(docs.Files, ".", func(name string, _ fs.DirEntry, err error) error { // of what is in the binary nothing fails
		if route, ok := strings.CutSuffix(name, ".md"); ok && err == nil {
			documents[route] = sync.OnceValues(func() (helpPage, error) { return documentPage(name, shared) })
		}
		return err
	})
	e.GET("/help", func(c echo.Context) error { return c.Redirect(http.StatusSeeOther, "/help/index") })
	e.GET("/help/*", func(c echo.Context) error {
		render := documents[c.Param("*")]
		if render == nil {
			return echo.NewHTTPError(http.StatusNotFound, "there is no such document")
		}
		made, err := render()
		if err != nil {
			return err
		}
		return show(c, http.StatusOK, "help.html", made)
	})
}

// documentPage makes a page of a document.
func documentPage(name string, shared page) (helpPage, error) {
	made := helpPage{page: shared}
	source, err := fs.ReadFile(docs.Files, name)
	if err != nil {
		return made, err
	}
	md := goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	)
	places := parser.NewContext(parser.WithIDs(&anchors{seen: map[string]int{}}))
	root := md.Parser().Parse(text.NewReader(source), parser.WithContext(places))
	made.Title = adapt(root, source, path.Dir(name))
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, source, root); err != nil {
		return made, fmt.Errorf("document %s: %w", name, err)
	}
	// What is wider than a phone can be scrolled by the keyboard.
	wide := strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>")
	made.Text = template.HTML(wide.Replace(out.String())) // our own texts; raw HTML in them is left out by the renderer
	return made, nil
}

// adapt leaves out pictures, has links lead to pages of the panel, and returns the document's title. A link to what is
// no document, such as a plan's file, becomes text.
func adapt(root ast.Node, source []byte, folder string) (title string) {
	var images, others []ast.Node
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function never fails
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if title == "" && n.Level == 1 {
				title = string(n.Lines().Value(source))
			}
		case *ast.Image:
			images = append(images, n)
			return ast.WalkSkipChildren, nil
		case *ast.Link:
			to, ok := helpAddress(folder, string(n.Destination))
			if n.Destination = []byte(to); !ok {
				others = append(others, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range images {
		n.Parent().RemoveChild(n.Parent(), n)
	}
	for _, n := range others {
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			n.Parent().InsertBefore(n.Parent(), n, child)
		}
		n.Parent().RemoveChild(n.Parent(), n)
	}
	return title
}

// helpAddress is where a link of a document leads in the panel; ok is false for what the panel does not have.
func helpAddress(folder, to string) (address string, ok bool) {
	if strings.HasPrefix(to, "#") || strings.Contains(to, "://") {
		return to, true
	}
	file, anchor, _ := strings.Cut(to, "#")
	name := path.Join(folder, file)
	if _, err := fs.Stat(docs.Files, name); err != nil || path.Ext(name) != ".md" {
		return to, false
	}
	address = "/help/" + strings.TrimSuffix(name, ".md")
	if anchor != "" {
		address += "#" + anchor
	}
	return address, true
}

// anchors names headings as forges do, so that the documents' links lead to the same places everywhere.
type anchors struct{ seen map[string]int }

// Generate implements parser.IDs.
func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	name := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(string(value)))
	n := a.seen[name]
	if a.seen[name]++; n > 0 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return []byte(name)
}

// Put implements parser.IDs.
func (a *anchors) Put(value []byte) { a.seen[string(value)]++ }
