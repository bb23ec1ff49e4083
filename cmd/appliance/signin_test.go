package main

import (
	"fmt"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/netlab/proxy"
)

// TestPasswordOfAnAddress: user and password go to the page's origin, as curl sends them, and are in nothing else.
func TestPasswordOfAnAddress(t *testing.T) {
	trials := 1
	c := MeasureCmd{URL: "https://Ada:p%40ss%25w@shop.test:8443/a%?b#c", Against: "http://shop.test/", Trials: &trials, Link: "cable"}
	c.URL, c.Against = c.withoutUser(c.URL), c.withoutUser(c.Against)
	if want := "https://shop.test:8443/a%?b#c"; c.URL != want || c.Against != "http://shop.test/" {
		t.Errorf("the pages are %q and %q, want %q and the other unchanged", c.URL, c.Against, want)
	}
	r, err := c.reach(t.Context(), c.pages()...)
	if err != nil {
		t.Fatal(err)
	}
	want := proxy.Field{Name: "Authorization", Value: lab.NewSecret("Basic QWRhOnBAc3Mldw==")} // Ada:p@ss%w
	if got := r.Send["https://shop.test:8443"]; len(got) != 1 || got[0] != want {
		t.Errorf("sent to the page's origin: %v, want %v", got, want)
	}
	if got := r.Send["http://shop.test"]; len(got) != 0 {
		t.Errorf("sent to another origin: %v, want nothing", got)
	}
	if err := plan.CheckPage("https://ada:secret@shop.test/"); err == nil || strings.Contains(fmt.Sprint(err), "secret") {
		t.Errorf("CheckPage of a page with a password: %v, want an error without it", err)
	}
}
