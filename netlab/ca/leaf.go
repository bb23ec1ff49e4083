package ca

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/idna"
)

const (
	// leafLifetime is short, since leaves are made again when they are needed.
	leafLifetime = 14 * 24 * time.Hour
	// reissueBefore is how long a leaf must still be valid when Leaf returns it.
	reissueBefore = 24 * time.Hour
	// maxLeaves bounds the cache against a device that invents names.
	maxLeaves = 10_000
)

// leaves is the cache of leaves. They share one key, because making a key is slow,
// and a device does not notice.
type leaves struct {
	leafKey *ecdsa.PrivateKey
	mu      sync.Mutex
	byHost  map[string]*entry
	issued  int
}

// entry is one leaf. ready is closed when cert or err is set, so that of many
// handshakes for a new name only one signs.
type entry struct {
	ready chan struct{}
	cert  *tls.Certificate
	err   error
	until time.Time
}

// Leaf returns the certificate for a host name or an IP address, and for more of them, from the cache
// when it is valid for another day.
func (a *Authority) Leaf(host string, more ...string) (*tls.Certificate, error) {
	name, err := canonical(host)
	if err != nil {
		return nil, err
	}
	names := []string{name}
	for _, m := range more {
		if n, err := canonical(m); err == nil { // else no certificate can have it
			names = append(names, n)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	key := strings.Join(names, " ")
	now := a.now()
	a.mu.Lock()
	e := a.byHost[key]
	if e == nil || now.After(e.until) {
		if len(a.byHost) >= maxLeaves {
			clear(a.byHost)
		}
		e = &entry{ready: make(chan struct{}), until: now.Add(leafLifetime - reissueBefore)}
		a.byHost[key] = e
		a.issued++
		a.mu.Unlock()
		e.cert, e.err = a.issue(names, now)
		close(e.ready)
		return e.cert, e.err
	}
	a.mu.Unlock()
	<-e.ready
	return e.cert, e.err
}

// GetCertificate is for tls.Config. A client without SNI gets a leaf for the address
// that it connected to.
func (a *Authority) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := hello.ServerName
	if host == "" {
		ap, err := netip.ParseAddrPort(hello.Conn.LocalAddr().String())
		if err != nil {
			return nil, fmt.Errorf("the client names no server and the connection has no address: %w", err)
		}
		host = ap.Addr().Unmap().String()
	}
	return a.Leaf(host)
}

// Issued returns how many leaves were signed.
func (a *Authority) Issued() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.issued
}

func (a *Authority) issue(names []string, now time.Time) (*tls.Certificate, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(leafLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	// A common name has at most 64 bytes; clients check only the SAN.
	if len(names[0]) <= 64 {
		template.Subject = pkix.Name{CommonName: names[0]}
	}
	for _, name := range names {
		ip, err := netip.ParseAddr(name)
		switch {
		case err != nil:
			template.DNSNames = append(template.DNSNames, name)
		case ip.IsLoopback(): // without SNI it is unknown which of them the URL names
			template.IPAddresses = append(template.IPAddresses, net.IPv4(127, 0, 0, 1), net.IPv6loopback)
		default:
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.leafKey.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign a leaf for %q: %w", names, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse the leaf for %q: %w", names, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leafKey, Leaf: leaf}, nil
}

// canonical returns one form for all spellings of a host, or an error when the host
// cannot be in a certificate.
func canonical(host string) (string, error) {
	h := strings.TrimSuffix(strings.ToLower(host), ".")
	if ip, err := netip.ParseAddr(strings.Trim(h, "[]")); err == nil {
		return ip.Unmap().WithZone("").String(), nil
	}
	h, err := idna.Punycode.ToASCII(h)
	if err == nil && (h == "" || len(h) > 253 || strings.Trim(h, "abcdefghijklmnopqrstuvwxyz0123456789-._") != "") {
		err = errors.New("a name has up to 253 letters, digits, dots and hyphens")
	}
	if err == nil {
		for label := range strings.SplitSeq(h, ".") {
			if label == "" || len(label) > 63 {
				err = errors.New("each part of a name has 1 to 63 characters")
			}
		}
	}
	if err != nil {
		return "", fmt.Errorf("no certificate for host %.100q: %w", host, err)
	}
	return h, nil
}
