package ca

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func fixed(t time.Time) func() time.Time { return func() time.Time { return t } }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newAuthority(t testing.TB, now func() time.Time) *Authority {
	t.Helper()
	a, err := New(now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestLoadOrCreateKeepsTheAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	first, err := LoadOrCreate(dir, fixed(noon))
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadOrCreate(dir, fixed(noon.Add(24*time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	if first.Fingerprint() != second.Fingerprint() {
		t.Error("the second start made a new authority, want the first one")
	}
	info, err := os.Stat(filepath.Join(dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %o, want 600", info.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %d files (%v), want only the certificate and the key", len(entries), err)
	}
	late, err := LoadOrCreate(dir, fixed(noon.Add(lifetime-time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	if late.Fingerprint() == first.Fingerprint() {
		t.Error("an authority in its last hour was loaded, want a new one: leaves would outlive it")
	}
}

func TestLoadRefuses(t *testing.T) {
	write := func(name, content string, mode fs.FileMode) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		says  string
	}{
		{"a key that others can read", func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, KeyFile), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "chmod 600"},
		{"a broken key", write(KeyFile, "nonsense", 0o600), "move it away"},
		{"a broken certificate", write(CertFile, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", 0o644), "move it away"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := LoadOrCreate(dir, fixed(noon)); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, dir)
			_, err := LoadOrCreate(dir, fixed(noon))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("LoadOrCreate() = %v, want an error that says %q", err, c.says)
			}
		})
	}
}

func TestLeafVerifies(t *testing.T) {
	a := newAuthority(t, fixed(noon))
	for host, name := range map[string]string{
		"www.example.com":  "www.example.com",
		"WWW.Example.COM.": "www.example.com",
		"bücher.example":   "xn--bcher-kva.example",
		"192.0.2.7":        "192.0.2.7",
		"[2001:db8::1]":    "2001:db8::1",
		"a_b.example":      "a_b.example",
		strings.Repeat("a", 63) + "." + strings.Repeat("b", 60) + ".example": strings.Repeat("a",
			63) + "." + strings.Repeat("b", 60) + ".example",
	} {
		cert, err := a.Leaf(host)
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: name, CurrentTime: noon}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if d := cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore); d > 398*24*time.Hour {
			t.Errorf("%s: lifetime %v is more than browsers accept", host, d)
		}
	}
}

func TestLeafRefuses(t *testing.T) {
	a := newAuthority(t, fixed(noon))
	for _, host := range []string{"", ".", "a..b", "a b", "*.example.com", "x\x00y", strings.Repeat("a",
		64) + ".example", strings.Repeat("a.", 200)} {
		if _, err := a.Leaf(host); err == nil {
			t.Errorf("Leaf(%q) = nil, want an error", host)
		}
	}
}

func TestLeafIsSignedOnceAndAgainWhenItEnds(t *testing.T) {
	now, mu := noon, sync.Mutex{}
	a := newAuthority(t, func() time.Time { mu.Lock(); defer mu.Unlock(); return now })
	var all sync.WaitGroup
	certs := make([]*tls.Certificate, 50)
	for i := range certs {
		all.Go(func() { certs[i], _ = a.Leaf("www.example.com") })
	}
	all.Wait()
	for _, c := range certs {
		if c == nil || c != certs[0] {
			t.Fatal("simultaneous handshakes got different leaves, want one")
		}
	}
	if a.Issued() != 1 {
		t.Errorf("%d leaves were signed, want 1", a.Issued())
	}
	mu.Lock()
	now = noon.Add(leafLifetime)
	mu.Unlock()
	c, err := a.Leaf("www.example.com")
	if err != nil || c == certs[0] || c.Leaf.NotAfter.Before(now) {
		t.Errorf("Leaf() returned an expired leaf (%v), want a new one", err)
	}
}

func TestGetCertificateServesAddressesWithoutSNI(t *testing.T) {
	a := newAuthority(t, time.Now)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: a.GetCertificate})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = c.Read(make([]byte, 1)); c.Close() }()
		}
	}()
	for _, name := range []string{"127.0.0.1", "shop.example"} { // crypto/tls sends no SNI for addresses
		raw, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := tls.Client(raw, &tls.Config{RootCAs: a.Pool(), ServerName: name})
		if err := c.Handshake(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		raw.Close()
	}
}

func TestMobileConfigIsXML(t *testing.T) {
	a := newAuthority(t, fixed(noon))
	d := xml.NewDecoder(bytes.NewReader(a.MobileConfig()))
	d.Strict = true
	for {
		if _, err := d.Token(); err != nil {
			if err.Error() != "EOF" {
				t.Fatal(err)
			}
			break
		}
	}
	if !bytes.Equal(a.MobileConfig(), a.MobileConfig()) {
		t.Error("two profiles differ, want one, which a device replaces")
	}
}

func FuzzLeaf(f *testing.F) {
	for _, s := range []string{"www.example.com", "", "xn--a", "1.2.3.4", "::1", "bücher", "a\x00b", "\xff"} {
		f.Add(s)
	}
	a := newAuthority(f, fixed(noon))
	f.Fuzz(func(t *testing.T, host string) {
		cert, err := a.Leaf(host)
		if (cert == nil) == (err == nil) {
			t.Errorf("Leaf(%q) = %v, %v; want either a certificate or an error", host, cert, err)
		}
	})
}

// BenchmarkLeaf signs a leaf for a new name each time; goal: 0.15 ms.
func BenchmarkLeaf(b *testing.B) {
	a := newAuthority(b, time.Now)
	now := time.Now()
	for b.Loop() {
		if _, err := a.issue("www.example.com", now); err != nil {
			b.Fatal(err)
		}
	}
}
