package archive

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"eidetic/internal/lab"

	"golang.org/x/net/html"
)

// Problem is one defect of a recording.
type Problem struct {
	Kind     string `json:"kind"` // "damaged", "truncated", "main-document", "error", "undecodable", "missing", "import", "lost"
	Exchange string `json:"exchange,omitempty"`
	URL      string `json:"url,omitempty"`
	What     string `json:"what"`
	// A grave problem makes the recording unfit for a measurement.
	Grave bool `json:"grave"`
}

// Quality is the assessment of a recording.
type Quality struct {
	// Score is the share of what a replay needs that is present and complete, 0 to 1: exchanges
	// without a problem over exchanges and missing resources; 0 with a grave problem.
	Score    float64   `json:"score"`
	Problems []Problem `json:"problems"`
}

// Assess assesses a recording: failed main documents, cut-off bodies, bodies that do not decode,
// errors of sub-resources, and resources that recorded documents refer to and the archive lacks.
func Assess(a *Archive) Quality {
	q := Quality{Problems: []Problem{}}
	for _, w := range a.warnings {
		q.Problems = append(q.Problems, Problem{Kind: "damaged", What: w, Grave: true})
	}
	for _, n := range a.importNotes() {
		q.Problems = append(q.Problems, Problem{Kind: "import", What: n})
	}
	have := map[string]bool{}
	complete := map[string]bool{} // method and URL of complete exchanges
	for _, e := range a.exchanges {
		have[e.URL] = true
		if e.Truncated == "" {
			complete[e.Method+" "+e.URL] = true
		}
	}
	pages := map[string]bool{}
	for _, p := range a.pages {
		pages[p.URL] = true
	}
	bad, missing := 0, 0
	limit := NewDecodeLimit(a)
	for _, e := range a.exchanges {
		problem, ok := judge(e, pages[e.URL], complete[e.Method+" "+e.URL])
		var named []string
		if ok && !e.IsOpen() {
			var err error
			if named, err = references(e, limit); err != nil && e.Status != 206 {
				problem.Kind, problem.What, ok = "undecodable", err.Error(), false
			}
		}
		if !ok {
			bad++
			q.Problems = append(q.Problems, problem)
			continue
		}
		for _, ref := range named {
			if !have[ref] {
				have[ref] = true
				missing++
				q.Problems = append(q.Problems, Problem{
					Kind: "missing", Exchange: e.ID, URL: ref, What: "named by " + e.URL + " and not in the archive",
				})
			}
		}
	}
	if a.options.Lost > 0 {
		q.Problems = append(q.Problems, Problem{Kind: "lost", What: fmt.Sprintf(
			"%d exchanges, or damaged parts, could not be read when this archive was made; the notes say which", a.options.Lost)})
	}
	missing += a.options.Lost + a.lost
	if n := len(a.exchanges) + missing; n > 0 && len(a.exchanges) > 0 {
		q.Score = float64(len(a.exchanges)-bad) / float64(n)
	} else {
		what := "the archive has no exchanges"
		if a.found != "" {
			what += ": it is " + a.found
		}
		q.Problems = append(q.Problems, Problem{Kind: "missing", What: what, Grave: true})
	}
	for _, p := range q.Problems {
		if p.Grave {
			q.Score = 0
		}
	}
	return q
}

func judge(e *lab.Exchange, page, hasComplete bool) (Problem, bool) {
	p := Problem{Exchange: e.ID, URL: e.URL}
	main := page || e.Request.Get("Sec-Fetch-Dest") == "document"
	switch {
	case e.IsPending() && main:
		p.Kind, p.What, p.Grave = "main-document", "the document had not been answered when the recording ended", true
	case e.IsOpen():
		return p, true // it stays open in a replay
	case e.Truncated != "" && !hasComplete:
		p.Kind, p.Grave = "truncated", main
		p.What = fmt.Sprintf("the body was cut off after %d bytes (%s)", len(e.Response.Body), e.Truncated)
	case e.Truncated != "":
		p.Kind, p.What = "truncated", "an attempt that was cut off; a complete one is in the archive and is replayed"
	case e.Status >= 400 && main:
		p.Kind, p.What, p.Grave = "main-document", fmt.Sprintf("the document's status is %d", e.Status), true
	case e.Status >= 400:
		p.Kind, p.What = "error", fmt.Sprintf("the status is %d", e.Status)
	default:
		return p, true
	}
	return p, false
}

// references lists the scripts, style sheets and images that a document names. It decodes the body,
// whatever that is, and returns why it cannot be decoded.
func references(e *lab.Exchange, limit *DecodeLimit) (out []string, err error) {
	r, err := decoder(&e.Response, 1<<30)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	counted := &countingReader{r: r}
	base, err := url.Parse(e.URL)
	if err == nil && strings.HasPrefix(strings.ToLower(e.Response.Get("Content-Type")), "text/html") && e.Status == 200 && e.Method == "GET" {
		out = namedBy(counted, base)
	}
	if codingOf(&e.Response) == "" {
		return out, nil
	}
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return nil, fmt.Errorf("decode %s: %w", codingOf(&e.Response), err)
	}
	return out, limit.Take(counted.n)
}

// countingReader counts, and repeats the error that it has met.
type countingReader struct {
	r   io.Reader
	n   int64
	err error
}

// Read implements io.Reader.
func (c *countingReader) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	var n int
	n, c.err = c.r.Read(p)
	c.n += int64(n)
	return n, c.err
}

// namedBy lists what a document at base names.
func namedBy(document io.Reader, base *url.URL) (out []string) {
	const most = 10_000
	z := html.NewTokenizer(document)
	z.SetMaxBuf(1 << 20)
	for len(out) < most {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			at := map[string]string{}
			for _, a := range t.Attr {
				at[a.Key] = a.Val
			}
			ref := ""
			switch {
			case t.Data == "script" && !hasKey(at, "nomodule"), t.Data == "img" && at["loading"] != "lazy":
				ref = at["src"]
			case t.Data == "link" && strings.EqualFold(at["rel"], "stylesheet") && !strings.Contains(at["media"], "print"):
				ref = at["href"]
			case t.Data == "base" && at["href"] != "":
				if b, err := base.Parse(at["href"]); err == nil {
					base = b
				}
			}
			if u, err := base.Parse(strings.TrimSpace(ref)); ref != "" && err == nil && (u.Scheme == "http" || u.Scheme == "https") {
				u.Fragment = ""
				out = append(out, u.String())
			}
		}
	}
	return out
}

func hasKey(m map[string]string, k string) bool { _, ok := m[k]; return ok }

// Unfit returns why a recording should not be replayed: it has a grave problem, or
// its score is below the least good one. It returns nil for a recording that is fit.
func (q Quality) Unfit(least float64) error {
	for _, p := range q.Problems {
		if p.Grave {
			return fmt.Errorf("is unfit: %s", p.What)
		}
	}
	if q.Score < least {
		return fmt.Errorf("has the score %.3f, below %g", q.Score, least)
	}
	return nil
}
