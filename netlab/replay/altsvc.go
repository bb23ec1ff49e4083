package replay

import (
	"net/url"
	"strings"

	"eidetic/internal/lab"
)

// altSvc returns what a device is told of an origin's alternative services
// (RFC 7838): that HTTP/3 is at the same port, if the origin said so anywhere
// and we serve it; and that there are none, if it said so. Everything else
// would send the device to where nobody listens.
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
	u, err := url.Parse(rawURL)
	if err != nil || u.Port() == "" {
		return "443"
	}
	return u.Port()
}
