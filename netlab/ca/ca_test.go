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

	"eidetic/internal/rigs/testlab"
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

// An authority is for servers alone and lives for two years; people are told before it is replaced, and after.
func TestAuthorityEnds(t *testing.T) {
	now := noon
	clock := func() time.Time { return now }
	dir := filepath.Join(t.TempDir(), "ca")
	load := func(after time.Duration) *Authority {
		t.Helper()
		now = noon.Add(after)
		a, err := LoadOrCreate(dir, clock)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := load(0)
	c := first.Certificate()
	if life := c.NotAfter.Sub(noon); life > lifetime || len(c.ExtKeyUsage) != 1 || c.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth {
		t.Errorf("the authority is good for %v and for %v; want two years, and servers alone", life, c.ExtKeyUsage)
	}
	leaf, err := first.Leaf("shop.example")
	if err != nil {
		t.Fatal(err)
	}
	for use, good := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageServerAuth: true, x509.ExtKeyUsageCodeSigning: false, x509.ExtKeyUsageClientAuth: false} {
		_, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: first.Pool(), CurrentTime: noon, KeyUsages: []x509.ExtKeyUsage{use}})
		if (err == nil) != good {
			t.Errorf("a leaf for the use %v: %v; want it good: %v", use, err, good)
		}
	}
	if life := leaf.Leaf.NotAfter.Sub(noon); life > 14*24*time.Hour {
		t.Errorf("a leaf is good for %v; want two weeks at most", life)
	}
	end := lifetime - renewBefore
	for _, s := range []struct {
		after time.Duration
		says  string
		same  bool
	}{
		{time.Hour, "", true}, {end - noticeTime - time.Hour, "", true}, {end - time.Hour, "is replaced at the first start", true},
		{end + time.Hour, "has ended, and there is a new one", false}, {end + noticeTime - time.Hour, "has ended", false},
		{end + noticeTime + 2*time.Hour, "", false},
	} {
		a := load(s.after)
		if got := a.Notice(); (got == "") != (s.says == "") || !strings.Contains(got, s.says) {
			t.Errorf("after %v Notice() = %q; want %q", s.after, got, s.says)
		}
		if same := a.Fingerprint() == first.Fingerprint(); same != s.same {
			t.Errorf("after %v it is the same authority: %v; want %v", s.after, same, s.same)
		}
	}
	now = noon.Add(end + time.Hour)
	if got := first.Notice(); !strings.Contains(got, "restart the service") {
		t.Errorf("Notice() of a service that was never restarted = %q; want the advice to restart it", got)
	}
	first.cert.NotAfter = noon.Add(5 * lifetime)
	if got := first.Notice(); !strings.Contains(got, "earlier version") {
		t.Errorf("Notice() of an authority for ten years = %q; want the advice to replace it", got)
	}
}

// A start whose clock is years ahead takes the authority for ended. The next one, with a clock that is right, takes it
// back: devices trust it.
func TestWrongClockTakesNoAuthorityAway(t *testing.T) {
	now := noon
	clock := func() time.Time { return now }
	dir := filepath.Join(t.TempDir(), "ca")
	load := func(at time.Time) *Authority {
		t.Helper()
		now = at
		a, err := LoadOrCreate(dir, clock)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := load(noon)
	for _, crashed := range []bool{false, true} {
		ahead := load(noon.Add(5 * lifetime))
		if ahead.Fingerprint() == first.Fingerprint() {
			t.Fatal("a start five lifetimes later has the first authority; want a new one")
		}
		now = noon.Add(time.Hour)
		if got := ahead.Notice(); !strings.Contains(got, "one of the two clocks was wrong") {
			t.Errorf("Notice() after the clock was set right = %q; want that a clock was wrong", got)
		}
		if crashed { // between the two steps of taking it back
			if err := os.Remove(filepath.Join(dir, KeyFile)); err != nil {
				t.Fatal(err)
			}
		}
		back := load(now)
		if back.Fingerprint() != first.Fingerprint() || back.Notice() != "" {
			t.Errorf("crashed %v: after the clock was set right it is the first authority: %v, with notice %q; want it, and none",
				crashed, back.Fingerprint() == first.Fingerprint(), back.Notice())
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("crashed %v: the folder has %d files (%v); want the certificate and the key", crashed, len(entries), err)
		}
	}
	if slow := load(time.Unix(0, 0)); slow.Fingerprint() != first.Fingerprint() {
		t.Error("a start in 1970 made a new authority; want the one that is there")
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

// TestLeafOfSeveral: a certificate for several hosts is one, in whatever order they are named, without what can be in none.
func TestLeafOfSeveral(t *testing.T) {
	a := newAuthority(t, fixed(noon))
	one, err := a.Leaf("www.shop.test", "cdn.shop.test", "198.18.1.7", "a b", "www.shop.test")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"www.shop.test", "cdn.shop.test", "198.18.1.7"} {
		if _, err := one.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: name, CurrentTime: noon}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if other, err := a.Leaf("cdn.shop.test", "198.18.1.7", "www.shop.test"); err != nil || other != one {
		t.Errorf("the same hosts in another order have another certificate (%v)", err)
	}
	if n := len(one.Leaf.DNSNames) + len(one.Leaf.IPAddresses); n != 3 {
		t.Errorf("the certificate has %d names, want 3", n)
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
		defer testlab.Input(t)()
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
		if _, err := a.issue([]string{"www.example.com"}, now); err != nil {
			b.Fatal(err)
		}
	}
}
