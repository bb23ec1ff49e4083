package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// Bounds of the lists of a plan that no tag of a field says.
const (
	maxCookieBytes  = 4096 // of a name with its value, as browsers have it
	maxStorage      = 100
	maxStorageBytes = 16 << 10
	maxPlanBytes    = 512 << 10 // of a plan's JSON, besides its files
)

// checkMany returns an error for lists of pages and users that cannot be run, and bounds what the rest goes through.
func checkMany(p lab.Plan) error {
	if err := errors.Join(p.CheckCells(), checkSize(p)); err != nil {
		return err
	}
	switch {
	case !p.IsMany():
		return nil
	case p.Live:
		return fieldError("live", "such a run is of one page: leave out pages and users")
	case p.Miss == lab.MissFill:
		return fieldError("miss", "fill is for a run of one page: leave out pages and users, or miss")
	case len(p.Steps) > 0 && len(p.Pages) > 0:
		return fieldError("steps", "with several pages, each has its own: write them into pages[].steps")
	case p.Treatment != nil && p.Treatment.Page != "" && len(p.Pages) > 1:
		return fieldError("treatment.page", "with several pages, each has its own: write it into pages[].treatment.page")
	}
	if err := checkPages(p); err != nil {
		return err
	}
	return checkUsers(p)
}

// checkSize bounds what is kept of a plan wherever plans are listed.
func checkSize(p lab.Plan) error {
	p.Files = nil
	text, err := json.Marshal(p)
	if err == nil && len(text) > maxPlanBytes {
		return fieldError("plan", "it has %d KiB besides its files; at most %d KiB in a run: divide it", len(text)>>10, maxPlanBytes>>10)
	}
	return err
}

func checkPages(p lab.Plan) error {
	cells := p.Cells()
	for i := range p.Pages {
		if (cells[i*max(len(p.Users), 1)].Plan.Treatment == nil) != (cells[0].Plan.Treatment == nil) {
			return fieldError(fmt.Sprintf("pages[%d].treatment", i), "either all pages have a treatment, or none")
		}
	}
	return nil
}

func checkUsers(p lab.Plan) error {
	for i, u := range p.Users {
		at := fmt.Sprintf("users[%d]", i)
		if u.Browser != nil && p.Compares() {
			return fieldError(at+".browser", "with a treatment, all users have the browsers of the arms: leave out one of them")
		}
		if _, err := (&lab.Browser{Viewport: u.Viewport}).Size(); err != nil {
			return &lab.FieldError{Path: at + ".viewport", Err: err}
		}
		if err := checkCookies(at, u, p.Origins()); err != nil {
			return err
		}
		if err := checkStorage(at+".storage", u.Storage); err != nil {
			return err
		}
	}
	return nil
}

func checkStorage(path string, storage map[string]lab.Secret) error {
	size := 0
	for key, value := range storage {
		size += len(key) + len(value.Reveal())
	}
	switch {
	case len(storage) > maxStorage:
		return fieldError(path, "%d entries; at most %d", len(storage), maxStorage)
	case size > maxStorageBytes:
		return fieldError(path, "%d bytes in all; at most %d KiB", size, maxStorageBytes>>10)
	}
	return nil
}

func checkCookies(at string, u lab.PlanUser, origins []string) error {
	for i, c := range u.Cookies {
		path := fmt.Sprintf("%s.cookies[%d]", at, i)
		if err := checkCookie(path, c); err != nil {
			return err
		}
		if !slices.ContainsFunc(origins, c.IsOf) {
			return fieldError(path+placeOf(c), "no page of the plan can have it: the pages are of %s", strings.Join(origins, ", "))
		}
	}
	return nil
}

// placeOf is the field that says which pages get a cookie.
func placeOf(c lab.PlanCookie) string {
	if c.Domain == "" {
		return ".secure"
	}
	return ".domain"
}

func checkCookie(path string, c lab.PlanCookie) error {
	const separators = "()<>@,;:\\\"/[]?={}"
	isNoToken := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(separators, r) }
	switch {
	case c.Name == "" || strings.ContainsFunc(c.Name, isNoToken):
		return fieldError(path+".name", "%.60q: a cookie's name has letters, digits and some signs, without spaces (RFC 6265)", c.Name)
	case strings.ContainsFunc(c.Value.Reveal(), func(r rune) bool { return r < ' ' || r >= 0x7f || strings.ContainsRune(";\\\"", r) }):
		return fieldError(path+".value", "it has a character that no cookie's value has (a quote, a semicolon, a backslash, a control or "+
			"non-ASCII character): escape it as the site does")
	case len(c.Name)+len(c.Value.Reveal()) > maxCookieBytes:
		return fieldError(path+".value", "name and value have %d bytes; browsers keep at most %d", len(c.Name)+len(c.Value.Reveal()), maxCookieBytes)
	case strings.ContainsFunc(c.Domain, func(r rune) bool { return !isHostRune(r) }):
		return fieldError(path+".domain", "%.60q is no name of a host", c.Domain)
	case c.Path != "" && (c.Path[0] != '/' || strings.ContainsFunc(c.Path, func(r rune) bool { return r < ' ' || r >= 0x7f || r == ';' })):
		return fieldError(path+".path", "%.60q: it begins with a slash, and has no semicolon", c.Path)
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
