package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// Tokens are made, listed and revoked over TLS with a box that is trusted on first use.
func TestTokenCommand(t *testing.T) {
	b := newTestBox(t, alone)
	at := "https://" + b.at
	known := filepath.Join(t.TempDir(), "known_boxes")
	command := func(token string, args ...string) (status int, out, err string) {
		t.Setenv(tokenVariable, token)
		var stdout, stderr bytes.Buffer
		args = append(append([]string{"token"}, args...), "--box", at, "--known-boxes", known)
		status = run(t.Context(), args, &streams{strings.NewReader(""), &stdout, &stderr})
		return status, stdout.String(), stderr.String()
	}
	status, out, said := command(b.token, "make", "nightly", "--scope", "run")
	made := strings.TrimSpace(out)
	if status != exitGood || !strings.HasPrefix(made, "eid_") || !strings.Contains(said, "is new here") {
		t.Fatalf("token make: status %d, %q, %q; want a token and the notice of a new box", status, out, said)
	}
	if status, out, said := command(b.token, "ls"); status != exitGood || !strings.Contains(out, "nightly  run") || !strings.Contains(out, "never") || said != "" {
		t.Errorf("token ls: status %d, %q, %q; want the token, never used, and nothing on the box", status, out, said)
	}
	if status, _, said := command(made, "ls"); status != exitUsage || !strings.Contains(said, "needs the scope admin") {
		t.Errorf("token ls with the scope run: status %d, %q; want %d and which scope it needs", status, said, exitUsage)
	}
	if status, _, said := command(b.token, "make", "nightly"); status == exitGood || !strings.Contains(said, "already") {
		t.Errorf("a second token of the name: status %d, %q", status, said)
	}
	if status, out, said := command(b.token, "revoke", "nightly"); status != exitGood || !strings.Contains(out, "is revoked") {
		t.Errorf("token revoke: status %d, %q, %q", status, out, said)
	}
	if status, _, said := command(made, "ls"); status != exitUsage || !strings.Contains(said, "not the token of this box") {
		t.Errorf("a revoked token: status %d, %q", status, said)
	}
	if status, _, said := command(b.token, "revoke", "nightly"); status != exitUsage || !strings.Contains(said, "no token") {
		t.Errorf("revoking twice: status %d, %q", status, said)
	}
	// Another certificate, as after a reset or of somebody between.
	b.stop()
	if err := os.RemoveAll(filepath.Join(b.data, "panel")); err != nil {
		t.Fatal(err)
	}
	b.start(t)
	if status, _, said := command(b.token, "ls"); status != exitUsage || !strings.Contains(said, "has changed") || !strings.Contains(said, "remove line 1 of "+known) {
		t.Errorf("a changed certificate: status %d, %q; want %d and what to do", status, said, exitUsage)
	}
}

func TestBoxFlagsRefuse(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--box ftp://box", "must be the address of a panel"},
		{"--box https://box.local:8080 --fingerprint abc", "64 hexadecimal digits"},
		{"--box http://127.0.0.1:8080 --fingerprint " + strings.Repeat("00", 32), "begins with https"},
	} {
		var out bytes.Buffer
		args := append([]string{"token", "ls"}, strings.Fields(c.flags)...)
		if status := run(t.Context(), args, &streams{strings.NewReader(""), &out, &out}); status != exitUsage || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: status %d, %q; want %d, %q", c.flags, status, out.String(), exitUsage, c.want)
		}
	}
}

// TestTokenIsNotLogged: what is no terminal, a journal or a container's log, gets the file of the token and not the
// token.
func TestTokenIsNotLogged(t *testing.T) {
	var out bytes.Buffer
	tellToken(&out, "https://192.0.2.1:8080", lab.NewSecret("abcdefghijklmnop"), "/data/token")
	if text := out.String(); strings.Contains(text, "abcdefgh") || !strings.Contains(text, "/data/token") || !strings.Contains(text, "192.0.2.1") {
		t.Errorf("tellToken() wrote %q; want the address and the file alone", text)
	}
}
