package archive

import (
	"fmt"
	"strings"

	"eidetic/internal/lab"
)

// harProtocol reads what browsers call a version: h2, HTTP/2, http/2.0, h3, h3-29, HTTP/1.1, unknown.
func harProtocol(names ...string) string {
	for _, name := range names {
		name = strings.ToLower(name)
		switch {
		case name == "h2" || strings.HasPrefix(name, "http/2"):
			return "h2"
		case strings.HasPrefix(name, "h3") || strings.HasPrefix(name, "http/3") || strings.Contains(name, "quic"):
			return "h3"
		case name == "http/1.0" || name == "http/1.1":
			return name
		}
	}
	return "http/1.1"
}

// methodOf is a method as it was sent: some exporters write it in lower case. Browsers write these in capitals (WHATWG
// Fetch).
func methodOf(text string) string {
	text = strings.TrimSpace(text)
	switch upper := strings.ToUpper(text); upper {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS":
		return upper
	}
	return text
}

// harHeaders drops h2's pseudo fields, and splits what Safari and Chrome join by line breaks.
func harHeaders(pairs []harPair) (out []lab.HeaderField, err error) {
	for _, p := range pairs {
		if p.Name == "" || strings.HasPrefix(p.Name, ":") || strings.ContainsAny(p.Name, " \r\n:") {
			continue
		}
		for v := range strings.SplitSeq(p.Value, "\n") {
			if len(out) == maxFields {
				return nil, fmt.Errorf("it has a header of more than %d fields", maxFields)
			}
			out = append(out, lab.HeaderField{Name: p.Name, Value: strings.TrimSpace(v)})
		}
	}
	return out, nil
}

// fillHeader adds to the header of a response what a HAR has in fields of its own, where the exporter leaves the header
// out: where a redirect leads, and the type of a body. It returns what was added.
func (h *harEntry) fillHeader(e *lab.Exchange) (notes []string) {
	empty := len(e.Response.Header) == 0
	where := strings.TrimSpace(oneLine(h.Response.RedirectURL))
	if e.Status/100 == 3 && e.Status != 304 && where != "" && e.Response.Get("Location") == "" {
		e.Response.Header = append(e.Response.Header, lab.HeaderField{Name: "Location", Value: where})
		notes = append(notes, "a redirect without Location, which is taken from redirectURL")
	}
	kind := strings.TrimSpace(oneLine(h.Response.Content.MIME))
	if empty && e.Status/100 == 2 && strings.Contains(kind, "/") {
		e.Response.Header = append(e.Response.Header, lab.HeaderField{Name: "Content-Type", Value: kind})
		notes = append(notes, "with an answer without header fields, whose type is taken from content.mimeType")
	}
	return notes
}

// longestCookieName bounds where a name is looked for: browsers take no cookie of more than 4 KiB.
const longestCookieName = 4096

// splitCookies splits Set-Cookie fields that an exporter joined by commas: mitmproxy, which lists more cookies than there
// are fields, and HTTP Toolkit, which lists none. A comma behind an attribute is one between cookies; before one, it may
// be in a value, unless more cookies are listed. The comma of a date is not followed by a name.
func splitCookies(fields []lab.HeaderField, cookies int) []lab.HeaderField {
	isCookie := func(f lab.HeaderField) bool { return strings.EqualFold(f.Name, "Set-Cookie") }
	for _, f := range fields {
		if isCookie(f) {
			cookies--
		}
	}
	var out []lab.HeaderField
	for _, f := range fields {
		begin, attributes := 0, false
		for i := 0; isCookie(f) && i < len(f.Value); i++ {
			if attributes = attributes || f.Value[i] == ';'; f.Value[i] != ',' || cookies <= 0 && !attributes {
				continue
			}
			ahead := strings.TrimLeft(f.Value[i+1:], " ")
			name, _, found := strings.Cut(ahead[:min(len(ahead), longestCookieName)], "=")
			if found && name != "" && !strings.ContainsAny(name, " \t;,") {
				out = append(out, lab.HeaderField{Name: f.Name, Value: f.Value[begin:i]})
				begin, attributes = len(f.Value)-len(ahead), false
			}
		}
		out = append(out, lab.HeaderField{Name: f.Name, Value: f.Value[begin:]})
	}
	return out
}
