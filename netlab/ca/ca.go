// Package ca is the box's certificate authority. In go a folder (or nothing)
// and host names, out come leaf certificates that a device accepts once it
// trusts the authority. Keys are ECDSA P-256; certificates follow RFC 5280 and
// the CA/Browser Forum's rules that browsers enforce (SAN, lifetime ≤ 398 days).
//
// Whoever has the key can be any server to the devices that trust the authority, so
// it is for servers of TLS alone (extended key usage), lives two years, and Notice
// says in time that devices need the next one. It has no name constraints (RFC 5280,
// 4.2.1.10): they would have to name all that may ever be recorded.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/base/atomicfile"
)

const (
	// CertFile and KeyFile are the names in the authority's folder.
	CertFile = "ca.crt"
	KeyFile  = "ca.key"
	// oldFile and oldKeyFile are of the authority that ended before this one.
	oldFile    = "ca.old.crt"
	oldKeyFile = "ca.old.key"
	// lifetime of the authority. Devices are set up by hand, so it is long.
	lifetime = 2 * 365 * 24 * time.Hour
	// noticeTime is how long before an authority is replaced Notice says so, and how
	// long after it.
	noticeTime = 60 * 24 * time.Hour
	// renewBefore is how long before its end an authority is replaced, so that no
	// leaf outlives it.
	renewBefore = leafLifetime
	// backdate makes certificates valid on devices whose clock is slow.
	backdate = 48 * time.Hour
)

// Authority signs leaves. Its methods may be called from any goroutine.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  func() time.Time
	// follows is set if another authority ended before.
	follows bool
	leaves
}

// New makes an authority that is kept only in memory.
func New(now func() time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	t := now()
	template := &x509.Certificate{
		SerialNumber: serial,
		// The serial number makes the name unique, so that a trust store can
		// distinguish the authorities of two boxes.
		Subject: pkix.Name{
			CommonName:   "Eidetic box " + hex.EncodeToString(serial.Bytes()[:4]),
			Organization: []string{"Eidetic"},
		},
		NotBefore:             t.Add(-backdate),
		NotAfter:              t.Add(lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse the new authority: %w", err)
	}
	return assemble(cert, key, now)
}

func assemble(cert *x509.Certificate, key *ecdsa.PrivateKey, now func() time.Time) (*Authority, error) {
	a := &Authority{cert: cert, key: key, now: now}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the leaves' key: %w", err)
	}
	a.leafKey = leafKey
	a.byHost = map[string]*entry{}
	return a, nil
}

// LoadOrCreate reads the authority from dir, or makes one there. An authority that
// ends within a leaf's lifetime is replaced. If that was at a start whose clock was ahead, the
// one before it, which devices trust, is taken back. The key file has mode 0600; a key that
// other users can read is an error.
func LoadOrCreate(dir string, now func() time.Time) (*Authority, error) {
	a, err := load(dir, CertFile, KeyFile, now)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if a == nil || a.isOfTheFuture() {
		if old, err := load(dir, oldFile, oldKeyFile, now); err == nil && !old.isOfTheFuture() {
			return old, old.takeBack(dir)
		}
	}
	if a != nil {
		_, old := os.Lstat(filepath.Join(dir, oldFile))
		a.follows = old == nil
		return a, nil
	}
	if a, err = New(now); err != nil {
		return nil, err
	}
	for _, f := range [][2]string{{CertFile, oldFile}, {KeyFile, oldKeyFile}} {
		switch err := os.Rename(filepath.Join(dir, f[0]), filepath.Join(dir, f[1])); {
		case err == nil:
			a.follows = true
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("keep the authority that has ended: %w", err)
		}
	}
	if err := a.save(dir); err != nil {
		return nil, fmt.Errorf("save the authority: %w", err)
	}
	return a, nil
}

// isOfTheFuture says that this authority was made by a clock that was ahead of the present one.
func (a *Authority) isOfTheFuture() bool { return a.now().Before(a.cert.NotBefore) }

// takeBack makes an authority that was replaced the one of dir again. Without a key in its place, after a crash, it is
// done again.
func (a *Authority) takeBack(dir string) error {
	if err := os.Remove(filepath.Join(dir, KeyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("take the authority back that a wrong clock replaced: %w", err)
	}
	if err := a.save(dir); err != nil {
		return fmt.Errorf("take the authority back that a wrong clock replaced: %w", err)
	}
	return errors.Join(os.Remove(filepath.Join(dir, oldKeyFile)), os.Remove(filepath.Join(dir, oldFile)))
}

// Notice says what the people of the devices have to do about the certificate, or "".
func (a *Authority) Notice() string {
	now, made, end := a.now(), a.cert.NotBefore.Add(backdate), a.cert.NotAfter
	const what = "open http://box.test/ on each device, remove the old certificate and install the new one"
	switch {
	case a.isOfTheFuture():
		return "the clock says " + now.Format(time.DateOnly) + ", and the certificate that devices trust was made on " +
			made.Format(time.DateOnly) + ": one of the two clocks was wrong. Set this one, and restart the service, which takes back " +
			"the certificate that a wrong clock replaced; if there was none, open http://box.test/ on each device once the clock is right"
	case !now.Before(end.Add(-renewBefore)):
		return "the certificate that devices trust ends on " + end.Format(time.DateOnly) + ": restart the service, which makes a new one; then " + what
	case !now.Before(end.Add(-renewBefore - noticeTime)):
		return "the certificate that devices trust is replaced at the first start after " + end.Add(-renewBefore).Format(time.DateOnly) +
			": then " + what
	case end.Sub(made) > lifetime:
		return "the certificate that devices trust is of an earlier version, and good until " + end.Format(time.DateOnly) +
			": to have one for two years, move the folder ca of the data folder away and restart the service; then " + what
	case a.follows && now.Before(made.Add(noticeTime)):
		return "the certificate that devices trust has ended, and there is a new one since " + made.Format(time.DateOnly) + ": " + what
	}
	return ""
}

func load(dir, certFile, keyFile string, now func() time.Time) (*Authority, error) {
	keyPath, certPath := filepath.Join(dir, keyFile), filepath.Join(dir, certFile)
	info, err := os.Stat(keyPath)
	if err != nil {
		return nil, fmt.Errorf("load the authority: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("load the authority: other users can read %s (mode %04o); run: chmod 600 %s", keyPath,
			info.Mode().Perm(), keyPath)
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, fmt.Errorf("load the authority: %w", err)
	}
	certPEM, err := os.ReadFile(certPath)
	if err != nil {
		return nil, fmt.Errorf("load the authority: %w", err)
	}
	bad := func(path string, err error) error {
		return fmt.Errorf("load the authority: %s is no authority that this program made (%w); move it away to get a new one", path, err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, bad(certPath, err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, bad(certPath, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !cert.IsCA {
		return nil, bad(certPath, errors.New("not an ECDSA authority"))
	}
	if now().After(cert.NotAfter.Add(-renewBefore)) {
		return nil, fmt.Errorf("load the authority: it ends on %s: %w", cert.NotAfter.Format(time.DateOnly), fs.ErrNotExist)
	}
	return assemble(cert, key, now)
}

// save writes the certificate and the key, each as a whole or not at all.
func (a *Authority) save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return err
	}
	// The certificate comes first. load starts with the key, so that after a crash
	// between the two there is no authority, instead of a broken one.
	if err := atomicfile.WriteFile(filepath.Join(dir, CertFile), a.PEM(), 0o644); err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, KeyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// Certificate returns the authority's certificate; do not change it.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// DER returns the certificate in the form that Android's settings import (.crt).
func (a *Authority) DER() []byte { return a.cert.Raw }

// PEM returns the certificate in the form that most programs import.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Pool returns a pool with this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Fingerprint returns the SHA-256 of the certificate in hexadecimal, as
// settings show it.
func (a *Authority) Fingerprint() string {
	sum := sha256.Sum256(a.cert.Raw)
	return hex.EncodeToString(sum[:])
}

// SPKI returns the base64 SHA-256 of the public key, as Chromium's
// --ignore-certificate-errors-spki-list and RFC 7469 write it.
func (a *Authority) SPKI() string {
	sum := sha256.Sum256(a.cert.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func serialNumber() (*big.Int, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	b[0] = b[0]&0x7f | 0x40 // positive and of full length
	return new(big.Int).SetBytes(b), nil
}
