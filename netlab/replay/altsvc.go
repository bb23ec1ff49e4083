package replay

import (
	"strings"

	"eidetic/internal/lab"
)

// altSvc returns the Alt-Svc field (RFC 7838) that a device gets in place of an
// origin's: HTTP/3 at the same port, if the origin offers it at any port and we
// serve it, or "clear", if the origin says so. Every other alternative would send
// the device to an address where nobody listens.
func altSvc(fields []lab.HeaderField, rawURL string, http3 bool) (lab.HeaderField, bool) {
	for _, f := range fields {
		if !strings.EqualFold(f.Name, "Alt-Svc") {
			continue
		}
		if strings.TrimSpace(f.Value) == "clear" {
			return lab.HeaderField{Name: f.Name, Value: "clear"}, true
		}
		if !http3 {
			continue
		}
		for entry := range strings.SplitSeq(f.Value, ",") {
			protocol, rest, ok := strings.Cut(strings.TrimSpace(entry), "=")
			if !ok || protocol != "h3" {
				continue
			}
			_, params, _ := strings.Cut(rest, ";")
			value := `h3=":` + portOf(rawURL) + `"`
			if params != "" {
				value += ";" + params
			}
			return lab.HeaderField{Name: f.Name, Value: value}, true
		}
	}
	return lab.HeaderField{}, false
}

func portOf(rawURL string) string {
	u := lab.ParseURL(rawURL)
	if u.Port() == "" {
		return "443"
	}
	return u.Port()
}
