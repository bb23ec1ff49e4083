package plan

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"eidetic/internal/lab"

	"golang.org/x/net/idna"
)

// CheckPage returns an error for a page whose URL cannot be loaded.
func CheckPage(page string) error {
	if page == "" {
		return errors.New("a plan opens a page: give its URL, or steps whose first opens one")
	}
	if u := lab.ParseURL(page); u.User != "" {
		return fmt.Errorf("%s: an address in a plan holds no user and no password: 'appliance measure https://USER:PASSWORD@…' sends them "+
			"to the page's origin, and so does --header 'Authorization: Basic …'", u.Sent())
	}
	if authority, _, _ := strings.Cut(page, "/"); strings.Contains(authority, "@") { // a user without a scheme
		page = page[strings.LastIndex(authority, "@")+1:]
	}
	if u := lab.ParseURL(page); !u.IsWeb() || strings.ContainsAny(u.Host, " %\"<>\\^`{|}") || hasControl(page) {
		return fmt.Errorf("%q: it must be an absolute http or https URL%s", page, meant(page))
	} else if host, err := sentHost(u.Hostname()); err != nil {
		return fmt.Errorf("%q: browsers open no host %q: %w", page, u.Hostname(), err)
	} else if host != u.Hostname() {
		if port := u.Port(); port != "" {
			host = net.JoinHostPort(host, port)
		}
		_, rest, _ := strings.Cut(page, "://")
		rest = strings.TrimLeft(rest, "/")
		at := strings.IndexAny(rest+"/", "/?#\\")
		return fmt.Errorf("%q: browsers ask for its host by another spelling; write %s://%s%s", page, u.Scheme, host, rest[min(at, len(rest)):])
	} else if _, notIP := netip.ParseAddr(host); u.Scheme == "https" && u.HasRoot && notIP != nil {
		written := u.Sent()
		if u.Fragment != "" {
			written += "#" + u.Fragment
		}
		return fmt.Errorf("%q: crypto/tls, by which the box speaks TLS, takes no host that ends in a dot; write %s", page, written)
	}
	return nil
}

// meant asks whether a page without a scheme is one with it, as address bars allow to write it.
func meant(page string) string {
	const longest = 200
	host, _, _ := strings.Cut(page, "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, ""
	}
	_, notIP := netip.ParseAddr(name)
	_, notNumber := strconv.ParseUint(cmp.Or(port, "80"), 10, 16)
	isHost := notIP == nil || name == "localhost" || strings.Contains(strings.Trim(name, "."), ".") || port != ""
	if name == "" || !isHost || notNumber != nil || len(page) > longest || strings.ContainsAny(page, " \\\t\n") {
		return ""
	}
	scheme := "https"
	if notIP == nil || name == "localhost" || port != "" && port != "443" {
		scheme = "http"
	}
	if !strings.Contains(page, "/") {
		page += "/"
	}
	return fmt.Sprintf("; did you mean %s://%s?", scheme, page)
}

// sentHost is a host as browsers resolve and send it (WHATWG, URL, 3.5): letters beyond ASCII as IDNA writes them, and
// an address of IPv4 in four numbers. All that looks hosts up, and all recordings, have this form.
func sentHost(host string) (string, error) {
	if strings.Contains(host, ":") { // IPv6
		return host, nil
	}
	ascii := host
	if strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		var err error
		if ascii, err = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false)).ToASCII(host); err != nil {
			return "", err
		}
	}
	parts := strings.Split(strings.TrimSuffix(ascii, "."), ".")
	if last := parts[len(parts)-1]; !isNumber(last) {
		return ascii, nil
	}
	if _, err := netip.ParseAddr(ascii); err == nil {
		return ascii, nil
	}
	return ipv4Of(parts)
}

// errNoIPv4 is the error for a host that ends in a number and is no address.
var errNoIPv4 = errors.New("it ends in a number, and is no address of IPv4 in four numbers from 0 to 255") // constant

// ipv4Of reads the one to four numbers of an address of IPv4, which may be octal and hexadecimal; the last one stands
// for all bytes that are left.
func ipv4Of(parts []string) (string, error) {
	if len(parts) > 4 {
		return "", errNoIPv4
	}
	var whole uint64
	for i, part := range parts {
		n, err := number(part)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (4 - i)
		}
		if err != nil || n >= 1<<bits {
			return "", errNoIPv4
		}
		whole = whole<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(whole >> 24), byte(whole >> 16), byte(whole >> 8), byte(whole)}).String(), nil
}

// isNumber tells the last part of a host that makes browsers read all of it as an address.
func isNumber(part string) bool {
	if part != "" && strings.Trim(part, "0123456789") == "" {
		return true
	}
	_, err := number(part)
	return err == nil
}

// number reads a number as browsers do: 0x is hexadecimal, and 0 octal.
func number(part string) (uint64, error) {
	digits, base := part, 10
	if hex, ok := strings.CutPrefix(strings.ToLower(part), "0x"); ok {
		digits, base = cmp.Or(hex, "0"), 16
	} else if len(part) > 1 && part[0] == '0' {
		base = 8
	}
	return strconv.ParseUint(digits, base, 64)
}
