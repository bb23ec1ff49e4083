package update

import (
	"errors"
	"strings"
	"testing"

	"eidetic/image/fat"

	"github.com/google/go-cmp/cmp"
)

// A second key comes with an update that the first one signed, and the first one goes with an
// update that the second one signed.
func TestRollover(t *testing.T) {
	first, second := seededKey(1), seededKey(2)
	disk := partition(t, map[string][]byte{"appliance_0.1.efi": program("old", 5000)})
	for _, c := range []struct {
		name, running, version string
		signed                 []byte
		trusted                Keys // by the running system
		want                   error
	}{
		{"the new key is unknown", "0.1", "0.2", bundle(t, "0.2", "0", program("a", 3000), second), public(first), ErrSignature},
		{"the old key introduces it", "0.1", "0.2", bundle(t, "0.2", "0", program("a", 3000), first), public(first), nil},
		{"the new key signs", "0.2", "0.3", bundle(t, "0.3", "0", program("b", 3000), second), public(first, second), nil},
		{"the old key is gone", "0.3", "0.4", bundle(t, "0.4", "0", program("c", 3000), first), public(second), ErrSignature},
	} {
		running := "appliance_" + c.running + ".efi"
		if err := install(disk, c.signed, c.trusted, running); !errors.Is(err, c.want) {
			t.Fatalf("%s: Install() = %v; want %v", c.name, err, c.want)
		}
		if c.want != nil {
			continue
		}
		v, err := fat.Open(disk)
		if err == nil {
			err = Bless(v, "appliance_"+c.version+"+3.efi")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestParseKeys(t *testing.T) {
	keys := public(seededKey(1), seededKey(2))
	text, err := keys.PEM()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseKeys(append(text, text...)) // one that is named twice counts once
	if err != nil || !cmp.Equal(got, keys) {
		t.Errorf("ParseKeys(PEM()) = %v, %v; want %v", got, err, keys)
	}
	for text, want := range map[string]string{
		"": "not PEM", "ssh-ed25519 AAAA": "not PEM",
		"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n": "want PUBLIC KEY",
		"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n":   "asn1",
	} {
		if got, err := ParseKeys([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseKeys(%q) = %v, %v; want an error with %q", text, got, err, want)
		}
	}
}
