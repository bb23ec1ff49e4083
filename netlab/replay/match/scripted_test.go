package match

import (
	"net/http"
	"testing"

	"eidetic/internal/lab"
)

// TestFieldsOfScripts: of several answers for one URL a request gets that to a request with the same fields of a script,
// in whatever order a page asks, and each of those in its turn.
func TestFieldsOfScripts(t *testing.T) {
	x := NewIndex(&Ignored{})
	for _, e := range []struct{ id, name, value string }{
		{"refused", "User-Agent", "A"}, {"of ann", "Authorization", "Bearer ann"}, {"of bob", "authorization", "Bearer bob"},
		{"a part", "HX-Request", "true"}, {"of ann again", "Authorization", "Bearer ann"},
		{"traced", "X-Trace", "0f8fad5b-d9cb-469f-a165-70867728950e"},
	} {
		en := &lab.Exchange{ID: e.id, Method: "GET", URL: "https://a.test/", Status: 200}
		en.Request.Header = []lab.HeaderField{{Name: e.name, Value: e.value}}
		x.Add(NewEntry(en, e.id))
	}
	c := NewClient()
	for _, r := range []struct{ name, value, want string }{
		{"HX-Request", "true", "a part"}, {"Authorization", "Bearer ann", "of ann"}, {"Authorization", "Bearer bob", "of bob"},
		{"User-Agent", "B", "refused"}, {"Authorization", "Bearer ann", "of ann again"}, {"Authorization", "Bearer ann", "of ann again"},
		{"Cookie", "a=b", "refused"}, {"X-Trace", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "traced"},
		{"Authorization", "Bearer carl", "of ann again"}, // nothing is nearer, and all of them were given
		{"X-Other", "1", "refused"},                      // no recorded request has it, so it tells nothing
	} {
		h := http.Header{}
		h.Set(r.name, r.value)
		got := x.Find(Normal, c, newTestRequest(t, "https://a.test/"), h)
		if got.Entry == nil || got.Entry.ID != r.want {
			t.Errorf("with %s: %s, Find() = %+v, want %q", r.name, r.value, got, r.want)
		}
	}
}
