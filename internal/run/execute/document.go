package execute

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// maxRedirects bounds the redirects of a page that are followed.
const maxRedirects = 20

// Document looks at what a recording holds for a page. The problem says why what was
// recorded is not the page, and what to do. The note says what else a person may not expect.
func Document(a *archive.Archive, page string) (note string, problem error) {
	at, e, redirects := landing(a, page)
	led := ""
	if at != document(page) {
		led = fmt.Sprintf("%s led to %s", page, at)
	}
	switch {
	case redirects > maxRedirects:
		return "", fmt.Errorf("%s leads in a circle: %d redirects led from it to %s, and none to a page; browsers give up there", page, maxRedirects, at)
	case e == nil && redirects == 0:
		return "", nil
	case e == nil:
		return "", fmt.Errorf("%s, and nothing was asked for there: its name has no address, or it is none that a browser follows a redirect to", led)
	case e.IsFailed() && redirects > 0:
		return "", fmt.Errorf("%s, which gave no answer: its origin could not be reached, is not trusted (--trust), "+
			"refused or broke the connection, or spoke no HTTP", led)
	}
	where := page
	if led != "" {
		where = led + ", which"
	}
	if e.Status >= http.StatusBadRequest {
		return "", fmt.Errorf("%s answers %d (%s): %s", where, e.Status, http.StatusText(e.Status), statusAdvice(e))
	}
	if archive.IsUnseen(e) {
		return "", fmt.Errorf("%s answers %d with nothing that a browser shows (%s): it stays where it was; name a page that leads there",
			where, e.Status, cmp.Or(e.Response.Get("Content-Disposition"), e.Response.Get("Content-Type"), http.StatusText(e.Status)))
	}
	if asksPassword(e) {
		who := page + " asks"
		if led != "" {
			who = led + ", which asks"
		}
		return who + " for a password: if the page behind it is meant, send its session while it is recorded, " +
			"with --header 'Cookie: NAME=VALUE'", nil
	}
	if of := refused(a, at); of != "" {
		return fmt.Sprintf("%s answers a script of %s by 401: if the page behind a login is meant, send its session while it is recorded, "+
			"with --header 'Cookie: NAME=VALUE'", of, page), nil
	}
	return "", nil
}

// landing follows the redirects of a page through a recording. It returns where they end, the exchange there, nil if
// nothing is recorded of it, and how many they are: more than maxRedirects if they do not end. What an address answers
// may change on the way, by a cookie; a redirect that a browser kept is not asked for again.
func landing(a *archive.Archive, page string) (at string, e *lab.Exchange, redirects int) {
	byURL := map[string][]*lab.Exchange{}
	for _, e := range a.Exchanges() {
		at := document(e.URL)
		if !archive.Navigates(e) {
			continue
		}
		if list := byURL[at]; len(list) > 0 && list[len(list)-1].Status == http.StatusUnauthorized {
			byURL[at] = list[:len(list)-1] // asked again with a password
		}
		byURL[at] = append(byURL[at], e)
	}
	at = document(page)
	for {
		list := byURL[at]
		if len(list) == 0 {
			if rest, ok := strings.CutPrefix(at, "http:"); ok {
				list = byURL["https:"+rest] // some hosts are asked by https only, whatever the address says
			}
		}
		if len(list) == 0 {
			return at, nil, redirects
		}
		e = list[0]
		if len(list) > 1 {
			byURL[document(e.URL)] = list[1:]
		}
		to := e.Response.Get("Location")
		if e.Status/100 != 3 || to == "" {
			return at, e, redirects
		}
		if redirects++; redirects > maxRedirects {
			return at, e, redirects
		}
		next, err := lab.NetURL(at).Parse(to)
		if err != nil {
			return to, nil, redirects
		}
		at = document(next.String())
	}
}

// refused returns the first address of the page's host that answers its scripts as somebody who has not logged in, and
// does not answer otherwise later.
func refused(a *archive.Archive, page string) string {
	last := map[string]*lab.Exchange{}
	var order []string
	for _, e := range a.Exchanges() {
		if e.Request.Get("Sec-Fetch-Dest") == "empty" && lab.ParseURL(e.URL).Host == lab.ParseURL(page).Host {
			last[e.URL] = e
			order = append(order, e.URL)
		}
	}
	for _, url := range order {
		if archive.AnswersStranger(last[url]) {
			return url
		}
	}
	return ""
}

// statusAdvice says what to do about a status.
func statusAdvice(e *lab.Exchange) string {
	switch {
	case e.Status == http.StatusUnauthorized && e.Response.Get("WWW-Authenticate") != "" && !asksBasic(e):
		scheme, _, _ := strings.Cut(e.Response.Get("WWW-Authenticate"), " ")
		return fmt.Sprintf("it asks for a name and a password by %.20q, of which only Basic can be sent while it is recorded: "+
			"send the session of a login, with --header 'Cookie: NAME=VALUE'", scheme)
	case e.Status == http.StatusUnauthorized && e.Response.Get("WWW-Authenticate") != "":
		return "it asks for a name and a password; send them while it is recorded, with --header 'Authorization: Basic …'"
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return "the server refuses; where the page is behind a login, send its session while it is recorded, with --header 'Cookie: NAME=VALUE'"
	case e.Status == http.StatusNotFound, e.Status == http.StatusGone:
		return "the server has no such page; check the path"
	case e.Status >= http.StatusInternalServerError:
		return "the server failed; see its own log"
	}
	return "this is not the page"
}

// asksBasic tells whether an answer takes the scheme Basic (RFC 7617), perhaps among others.
func asksBasic(e *lab.Exchange) bool {
	return slices.ContainsFunc(e.Response.Header, func(f lab.HeaderField) bool {
		return strings.EqualFold(f.Name, "WWW-Authenticate") && strings.Contains(" "+strings.ToLower(f.Value), " basic")
	})
}

// passwordField matches an input of HTML that asks for a password.
var passwordField = regexp.MustCompile(`(?i)<input[^>]{0,500}type\s*=\s*["']?password`) // constant

// asksPassword tells a document with a field for a password.
func asksPassword(e *lab.Exchange) bool {
	const most = 1 << 20 // a form further down is not what a page is about
	body, err := archive.Decoded(&e.Response)
	if err != nil {
		return false
	}
	return passwordField.Match(bytes.ToValidUTF8(body[:min(len(body), most)], nil))
}
