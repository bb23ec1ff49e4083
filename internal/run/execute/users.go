package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/experiment"
	"eidetic/netlab/archive"
	"eidetic/netlab/link"
	"eidetic/netlab/replay"
	"eidetic/netlab/replay/match"
)

// A user's cookies and storage are put into a browser as a site would do it: the browser visits a page of the box
// at each origin, which sets them, and ends. Each trial then begins with a copy of that profile, as the trials of
// a warm browser do, so no connection, name or ticket is left of the visit.

// userPath is the path of the page that sets a user's cookies and storage. No origin is asked for it.
const userPath = "/.well-known/eidetic-user"

// userAge is how long the cookies last: those of a session would not outlive the browser that got them.
const userAge = 365 * 24 * time.Hour

// seed prepares the profile of an arm's user, once for each browser.
func (x *Execution) seed(ctx context.Context, a plan.Arm) error {
	if !a.User.IsSeeded() {
		return nil
	}
	key := userKey(a)
	if x.seeded[key] {
		return nil
	}
	x.News.say("Preparing the browser of the user %s", a.User.Name)
	if err := x.seedNow(ctx, a); err != nil {
		return fmt.Errorf("preparing the browser of the user %s: %w", a.User.Name, err)
	}
	if x.seeded == nil {
		x.seeded = map[string]bool{}
	}
	x.seeded[key] = true
	return nil
}

func (x *Execution) seedNow(ctx context.Context, a plan.Arm) error {
	dir, err := os.MkdirTemp("", "user-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	origins := x.Plan.Origins()
	pages, checks := userPages(*a.User, origins), checkPages(*a.User, origins)
	visit, err := userArchive(filepath.Join(dir, "user.wacz"), slices.Concat(pages, checks), x.begun, x.Software)
	if err != nil {
		return err
	}
	if err := x.Rig.Network.SetLink(link.Profile{Name: lab.NativeLink}); err != nil {
		return err
	}
	network := &replaying{
		network: x.Rig.Network, page: pages[0].url, archive: visit, timing: replay.Timing{Mode: replay.TimingNone}, match: match.Normal,
	}
	var session experiment.Session
	disarm := func() (served []lab.Served, err error) {
		if session != nil {
			served, err = session.Disarm()
		}
		session = nil
		return served, err
	}
	err = x.Rig.Seed(ctx, a, Visits{
		Set: pages[0].url, Check: checks[0].url,
		Begin: func() (err error) { session, err = network.Arm(ctx); return err },
		IsSet: func(life experiment.Life) error {
			err := awaitDone(ctx, life, session, x.Plan.LimitTime())
			if err == nil {
				err = x.awaitKept(ctx, life, session)
			}
			served, disarmErr := disarm()
			return cmp.Or(err, disarmErr, allVisited(pages, served))
		},
		IsKept: func(life experiment.Life) (kept bool, err error) {
			if err = awaitDone(ctx, life, session, x.Plan.LimitTime()); err == nil {
				kept = session.Traffic().Done.Detail == keptMark
			}
			_, disarmErr := disarm()
			return kept, errors.Join(err, disarmErr)
		},
	})
	_, disarmErr := disarm() // of a visit that did not begin
	return errors.Join(err, disarmErr)
}

// Visits are those by which a user's cookies and storage come into the profile of a browser.
type Visits struct {
	Set, Check string // the first page of each
	// Begin is called before the browser of each visit starts.
	Begin func() error
	// IsSet returns when the browser has been at all pages that set something.
	IsSet func(experiment.Life) error
	// IsKept says whether another browser, with a copy of the profile, finds there what was set.
	IsKept func(experiment.Life) (bool, error)
}

// quietPoll is how often a page that nobody films is looked at.
const quietPoll = 50 * time.Millisecond

// awaitDone waits until the last of a user's pages has set what it is to set.
func awaitDone(ctx context.Context, life experiment.Life, session experiment.Session, limit time.Duration) error {
	deadline := clock().Add(limit)
	ticker := time.NewTicker(quietPoll)
	defer ticker.Stop()
	for session.Traffic().Done == nil {
		if clock() > deadline {
			return fmt.Errorf("the browser did not come to the end of the pages that set cookies and storage within %v", limit)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-life.Done():
			return life.Err()
		case <-ticker.C:
		}
	}
	return nil
}

// allVisited returns an error if the browser did not ask for one of the pages.
func allVisited(pages []userPage, served []lab.Served) error {
	asked := map[string]bool{}
	for _, s := range served {
		asked[s.URL] = true
	}
	for _, p := range pages {
		if !asked[p.url] {
			return fmt.Errorf("the browser did not load %s, which sets its cookies and storage", p.url)
		}
	}
	return nil
}

// userPage is a page that sets what a user has at one origin.
type userPage struct {
	url     string
	cookies []string // values of Set-Cookie
	body    string
}

// userPages are the pages that a user's browser visits, each of which leads to the next.
func userPages(u lab.PlanUser, origins []string) []userPage {
	pages := make([]userPage, len(origins))
	for i, origin := range origins {
		p := &pages[i]
		p.url = origin + userPath
		for _, c := range u.Cookies {
			if c.IsOf(origin) {
				p.cookies = append(p.cookies, setCookie(c))
			}
		}
		next := "lab.done()"
		if i+1 < len(origins) {
			next = "location.replace(" + quoted(origins[i+1]+userPath) + ")"
		}
		p.body = "<!doctype html><meta charset=utf-8><title>user</title><script>const all = " + storageOf(u) +
			"\nfor (const name in all) localStorage.setItem(name, all[name])\n" + next + "</script>\n"
	}
	return pages
}

// keptMark is what the pages that look for what was set say when they find it, and the value of a cookie that no page
// of a site gets.
const keptMark = "kept"

// checkPages are pages at which a browser finds out whether it has what userPages have set. A browser that is asked to
// end has cookies and storage in several processes, and on a busy machine one of them may end before it has written.
func checkPages(u lab.PlanUser, origins []string) []userPage {
	pages := make([]userPage, len(origins))
	for i, origin := range origins {
		next := "lab.done(" + quoted(keptMark) + ")"
		if i+1 < len(origins) {
			next = "location.replace(" + quoted(origins[i+1]+checkPath) + ")"
		}
		cookies := "true"
		if slices.ContainsFunc(u.Cookies, func(c lab.PlanCookie) bool { return c.IsOf(origin) }) {
			cookies = "document.cookie.includes(" + quoted(keptCookie) + ")"
		}
		pages[i] = userPage{url: origin + checkPath, body: "<!doctype html><meta charset=utf-8><title>user</title><script>const all = " + storageOf(u) +
			"\nlet kept = " + cookies + "\nfor (const name in all) kept &&= localStorage.getItem(name) === all[name]\nif (kept) " + next +
			"\nelse lab.done(\"lost\")</script>\n"}
	}
	return pages
}

const (
	checkPath  = userPath + "/kept"
	keptName   = "eidetic-user"
	keptCookie = keptName + "=" + keptMark
)

// quoted is a text as a script has it; nothing in it ends the script.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a text has a form
	return string(b)
}

// storageOf is a user's storage as a script has it.
func storageOf(u lab.PlanUser) string {
	text := []byte("{}")
	if u.Storage != nil {
		plain := map[string]string{}
		for name, value := range u.Storage {
			plain[name] = value.Reveal()
		}
		text, _ = json.Marshal(plain) // a map of texts has a form
	}
	return "JSON.parse(" + quoted(string(text)) + ")" // in an object that the script wrote itself the name __proto__ would not be an entry
}

// setCookie is a cookie as a site sets it. The plan was checked: no part ends another.
func setCookie(c lab.PlanCookie) string {
	text := c.Name + "=" + c.Value.Reveal() + "; Max-Age=" + strconv.Itoa(int(userAge.Seconds())) + "; Path="
	if text += c.Path; c.Path == "" {
		text += "/"
	}
	if c.Domain != "" {
		text += "; Domain=" + strings.TrimPrefix(c.Domain, ".")
	}
	if c.SameSite != "" {
		text += "; SameSite=" + c.SameSite
	}
	if c.Secure {
		text += "; Secure"
	}
	if c.HTTPOnly {
		text += "; HttpOnly"
	}
	return text
}

// userArchive is a recording of pages that nobody served.
func userArchive(path string, pages []userPage, wall time.Time, by string) (*archive.Archive, error) {
	w, err := archive.Create(path, archive.CreateOptions{Software: by, Wall: wall, PageDate: wall})
	if err != nil {
		return nil, err
	}
	for i, p := range pages {
		e := &lab.Exchange{
			Order: i, Wall: wall, Method: http.MethodGet, URL: p.url, Protocol: "http/1.1", Status: http.StatusOK, Reason: "OK",
			Response: lab.Message{Body: []byte(p.body)}, Chunks: []lab.Chunk{{Bytes: len(p.body)}},
		}
		if strings.HasPrefix(p.url, "https:") {
			e.TLS = "tls/1.3"
		}
		e.Response.Header = []lab.HeaderField{
			{Name: "Content-Type", Value: "text/html; charset=utf-8"}, {Name: "Cache-Control", Value: "no-store"},
			{Name: "Content-Length", Value: strconv.Itoa(len(p.body))},
		}
		for _, c := range p.cookies {
			e.Response.Header = append(e.Response.Header, lab.HeaderField{Name: "Set-Cookie", Value: c})
		}
		if len(p.cookies) > 0 { // the last, which is not written before the others
			mark := setCookie(lab.PlanCookie{Name: keptName, Value: lab.NewSecret(keptMark), Path: userPath})
			e.Response.Header = append(e.Response.Header, lab.HeaderField{Name: "Set-Cookie", Value: mark})
		}
		if err := w.Add(e); err != nil {
			return nil, errors.Join(err, w.Discard())
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return archive.Open(path)
}
