package archive

import (
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

// harHeaders drops h2's pseudo fields, and splits what Safari and Chrome join by line breaks.
func harHeaders(pairs []harPair) []lab.HeaderField {
	var out []lab.HeaderField
	for _, p := range pairs {
		if p.Name == "" || strings.HasPrefix(p.Name, ":") || strings.ContainsAny(p.Name, " \r\n:") {
			continue
		}
		for _, v := range strings.Split(p.Value, "\n") {
			out = append(out, lab.HeaderField{Name: p.Name, Value: strings.TrimSpace(v)})
		}
	}
	return out
}

// splitCookies splits Set-Cookie fields that an exporter joined by commas (mitmproxy does), when
// the exporter lists more cookies than there are fields. The comma of a date is not followed
// by a name.
func splitCookies(fields []lab.HeaderField, cookies int) []lab.HeaderField {
	var out []lab.HeaderField
	have := 0
	for _, f := range fields {
		if !strings.EqualFold(f.Name, "Set-Cookie") {
			out = append(out, f)
			continue
		}
		have++
		begin := 0
		for i := strings.Index(f.Value, ", "); i >= 0; {
			name, _, found := strings.Cut(f.Value[i+2:], "=")
			if found && name != "" && !strings.ContainsAny(name, " \t;,") {
				out = append(out, lab.HeaderField{Name: f.Name, Value: f.Value[begin:i]})
				begin = i + 2
			}
			next := strings.Index(f.Value[i+2:], ", ")
			if next < 0 {
				break
			}
			i += 2 + next
		}
		out = append(out, lab.HeaderField{Name: f.Name, Value: f.Value[begin:]})
	}
	if cookies <= have {
		return fields
	}
	return out
}
