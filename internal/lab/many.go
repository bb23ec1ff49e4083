package lab

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// PlanPage is one of several pages, or journeys, of a plan. What it leaves out is as in the plan.
type PlanPage struct {
	Name    string `json:"name,omitempty" maxLength:"60" doc:"What the page is called in results; without it the path of its URL" example:"checkout"`
	Page    string `json:"page,omitempty" minLength:"1" maxLength:"8192" doc:"URL under test" example:"https://www.shop.example/checkout"`
	Archive string `json:"archive,omitempty" maxLength:"255" doc:"Recording to replay, for all users; without it and without one of the plan, the page is recorded first, for each user"`
	Steps   []Step `json:"steps,omitempty" maxItems:"200" doc:"A journey in place of the load of the page"`
	Weight  int    `json:"weight,omitempty" minimum:"1" maximum:"100" doc:"Without it 1. Compares: how much the page counts in the verdict of all together, times the weight of the user" example:"3"`
	// Tags are what [plan.Request.Select] selects by.
	Tags []string `json:"tags,omitempty" maxItems:"14" doc:"What of the site the page is about: a run that names tags has only the pages that have one of them, and those without any" example:"[\"cart\"]"`
	// Margin replaces those of the plan, and Margins are laid over them.
	Margin  float64            `json:"margin_percent,omitempty" minimum:"0" maximum:"100" doc:"Compares: the margin of all metrics of this page, in place of margin_percent and margins_percent of the plan, which has margin_percent" example:"5"`
	Margins map[string]float64 `json:"margins_percent,omitempty" maxProperties:"50" doc:"Compares: the margins of metrics of this page, by the metric's name"`
	// Treatment is what differs in the second arm of this page.
	Treatment *PageTreatment `json:"treatment,omitempty" doc:"Compares: the page and the recording of the treatment, where those of the plan's treatment are not for this page"`
}

// PageTreatment is what differs in the second arm of one page.
type PageTreatment struct {
	Page    string `json:"page,omitempty" minLength:"1" maxLength:"8192" doc:"URL of the treatment"`
	Archive string `json:"archive,omitempty" maxLength:"255" doc:"Recording of the treatment"`
}

// PlanUser is one of several users of a plan: what the browser knows when a trial begins.
type PlanUser struct {
	Name string `json:"name" minLength:"1" maxLength:"60" doc:"What the user is called in results" example:"returning"`
	// Browser makes a run of several browsers: see [Plan.TakingTurns].
	Browser  *Browser `json:"browser,omitempty" doc:"The user's browser, as browser of a plan; without it that of the plan. If a user has one, the trials of all users take turns, in blocks whose order is drawn by lot"`
	Viewport string   `json:"viewport,omitempty" maxLength:"11" doc:"Size of the screen that the browser fills, WIDTHxHEIGHT; without it that of the plan's browser" example:"412x915"`
	Weight   int      `json:"weight,omitempty" minimum:"1" maximum:"100" doc:"Without it 1. Compares: how much the user counts in the verdict of all together, such as its share of the visits in percent" example:"70"`
	// Cookies and Storage are in the browser's profile before each of its trials.
	Cookies []PlanCookie      `json:"cookies,omitempty" maxItems:"50" doc:"Cookies that the browser has for the plan's pages"`
	Storage map[string]Secret `json:"storage,omitempty" doc:"What localStorage holds at the origin of each page: at most 100 entries, and 16 KiB together"`
}

// PlanCookie is a cookie of a user.
type PlanCookie struct {
	Name     string `json:"name" minLength:"1" maxLength:"200" doc:"Name" example:"session"`
	Value    Secret `json:"value,omitzero" maxLength:"4096" doc:"Value, as in Set-Cookie"`
	Domain   string `json:"domain,omitempty" maxLength:"253" doc:"Domain of which the hosts of pages get it; without it each page's host alone" example:"shop.example"`
	Path     string `json:"path,omitempty" maxLength:"1000" doc:"Path from which on it is sent; without it /"`
	Secure   bool   `json:"secure,omitempty" doc:"It is sent by https only"`
	HTTPOnly bool   `json:"http_only,omitempty" doc:"Scripts do not see it"`
	SameSite string `json:"same_site,omitempty" enum:"strict,lax,none" doc:"Which requests of other sites send it; none needs secure"`
}

// MarshalJSON implements json.Marshaler, with the secrets: a plan in JSON is what a run is made from, and is made again.
// Whoever may only read gets a copy without them.
func (u PlanUser) MarshalJSON() ([]byte, error) {
	type plain PlanUser
	var storage map[string]string
	for name, value := range u.Storage {
		if storage == nil {
			storage = map[string]string{}
		}
		storage[name] = value.Reveal()
	}
	return json.Marshal(struct {
		plain
		Storage map[string]string `json:"storage,omitempty"`
	}{plain(u), storage})
}

// MarshalJSON implements json.Marshaler as that of a [PlanUser].
func (c PlanCookie) MarshalJSON() ([]byte, error) {
	type plain PlanCookie
	return json.Marshal(struct {
		plain
		Value string `json:"value,omitempty"`
	}{plain(c), c.Value.Reveal()})
}

// IsSeeded says whether the browser's profile is prepared for the user.
func (u *PlanUser) IsSeeded() bool { return u != nil && len(u.Cookies)+len(u.Storage) > 0 }

// MaxCells is the most pages, times users, that a run can have.
const MaxCells = 100

// maxName is the longest name of a page or user, as their tags have it: a title from a URL is cut.
const maxName = 60

// Cell is one page of a plan for one of its users.
type Cell struct {
	Name string // "checkout / anna"; "" in a plan of one page without users
	Page string // the name of the page, "" if the plan has no list of pages
	User string // the same of the user
	// Weight is the product of those of page and user.
	Weight int
	Plan   Plan // of this page and user alone
}

// IsMany says whether the plan has a list of pages or users.
func (p Plan) IsMany() bool { return len(p.Pages)+len(p.Users) > 0 }

// TakingTurns is how many cells that follow one another take turns with each other, as the arms of a comparison do: those
// of a page's users, if they have browsers of their own.
func (p Plan) TakingTurns() int {
	if slices.ContainsFunc(p.Users, func(u PlanUser) bool { return u.Browser != nil }) {
		return len(p.Users)
	}
	return 1
}

// CellCount is how many cells the plan has.
func (p Plan) CellCount() int { return max(len(p.Pages), 1) * max(len(p.Users), 1) }

// Cells lists the pages of a plan, each for every user. A plan without such lists is one cell.
func (p Plan) Cells() []Cell {
	if !p.IsMany() {
		return []Cell{{Weight: 1, Plan: p}}
	}
	pages, users := p.Pages, p.Users
	if len(pages) == 0 {
		pages = []PlanPage{{}}
	}
	if len(users) == 0 {
		users = []PlanUser{{}}
	}
	cells := make([]Cell, 0, len(pages)*len(users))
	for _, page := range pages {
		for _, user := range users {
			c := Cell{User: user.Name, Weight: max(page.Weight, 1) * max(user.Weight, 1), Plan: p.ofPage(page).ofUser(user)}
			if len(p.Pages) > 0 {
				c.Page = page.title(c.Plan)
			}
			c.Name = strings.TrimSuffix(strings.TrimPrefix(c.Page+CellMark+c.User, CellMark), CellMark)
			cells = append(cells, c)
		}
	}
	return cells
}

// CheckCells returns an error, a *FieldError, for more cells than a run can have, and for cells that their names do not
// tell apart. It bounds what goes through them.
func (p Plan) CheckCells() error {
	if p.CellCount() > MaxCells {
		return &FieldError{"pages", fmt.Errorf("%d pages for %d users are %d; at most %d in a run: divide the plan", len(p.Pages), len(p.Users),
			p.CellCount(), MaxCells)}
	}
	cells := p.Cells()
	names := map[string]int{}
	for i := range p.Pages {
		c := cells[i*max(len(p.Users), 1)]
		if c.Plan.Arms()[0].Page == "" {
			return &FieldError{fmt.Sprintf("pages[%d].page", i), errors.New("neither the entry nor the plan names a page")}
		}
		if err := checkName("pages", i, c.Page, names); err != nil {
			return err
		}
	}
	clear(names)
	for i, u := range p.Users {
		if err := checkName("users", i, u.Name, names); err != nil {
			return err
		}
	}
	return nil
}

// checkName checks what stands in tables, file names of exports, and command lines; names are those of the list before
// it.
func checkName(list string, i int, name string, names map[string]int) error {
	first, twice := names[name]
	names[name] = i
	var err error
	switch {
	case strings.TrimSpace(name) == "":
		err = errors.New("it is empty")
	case len([]rune(name)) > maxName:
		err = fmt.Errorf("%d characters; at most %d", len([]rune(name)), maxName)
	case strings.TrimSpace(name) != name || strings.ContainsFunc(name, isBadInName):
		err = fmt.Errorf("%q: a name holds no slash and no control character, and neither begins nor ends with a space", name)
	case twice:
		err = fmt.Errorf("%q is the name of %s[%d], too: give each a name of its own", name, list, first)
	}
	if err != nil {
		return &FieldError{fmt.Sprintf("%s[%d].name", list, i), err}
	}
	return nil
}

func isBadInName(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\uFFFD' }

// CellMark stands between the names of page and user in that of a cell.
const CellMark = " / "

// title is the page's name, or what its URL has of one.
func (e PlanPage) title(p Plan) string {
	if e.Name != "" {
		return e.Name
	}
	u := NetURL(p.Arms()[0].Page)
	name := []rune(strings.ReplaceAll(cmp.Or(strings.Trim(u.Path, "/"), u.Host), "/", "-"))
	return string(name[:min(len(name), maxName)])
}

// ofPage is the plan of one of its pages.
func (p Plan) ofPage(e PlanPage) Plan {
	if len(e.Steps) > 0 {
		p.Steps = e.Steps
	}
	if e.Page != "" || len(e.Steps) > 0 {
		p.Arm.Page = e.Page
	}
	p.Archive = cmp.Or(e.Archive, p.Archive)
	if e.Margin > 0 {
		p.Margin, p.Margins = e.Margin, nil
	}
	if len(e.Margins) > 0 {
		all := maps.Clone(e.Margins)
		for name, margin := range p.Margins {
			if _, own := all[name]; !own {
				all[name] = margin
			}
		}
		p.Margins = all
	}
	p.Pages = nil
	switch {
	case p.Treatment == nil && e.Treatment == nil:
		return p
	case p.Treatment == nil:
		p.Treatment = &Arm{}
	}
	t := *p.Treatment
	if e.Treatment != nil {
		t.Page, t.Archive = cmp.Or(e.Treatment.Page, t.Page), cmp.Or(e.Treatment.Archive, t.Archive)
	}
	p.Treatment = &t
	return p
}

// ofUser is the plan of one of its users.
func (p Plan) ofUser(u PlanUser) Plan {
	p.Users = nil
	if u.Name == "" {
		return p
	}
	p.Arm.User = &u
	p.Browser = u.browser(cmp.Or(u.Browser, p.Browser))
	if p.Treatment != nil {
		t := *p.Treatment
		t.User = &u
		if t.Browser != nil {
			t.Browser = u.browser(t.Browser)
		}
		p.Treatment = &t
	}
	return p
}

// browser is a browser with the user's viewport.
func (u PlanUser) browser(b *Browser) *Browser {
	if u.Viewport == "" {
		return b
	}
	own := Browser{Name: Chromium}
	if b != nil {
		own = *b
	}
	own.Viewport = u.Viewport
	return &own
}

// FirstPage is the page of the first cell, as the plan has it.
func (p Plan) FirstPage() string {
	if len(p.Pages) == 0 {
		return p.Page
	}
	return p.ofPage(p.Pages[0]).Arms()[0].Page
}

// Every lists the arms of all cells.
func (p Plan) Every() (all []NamedArm) {
	for _, c := range p.Cells() {
		all = append(all, c.Plan.Arms()...)
	}
	return all
}

// MapArchives returns the plan with the name of each recording replaced. The function gets the field
// that names it, for its errors.
func (p Plan) MapArchives(to func(field, name string) (string, error)) (Plan, error) {
	var first error
	change := func(field string, name *string) {
		if *name == "" || first != nil {
			return
		}
		mapped, err := to(field, *name)
		if err != nil {
			first = err
			return
		}
		*name = mapped
	}
	change("archive", &p.Arm.Archive)
	if p.Treatment != nil {
		t := *p.Treatment
		change("treatment.archive", &t.Archive)
		p.Treatment = &t
	}
	p.Pages = slices.Clone(p.Pages)
	for i := range p.Pages {
		e := &p.Pages[i]
		change(fmt.Sprintf("pages[%d].archive", i), &e.Archive)
		if e.Treatment != nil {
			t := *e.Treatment
			change(fmt.Sprintf("pages[%d].treatment.archive", i), &t.Archive)
			e.Treatment = &t
		}
	}
	return p, first
}

// Archives lists the names of the recordings that the plan replays.
func (p Plan) Archives() (names []string) {
	_, _ = p.MapArchives(func(_, name string) (string, error) { // the function never fails
		names = append(names, name)
		return name, nil
	})
	return names
}

// IsOf says whether a page of an origin, such as https://www.shop.example, can have the cookie.
func (c PlanCookie) IsOf(origin string) bool {
	u := ParseURL(origin)
	if c.Secure && u.Scheme != "https" {
		return false
	}
	host, domain := strings.ToLower(u.Hostname()), strings.ToLower(strings.TrimPrefix(c.Domain, "."))
	return domain == "" || host == domain || strings.HasSuffix(host, "."+domain)
}

// Origins lists the origins of the plan's pages.
func (p Plan) Origins() (all []string) {
	for _, a := range p.Every() {
		if u := ParseURL(a.Page); u.Host != "" && !IsAppPage(a.Page) {
			if origin := u.Scheme + "://" + u.Host; !slices.Contains(all, origin) {
				all = append(all, origin)
			}
		}
	}
	return all
}
