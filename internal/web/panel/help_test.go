package panel

import (
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"eidetic/docs"
	"eidetic/internal/lab"
)

// Each document is a page for everybody, and each link in it, and from a page of the panel, leads to a place that is
// there.
func TestHelp(t *testing.T) {
	config := pagesConfig(t)
	config.Token = lab.NewSecret(token)
	s := newServer(t, config)
	pages := map[string]string{}
	err := fs.WalkDir(docs.Files, ".", func(name string, _ fs.DirEntry, err error) error {
		if route, ok := strings.CutSuffix(name, ".md"); ok && err == nil {
			got := ask(t, s, http.MethodGet, "/help/"+route, nil)
			if got.StatusCode != 200 || strings.Contains(got.text, "<img src=\"img") {
				t.Errorf("GET /help/%s = %d; want the document without its pictures", route, got.StatusCode)
			}
			pages["/help/"+route] = got.text
		}
		return err
	})
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d documents, %v", len(pages), err)
	}
	for _, route := range []string{"/", "/history", "/browsers", "/recordings", "/plan", "/automation", "/access", "/run", "/trial", "/device", "/gesture", "/storage"} {
		pages[route] = ask(t, s, http.MethodGet, route, nil).text
	}
	for from, page := range pages {
		for _, link := range regexp.MustCompile(`href="(/help/[^"]*|#[^"]+)"`).FindAllStringSubmatch(page, -1) {
			to, anchor, _ := strings.Cut(link[1], "#")
			if to == "" {
				to = from
			}
			if text, ok := pages[to]; !ok || anchor != "" && !strings.Contains(text, `id="`+anchor+`"`) {
				t.Errorf("%s links to %s, which is not there", from, link[1])
			}
		}
	}
}

// An address that leads nowhere is a page for a person, and a problem for a program; what needs a token still does.
func TestUnknownAddress(t *testing.T) {
	config := pagesConfig(t)
	config.Token = lab.NewSecret(token)
	s := newServer(t, config)
	person := header("Accept", "text/html,application/xhtml+xml")
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/nowhere", 404, "There is no such page"},
		{"/help/nowhere", 404, "There is no such page"},
		{"/plan/of/mine", 404, "There is no such page"},
		{"/metrics", 401, "needs a token"},
		{"/api/v1/nowhere", 401, "needs a token"},
	} {
		if got := ask(t, s, http.MethodGet, c.path, person); got.StatusCode != c.status || !strings.Contains(got.text, c.want) {
			t.Errorf("GET %s = %d %.200s; want %d with %q", c.path, got.StatusCode, got.text, c.status, c.want)
		}
	}
	if got := ask(t, s, http.MethodGet, "/nowhere", nil); got.StatusCode != 401 {
		t.Errorf("GET /nowhere by a program = %d; want 401", got.StatusCode)
	}
}
