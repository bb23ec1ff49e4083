package execute

import (
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// What the device gives up, and what is answered in the end, is no problem of an origin.
func TestOriginProblems(t *testing.T) {
	const page = "https://shop.example"
	at := func(path, why string) lab.Served { return lab.Served{URL: page + path, Error: why} }
	var p OriginProblems
	gone := at("/", "the connection is closed")
	gone.Aborted = true
	for _, s := range []lab.Served{gone, at("/a", "no route"), at("/b", "no route"), at("/b", "")} {
		p.Add(s)
	}
	others, err := p.Take(page)
	if want := []string{"not recorded: https://shop.example/a: no route"}; err != nil || !slices.Equal(others, want) {
		t.Errorf("Take() = %q, %v; want %q", others, err, want)
	}
	p.Add(at("/", "no route"))
	if _, err := p.Take(page); err == nil || !strings.Contains(err.Error(), "was not answered by its origin: no route") {
		t.Errorf("Take() of a page without an answer = %v", err)
	}
}
