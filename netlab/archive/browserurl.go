package archive

import (
	"fmt"
	"net"
	"strings"

	"golang.org/x/net/idna"

	"eidetic/internal/lab"
)

// browserURL is an address of another tool's file as browsers ask for it (WHATWG URL): the host in ASCII, and what an
// address cannot have, such as blanks and other letters, as escapes of UTF-8.
func browserURL(raw string) string {
	if strings.IndexFunc(raw, func(r rune) bool { return mustEscape(byte(min(r, 0xff))) }) < 0 {
		return raw
	}
	u := lab.ParseURL(raw)
	if !u.IsWeb() {
		return raw
	}
	u.Host, u.Path, u.Query = asciiHost(u.Host), escaped(u.Path), escaped(u.Query)
	return u.Sent()
}

// mustEscape tells a byte that no path or query has as it is.
func mustEscape(c byte) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '<' || c == '>' }

func escaped(text string) string {
	var out strings.Builder
	for i := range len(text) {
		if c := text[i]; mustEscape(c) {
			fmt.Fprintf(&out, "%%%02X", c)
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}

// asciiHost is a host, perhaps with a port, with the labels of other letters as DNS has them (UTS 46). One that has no
// such form stays.
func asciiHost(host string) string {
	name, port := host, ""
	if n, p, err := net.SplitHostPort(host); err == nil {
		name, port = n, ":"+p
	}
	ascii, err := idna.New(idna.MapForLookup(), idna.StrictDomainName(false)).ToASCII(name)
	if err != nil || ascii == "" || strings.Contains(name, ":") {
		return host
	}
	return ascii + port
}
