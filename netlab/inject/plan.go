package inject

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// kind says how the browser that asked will use a response.
type kind int

const (
	kindNone kind = iota
	kindHTML
	kindXHTML
	kindSVG
	kindWorker
	kindSniff   // HTML if the body begins like a document
	kindUnknown // HTML if a browser that is told no type takes the body for HTML

	// Kinds is how many kinds there are.
	Kinds = int(iota)
)

// root is the name of the root element of a document of XML, or "" for what is none.
func (k kind) root() string {
	switch k {
	case kindXHTML:
		return "html"
	case kindSVG:
		return "svg"
	}
	return ""
}

// Plan says how one response is changed. It is made from the request and the response's header
// alone, so that it exists before the body does.
type Plan struct {
	script   *Script
	kind     kind
	encoding string // as ContentCoding gives it
	charset  string // of the header, lower case, may be empty
	origin   string // scheme://host of the request
	modified int64  // of Last-Modified, ms since 1970; 0 for none
}

// Concerns tells whether Plan may be other than nil for some request that is answered by such a
// response.
func (s *Script) Concerns(method string, status int, header []lab.HeaderField) bool {
	if s == nil || !isShown(method, status, header) {
		return false
	}
	mime, _ := contentType(header)
	return mime == "text/html" || mime == "application/xhtml+xml" || mime == "image/svg+xml" || isScript(mime) || isUnknown(mime)
}

// isShown tells an answer whose body a browser may show: a redirect without a place to go to is, and so is a part that
// nobody asked for.
func isShown(method string, status int, header []lab.HeaderField) bool {
	switch status {
	case http.StatusNoContent, http.StatusResetContent, http.StatusNotModified:
		return false
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if (&lab.Message{Header: header}).Get("Location") != "" {
			return false
		}
	}
	return method != http.MethodHead && status >= 200 && !isSandboxed(header)
}

// isSandboxed tells a document that runs no script, by a policy of the header (CSP Level 3, 6.2.6).
func isSandboxed(header []lab.HeaderField) bool {
	for _, f := range header {
		if !strings.EqualFold(f.Name, "Content-Security-Policy") {
			continue
		}
		for _, directive := range strings.FieldsFunc(f.Value, func(r rune) bool { return r == ',' || r == ';' }) {
			words := strings.Fields(strings.ToLower(directive))
			if len(words) > 0 && words[0] == "sandbox" && !slices.Contains(words, "allow-scripts") {
				return true
			}
		}
	}
	return false
}

// Kind says how the browser will use the response; it is less than Kinds. Plans of one response
// that have one kind change it in the same way.
func (p *Plan) Kind() int { return int(p.kind) }

// isUnknown tells types that browsers treat like none (WHATWG, MIME Sniffing, 7).
func isUnknown(mime string) bool {
	switch mime {
	case "", "unknown/unknown", "application/unknown", "*/*":
		return true
	}
	return !strings.Contains(mime, "/")
}

// mimeOf returns the media type of a Content-Type, in lower case, as browsers read it: up to the first blank,
// parenthesis or semicolon.
func mimeOf(contentType string) string {
	mime := strings.TrimSpace(contentType)
	if end := strings.IndexAny(mime, " \t(;"); end >= 0 {
		mime = mime[:end]
	}
	return strings.ToLower(mime)
}

// contentType returns the media type and the charset of a response, both in lower case. Of several types the last
// counts that is one, and the charset of an equal type before it stays (Fetch, extract a MIME type).
func contentType(header []lab.HeaderField) (mime, charset string) {
	for _, f := range header {
		if !strings.EqualFold(f.Name, "Content-Type") {
			continue
		}
		for _, value := range splitList(f.Value) {
			next := mimeOf(value)
			if first, second, ok := strings.Cut(next, "/"); !ok || first == "" || second == "" || next == "*/*" {
				continue
			}
			if next != mime {
				mime, charset = next, ""
			}
			_, params, _ := strings.Cut(value, ";")
			charset = cmp.Or(charsetParam(params), charset)
		}
	}
	return mime, charset
}

// splitList splits a field at the commas that are not in quotes.
func splitList(field string) (list []string) {
	quoted, from := false, 0
	for i := range len(field) {
		switch {
		case field[i] == '"' && (i == 0 || field[i-1] != '\\'):
			quoted = !quoted
		case field[i] == ',' && !quoted:
			list, from = append(list, field[from:i]), i+1
		}
	}
	return append(list, field[from:])
}

// Plan returns how a response is changed, or nil for not at all. Of request only the header is
// used, as the device sends it now.
func (s *Script) Plan(method, rawURL string, request *lab.Message, status int, header []lab.HeaderField) *Plan {
	if s == nil || !isShown(method, status, header) || status == http.StatusPartialContent && request.Get("Range") != "" {
		return nil
	}
	response := lab.Message{Header: header}
	p := &Plan{script: s}
	mime, charset := contentType(header)
	if p.kind = kindOf(request, mime); p.kind == kindNone {
		return nil
	}
	if options, _, _ := strings.Cut(response.Get("X-Content-Type-Options"), ","); isUnknown(mime) &&
		strings.EqualFold(strings.TrimSpace(options), "nosniff") {
		return nil // the browser takes it for text, and runs none of it
	}
	if isMixed(header) || hasDictionary(header) {
		return nil // what a browser shows is what it gets
	}
	if p.encoding = ContentCoding(header); p.encoding != "" && !Recodes(p.encoding) {
		return nil // no browser undoes so many
	}
	p.charset = charset
	if t, err := http.ParseTime(response.Get("Last-Modified")); err == nil {
		p.modified = t.UnixMilli()
	}
	p.origin = lab.ParseURL(rawURL).Origin()
	return p
}

// kindOf uses the destination of the request (Fetch standard) if the browser sends it, which it
// does for trustworthy URLs; else it guesses from Accept.
func kindOf(request *lab.Message, mime string) kind {
	dest := strings.ToLower(request.Get("Sec-Fetch-Dest"))
	switch {
	case isWorker(dest) && isScript(mime):
		return kindWorker
	case dest != "" && !isFrame(dest):
		return kindNone
	}
	if dest == "" && strings.EqualFold(request.Get("Service-Worker"), "script") && isScript(mime) {
		return kindWorker
	}
	accept := strings.ToLower(request.Get("Accept"))
	navigation := dest != "" || strings.Contains(accept, "text/html")
	if request.Get("X-Requested-With") != "" || dest == "" && isOfScript(request) {
		return kindNone
	}
	switch {
	case mime == "text/html" && navigation:
		return kindHTML
	case mime == "application/xhtml+xml" && navigation:
		return kindXHTML
	case mime == "image/svg+xml" && dest != "": // else it may be a picture
		return kindSVG
	case isUnknown(mime) && navigation:
		return kindUnknown
	case mime == "text/html" || isUnknown(mime):
		return kindSniff
	}
	return kindNone
}

// isOfScript tells a request over plain HTTP that a script makes, whatever it accepts: browsers of the last years say of
// each navigation that it is one (Upgrade Insecure Requests, 3.2.1), also of one in a frame. Libraries fetch the next page
// so and put it into theirs.
func isOfScript(request *lab.Message) bool {
	if request.Get("Upgrade-Insecure-Requests") != "" {
		return false
	}
	agent := request.Get("User-Agent")
	for _, since := range []struct {
		name   string
		digits int // of the first version that is surely new enough
	}{{"Chrome/", 3}, {"Firefox/", 3}, {"Version/", 2}} { // older ones do not send it; some televisions have them
		_, version, found := strings.Cut(agent, since.name)
		if major, _, _ := strings.Cut(version, "."); found && len(major) >= since.digits {
			return true
		}
	}
	return false
}

// isWorker tells the destinations of workers and worklets.
func isWorker(dest string) bool {
	switch dest {
	case "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet":
		return true
	}
	return false
}

// isFrame tells the destinations of documents.
func isFrame(dest string) bool {
	switch dest {
	case "document", "iframe", "frame", "embed", "object", "fencedframe":
		return true
	}
	return false
}

// Concerned tells whether what a request asks for may get the script, by the destination that the browser names.
func Concerned(request *lab.Message) bool {
	dest := strings.ToLower(request.Get("Sec-Fetch-Dest"))
	return isWorker(dest) || isFrame(dest)
}

// isScript tells the JavaScript MIME types of the WHATWG's MIME Sniffing that are in use.
func isScript(mime string) bool {
	switch mime {
	case "text/javascript", "application/javascript", "application/x-javascript", "text/ecmascript", "application/ecmascript", "":
		return true
	}
	return false
}

func charsetParam(params string) string {
	for _, p := range strings.Split(params, ";") {
		name, value, ok := strings.Cut(p, "=")
		if ok && strings.EqualFold(strings.TrimSpace(name), "charset") {
			return strings.ToLower(strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
	return ""
}

// Header returns the header of the changed response. Fields that are no longer true (lengths and
// digests of the body) are left out. charset is what [Stream.Charset] returned.
func (p *Plan) Header(fields []lab.HeaderField, charset string) []lab.HeaderField {
	out := make([]lab.HeaderField, 0, len(fields)+1)
	if charset != "" && p.kind == kindUnknown {
		out = append(out, lab.HeaderField{Name: "Content-Type", Value: "text/html; charset=" + charset})
	}
	for _, f := range fields {
		switch strings.ToLower(f.Name) {
		case "content-length", "content-md5", "digest", "repr-digest", "content-digest", "unencoded-digest", "accept-ranges":
			continue
		case "content-type":
			// The script pushes a <meta charset> out of the first 1024 bytes,
			// where browsers look for it; the header comes before any of that.
			if charset != "" && p.kind == kindUnknown {
				continue // the type that the browser finds stands in its place
			}
			if charset != "" && p.kind != kindWorker {
				f.Value = strings.TrimRight(strings.TrimSpace(f.Value), ";") + "; charset=" + charset
			}
		case "content-security-policy", "content-security-policy-report-only":
			f.Value = allow(f.Value, p)
		}
		out = append(out, f)
	}
	return out
}
