package plan

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestPreview(t *testing.T) {
	const pattern = "https://{revision}.preview.shop.example:8443/pr/"
	one := lab.Plan{Arm: lab.Arm{Page: "https://www.shop.example/"}, Treatment: &lab.Arm{Page: "https://trunk.shop.example/checkout?a=b%2Fc#x"}}
	got, err := Preview(one, pattern, "3f1c")
	if want := "https://3f1c.preview.shop.example:8443/pr/checkout?a=b%2Fc#x"; err != nil || got.Treatment.Page != want || got.Page != one.Page || one.Treatment.Page == want {
		t.Errorf("Preview() = %+v, %v; want the treatment's page at %s", got.Treatment, err, want)
	}
	many := lab.Plan{Treatment: &lab.Arm{Link: "4g"}, Pages: []lab.PlanPage{{Page: "https://a.test/x"}, {Page: "https://a.test/y", Treatment: &lab.PageTreatment{Page: "https://b.test/z"}}}}
	got, err = Preview(many, "http://lab/{revision}", "v1")
	var pages []string
	for _, c := range got.Cells() {
		pages = append(pages, c.Plan.Arms()[1].Page)
	}
	if d := cmp.Diff([]string{"http://lab/v1/x", "http://lab/v1/z"}, pages); d != "" || err != nil {
		t.Errorf("Preview() of many pages: %v (-want +got):\n%s", err, d)
	}
	if got, err := Preview(one, pattern, RevisionMark); err != nil || !strings.HasPrefix(got.Treatment.Page, "https://{revision}.preview") {
		t.Errorf("Preview() with the mark = %+v, %v; want the mark in the page", got.Treatment, err)
	}
	got, err = Preview(one, pattern, "3f1c")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{got.Treatment.Page, one.Treatment.Page} {
		if marked, err := Marked(page, pattern, "3f1c"); err != nil || marked != "https://{revision}.preview.shop.example:8443/pr/checkout?a=b%2Fc#x" {
			t.Errorf("Marked(%s) = %s, %v; want the page of any revision", page, marked, err)
		}
	}
	for _, revision := range []string{"", "a/b", "x@evil.test", "a?b", "#", "..%2f", "{revision}{revision}", "a\nb"} {
		if got, err := Preview(one, pattern, revision); err == nil {
			t.Errorf("Preview() of the revision %q = %s; want an error", revision, got.Treatment.Page)
		}
	}
	if _, err := Preview(lab.Plan{Arm: one.Arm}, pattern, "v1"); err == nil {
		t.Error("Preview() of a plan without a treatment = nil; want an error")
	}
}

func FuzzPreview(f *testing.F) {
	f.Add("https://{revision}.x.test", "https://a.test/b?c", "3f1c")
	f.Add("http://{revision}/", "https://a.test//evil.test/", "..")
	f.Add("https://x.test/{revision}", "//a", "v1")
	f.Fuzz(func(t *testing.T, pattern, page, revision string) {
		defer testlab.Input(t)()
		if CheckPreview(pattern) != nil {
			return
		}
		got, err := Preview(lab.Plan{Treatment: &lab.Arm{Page: page}}, pattern, revision)
		if err != nil || revision == RevisionMark {
			return
		}
		want, err := url.Parse(strings.ReplaceAll(pattern, RevisionMark, revision))
		if err != nil { // such as a port that is none
			return
		}
		if u, err := url.Parse(got.Treatment.Page); err != nil || u.Host != want.Host || u.User != nil {
			t.Errorf("Preview(%q, %q, %q) leads to %q", page, pattern, revision, got.Treatment.Page)
		}
	})
}
