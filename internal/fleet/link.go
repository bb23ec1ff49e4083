package fleet

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

const (
	// ServerName is the name that a box asks for in TLS (SNI, RFC 6066). By it the head's listener knows a box from a
	// browser, and asks for its certificate.
	ServerName = "boxes.eidetic.internal"
	// LeaseHeader is the header with the lease's token in all calls about a part.
	LeaseHeader = "Fleet-Lease"
	// LostProblem is the type of the problem (RFC 9457) that says that a lease is lost.
	LostProblem = "/problems/lease-lost"
)

// Link is what a head prints for a box that is to join: where the head is, the code that it takes once, and by what the
// box knows the head.
type Link struct {
	Host string // and port
	Code string
	Pin  string // SHA-256 of the head's certificate in hexadecimal
}

// linkScheme begins every join link.
const linkScheme = "eidetic-head"

// maxLink bounds a link.
const maxLink = 1000

var (
	joinCode = regexp.MustCompile(`^[A-Za-z0-9_-]{16,200}$`)                                    // constant
	hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9-]+)*$`) // constant
)

// String is the link as one text: eidetic-head://HOST:PORT/CODE?pin=SHA256.
func (l Link) String() string {
	return linkScheme + "://" + l.Host + "/" + l.Code + "?pin=" + l.Pin
}

// ParseLink reads a join link. It accepts what [Link.String] writes, and white space around it. Its errors do not show
// the code, which is a secret.
func ParseLink(text string) (Link, error) {
	text = strings.TrimSpace(text)
	wrong := func(format string, args ...any) (Link, error) {
		return Link{}, fmt.Errorf("the join link: %w; copy the whole text that the head shows: %s://HOST:PORT/CODE?pin=SHA256",
			fmt.Errorf(format, args...), linkScheme)
	}
	if len(text) > maxLink {
		return wrong("it has more than %d characters", maxLink)
	}
	u, err := url.Parse(text)
	if err != nil {
		return wrong("it is no URL")
	}
	if u.Scheme != linkScheme {
		return wrong("it does not begin with %s://", linkScheme)
	}
	if u.User != nil || u.Fragment != "" {
		return wrong("it has a user or a fragment")
	}
	if err := CheckHost(u.Host); err != nil {
		return wrong("%w", err)
	}
	l := Link{Host: u.Host, Code: strings.TrimPrefix(u.Path, "/")}
	if !joinCode.MatchString(l.Code) {
		return wrong("its code is missing or cut off")
	}
	var ok bool
	if l.Pin, ok = strings.CutPrefix(u.RawQuery, "pin="); !ok || !digest.MatchString(l.Pin) {
		return wrong("pin= is not followed by 64 hexadecimal digits")
	}
	if l.String() != text {
		return wrong("it has parts that no link has")
	}
	return l, nil
}

// CheckHost returns an error for what is not host:port with a name or an address.
func CheckHost(hostPort string) error {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return errors.New("it has no HOST:PORT")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%.10q is no port", port)
	}
	if net.ParseIP(host) == nil && (len(host) > 253 || !hostName.MatchString(host)) {
		return fmt.Errorf("%.100q is neither a host's name nor an address", host)
	}
	return nil
}

// IsDigest says whether a text is a SHA-256 in small hexadecimal digits.
func IsDigest(text string) bool { return digest.MatchString(text) }
