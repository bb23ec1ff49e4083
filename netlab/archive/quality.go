package archive

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/message"
)

// Problem is one defect of a recording.
type Problem struct {
	Kind     string `json:"kind"` // "damaged", "truncated", "main-document", "error", "undecodable", "missing", "import", "lost"
	Exchange string `json:"exchange,omitempty"`
	URL      string `json:"url,omitempty"`
	What     string `json:"what"`
	// Part is the name of the part of the score that the problem lowers, or "" if it lowers none.
	Part string `json:"part,omitempty"`
	// A grave problem makes the recording unfit for a measurement.
	Grave bool `json:"grave"`
}

// IsBackground tells a problem of what nobody sees, such as a missing favicon.
func (p Problem) IsBackground() bool { return p.Part == backgroundPart }

// IsGap tells a problem of something that the page shows.
func (p Problem) IsGap() bool { return p.Part != "" && !p.IsBackground() }

// Quality is the assessment of a recording.
type Quality struct {
	// Score is how much of what the page showed is present and complete, 0 to 1: the mean of the parts'
	// shares (1 − Lost/Count) by their weights; 0 with a grave problem.
	Score    float64   `json:"score"`
	Parts    []Part    `json:"parts"`
	Problems []Problem `json:"problems"`
}

// Assess assesses a recording: failed main documents, cut-off bodies, bodies that do not decode,
// errors of sub-resources, and resources that recorded documents refer to and the archive lacks.
func Assess(a *Archive) Quality {
	x := assessment{named: map[string]use{}, have: map[string]bool{}}
	x.Problems = []Problem{}
	for _, w := range a.warnings {
		x.Problems = append(x.Problems, Problem{Kind: "damaged", What: w, Grave: true})
	}
	for _, n := range a.importNotes() {
		x.Problems = append(x.Problems, Problem{Kind: "import", What: n})
	}
	complete := map[string]bool{} // method and URL of complete exchanges
	for _, e := range a.exchanges {
		x.have[e.URL] = true
		if e.Truncated == "" {
			complete[e.Method+" "+e.URL] = true
		}
	}
	pages := map[string]bool{}
	for _, p := range a.pages {
		pages[lab.ParseURL(p.URL).Sent()] = true
	}
	isDocument := func(e *lab.Exchange) bool {
		return Navigates(e) && (pages[e.URL] || e.Request.Get("Sec-Fetch-Dest") == "document")
	}
	shown := map[string]bool{} // documents that a navigation got, after a sign-in for instance
	got := map[string]bool{}   // method and URL of what was answered without an error
	for _, e := range a.exchanges {
		if e.Status > 0 && e.Status < 400 {
			got[e.Method+" "+e.URL] = true
			shown[e.URL] = shown[e.URL] || isDocument(e)
		}
	}
	named := map[*lab.Exchange][]reference{}
	limit, room := NewDecodeLimit(a), referenceRoom{mostReferences, mostReferenceBytes}
	for _, e := range a.exchanges {
		named[e] = references(e, limit, &room)
		for _, r := range named[e] {
			x.name(r)
		}
	}
	hasPage := false // a document is on the screen, which what no browser shows leaves there
	for _, e := range a.exchanges {
		if isForRobots(e) {
			continue
		}
		isPage := isDocument(e)
		if isPage && hasPage && IsUnseen(e) && e.Request.Get("Sec-Fetch-Site") != "none" {
			isPage = false // a file that a page offers, such as a download that begins by itself
		}
		hasPage = hasPage || isPage && e.Status/100 == 2 && !IsUnseen(e)
		asksLogin := e.Status == 401 && message.OpensDialogue(e.Response.Header) || e.Status == 407
		if asksLogin && got[e.Method+" "+e.URL] || isPage && shown[e.URL] && e.Status == 401 {
			continue // the browser signed in, and asked again
		}
		if plain, isTLS := strings.CutPrefix(e.URL, "https:"); isPage && isTLS && e.IsFailed() && shown["http:"+plain] {
			continue // the browser tried TLS first
		}
		answersForm := isPage && hasPage && refusesForm(e)
		problem, isGood := judge(e, isPage && !answersForm, complete[e.Method+" "+e.URL], limit)
		which := x.useOf(e, isPage)
		if problem.isAttempt() {
			x.Problems = append(x.Problems, problem)
			continue
		}
		if which == useData && AnswersStranger(e) {
			problem.What += ": a script asked as one who has not logged in; where the page behind a login is meant, record it with its session"
			x.Problems, isGood = append(x.Problems, problem), true
		}
		if answersForm {
			problem.What += ": it is what a form was answered with, and is shown"
			x.Problems, isGood = append(x.Problems, problem), true
		}
		x.count(which, e.URL, isGood, problem)
		if isGood {
			x.missing(e, named[e])
		}
	}
	if len(a.exchanges) == 0 {
		what := "the archive has no exchanges"
		switch {
		case a.IsSeeded():
			what += ": the device asked for nothing while it was recorded"
		case a.found != "":
			what += ": it is " + a.found
		}
		x.Problems = append(x.Problems, Problem{Kind: "missing", What: what, Grave: true})
	}
	x.score()
	x.lose(a)
	return x.Quality
}

// What bounds the resources that the documents of a recording name together: a long base makes every short name a long
// URL.
const (
	mostReferences     = 200_000
	mostReferenceBytes = 16 << 20
	mostReferenceURL   = 16 << 10
)

// referenceRoom is what is left of these bounds.
type referenceRoom struct{ count, bytes int }

// lose lowers the score by what could not be read, now or when the archive was made: of that nobody
// knows what it was used for.
func (x *assessment) lose(a *Archive) {
	if n := a.options.Lost; n > 0 {
		x.Problems = append(x.Problems, Problem{Kind: "lost", What: fmt.Sprintf(
			"%d exchanges, or damaged parts, could not be read when this archive was made; the notes say which", n)})
	}
	if n := float64(a.options.Lost + a.lost); n > 0 {
		x.Score *= float64(len(a.exchanges)) / (float64(len(a.exchanges)) + n)
	}
}

// assessment is an assessment in progress.
type assessment struct {
	Quality
	tally [uses]Part
	named map[string]use  // what documents use a URL as
	have  map[string]bool // URLs with an exchange, and missing ones that were told
}

// name notes what a document uses a URL as. Of several uses the weightiest counts.
func (x *assessment) name(r reference) {
	if old, ok := x.named[r.url]; !ok || weights()[r.as].Weight > weights()[old].Weight {
		x.named[r.url] = r.as
	}
}

// count counts a resource, and its problem if it is not good.
func (x *assessment) count(as use, url string, isGood bool, p Problem) {
	t := &x.tally[as]
	t.Count++
	if isGood {
		return
	}
	t.Lost++
	if len(t.Examples) < maxExamples {
		t.Examples = append(t.Examples, url)
	}
	p.Part = weights()[as].Name
	x.Problems = append(x.Problems, p)
}

// missing counts what a document names and the archive lacks.
func (x *assessment) missing(e *lab.Exchange, list []reference) {
	for _, r := range list {
		if r.isOptional || x.have[r.url] {
			continue
		}
		x.have[r.url] = true
		x.count(r.as, r.url, false, Problem{
			Kind: "missing", Exchange: e.ID, URL: r.url, What: "named by " + e.URL + " and not in the archive",
		})
	}
}

// score computes the score of what was counted.
func (x *assessment) score() {
	x.Parts = []Part{}
	var sum, all float64
	for i, w := range weights() {
		t := x.tally[i]
		if t.Count == 0 {
			continue
		}
		t.Name, t.Weight = w.Name, w.Weight
		x.Parts = append(x.Parts, t)
		all += t.Weight
		sum += t.Weight * t.share()
	}
	if all > 0 {
		x.Score = sum / all
	}
	for _, p := range x.Problems {
		if p.Grave {
			x.Score = 0
		}
	}
}

// Navigates tells the request of a navigation: not all that is asked for at a page's address is the page. Browsers say
// so to origins that they trust (Sec-Fetch-Dest); else a request that asks for HTML is one, and a GET of a tool that
// keeps no header.
func Navigates(e *lab.Exchange) bool {
	get := e.Request.Get
	if dest := get("Sec-Fetch-Dest"); dest != "" {
		return dest == "document" && !isPrefetch(get("Sec-Purpose"))
	}
	asksHTML := strings.Contains(strings.ToLower(get("Accept")), "text/html")
	switch {
	case get("Upgrade") != "": // a WebSocket says neither what it is for nor what it accepts
		return false
	case get("X-Requested-With") != "" || isPrefetch(get("Sec-Purpose")) || isPrefetch(get("Purpose")):
		return false
	case e.Method == "GET":
		return asksHTML || get("Accept") == ""
	}
	return e.Method == "POST" && asksHTML
}

func judge(e *lab.Exchange, main, hasComplete bool, limit *DecodeLimit) (Problem, bool) {
	p := Problem{Exchange: e.ID, URL: e.URL}
	switch {
	case e.IsPending() && main:
		p.Kind, p.What, p.Grave = "main-document", "the document had not been answered when the recording ended", true
	case e.IsFailed():
		p.Kind, p.What, p.Grave = "error", "there was no answer, and in a replay there is none: "+
			"its origin could not be reached, is not trusted (--trust), refused or broke the connection, or spoke no HTTP", main
	case e.IsOpen():
		return p, true // it stays open in a replay
	case e.Truncated != "" && !hasComplete:
		p.Kind, p.Grave = "truncated", main
		p.What = fmt.Sprintf("the body was cut off after %d bytes (%s)", len(e.Response.Body), e.Truncated)
		if len(e.Socket) > 0 {
			p.What = fmt.Sprintf("the WebSocket was cut off after %v (%s)", e.Socket[len(e.Socket)-1].At.Round(time.Millisecond), e.Truncated)
		}
		if e.Truncated == "length" {
			p.What += ": it, or all of the recording together, had more than may be recorded"
		}
	case e.Truncated != "":
		p.Kind, p.What = "truncated", attempt
	case e.Status >= 400 && main:
		p.Kind, p.What, p.Grave = "main-document", fmt.Sprintf("the document's status is %d", e.Status), true
	case main && IsUnseen(e):
		p.Kind, p.What, p.Grave = "main-document", "the document is none that a browser shows: it stays where it was, or saves a file", true
	case e.Status >= 400:
		p.Kind, p.What = "error", fmt.Sprintf("the status is %d", e.Status)
	default:
		if err := limit.check(&e.Response); err != nil && e.Status != 206 {
			p.Kind, p.What = "undecodable", err.Error()
			return p, false
		}
		return p, true
	}
	return p, false
}

// AnswersStranger tells the answer that a script gets which asks for whom the page is while nobody has logged in: the page
// shows what it shows without it.
func AnswersStranger(e *lab.Exchange) bool {
	return e.Status == http.StatusUnauthorized && e.Truncated == "" && !Navigates(e) && !message.OpensDialogue(e.Response.Header)
}

// refusesForm tells the page that a form gets whose fields are wrong: many frameworks answer so, with the form.
func refusesForm(e *lab.Exchange) bool {
	return e.Method == http.MethodPost && e.Truncated == "" && e.Status >= 400 && e.Status < 500 && !slices.Contains(
		[]int{http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooManyRequests}, e.Status)
}

// IsUnseen tells an answer to a navigation after which a browser shows what it showed before (HTML, navigate; RFC 6266).
func IsUnseen(e *lab.Exchange) bool {
	how, _, _ := strings.Cut(e.Response.Get("Content-Disposition"), ";")
	kind, _, _ := strings.Cut(e.Response.Get("Content-Type"), ";")
	return e.Status == 204 || e.Status == 205 ||
		e.Status == 200 && (strings.EqualFold(strings.TrimSpace(how), "attachment") || isSaved(strings.ToLower(strings.TrimSpace(kind))))
}

// isSaved tells media types that no browser shows, whatever the body is.
func isSaved(kind string) bool {
	switch kind {
	case "application/octet-stream", "application/zip", "application/gzip", "application/x-gzip", "application/x-tar",
		"application/x-xz", "application/x-bzip2", "application/x-7z-compressed", "application/x-msdownload", "application/x-msi",
		"application/x-apple-diskimage", "application/java-archive", "application/msword", "text/csv", "text/calendar", "text/vcard":
		return true
	}
	office, isVendor := strings.CutPrefix(kind, "application/vnd.")
	return isVendor && (strings.HasPrefix(office, "ms-") || strings.HasPrefix(office, "openxmlformats-") ||
		strings.HasPrefix(office, "oasis.") || strings.HasPrefix(office, "android.") || strings.HasPrefix(office, "debian."))
}

// attempt says that a cut-off exchange lacks nothing in a replay.
const attempt = "an attempt that was cut off; a complete one is in the archive and is replayed"

func (p *Problem) isAttempt() bool { return p.What == attempt }

// Unfit returns why a recording should not be replayed: it has a grave problem, or
// its score is below the least good one. It returns nil for a recording that is fit.
func (q Quality) Unfit(least float64) error {
	for _, p := range q.Problems {
		if p.Grave {
			return fmt.Errorf("is unfit: %s", p.What)
		}
	}
	if q.Score < least {
		var lost []string
		for _, p := range q.Parts {
			if p.Lost > 0 {
				lost = append(lost, fmt.Sprintf("%s %d of %d", p.Name, p.Lost, p.Count))
			}
		}
		var why []string
		if len(lost) > 0 {
			why = append(why, "lost are "+strings.Join(lost, ", "))
		}
		for _, p := range q.Problems {
			if p.Kind == "lost" { // and so is in no part
				why = append(why, p.What)
			}
		}
		return fmt.Errorf("has the score %.3f, below %g: %s", q.Score, least, strings.Join(why, "; "))
	}
	return nil
}
