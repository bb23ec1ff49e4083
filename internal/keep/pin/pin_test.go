package pin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

func fixed(t time.Time) func() time.Time { return func() time.Time { return t } }

func TestCertificateIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "panel")
	noon := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)
	first, err := LoadOrCreate(dir, []string{"box", "box.local"}, fixed(noon))
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadOrCreate(dir, []string{"other"}, fixed(noon.Add(lifetime/2)))
	if err != nil || Of(again.Leaf) != Of(first.Leaf) {
		t.Errorf("the second start has another certificate (%v)", err)
	}
	if err := first.Leaf.VerifyHostname("box.local"); err != nil || first.Leaf.IsCA {
		t.Errorf("VerifyHostname() = %v, IsCA = %v; want nil, false", err, first.Leaf.IsCA)
	}
	if info, err := os.Stat(filepath.Join(dir, keyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the key = %v, %v; want 0600", info.Mode(), err)
	}
	late, err := LoadOrCreate(dir, nil, fixed(noon.Add(lifetime-time.Hour)))
	if err == nil || !strings.Contains(err.Error(), "ends on") || Of(late.Leaf) == Of(first.Leaf) {
		t.Errorf("a certificate in its last hour: %v; want a new one, and the reason", err)
	}
	if err := os.WriteFile(filepath.Join(dir, certFile), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cert, err := LoadOrCreate(dir, nil, fixed(noon)); err == nil || cert == nil {
		t.Errorf("a damaged certificate: %v, %v; want a new one, and the reason", cert, err)
	}
}

// The certificate of a box is kept, only the box can read its key, and a damaged one is no reason for another.
func TestBoxCertificateIsNeverReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	if cert, err := LoadBox(dir); err == nil {
		t.Errorf("LoadBox() of an empty folder = %v; want an error", cert)
	}
	first, err := LoadOrCreateBox(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range []func() (string, error){
		func() (string, error) { c, err := LoadBox(dir); return Of(c.Leaf), err },
		func() (string, error) {
			c, err := LoadOrCreateBox(dir, fixed(time.Now().Add(2*lifetime)))
			return Of(c.Leaf), err
		},
	} {
		if got, err := again(); err != nil || got != Of(first.Leaf) {
			t.Errorf("the certificate is %s, %v; want the first one", got, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, boxKeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the key = %v, %v; want 0600", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, boxCertFile), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cert, err := LoadOrCreateBox(dir, time.Now); err == nil {
		t.Errorf("LoadOrCreateBox() over a damaged one = %v; want an error", cert)
	}
}

func TestFolderThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cert, err := LoadOrCreate(filepath.Join(file, "panel"), nil, time.Now)
	if cert == nil || err == nil {
		t.Errorf("LoadOrCreate() = %v, %v; want a certificate and an error that says how long it lasts", cert, err)
	}
}

func TestParse(t *testing.T) {
	want := strings.Repeat("3b1c", 16)
	first, second := Text(want)
	for _, text := range []string{want, strings.ToUpper(want), first + ":" + second, first + "\n         " + second, "SHA256:" + want,
		"sha256 Fingerprint=" + first + ":" + second} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "abc", want[1:], want + "00", strings.Repeat("xy", 32)} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %q, want an error", text, got)
		}
	}
	if len(first) > 47 || len(second) != 47 {
		t.Errorf("Text() = %q, %q; want two lines of 47 characters", first, second)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("SHA256:" + strings.Repeat("3B:", 32))
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		if got, err := Parse(text); err == nil && len(got) != 64 {
			t.Errorf("Parse(%q) = %q", text, got)
		}
	})
}
