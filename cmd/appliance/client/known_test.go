package client

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/pin"
	"eidetic/internal/rigs/testlab"
)

// secureBox answers the health over TLS with a certificate of its own.
func secureBox(t *testing.T) (box *httptest.Server, fingerprint string, asked *int) {
	t.Helper()
	cert, err := pin.LoadOrCreate(t.TempDir(), nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	asked = new(int)
	box = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*asked++
		_, _ = w.Write([]byte(`{"status":"ok","starts":true}`))
	}))
	box.TLS = Trust{}.tlsConfig("")
	box.TLS.Certificates = append(box.TLS.Certificates, *cert)
	box.TLS.VerifyConnection = nil
	box.StartTLS()
	t.Cleanup(box.Close)
	return box, pin.Of(cert.Leaf), asked
}

// ready asks the box once.
func ready(t *testing.T, base string, trust Trust) error {
	t.Helper()
	c := New(Config{Base: base, Token: NewSecret("a-token-of-the-box"), Trust: trust})
	defer c.Close()
	return c.CheckReady(t.Context())
}

func TestFingerprint(t *testing.T) {
	box, fingerprint, asked := secureBox(t)
	if err := ready(t, box.URL, Trust{Fingerprint: strings.ToUpper(fingerprint)}); err != nil {
		t.Errorf("the right fingerprint: %v", err)
	}
	*asked = 0
	var untrusted *UntrustedError
	for _, wrong := range []string{strings.Repeat("00", 32), "nonsense"} {
		if err := ready(t, box.URL, Trust{Fingerprint: wrong}); !errors.As(err, &untrusted) {
			t.Errorf("the fingerprint %s: %v, want an UntrustedError", wrong, err)
		}
	}
	if *asked != 0 {
		t.Error("a box with another certificate was asked, and got the token")
	}
}

func TestTrustOnFirstUse(t *testing.T) {
	first, fingerprint, _ := secureBox(t)
	second, _, asked := secureBox(t)
	known := filepath.Join(t.TempDir(), "eidetic", "known_boxes")
	var notices []string
	trust := Trust{KnownBoxes: known, Notice: func(text string) { notices = append(notices, text) }}
	for range 2 {
		if err := ready(t, first.URL, trust); err != nil {
			t.Fatal(err)
		}
	}
	if len(notices) != 1 || !strings.Contains(strings.ReplaceAll(notices[0], ":", ""), strings.ToUpper(fingerprint)) {
		t.Errorf("notices %q; want one with the fingerprint %s", notices, fingerprint)
	}
	// Another certificate at the same address.
	text, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.ReplaceAll(string(text), strings.TrimPrefix(first.URL, "https://"), strings.TrimPrefix(second.URL, "https://"))
	if err := os.WriteFile(known, []byte("# boxes of the lab\n\n"+moved), 0o600); err != nil {
		t.Fatal(err)
	}
	var untrusted *UntrustedError
	if err := ready(t, second.URL, trust); !errors.As(err, &untrusted) || !strings.Contains(err.Error(), "has changed") ||
		!strings.Contains(err.Error(), "remove line 3 of "+known) || *asked != 0 {
		t.Errorf("a changed certificate: %v, asked %d times; want an UntrustedError that says what to do, and 0", err, *asked)
	}
	if err := ready(t, second.URL, Trust{}); !errors.As(err, &untrusted) || !strings.Contains(err.Error(), "--fingerprint") {
		t.Errorf("without a file of known boxes: %v, want an UntrustedError", err)
	}
	if err := os.WriteFile(known, []byte(strings.TrimPrefix(second.URL, "https://")+" garbage\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ready(t, second.URL, trust); !errors.As(err, &untrusted) || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a damaged line: %v, want an UntrustedError that names it", err)
	}
}

func FuzzFindKnown(f *testing.F) {
	f.Add("# boxes\nbox.local:8080 " + strings.Repeat("00", 32) + "\n")
	f.Add("box.local:8080\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		if got, _, err := findKnown(strings.NewReader(text), "box.local:8080"); err == nil && got != "" && len(got) != 64 {
			t.Errorf("findKnown(%q) = %q", text, got)
		}
	})
}
