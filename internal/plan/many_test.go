package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// many is a plan of three pages for two users.
func many() lab.Plan {
	return lab.Plan{
		Trials: 4, Arm: lab.Arm{Archive: "shop.wacz", Link: "lte"}, Treatment: &lab.Arm{Archive: "next.wacz"},
		Pages: []lab.PlanPage{
			{Name: "home", Page: "https://www.shop.example/"},
			{Page: "https://www.shop.example/cart/checkout", Treatment: &lab.PageTreatment{Page: "https://www.shop.example/new"}},
			{Name: "journey", Steps: []lab.Step{{Open: "https://www.shop.example/a"}, {Key: "x"}}, Archive: "own.wacz"},
		},
		Users: []lab.PlanUser{
			{Name: "new"},
			{Name: "anna", Viewport: "412x915", Cookies: []lab.PlanCookie{{Name: "session", Value: lab.NewSecret("1"), Domain: "shop.example", Secure: true}}},
		},
	}
}

// Hostile lists are refused with the field and its bounds.
func TestCheckMany(t *testing.T) {
	cookie := func(c lab.PlanCookie) func(*lab.Plan) {
		return func(p *lab.Plan) { p.Users[1].Cookies = []lab.PlanCookie{c} }
	}
	for name, c := range map[string]struct {
		change func(*lab.Plan)
		says   string
	}{
		"10,000 pages": {func(p *lab.Plan) { p.Pages = make([]lab.PlanPage, 10_000) }, "pages: 10000 pages; at most 50 in a run"},
		"1,000 users":  {func(p *lab.Plan) { p.Users = make([]lab.PlanUser, 1000) }, "users: 1000 users; at most 20 in a run: divide the plan"},
		"too many of both": {func(p *lab.Plan) {
			p.Pages, p.Users = make([]lab.PlanPage, 40), make([]lab.PlanUser, 10)
			for i := range p.Users {
				p.Users[i].Name = fmt.Sprint(i)
			}
		}, "pages: 40 pages for 10 users are 400; at most 100"},
		"page twice": {func(p *lab.Plan) { p.Pages[1].Name = "home" }, `pages[1].name: "home" is the name of pages[0], too`},
		"page's own name twice": {func(p *lab.Plan) { p.Pages[0] = lab.PlanPage{Page: "https://x.example/cart/checkout"} },
			`pages[1].name: "cart-checkout" is the name of pages[0], too`},
		"user twice":     {func(p *lab.Plan) { p.Users[1].Name = "new" }, `users[1].name: "new" is the name of users[0], too`},
		"no user's name": {func(p *lab.Plan) { p.Users[0].Name = "" }, "users[0].name: must not be empty"},
		"slash":          {func(p *lab.Plan) { p.Users[0].Name = "a/b" }, "users[0].name: "},
		"line break":     {func(p *lab.Plan) { p.Pages[0].Name = "a\nb" }, "pages[0].name: "},
		"escaped break":  {func(p *lab.Plan) { p.Pages[0] = lab.PlanPage{Page: "https://x.example/a%0Ab"} }, "pages[0].name: "},
		"long name":      {func(p *lab.Plan) { p.Pages[0].Name = strings.Repeat("é", 61) }, "pages[0].name: must have at most 60 characters"},
		"no page":        {func(p *lab.Plan) { p.Pages[0].Page = "" }, "pages[0].page: neither"},
		"wide viewport":  {func(p *lab.Plan) { p.Users[0].Viewport = "100000x1" }, "users[0].viewport: \"100000x1\": write WIDTHxHEIGHT, each side from 100 to 4096"},
		"no viewport":    {func(p *lab.Plan) { p.Users[0].Viewport = "wide" }, "users[0].viewport"},
		"browser of a user": {func(p *lab.Plan) { p.Users[1].Browser = &lab.Browser{Name: lab.FirefoxESR} },
			"users[1].browser: with a treatment"},
		"no such browser": {func(p *lab.Plan) {
			p.Treatment, p.Pages[1].Treatment, p.Users[1].Browser = nil, nil, &lab.Browser{Name: "netscape"}
		}, `users[1].browser: "netscape" is none of`},
		"cookie's name":    {cookie(lab.PlanCookie{Name: "a b"}), "users[1].cookies[0].name"},
		"no cookie's name": {cookie(lab.PlanCookie{Value: lab.NewSecret("x")}), "users[1].cookies[0].name"},
		"cookie injects":   {cookie(lab.PlanCookie{Name: "a", Value: lab.NewSecret("1; Domain=evil.example")}), "users[1].cookies[0].value"},
		"cookie breaks":    {cookie(lab.PlanCookie{Name: "a", Value: lab.NewSecret("1\r\nSet-Cookie: b=2")}), "users[1].cookies[0].value"},
		"path injects":     {cookie(lab.PlanCookie{Name: "a", Path: "/; Secure"}), "users[1].cookies[0].path"},
		"domain injects":   {cookie(lab.PlanCookie{Name: "a", Domain: "shop.example; Secure"}), "users[1].cookies[0].domain"},
		"large cookie":     {cookie(lab.PlanCookie{Name: "a", Value: lab.NewSecret(strings.Repeat("x", 5000))}), "users[1].cookies[0].value: must have at most 4096 characters"},
		"other domain":     {cookie(lab.PlanCookie{Name: "a", Domain: "bank.example"}), "users[1].cookies[0].domain: no page of the plan can have it: the pages are of https://www.shop.example"},
		"suffix only":      {cookie(lab.PlanCookie{Name: "a", Domain: "hop.example"}), "users[1].cookies[0].domain: no page"},
		"same site":        {cookie(lab.PlanCookie{Name: "a", SameSite: "none"}), "users[1].cookies[0].same_site"},
		"host prefix":      {cookie(lab.PlanCookie{Name: "__Host-a", Secure: true, Path: "/x"}), "users[1].cookies[0].name"},
		"many cookies":     {func(p *lab.Plan) { p.Users[0].Cookies = make([]lab.PlanCookie, 51) }, "users[0].cookies: 51 cookies; at most 50"},
		"large storage": {func(p *lab.Plan) {
			p.Users[0].Storage = map[string]lab.Secret{"a": lab.NewSecret(strings.Repeat("x", 20_000))}
		},
			"users[0].storage: 20001 bytes in all; at most 16 KiB"},
		"large altogether": {func(p *lab.Plan) {
			p.Users = nil
			cookies := slices.Repeat([]lab.PlanCookie{{Name: "a", Value: lab.NewSecret(strings.Repeat("x", 4000)), Domain: "shop.example", Secure: true}}, 10)
			for i := range 20 {
				p.Users = append(p.Users, lab.PlanUser{Name: fmt.Sprint(i), Storage: map[string]lab.Secret{"a": lab.NewSecret(strings.Repeat("x", 16_000))}, Cookies: cookies})
			}
		}, "plan: it has"},
		"one treatment":  {func(p *lab.Plan) { p.Treatment = nil }, "pages[1].treatment: either all pages"},
		"treatment page": {func(p *lab.Plan) { p.Treatment.Page = "https://x.example/" }, "treatment.page: with several pages"},
		"plan's steps":   {func(p *lab.Plan) { p.Steps = []lab.Step{{Open: "https://x.example/"}} }, "steps: with several pages"},
		"fill":           {func(p *lab.Plan) { p.Miss = lab.MissFill }, "miss: fill is for a run of one page"},
		"live":           {func(p *lab.Plan) { p.Live = true }, "live: such a run is of one page"},
	} {
		p := many()
		c.change(&p)
		var field *lab.FieldError
		err := check(p)
		if err == nil || !errors.As(err, &field) || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: Check() = %v; want a field's error that begins with %q", name, err, c.says)
		}
	}
	plain := lab.Plan{Arm: lab.Arm{Page: "http://x.example/"}, Users: []lab.PlanUser{{Name: "a", Cookies: []lab.PlanCookie{{Name: "a", Secure: true}}}}}
	if err := check(plain); err == nil || !strings.HasPrefix(err.Error(), "users[0].cookies[0].secure: no page of the plan can have it") {
		t.Errorf("a secure cookie of a page without TLS: %v", err)
	}
	plain.Users, plain.Steps = nil, []lab.Step{{Open: "http://x.example/"}}
	for range 60 {
		plain.Steps = append(plain.Steps, lab.Step{Type: strings.Repeat("x", 10_000)})
	}
	if err := check(plain); err == nil || !strings.HasPrefix(err.Error(), "plan: it has 58") || !strings.HasSuffix(err.Error(), "at most 512 KiB in a run: divide it") {
		t.Errorf("a journey that types 600 kB: %v; want its size and the bound", err)
	}
}
