package lab

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// URL is the address of a request, taken apart without judging it. Browsers send paths and queries that RFC 3986 does
// not allow (a bare percent sign, "|", letters beyond ASCII), servers answer them, and net/url refuses some of them
// and changes others. A URL keeps every byte; any text has one.
type URL struct {
	Scheme   string // lower case; "" for a text without "://"
	User     string // user:password, or ""
	Host     string // lower case, without the dot of DNS's root, with the port unless that is the scheme's own
	HasRoot  bool   // the host is written with that dot: another origin to a browser, the same host to servers
	Path     string // as written; "/" where it is empty
	Query    string // as written, without the question mark
	HasQuery bool   // there is a question mark
	Fragment string // as written, without the number sign
}

// ParseURL takes an address apart.
func ParseURL(raw string) (u URL) {
	rest := raw
	if scheme, after, ok := strings.Cut(raw, "://"); ok && isScheme(scheme) {
		u.Scheme, rest = strings.ToLower(scheme), after
		end := strings.IndexAny(rest, "/?#\\")
		if end < 0 {
			end = len(rest)
		}
		u.Host, rest = rest[:end], rest[end:]
		if at := strings.LastIndexByte(u.Host, '@'); at >= 0 {
			u.User, u.Host = u.Host[:at], u.Host[at+1:]
		}
		if utf8.ValidString(u.Host) { // else ToLower would replace bytes
			u.Host = strings.ToLower(u.Host)
		}
		u.Host, u.HasRoot = withoutRoot(withoutDefaultPort(u.Scheme, u.Host))
	}
	rest, u.Fragment, _ = strings.Cut(rest, "#")
	u.Path, u.Query, u.HasQuery = strings.Cut(rest, "?")
	if u.Path == "" {
		u.Path = "/"
	}
	return u
}

func isScheme(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// withoutDefaultPort leaves a host with two ports as it is.
func withoutDefaultPort(scheme, host string) string {
	i := portAt(host)
	if i < 0 || portAt(host[:i]) >= 0 {
		return host
	}
	switch port := host[i+1:]; {
	case port == "", // an empty port is the scheme's own
		port == "80" && (scheme == "http" || scheme == "ws"),
		port == "443" && (scheme == "https" || scheme == "wss"):
		return host[:i]
	}
	return host
}

func withoutRoot(host string) (bare string, hasRoot bool) {
	name, port := host, ""
	if i := portAt(host); i >= 0 {
		name, port = host[:i], host[i:]
	}
	if name, hasRoot = strings.CutSuffix(name, "."); hasRoot && name != "" {
		return name + port, true
	}
	return host, false
}

// IsWeb tells an address of HTTP with a host.
func (u URL) IsWeb() bool { return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" }

// Origin returns scheme://host[:port].
func (u URL) Origin() string { return u.Scheme + "://" + u.Host }

// Hostname returns the host without port and brackets.
func (u URL) Hostname() string {
	host := u.Host
	if i := portAt(host); i >= 0 {
		host = host[:i]
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// Port returns the port, or "" for the scheme's own.
func (u URL) Port() string {
	if i := portAt(u.Host); i >= 0 {
		return u.Host[i+1:]
	}
	return ""
}

func portAt(host string) int {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return i
	}
	return -1
}

// Target returns path and query, as in a request line.
func (u URL) Target() string {
	if u.HasQuery {
		return u.Path + "?" + u.Query
	}
	return u.Path
}

// Sent returns what a client sends of the address: no user and no fragment.
func (u URL) Sent() string {
	if u.Scheme == "" {
		return u.Target()
	}
	return u.Origin() + u.Target()
}

// Net returns the address for net/http, whose request line then has the bytes of Target.
func (u URL) Net() *url.URL {
	n := &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: u.Query, ForceQuery: u.HasQuery && u.Query == ""}
	n.Path, n.RawPath = unescapePath(u.Path), u.Path
	if n.EscapedPath() == u.Path {
		return n
	}
	// RequestURI writes an Opaque part as it is. One that begins with two slashes is for it the absolute form, of which
	// transports send the path alone.
	n.Opaque = u.Path
	if strings.HasPrefix(u.Path, "//") {
		n.Opaque = "//" + u.Host + u.Path
	}
	return n
}

// unescapePath decodes escapes and keeps a percent sign that begins none.
func unescapePath(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			if c, err := url.PathUnescape(path[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(path[i])
	}
	return b.String()
}

// NetURL parses an address as url.Parse does, and what that refuses leniently.
func NetURL(raw string) *url.URL {
	if u, err := url.Parse(raw); err == nil {
		return u
	}
	u := ParseURL(raw)
	n := u.Net()
	n.Fragment = u.Fragment
	return n
}

// AppendURLKey appends what is equal for addresses that are the same request to a browser: it escapes what browsers
// escape (WHATWG, URL, path and query percent-encode sets), and leaves out a fragment. Most addresses are their own
// key.
func AppendURLKey(b []byte, raw string) []byte {
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c >= 0x7f || c == '#' || c == '"' || c == '<' || c == '>' || c == '`' || c == '{' || c == '}' || c == '\'' {
			return appendEscaped(b, raw)
		}
	}
	return append(b, raw...)
}

func appendEscaped(b []byte, raw string) []byte {
	const hex = "0123456789ABCDEF"
	raw, _, _ = strings.Cut(raw, "#")
	inQuery := false
	for i := range len(raw) {
		c := raw[i]
		inQuery = inQuery || c == '?'
		escape := c <= ' ' || c >= 0x7f || c == '"' || c == '<' || c == '>'
		if inQuery {
			escape = escape || c == '\''
		} else {
			escape = escape || c == '`' || c == '{' || c == '}'
		}
		if escape {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}
