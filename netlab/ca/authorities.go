package ca

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// mostAuthorities bounds a file of authorities; systems have some 150.
const mostAuthorities = 10_000

// maxAuthorities bounds a file of certificates; Debian's own bundle has a quarter of this size.
const maxAuthorities = 1 << 20

// ReadAuthorities is [Authorities] of a plain file: a device or a pipe would never end.
func ReadAuthorities(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxAuthorities {
		return "", fmt.Errorf("%.100q is not a plain file of at most %d bytes", file, maxAuthorities)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	found, err := Authorities(text)
	if err != nil {
		return "", fmt.Errorf("%.100q: %w", file, err)
	}
	return found, nil
}

// Authorities reads certificates as people are given them and returns them in PEM: PEM, also of OpenSSL's own kind, with
// other text or keys around it, or DER, as browsers, Windows and proxies export one. A certificate among others that
// cannot be read is left out, as it is of a system's own. The error says what a file is that has none.
func Authorities(text []byte) (string, error) {
	if plain, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), text); err == nil {
		text = plain // of Windows' editors and shells
	}
	var found []*x509.Certificate
	var kinds []string // of other blocks
	var wrong error
	if list, err := x509.ParseCertificates(text); err == nil {
		found = list
	}
	for rest := unindented(text); len(found) < mostAuthorities; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		der := block.Bytes
		switch block.Type {
		case "CERTIFICATE", "X509 CERTIFICATE":
		case "TRUSTED CERTIFICATE": // what OpenSSL trusts it for follows
			der = firstElement(der)
		default:
			kinds = append(kinds, block.Type)
			continue
		}
		one, err := x509.ParseCertificate(der)
		if err != nil {
			wrong = err
			continue
		}
		found = append(found, one)
	}
	if len(found) == 0 {
		return "", noAuthority(text, kinds, wrong)
	}
	var out bytes.Buffer
	for _, one := range found {
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: one.Raw}); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// unindented is a text without the blanks before its lines, where PEM was copied from another file.
func unindented(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		out.Write(bytes.TrimLeft(line, " \t"))
	}
	return out.Bytes()
}

// firstElement is the first element of a text in DER.
func firstElement(der []byte) []byte {
	if len(der) < 4 || der[0] != 0x30 {
		return der
	}
	size, head := int(der[1]), 2
	if n := size & 0x7f; size > 0x80 && n <= 3 && len(der) >= 2+n {
		size, head = 0, 2+n
		for _, b := range der[2:head] {
			size = size<<8 | int(b)
		}
	}
	return der[:min(head+size, len(der))]
}

// noAuthority is the error for a file without a certificate that can be read.
func noAuthority(text []byte, kinds []string, wrong error) error {
	has := func(der string) bool {
		return len(text) > 0 && text[0] == 0x30 && bytes.Contains(text[:min(len(text), 64)], []byte(der))
	}
	switch {
	case wrong != nil:
		return fmt.Errorf("its certificate cannot be read (%w)", wrong)
	case len(kinds) > 0 && strings.Contains(kinds[0], "PKCS7"):
		return errors.New("it is PKCS #7: openssl pkcs7 -print_certs -in FILE -out certificates.pem makes PEM of it")
	case len(kinds) > 0:
		return fmt.Errorf("it holds no certificate, but %q", kinds[0])
	case has("\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"):
		return errors.New("it is PKCS #7: openssl pkcs7 -inform der -print_certs -in FILE -out certificates.pem makes PEM of it")
	case has("\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01"), has("\x02\x01\x03\x30"):
		return errors.New("it is PKCS #12: openssl pkcs12 -nokeys -in FILE -out certificates.pem makes PEM of it")
	case bytes.HasPrefix(text, []byte("\xfe\xed\xfe\xed")):
		return errors.New("it is a keystore of Java: keytool -exportcert -rfc -alias NAME -keystore FILE makes PEM of a certificate")
	}
	return errors.New("it holds no certificate in PEM or DER form")
}
