// Package pin makes the panel's certificate and its fingerprint, by which a client knows the
// box again.
//
// In go a folder; out comes a self-signed certificate for TLS (RFC 5280, ECDSA P-256), which
// is made once and kept. Nobody vouches for it: a person compares its fingerprint (the
// SHA-256 of the certificate, as browsers show it) with the box's screen, and a program
// remembers it, as ssh remembers the key of a host. It is not the authority that devices
// trust: a device that trusts the box's recordings must not vouch for the panel.
package pin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/base/atomicfile"
)

const (
	certFile, keyFile       = "panel.crt", "panel.key"
	boxCertFile, boxKeyFile = "box.crt", "box.key"
	// lifetime is long, because every change of the certificate alarms every client.
	lifetime = 10 * 365 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is replaced.
	renewBefore = 30 * 24 * time.Hour
	// backdate makes the certificate valid for clients whose clock is slow, and on a box
	// that was made before its clock was set.
	backdate = 48 * time.Hour
)

// LoadOrCreate returns the certificate in the folder, or makes one there for the names. Of a
// folder that cannot be written the certificate lasts as long as the process; err then says
// so, and the certificate can be used all the same. One that is damaged is replaced.
func LoadOrCreate(dir string, names []string, now func() time.Time) (cert *tls.Certificate, err error) {
	cert, err = load(dir, now)
	if err == nil {
		return cert, nil
	}
	var why error
	if !errors.Is(err, fs.ErrNotExist) {
		why = fmt.Errorf("the panel's certificate is made anew, and clients will ask why it changed: %w", err)
	}
	cert, certPEM, keyPEM, err := create("Eidetic panel", x509.ExtKeyUsageServerAuth, names, now())
	if err != nil {
		return nil, err
	}
	if err := save(dir, certFile, certPEM, keyFile, keyPEM); err != nil {
		why = errors.Join(why, fmt.Errorf("the panel's certificate lasts until the next start: %w", err))
	}
	return cert, why
}

// LoadBox returns the certificate by which the head of a fleet knows this box again. It is in files of its own, and is
// never replaced: another one would be a stranger's.
func LoadBox(dir string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, boxCertFile), filepath.Join(dir, boxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("the box's certificate for the fleet: %w", err)
	}
	return &pair, nil
}

// LoadOrCreateBox is [LoadBox], and makes the certificate where there is none.
func LoadOrCreateBox(dir string, now func() time.Time) (*tls.Certificate, error) {
	cert, err := LoadBox(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return cert, err
	}
	cert, certPEM, keyPEM, err := create("Eidetic box", x509.ExtKeyUsageClientAuth, nil, now())
	if err != nil {
		return nil, err
	}
	return cert, save(dir, boxCertFile, certPEM, boxKeyFile, keyPEM)
}

func load(dir string, now func() time.Time) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	if now().After(pair.Leaf.NotAfter.Add(-renewBefore)) {
		return nil, fmt.Errorf("it ends on %s", pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	return &pair, nil
}

// create makes a certificate for one use, and its files.
func create(subject string, usage x509.ExtKeyUsage, names []string, now time.Time) (
	cert *tls.Certificate, certPEM, keyPEM []byte, err error,
) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a key: %w", err)
	}
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // crypto/rand never returns an error
	serial[0] = serial[0]&0x7f | 0x40
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		Subject:      pkix.Name{CommonName: subject, Organization: []string{"Eidetic"}},
		NotBefore:    now.Add(-backdate), NotAfter: now.Add(lifetime),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		DNSNames:    append([]string{"localhost"}, names...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// save writes the key last: a power cut between the two leaves a pair that does not fit,
// which the next start replaces.
func save(dir, certFile string, certPEM []byte, keyFile string, keyPEM []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, certFile), certPEM, 0o644); err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, keyFile), keyPEM, 0o600)
}

// Of returns the fingerprint of a certificate: its SHA-256 in small hexadecimal digits.
func Of(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// Parse reads a fingerprint as a person copied it: with or without colons, spaces, "SHA256:"
// and capitals.
func Parse(text string) (string, error) {
	low := strings.ToLower(strings.TrimSpace(text))
	for _, prefix := range []string{"sha256 fingerprint=", "sha-256:", "sha256:", "sha256"} {
		low = strings.TrimPrefix(low, prefix)
	}
	low = strings.Map(func(r rune) rune {
		if strings.ContainsRune(": \t\n", r) {
			return -1
		}
		return r
	}, low)
	if raw, err := hex.DecodeString(low); err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("%.100q is not the SHA-256 of a certificate: it has 64 hexadecimal digits, as the box's screen shows them", text)
	}
	return low, nil
}

// Text is a fingerprint for people: two lines of 16 bytes with colons between, in capitals,
// as browsers and openssl show it.
func Text(fingerprint string) (first, second string) {
	var parts []string
	for i := 0; i+2 <= len(fingerprint); i += 2 {
		parts = append(parts, strings.ToUpper(fingerprint[i:i+2]))
	}
	half := min(16, len(parts))
	return strings.Join(parts[:half], ":"), strings.Join(parts[half:], ":")
}
