package panel

import (
	"net/http"
	"strings"
	"testing"
)

func TestContentsOfRecordings(t *testing.T) {
	s := newServer(t, pagesConfig(t))
	for _, c := range []struct {
		name   string
		status int
		want   string
	}{
		{"shop.wacz", 200, `"url":"https://a.test/b.js"`},
		{"20261121-101400-links", 200, `"url":"https://cdn.shop.example/late.js"`},
		{"20260301-090000-checkout", 404, "has no recording of its own"},
		{"..", 422, "must match"},
	} {
		got := ask(t, s, http.MethodGet, "/api/v1/archives/"+c.name+"/contents", nil)
		if got.StatusCode != c.status || !strings.Contains(got.text, c.want) {
			t.Errorf("the contents of %s = %d %.300s; want %d with %s", c.name, got.StatusCode, got.text, c.status, c.want)
		}
	}
}
