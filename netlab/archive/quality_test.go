package archive

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// got is an exchange of a GET.
func got(url string, status int, kind, body string) *lab.Exchange {
	return &lab.Exchange{
		ID: url, Method: "GET", URL: url, Status: status,
		Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: kind}}, Body: []byte(body)},
	}
}

// asked adds a field to the request.
func asked(e *lab.Exchange, name, value string) *lab.Exchange {
	e.Request.Header = append(e.Request.Header, lab.HeaderField{Name: name, Value: value})
	return e
}

// headed adds a field to the answer.
func headed(e *lab.Exchange, name, value string) *lab.Exchange {
	e.Response.Header = append(e.Response.Header, lab.HeaderField{Name: name, Value: value})
	return e
}

// opened is a navigation that got what no browser shows; site says who asked for it.
func opened(url string, status int, site string) *lab.Exchange {
	return asked(asked(got(url, status, "application/octet-stream", ""), "Sec-Fetch-Dest", "document"), "Sec-Fetch-Site", site)
}

// posted is the page that answers a form.
func posted(url string, status int) *lab.Exchange {
	e := asked(got(url, status, "text/html", "<p>Name is missing"), "Sec-Fetch-Dest", "document")
	e.Method = "POST"
	return e
}

const pixel = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

func TestAssess(t *testing.T) {
	page := got("https://a.example/", 200, "text/html",
		`<base href="/b/"><script src=x.js></script><link rel=stylesheet href="/y.css"><img src="data:,x"><img src=lazy.png loading=lazy>`)
	script, sheet := got("https://a.example/b/x.js", 200, "text/javascript", ""), got("https://a.example/y.css", 200, "text/css", "")
	cut := got("https://a.example/cut", 200, "image/png", "half")
	cut.Truncated = "disconnect"
	cutScript := got("https://a.example/b/x.js", 200, "text/javascript", "ha")
	cutScript.Truncated = "disconnect"
	zip := got("https://a.example/z", 200, "text/plain", "not gzip")
	zip.Response.Header = append(zip.Response.Header, lab.HeaderField{Name: "Content-Encoding", Value: "gzip"})
	beacon := asked(got("https://a.example/log", 500, "text/plain", ""), "Sec-Fetch-Mode", "no-cors")
	beacon.Method = "POST"
	var pictures []*lab.Exchange
	for i := range 20 {
		pictures = append(pictures, got(fmt.Sprintf("https://a.example/%d.webp", i), 200, "image/webp", "RIFF"))
	}
	pictures[3] = got("https://a.example/3.webp", 404, "text/html", "no")
	for _, tt := range []struct {
		name  string
		list  []*lab.Exchange
		score float64
		kinds string
		parts string // name lost/count
		unfit string // below 0.95
	}{
		{"good", []*lab.Exchange{page, script, sheet}, 1, "", "documents 0/1, style sheets 0/1, scripts 0/1", ""},
		{"two missing", []*lab.Exchange{page}, 4.0 / 12, "missing missing", "documents 0/1, style sheets 1/1, scripts 1/1",
			"has the score 0.333, below 0.95: lost are style sheets 1 of 1, scripts 1 of 1"},
		{"cut, broken, gone", []*lab.Exchange{
			cut, zip, got("https://a.example/gone", 404, "text/html", "x"), got("https://a.example/ok", 200, "text/plain", "ok"),
		}, (3.0 / 3) / 7, "truncated undecodable error", "data 2/3, images 1/1", "has the score 0.143, below 0.95: lost are data 2 of 3, images 1 of 1"},
		{"the page failed", []*lab.Exchange{got("https://a.example/", 500, "text/html", "")}, 0, "main-document", "documents 1/1",
			"is unfit: the document's status is 500"},
		{"a page that is a file to save", []*lab.Exchange{headed(got("https://a.example/", 200, "application/zip", "PK"), "Content-Disposition",
			`Attachment; filename="a.zip"`)}, 0, "main-document", "documents 1/1", "is unfit: the document is none that a browser shows: it stays where it was, or saves a file"},
		{"a page without content", []*lab.Exchange{got("https://a.example/", 204, "", "")}, 0, "main-document", "documents 1/1",
			"is unfit: the document is none that a browser shows: it stays where it was, or saves a file"},
		{"a page that is a file by its type", []*lab.Exchange{got("https://a.example/", 200, "application/zip; x=y", "PK")}, 0, "main-document",
			"documents 1/1", "is unfit: the document is none that a browser shows: it stays where it was, or saves a file"},
		{"a file that a page saves", []*lab.Exchange{page, script, sheet, opened("https://a.example/a.zip", 200, "same-origin"),
			opened("https://a.example/seen", 204, "cross-site")}, 1, "", "documents 0/1, style sheets 0/1, scripts 0/1, background 0/2", ""},
		{"a form that was refused", []*lab.Exchange{page, script, sheet, posted("https://a.example/form", 422)}, 1, "error",
			"documents 0/2, style sheets 0/1, scripts 0/1", ""},
		{"a form whose server failed", []*lab.Exchange{page, script, sheet, posted("https://a.example/form", 500)}, 0, "main-document",
			"documents 1/2, style sheets 0/1, scripts 0/1", "is unfit: the document's status is 500"},
		{"a file that is opened after a page", []*lab.Exchange{page, script, sheet, opened("https://a.example/a.zip", 200, "none")}, 0,
			"main-document", "documents 1/2, style sheets 0/1, scripts 0/1", "is unfit: the document is none that a browser shows: it stays where it was, or saves a file"},
		{"empty", nil, 0, "missing", "", "is unfit: the archive has no exchanges"},
		{"no icon", []*lab.Exchange{page, script, sheet, got("https://a.example/favicon.ico", 404, "text/html", "")}, 12 / 12.05, "error",
			"documents 0/1, style sheets 0/1, scripts 0/1, background 1/1", ""},
		{"no icon that the page names", []*lab.Exchange{
			got("https://a.example/", 200, "text/html", `<link rel="shortcut icon" href="/brand.png">`),
			asked(got("https://a.example/brand.png", 404, "text/html", ""), "Sec-Fetch-Dest", "image"),
		}, 4 / 4.05, "error", "documents 0/1, background 1/1", ""},
		{"background", []*lab.Exchange{
			page, script, sheet, beacon, got("https://a.example/p.gif", 200, "image/gif", pixel),
			asked(got("https://a.example/next", 503, "text/html", ""), "Sec-Purpose", "prefetch;prerender"),
		}, (12 + 0.05/3) / 12.05, "error error", "documents 0/1, style sheets 0/1, scripts 0/1, background 2/3", ""},
		{"a picture of 20", append([]*lab.Exchange{page, script, sheet}, pictures...), (12 + 4*0.95) / 16, "error",
			"documents 0/1, style sheets 0/1, scripts 0/1, images 1/20", ""},
		{"a script among many pictures", append([]*lab.Exchange{page, cutScript, sheet}, pictures...), (8 + 4*0.95) / 16, "truncated error",
			"documents 0/1, style sheets 0/1, scripts 1/1, images 1/20", "has the score 0.738, below 0.95: lost are scripts 1 of 1, images 1 of 20"},
		{"a second attempt", []*lab.Exchange{page, cutScript, script, sheet}, 1, "truncated",
			"documents 0/1, style sheets 0/1, scripts 0/1", ""},
		{"data for those who have logged in", []*lab.Exchange{
			page, script, sheet, asked(got("https://a.example/me", 401, "application/json", "{}"), "Sec-Fetch-Dest", "empty"),
			headed(asked(got("https://a.example/you", 401, "text/plain", ""), "Sec-Fetch-Dest", "empty"), "WWW-Authenticate", "Bearer error=none"),
		}, 1, "error error", "documents 0/1, style sheets 0/1, scripts 0/1, data 0/2", ""},
		{"what is no data, or a dialogue", []*lab.Exchange{
			page, script, sheet, asked(got("https://a.example/i", 401, "text/html", ""), "Sec-Fetch-Dest", "image"),
			headed(asked(got("https://a.example/me", 401, "text/html", ""), "Sec-Fetch-Dest", "empty"), "WWW-Authenticate", `Basic realm="x"`),
		}, 12.0 / 19, "error error", "documents 0/1, style sheets 0/1, scripts 0/1, data 1/1, images 1/1",
			"has the score 0.632, below 0.95: lost are data 1 of 1, images 1 of 1"},
		{"data behind a password, which the browser had", []*lab.Exchange{
			page, script, sheet, headed(got("https://a.example/me", 401, "text/html", ""), "WWW-Authenticate", `Digest realm="x"`),
			got("https://a.example/me", 200, "application/json", "{}"),
		}, 1, "", "documents 0/1, style sheets 0/1, scripts 0/1, data 0/1", ""},
		{"the request says it best", []*lab.Exchange{
			page, script, sheet, asked(got("https://a.example/f", 404, "text/html", ""), "Sec-Fetch-Dest", "font"),
			asked(got("https://a.example/i", 404, "text/html", ""), "Sec-Fetch-Dest", "iframe"),
			asked(got("https://a.example/api.js", 403, "text/html", ""), "Sec-Fetch-Dest", "empty"),
		}, 12.0 / 19, "error error error", "documents 0/1, style sheets 0/1, scripts 0/1, frames 1/1, data 1/1, fonts 1/1",
			"has the score 0.632, below 0.95: lost are frames 1 of 1, data 1 of 1, fonts 1 of 1"},
	} {
		q := Assess(New(tt.list, nil, []Page{{URL: page.URL}}, CreateOptions{}))
		var kinds, list []string
		for _, p := range q.Problems {
			kinds = append(kinds, p.Kind)
		}
		for _, p := range q.Parts {
			list = append(list, fmt.Sprintf("%s %d/%d", p.Name, p.Lost, p.Count))
		}
		// A page without an icon has no gap: nobody sees it.
		lacks := slices.ContainsFunc(q.Parts, func(p Part) bool { return p.Lost > 0 && p.Name != "background" })
		if got := slices.ContainsFunc(q.Problems, Problem.IsGap); got != lacks {
			t.Errorf("%s: IsGap() of a problem = %v, want %v", tt.name, got, lacks)
		}
		if math.Abs(q.Score-tt.score) > 1e-9 || strings.Join(kinds, " ") != tt.kinds || strings.Join(list, ", ") != tt.parts {
			t.Errorf("%s: Assess() = %+v; want the score %v, the problems %q and the parts %q", tt.name, q, tt.score, tt.kinds, tt.parts)
		}
		why := ""
		if err := q.Unfit(0.95); err != nil {
			why = err.Error()
		}
		if why != tt.unfit {
			t.Errorf("%s: Unfit() = %q, want %q", tt.name, why, tt.unfit)
		}
	}
}

// TestAssessPageAsTyped: the page counts as a document where whoever typed its address wrote the host in capitals, with
// its scheme's own port, or with the dot of the root.
func TestAssessPageAsTyped(t *testing.T) {
	for _, typed := range []string{"http://A.example/", "http://a.example:80/", "http://a.example./", "http://a.example/#top"} {
		q := Assess(New([]*lab.Exchange{got("http://a.example/", 200, "text/html", "x")}, nil, []Page{{URL: typed}}, CreateOptions{}))
		if len(q.Parts) != 1 || q.Parts[0].Name != "documents" {
			t.Errorf("page %s: the parts are %+v; want documents alone", typed, q.Parts)
		}
	}
}

// The parts of a score name at most three of what is lost.
func TestAssessExamples(t *testing.T) {
	var list []*lab.Exchange
	for i := range 5 {
		list = append(list, got(fmt.Sprintf("https://a.example/%d.css", i), 404, "text/html", ""))
	}
	q := Assess(New(list, nil, nil, CreateOptions{}))
	want := "[https://a.example/0.css https://a.example/1.css https://a.example/2.css]"
	if len(q.Parts) != 1 || fmt.Sprint(q.Parts[0].Examples) != want || q.Parts[0].Lost != 5 {
		t.Errorf("Assess().Parts = %+v; want 5 lost style sheets with the examples %s", q.Parts, want)
	}
	for _, p := range q.Problems {
		if p.Part != "style sheets" {
			t.Errorf("problem %+v has the part %q, want %q", p, p.Part, "style sheets")
		}
	}
}

// TestUnfitSaysWhatNoPartLost: what could not be read lowers the score, and is named although no part has it.
func TestUnfitSaysWhatNoPartLost(t *testing.T) {
	page := got("https://a.example/", 200, "text/html", "<p>a page")
	q := Assess(New([]*lab.Exchange{page}, nil, []Page{{URL: page.URL}}, CreateOptions{Lost: 3}))
	const want = "has the score 0.250, below 0.95: 3 exchanges, or damaged parts, could not be read when this archive was made; the notes say which"
	if err := q.Unfit(0.95); err == nil || err.Error() != want {
		t.Errorf("Unfit() = %v, want %q", err, want)
	}
}
