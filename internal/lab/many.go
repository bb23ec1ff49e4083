package lab

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// PlanPage is one of several pages, or journeys, of a plan. What it leaves out is as in the plan.
type PlanPage struct {
	Name    string `json:"name,omitempty" maxLength:"60" doc:"What the page is called in results; without it the path of its URL" example:"checkout"`
	Page    string `json:"page,omitempty" format:"uri" minLength:"1" maxLength:"8192" doc:"URL under test" example:"https://www.shop.example/checkout"`
	Archive string `json:"archive,omitempty" maxLength:"255" doc:"Recording to replay, for all users; without it and without one of the plan, the page is recorded first, for each user"`
	Steps   []Step `json:"steps,omitempty" maxItems:"200" doc:"A journey in place of the load of the page"`
	// Treatment is what differs in the second arm of this page.
	Treatment *PageTreatment `json:"treatment,omitempty" doc:"Compares: the page and the recording of the treatment, where those of the plan's treatment are not for this page"`
}

// PageTreatment is what differs in the second arm of one page.
type PageTreatment struct {
	Page    string `json:"page,omitempty" format:"uri" minLength:"1" maxLength:"8192" doc:"URL of the treatment"`
	Archive string `json:"archive,omitempty" maxLength:"255" doc:"Recording of the treatment"`
}

// PlanUser is one of several users of a plan: what the browser knows when a trial begins.
type PlanUser struct {
	Name     string `json:"name" minLength:"1" maxLength:"60" doc:"What the user is called in results" example:"returning"`
	Viewport string `json:"viewport,omitempty" maxLength:"11" doc:"Size of the screen that the browser fills, WIDTHxHEIGHT; without it that of the plan's browser" example:"412x915"`
	// Cookies and Storage are in the browser's profile before each of its trials.
	Cookies []PlanCookie      `json:"cookies,omitempty" maxItems:"50" doc:"Cookies that the browser has for the plan's pages"`
	Storage map[string]string `json:"storage,omitempty" doc:"What localStorage holds at the origin of each page: at most 100 entries, and 16 KiB together"`
}

// PlanCookie is a cookie of a user.
type PlanCookie struct {
	Name     string `json:"name" minLength:"1" maxLength:"200" doc:"Name" example:"session"`
	Value    string `json:"value,omitempty" maxLength:"4096" doc:"Value, as in Set-Cookie"`
	Domain   string `json:"domain,omitempty" maxLength:"253" doc:"Domain of which the hosts of pages get it; without it each page's host alone" example:"shop.example"`
	Path     string `json:"path,omitempty" maxLength:"1000" doc:"Path from which on it is sent; without it /"`
	Secure   bool   `json:"secure,omitempty" doc:"It is sent by https only"`
	HTTPOnly bool   `json:"http_only,omitempty" doc:"Scripts do not see it"`
	SameSite string `json:"same_site,omitempty" enum:"strict,lax,none" doc:"Which requests of other sites send it; none needs secure"`
}

// IsSeeded says whether the browser's profile is prepared for the user.
func (u *PlanUser) IsSeeded() bool { return u != nil && len(u.Cookies)+len(u.Storage) > 0 }

// The bounds of a plan of several pages and users.
const (
	MaxPages = 50
	MaxUsers = 20
	MaxCells = 100
	maxName  = 60

	maxCookies      = 50
	maxCookieBytes  = 4096 // of a name with its value, as browsers have it
	maxStorage      = 100
	maxStorageBytes = 16 << 10
	// A plan is handed to the process that carries it out as one argument, which Linux bounds by 128 KiB.
	maxManyBytes = 64 << 10
)

// Cell is one page of a plan for one of its users.
type Cell struct {
	Name string // "checkout / anna"; "" in a plan of one page without users
	Page string // the name of the page, "" if the plan has no list of pages
	User string // the same of the user
	Plan Plan   // of this page and user alone
}

// IsMany says whether the plan has a list of pages or users.
func (p Plan) IsMany() bool { return len(p.Pages)+len(p.Users) > 0 }

// Cells lists the pages of a plan, each for every user. A plan without such lists is one cell.
func (p Plan) Cells() []Cell {
	if !p.IsMany() {
		return []Cell{{Plan: p}}
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
			c := Cell{User: user.Name, Plan: p.ofPage(page).ofUser(user)}
			if len(p.Pages) > 0 {
				c.Page = page.title(c.Plan)
			}
			c.Name = strings.TrimSuffix(strings.TrimPrefix(c.Page+CellMark+c.User, CellMark), CellMark)
			cells = append(cells, c)
		}
	}
	return cells
}

// CellMark stands between the names of page and user in that of a cell.
const CellMark = " / "

// title is the page's name, or what its URL has of one.
func (e PlanPage) title(p Plan) string {
	if e.Name != "" {
		return e.Name
	}
	u, err := url.Parse(p.Arms()[0].Page)
	if err != nil {
		return ""
	}
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
	p.Browser = u.browser(p.Browser)
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

// CheckMany returns an error, a *StepError with the field, for lists of pages and users that cannot be run.
// The plans of the cells are not checked.
func (p Plan) CheckMany() error {
	switch {
	case !p.IsMany():
		return nil
	case len(p.Pages) > MaxPages:
		return fieldError("pages", "%d pages; at most %d in a run: divide the plan", len(p.Pages), MaxPages)
	case len(p.Users) > MaxUsers:
		return fieldError("users", "%d users; at most %d in a run: divide the plan", len(p.Users), MaxUsers)
	case max(len(p.Pages), 1)*max(len(p.Users), 1) > MaxCells:
		return fieldError("pages", "%d pages for %d users are %d; at most %d in a run: divide the plan", len(p.Pages), len(p.Users),
			len(p.Pages)*len(p.Users), MaxCells)
	case p.Live:
		return fieldError("live", "such a run is of one page: leave out pages and users")
	case p.Miss == MissFill:
		return fieldError("miss", "fill is for a run of one page: leave out pages and users, or miss")
	case len(p.Steps) > 0 && len(p.Pages) > 0:
		return fieldError("steps", "with several pages, each has its own: write them into pages[].steps")
	case p.Treatment != nil && p.Treatment.Page != "" && len(p.Pages) > 1:
		return fieldError("treatment.page", "with several pages, each has its own: write it into pages[].treatment.page")
	}
	if err := p.checkPages(); err != nil {
		return err
	}
	if err := p.checkUsers(); err != nil {
		return err
	}
	text, err := json.Marshal(struct {
		Pages []PlanPage
		Users []PlanUser
	}{p.Pages, p.Users})
	if err == nil && len(text) > maxManyBytes {
		return fieldError("pages", "pages and users have %d KiB; at most %d KiB in a run: divide the plan", len(text)>>10, maxManyBytes>>10)
	}
	return err
}

func fieldError(path, format string, args ...any) error {
	return &StepError{path, fmt.Errorf(format, args...)}
}

func (p Plan) checkPages() error {
	known := map[string]int{}
	for i, e := range p.Pages {
		at := fmt.Sprintf("pages[%d]", i)
		one := p.ofPage(e)
		if one.Arms()[0].Page == "" {
			return fieldError(at+".page", "neither the entry nor the plan names a page")
		}
		if (one.Treatment == nil) != (p.ofPage(p.Pages[0]).Treatment == nil) {
			return fieldError(at+".treatment", "either all pages have a treatment, or none")
		}
		name := e.title(one)
		if err := checkName(at+".name", name); err != nil {
			return err
		}
		if first, twice := known[name]; twice {
			return fieldError(at+".name", "%q is the name of pages[%d], too: give each a name of its own", name, first)
		}
		known[name] = i
	}
	return nil
}

func (p Plan) checkUsers() error {
	known := map[string]int{}
	for i, u := range p.Users {
		at := fmt.Sprintf("users[%d]", i)
		if err := checkName(at+".name", u.Name); err != nil {
			return err
		}
		if first, twice := known[u.Name]; twice {
			return fieldError(at+".name", "%q is the name of users[%d], too: give each a name of its own", u.Name, first)
		}
		known[u.Name] = i
		if _, err := (&Browser{Viewport: u.Viewport}).Size(); err != nil {
			return &StepError{at, err}
		}
		if err := p.checkCookies(at, u); err != nil {
			return err
		}
		if err := checkStorage(at+".storage", u.Storage); err != nil {
			return err
		}
	}
	return nil
}

// checkName checks what stands in tables, file names of exports, and command lines.
func checkName(path, name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return fieldError(path, "it is empty")
	case len([]rune(name)) > maxName:
		return fieldError(path, "%d characters; at most %d", len([]rune(name)), maxName)
	case strings.TrimSpace(name) != name || strings.ContainsFunc(name, isBadInName):
		return fieldError(path, "%q: a name holds no slash and no control character, and neither begins nor ends with a space", name)
	}
	return nil
}

func isBadInName(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\uFFFD' }

func checkStorage(path string, storage map[string]string) error {
	size := 0
	for key, value := range storage {
		size += len(key) + len(value)
	}
	switch {
	case len(storage) > maxStorage:
		return fieldError(path, "%d entries; at most %d", len(storage), maxStorage)
	case size > maxStorageBytes:
		return fieldError(path, "%d bytes in all; at most %d KiB", size, maxStorageBytes>>10)
	}
	return nil
}

func (p Plan) checkCookies(at string, u PlanUser) error {
	if len(u.Cookies) > maxCookies {
		return fieldError(at+".cookies", "%d cookies; at most %d", len(u.Cookies), maxCookies)
	}
	for i, c := range u.Cookies {
		path := fmt.Sprintf("%s.cookies[%d]", at, i)
		if err := c.check(path); err != nil {
			return err
		}
		if !c.isOfAny(p.Origins()) {
			return fieldError(path+c.place(), "no page of the plan can have it: the pages are of %s", strings.Join(p.Origins(), ", "))
		}
	}
	return nil
}

// place is the field that says which pages get a cookie.
func (c PlanCookie) place() string {
	if c.Domain == "" {
		return ".secure"
	}
	return ".domain"
}

// isOfAny says whether a page of one of the origins can have the cookie.
func (c PlanCookie) isOfAny(origins []string) bool {
	return slices.ContainsFunc(origins, c.IsOf)
}

// IsOf says whether a page of an origin, such as https://www.shop.example, can have the cookie.
func (c PlanCookie) IsOf(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || c.Secure && u.Scheme != "https" {
		return false
	}
	host, domain := strings.ToLower(u.Hostname()), strings.ToLower(strings.TrimPrefix(c.Domain, "."))
	return domain == "" || host == domain || strings.HasSuffix(host, "."+domain)
}

func (c PlanCookie) check(path string) error {
	const separators = "()<>@,;:\\\"/[]?={}"
	isNoToken := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(separators, r) }
	switch {
	case c.Name == "" || strings.ContainsFunc(c.Name, isNoToken):
		return fieldError(path+".name", "%.60q: a cookie's name has letters, digits and some signs, without spaces (RFC 6265)", c.Name)
	case strings.ContainsFunc(c.Value, func(r rune) bool { return r < ' ' || r >= 0x7f || strings.ContainsRune(";\\\"", r) }):
		return fieldError(path+".value", "it has a character that no cookie's value has (a quote, a semicolon, a backslash, a control or non-ASCII character): escape it as the site does")
	case len(c.Name)+len(c.Value) > maxCookieBytes:
		return fieldError(path+".value", "name and value have %d bytes; browsers keep at most %d", len(c.Name)+len(c.Value), maxCookieBytes)
	case c.Domain != "" && strings.ContainsFunc(c.Domain, func(r rune) bool { return !isHostRune(r) }):
		return fieldError(path+".domain", "%.60q is no name of a host", c.Domain)
	case c.Path != "" && (c.Path[0] != '/' || strings.ContainsFunc(c.Path, func(r rune) bool { return r < ' ' || r >= 0x7f || r == ';' })):
		return fieldError(path+".path", "%.60q: it begins with a slash, and has no semicolon", c.Path)
	case !slices.Contains([]string{"", "strict", "lax", "none"}, c.SameSite):
		return fieldError(path+".same_site", "%.20q is none of strict, lax and none", c.SameSite)
	case c.SameSite == "none" && !c.Secure:
		return fieldError(path+".same_site", "browsers drop a cookie with none that is not secure: write secure: true")
	case strings.HasPrefix(c.Name, "__Secure-") && !c.Secure,
		strings.HasPrefix(c.Name, "__Host-") && (!c.Secure || c.Domain != "" || c.Path != "" && c.Path != "/"):
		return fieldError(path+".name", "browsers drop %.60q unless it is secure, and __Host- unless it also has no domain and the path /", c.Name)
	}
	return nil
}

func isHostRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '.' || r == '_'
}

// Origins lists the origins of the plan's pages.
func (p Plan) Origins() (all []string) {
	for _, a := range p.Every() {
		if u, err := url.Parse(a.Page); err == nil && u.Host != "" {
			if origin := u.Scheme + "://" + u.Host; !slices.Contains(all, origin) {
				all = append(all, origin)
			}
		}
	}
	return all
}
