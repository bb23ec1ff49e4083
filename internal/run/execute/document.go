package execute

import (
	"bytes"
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
	byURL := map[string]*lab.Exchange{}
	for _, e := range a.Exchanges() {
		if at := document(e.URL); archive.Navigates(e) && (byURL[at] == nil || byURL[at].Status == http.StatusUnauthorized) {
			byURL[at] = e
		}
	}
	at := document(page)
	e := byURL[at]
	for range maxRedirects {
		if e == nil || e.Status/100 != 3 || e.Response.Get("Location") == "" {
			break
		}
		next, err := lab.NetURL(at).Parse(e.Response.Get("Location"))
		if err != nil {
			break
		}
		at = document(next.String())
		e = byURL[at]
	}
	if e == nil {
		return "", nil
	}
	led := ""
	if at != document(page) {
		led = fmt.Sprintf("%s led to %s", page, at)
	}
	if e.Status >= http.StatusBadRequest {
		where := page
		if led != "" {
			where = led + ", which"
		}
		return "", fmt.Errorf("%s answers %d (%s): %s", where, e.Status, http.StatusText(e.Status), statusAdvice(e))
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
