package samplesite

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Authority is the certificate authority of the origins: a P-256 root and one leaf for each
// address (RFC 5280). It exists only in memory.
type Authority struct {
	root   []byte // DER
	key    *ecdsa.PrivateKey
	leaves map[string]*tls.Certificate // by host; never written after NewAuthority
}

// NewAuthority makes a root and the leaves for Hosts, valid from a day before now for 90 days.
func NewAuthority(now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		return nil, fmt.Errorf("origin authority: make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "Sample site origin root"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(90 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, err := x509.CreateCertificate(crand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("origin authority: sign the root: %w", err)
	}
	a := &Authority{root: root, key: key, leaves: map[string]*tls.Certificate{}}
	// WWW and API share a certificate and an address, which lets h2 connections coalesce (RFC 9113 §9.1.1).
	for _, names := range [][]string{{WWW, API}, {CDN}, {Ads}} {
		leaf, err := a.leaf(template, names)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			a.leaves[n] = leaf
		}
	}
	return a, nil
}

func (a *Authority) leaf(root *x509.Certificate, names []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: make a key: %w", names[0], err)
	}
	serial, err := crand.Int(crand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: draw a serial number: %w", names[0], err)
	}
	der, err := x509.CreateCertificate(crand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, root, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", names[0], err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.root}, PrivateKey: key}, nil
}

// Certificate answers a handshake by its server name; it fits tls.Config.GetCertificate.
func (a *Authority) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if leaf := a.leaves[strings.ToLower(hello.ServerName)]; leaf != nil {
		return leaf, nil
	}
	return nil, fmt.Errorf("no certificate for %q: this site is %s, %s, %s and %s", hello.ServerName, WWW, API, CDN, Ads)
}

// RootPEM is the root certificate for a client's pool.
func (a *Authority) RootPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root})
}
