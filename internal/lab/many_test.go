package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// many is a plan of three pages for two users.
func many() Plan {
	return Plan{
		Trials: 4, Arm: Arm{Archive: "shop.wacz", Link: "lte"}, Treatment: &Arm{Archive: "next.wacz"},
		Pages: []PlanPage{
			{Name: "home", Page: "https://www.shop.example/"},
			{Page: "https://www.shop.example/cart/checkout", Treatment: &PageTreatment{Page: "https://www.shop.example/new"}},
			{Name: "journey", Steps: []Step{{Open: "https://www.shop.example/a"}, {Key: "x"}}, Archive: "own.wacz"},
		},
		Users: []PlanUser{
			{Name: "new"},
			{Name: "anna", Viewport: "412x915", Cookies: []PlanCookie{{Name: "session", Value: NewSecret("1"), Domain: "shop.example", Secure: true}}},
		},
	}
}

// A plan of many is one plan for each page and user, with what the entries say in place of the plan's own.
func TestCells(t *testing.T) {
	p := many()
	var got []string
	for _, c := range p.Cells() {
		arms := c.Plan.Arms()
		user := ""
		if u := arms[1].User; u != nil {
			user = u.Name
		}
		got = append(got, fmt.Sprintf("%s|%s|%s|%s %s|%s %s|%s|%d", c.Name, c.Page, c.User, arms[0].Page, arms[0].Archive, arms[1].Page,
			arms[1].Archive, user+" "+arms[1].Browser.String(), len(c.Plan.Steps)))
	}
	const shop = "https://www.shop.example"
	want := []string{
		"home / new|home|new|" + shop + "/ shop.wacz|" + shop + "/ next.wacz|new chromium|0",
		"home / anna|home|anna|" + shop + "/ shop.wacz|" + shop + "/ next.wacz|anna chromium viewport 412x915|0",
		"cart-checkout / new|cart-checkout|new|" + shop + "/cart/checkout shop.wacz|" + shop + "/new next.wacz|new chromium|0",
		"cart-checkout / anna|cart-checkout|anna|" + shop + "/cart/checkout shop.wacz|" + shop + "/new next.wacz|anna chromium viewport 412x915|0",
		"journey / new|journey|new|" + shop + "/a own.wacz|" + shop + "/a next.wacz|new chromium|2",
		"journey / anna|journey|anna|" + shop + "/a own.wacz|" + shop + "/a next.wacz|anna chromium viewport 412x915|2",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Cells() (-want +got):\n%s", d)
	}
	if p.Total() != 4*2*6 || len(p.Every()) != 12 || !p.Compares() || p.FirstPage() != shop+"/" {
		t.Errorf("Total() = %d, %d arms, Compares() = %v, FirstPage() = %q", p.Total(), len(p.Every()), p.Compares(), p.FirstPage())
	}
	if d := cmp.Diff(many(), p); d != "" {
		t.Errorf("Cells() has changed the plan (-before +after):\n%s", d)
	}
	one := Plan{Trials: 3, Arm: Arm{Page: "p"}}
	if cells := one.Cells(); len(cells) != 1 || cells[0].Name != "" || cmp.Diff(one, cells[0].Plan) != "" {
		t.Errorf("Cells() of one page = %+v", cells)
	}
	text, err := json.Marshal(p)
	var again Plan
	if err := errors.Join(err, json.Unmarshal(text, &again)); err != nil || cmp.Diff(p, again) != "" {
		t.Errorf("written and read again: %v\n%s", err, cmp.Diff(p, again))
	}
}

// Names of recordings are replaced wherever they stand, in a copy.
func TestMapArchives(t *testing.T) {
	p := many()
	p.Pages[0].Treatment = &PageTreatment{Archive: "t.wacz"}
	before := many()
	before.Pages[0].Treatment = &PageTreatment{Archive: "t.wacz"}
	got, err := p.MapArchives(func(_, name string) (string, error) { return "/data/" + name, nil })
	if err != nil || got.Archive != "/data/shop.wacz" || got.Treatment.Archive != "/data/next.wacz" ||
		got.Pages[0].Treatment.Archive != "/data/t.wacz" || got.Pages[2].Archive != "/data/own.wacz" || got.Pages[0].Archive != "" {
		t.Errorf("MapArchives() = %+v, %v", got, err)
	}
	if d := cmp.Diff(before, p); d != "" {
		t.Errorf("MapArchives() has changed its plan:\n%s", d)
	}
	_, err = p.MapArchives(func(field, name string) (string, error) {
		if name == "own.wacz" {
			return "", errors.New(field + ": gone")
		}
		return name, nil
	})
	if err == nil || err.Error() != "pages[2].archive: gone" {
		t.Errorf("MapArchives() = %v; want the field of the one that is gone", err)
	}
}

// Each view of a run is a run of one page, with the trials and the results of its cell.
func TestViews(t *testing.T) {
	run := &Run{Name: "shop", Plan: many(), Trials: []*Trial{{Number: 1, Cell: "home / anna"}, {Number: 2, Cell: "journey / new"}}}
	for _, c := range run.Plan.Cells() {
		run.Cells = append(run.Cells, CellResult{Name: c.Name, Archive: &ArchiveInfo{File: c.Name}, Summary: []Summary{{Metric: c.Name}}})
	}
	views := run.Views()
	if len(views) != 6 || len(views[1].Trials) != 1 || views[1].Trials[0].Number != 1 || len(views[0].Trials) != 0 || len(views[4].Trials) != 1 {
		t.Fatalf("%d views, of which the second has %d trials", len(views), len(views[1].Trials))
	}
	if v := views[1]; v.Name != "shop · home / anna" || v.Archive.File != "home / anna" || v.Summary[0].Metric != "home / anna" || v.Plan.IsMany() ||
		v.Page != "https://www.shop.example/" {
		t.Errorf("the view of a cell: %+v", v)
	}
	one := &Run{Plan: Plan{Arm: Arm{Page: "p"}}}
	if views := one.Views(); len(views) != 1 || views[0] != one {
		t.Error("a run of one page is not its own view")
	}
}

// TestArchives: the recordings of all arms and pages are listed, wherever a plan names them.
func TestArchives(t *testing.T) {
	p := Plan{Arm: Arm{Archive: "a"}, Treatment: &Arm{Archive: "b"}, Pages: []PlanPage{{Archive: "c", Treatment: &PageTreatment{Archive: "d"}}, {}}}
	if got := p.Archives(); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("Archives() = %q", got)
	}
	if got := (Plan{}).Archives(); len(got) > 0 {
		t.Errorf("Archives() of nothing = %q", got)
	}
}
