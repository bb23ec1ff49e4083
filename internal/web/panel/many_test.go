package panel

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Hostile lists of pages and users are refused with the field and its bounds, before anything goes through them.
func TestHostileListsAreRefused(t *testing.T) {
	b := newBox(t, newStore(t), filepath.Join(t.TempDir(), "queue.db"))
	page := `{"page": "https://a.test/"},`
	for name, c := range map[string]struct {
		body string
		says []string
	}{
		"10,000 pages":  {`{"pages": [` + strings.TrimSuffix(strings.Repeat(page, 10_000), ",") + `]}`, []string{"body.pages", "50"}},
		"a field":       {`{"pages": [{"page": "https://a.test/", "link": "lte"}]}`, []string{"body.pages[0].link"}},
		"no name":       {`{"page": "https://a.test/", "users": [{"viewport": "412x915"}]}`, []string{"body.users[0]", "name"}},
		"same site":     {`{"page": "https://a.test/", "users": [{"name": "a", "cookies": [{"name": "a", "same_site": "maybe"}]}]}`, []string{"body.users[0].cookies[0].same_site", "strict"}},
		"cookie's type": {`{"page": "https://a.test/", "users": [{"name": "a", "cookies": "a=b"}]}`, []string{"body.users[0].cookies"}},
	} {
		status, _, text := b.do(t, http.MethodPost, "/api/v1/runs", c.body)
		if status != http.StatusUnprocessableEntity {
			t.Errorf("%s: POST = %d, want 422: %.300s", name, status, text)
		}
		for _, want := range c.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in %.500s", name, want, text)
			}
		}
	}
}
