package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// OriginTLS is how an origin is spoken to with TLS: as browsers do it in 2026, where that is more than Go does by itself.
type OriginTLS struct {
	Host      string         // without a port
	Roots     *x509.CertPool // nil means the system's
	Protocols []string       // for ALPN
	// Any leaves the certificate unverified.
	Any bool
	// Dial connects to where a certificate says that its issuer's is.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Config makes the settings of one connection. The certificate is verified here and not by crypto/tls, because many
// servers forget to send the certificate between theirs and the authority's, which browsers then fetch (RFC 5280,
// 4.2.2.1).
func (o OriginTLS) Config() *tls.Config {
	c := &tls.Config{
		ServerName: o.Host, NextProtos: o.Protocols, MinVersion: tls.VersionTLS12, CipherSuites: cipherSuites(),
		InsecureSkipVerify: true, // verify does it, unless the user asked for none, which the report tells
		// Servers that ask for a visitor's certificate at some of their addresses alone begin another handshake there
		// (TLS 1.2). Browsers take part in it, with a certificate or without.
		Renegotiation: tls.RenegotiateFreelyAsClient,
	}
	if !o.Any {
		c.VerifyConnection = o.verify
	}
	return c
}

// errNoCertificate says why an origin refuses us.
var errNoCertificate = errors.New("the origin asks its visitors for a certificate, and the box has none") // constant

// Handshake speaks TLS with an origin on a connection, which is closed after an error. A server of TLS 1.2 that wants a
// visitor's certificate refuses the handshake with an alert that does not say so.
func (o OriginTLS) Handshake(ctx context.Context, raw net.Conn) (*tls.Conn, error) {
	config, isAsked := o.Config(), false
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		isAsked = true
		return new(tls.Certificate), nil
	}
	c := tls.Client(raw, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		if isAsked && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", err, errNoCertificate)
		}
		return nil, err
	}
	return c, nil
}

// cipherSuites are Go's, and those of TLS 1.2 without forward secrecy, which browsers still take and Go offers only when
// asked.
func cipherSuites() []uint16 {
	var list []uint16
	for _, s := range tls.CipherSuites() {
		list = append(list, s.ID)
	}
	return append(list, tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA)
}

// verify verifies what a server has sent.
func (o OriginTLS) verify(state tls.ConnectionState) error {
	sent := state.PeerCertificates
	if len(sent) == 0 {
		return errors.New("tls: the server has sent no certificate")
	}
	chain := x509.VerifyOptions{Roots: o.Roots, DNSName: o.Host, Intermediates: x509.NewCertPool()}
	for _, c := range sent[1:] {
		chain.Intermediates.AddCert(c)
	}
	_, err := sent[0].Verify(chain)
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) && o.complete(sent[len(sent)-1], chain) {
		_, err = sent[0].Verify(chain)
	}
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: sent, Err: err}
	}
	return nil
}

// Bounds on fetching issuers.
const (
	issuersTime = 5 * time.Second
	mostIssuers = 3
	issuerBytes = 64 << 10
)

// complete adds the issuers above a certificate that no pool has, and tells whether there is one.
func (o OriginTLS) complete(c *x509.Certificate, chain x509.VerifyOptions) (found bool) {
	if o.Dial == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), issuersTime)
	defer cancel()
	for range mostIssuers {
		if bytes.Equal(c.RawIssuer, c.RawSubject) {
			return found
		}
		issuer, err := o.issuer(ctx, c)
		if err != nil { // the verification says which authority is not known
			return found
		}
		chain.Intermediates.AddCert(issuer)
		c, found = issuer, true
	}
	return found
}

// issuer fetches the certificate with which another is signed, from where that says. It needs no trust: it is verified
// with the chain.
func (o OriginTLS) issuer(ctx context.Context, c *x509.Certificate) (*x509.Certificate, error) {
	fetch := &http.Client{Transport: &http.Transport{DialContext: o.Dial, DisableKeepAlives: true}}
	err := errors.New("the certificate does not say where its issuer's is")
	for _, url := range c.IssuingCertificateURL {
		var issuer *x509.Certificate
		if issuer, err = issuerAt(ctx, fetch, url); err == nil {
			err = c.CheckSignatureFrom(issuer)
		}
		if err == nil {
			return issuer, nil
		}
	}
	return nil, err
}

func issuerAt(ctx context.Context, fetch *http.Client, url string) (*x509.Certificate, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if r.URL.Scheme != "http" { // else the fetch needs a certificate itself
		return nil, fmt.Errorf("the issuer's certificate at %s is not fetched", url)
	}
	resp, err := fetch.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	der, err := io.ReadAll(io.LimitReader(resp.Body, issuerBytes))
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(der); block != nil {
		der = block.Bytes
	}
	return x509.ParseCertificate(der)
}
