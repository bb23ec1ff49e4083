package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
			{Name: "anna", Viewport: "412x915", Cookies: []PlanCookie{{Name: "session", Value: "1", Domain: "shop.example", Secure: true}}},
		},
	}
}

// A plan of many is one plan for each page and user, with what the entries say in place of the plan's own.
func TestCells(t *testing.T) {
	p := many()
	if err := p.CheckMany(); err != nil {
		t.Fatal(err)
	}
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

// Hostile lists are refused with the field and its bounds.
func TestCheckMany(t *testing.T) {
	cookie := func(c PlanCookie) func(*Plan) {
		return func(p *Plan) { p.Users[1].Cookies = []PlanCookie{c} }
	}
	for name, c := range map[string]struct {
		change func(*Plan)
		says   string
	}{
		"10,000 pages":     {func(p *Plan) { p.Pages = make([]PlanPage, 10_000) }, "pages: 10000 pages; at most 50"},
		"1,000 users":      {func(p *Plan) { p.Users = make([]PlanUser, 1000) }, "users: 1000 users; at most 20"},
		"too many of both": {func(p *Plan) { p.Pages, p.Users = make([]PlanPage, 40), make([]PlanUser, 10) }, "pages: 40 pages for 10 users are 400; at most 100"},
		"page twice":       {func(p *Plan) { p.Pages[1].Name = "home" }, `pages[1].name: "home" is the name of pages[0], too`},
		"page's own name twice": {func(p *Plan) { p.Pages[0] = PlanPage{Page: "https://x.example/cart/checkout"} },
			`pages[1].name: "cart-checkout" is the name of pages[0], too`},
		"user twice":       {func(p *Plan) { p.Users[1].Name = "new" }, `users[1].name: "new" is the name of users[0], too`},
		"no user's name":   {func(p *Plan) { p.Users[0].Name = "" }, "users[0].name: it is empty"},
		"slash":            {func(p *Plan) { p.Users[0].Name = "a/b" }, "users[0].name: "},
		"line break":       {func(p *Plan) { p.Pages[0].Name = "a\nb" }, "pages[0].name: "},
		"escaped break":    {func(p *Plan) { p.Pages[0] = PlanPage{Page: "https://x.example/a%0Ab"} }, "pages[0].name: "},
		"long name":        {func(p *Plan) { p.Pages[0].Name = strings.Repeat("é", 61) }, "pages[0].name: 61 characters; at most 60"},
		"no page":          {func(p *Plan) { p.Pages[0].Page = "" }, "pages[0].page: neither"},
		"wide viewport":    {func(p *Plan) { p.Users[0].Viewport = "100000x1" }, "users[0]: viewport: \"100000x1\": write WIDTHxHEIGHT, each side from 100 to 4096"},
		"no viewport":      {func(p *Plan) { p.Users[0].Viewport = "wide" }, "users[0]: viewport"},
		"cookie's name":    {cookie(PlanCookie{Name: "a b"}), "users[1].cookies[0].name"},
		"no cookie's name": {cookie(PlanCookie{Value: "x"}), "users[1].cookies[0].name"},
		"cookie injects":   {cookie(PlanCookie{Name: "a", Value: "1; Domain=evil.example"}), "users[1].cookies[0].value"},
		"cookie breaks":    {cookie(PlanCookie{Name: "a", Value: "1\r\nSet-Cookie: b=2"}), "users[1].cookies[0].value"},
		"path injects":     {cookie(PlanCookie{Name: "a", Path: "/; Secure"}), "users[1].cookies[0].path"},
		"domain injects":   {cookie(PlanCookie{Name: "a", Domain: "shop.example; Secure"}), "users[1].cookies[0].domain"},
		"large cookie":     {cookie(PlanCookie{Name: "a", Value: strings.Repeat("x", 5000)}), "users[1].cookies[0].value: name and value have 5001 bytes; browsers keep at most 4096"},
		"other domain":     {cookie(PlanCookie{Name: "a", Domain: "bank.example"}), "users[1].cookies[0].domain: no page of the plan can have it: the pages are of https://www.shop.example"},
		"suffix only":      {cookie(PlanCookie{Name: "a", Domain: "hop.example"}), "users[1].cookies[0].domain: no page"},
		"same site":        {cookie(PlanCookie{Name: "a", SameSite: "none"}), "users[1].cookies[0].same_site"},
		"host prefix":      {cookie(PlanCookie{Name: "__Host-a", Secure: true, Path: "/x"}), "users[1].cookies[0].name"},
		"many cookies":     {func(p *Plan) { p.Users[0].Cookies = make([]PlanCookie, 51) }, "users[0].cookies: 51 cookies; at most 50"},
		"large storage": {func(p *Plan) { p.Users[0].Storage = map[string]string{"a": strings.Repeat("x", 20_000)} },
			"users[0].storage: 20001 bytes in all; at most 16 KiB"},
		"large altogether": {func(p *Plan) {
			p.Users = nil
			for i := range 10 {
				p.Users = append(p.Users, PlanUser{Name: fmt.Sprint(i), Storage: map[string]string{"a": strings.Repeat("x", 10_000)}})
			}
		}, "pages: pages and users have"},
		"one treatment":  {func(p *Plan) { p.Treatment = nil }, "pages[1].treatment: either all pages"},
		"treatment page": {func(p *Plan) { p.Treatment.Page = "https://x.example/" }, "treatment.page: with several pages"},
		"plan's steps":   {func(p *Plan) { p.Steps = []Step{{Open: "https://x.example/"}} }, "steps: with several pages"},
		"fill":           {func(p *Plan) { p.Miss = MissFill }, "miss: fill is for a run of one page"},
		"live":           {func(p *Plan) { p.Live = true }, "live: such a run is of one page"},
	} {
		p := many()
		c.change(&p)
		var field *StepError
		err := p.CheckMany()
		if err == nil || !errors.As(err, &field) || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: CheckMany() = %v; want a field's error that begins with %q", name, err, c.says)
		}
	}
	plain := Plan{Arm: Arm{Page: "http://x.example/"}, Users: []PlanUser{{Name: "a", Cookies: []PlanCookie{{Name: "a", Secure: true}}}}}
	if err := plain.CheckMany(); err == nil || !strings.HasPrefix(err.Error(), "users[0].cookies[0].secure: no page of the plan can have it") {
		t.Errorf("a secure cookie of a page without TLS: %v", err)
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
