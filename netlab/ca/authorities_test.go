package ca

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/unicode"

	"eidetic/internal/rigs/testlab"
)

// authority is a certificate in DER.
func authority(t testing.TB, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// TestAuthorities: certificates are read as programs export them, and other files are named.
func TestAuthorities(t *testing.T) {
	one, two := authority(t, "one"), authority(t, "two")
	first, second := inPEM("CERTIFICATE", one), inPEM("CERTIFICATE", two)
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(first + second)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"PEM": first + second, "text between": "Subject: one\n" + first + "\nSubject: two\r\n" + strings.ReplaceAll(second, "\n", "\r\n"),
		"a mark": "\ufeff" + first + second, "UTF-16": wide, "DER": string(one) + string(two), "a key beside it": first + inPEM("PRIVATE KEY", []byte("x")) + second,
		"indented": "    " + strings.ReplaceAll(first+second, "\n", "\n    "), "old name": inPEM("X509 CERTIFICATE", one) + second,
		"OpenSSL's":                   inPEM("TRUSTED CERTIFICATE", append(bytes.Clone(one), 0x30, 0x02, 0x05, 0x00)) + second,
		"another that cannot be read": first + inPEM("CERTIFICATE", one[:50]) + second,
	} {
		got, err := Authorities([]byte(text))
		if err != nil || got != first+second {
			t.Errorf("%s: %q, %v; want both certificates in PEM", name, got, err)
		}
	}
	for want, text := range map[string]string{
		"no certificate in PEM or DER form": "hello", "cannot be read": inPEM("CERTIFICATE", one[:50]), `but "PRIVATE KEY"`: inPEM("PRIVATE KEY", []byte("x")),
		"pkcs7 -print_certs": inPEM("PKCS7", []byte("x")), "pkcs7 -inform der": "\x30\x80\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02",
		"pkcs12": "\x30\x80\x02\x01\x03\x30\x80\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01", "keytool": "\xfe\xed\xfe\xed\x00\x00\x00\x02",
	} {
		if _, err := Authorities([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Authorities(%.20q) = %v; want an error with %q", text, err, want)
		}
	}
}

func FuzzAuthorities(f *testing.F) {
	one := authority(f, "one")
	f.Add(one)
	f.Add([]byte(inPEM("TRUSTED CERTIFICATE", append(bytes.Clone(one), 0x30, 0x02, 0x05, 0x00))))
	f.Add([]byte("\xff\xfe-\x00-\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer testlab.Input(t)()
		found, err := Authorities(text)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM([]byte(found)) {
			t.Errorf("Authorities(%q) = %q; want certificates", text, found)
		}
	})
}
