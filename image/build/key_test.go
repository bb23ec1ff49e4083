package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/image/update"
	"eidetic/internal/rigs/testlab"
)

// person answers questions for passphrases, each with the next of the answers.
func person(answers ...string) secrets {
	return secrets{ask: func(string) ([]byte, error) {
		if len(answers) == 0 {
			return nil, errNoPassphrase
		}
		next := answers[0]
		answers = answers[1:]
		return []byte(next), nil
	}}
}

// said collects what a build says.
func said(all *strings.Builder) func(string, ...any) {
	return func(format string, args ...any) { fmt.Fprintf(all, format+"\n", args...) }
}

const phrase = "a long passphrase"

// The key that a build makes is encrypted, and is used again with its passphrase.
func TestKeyIsMadeWithAPassphrase(t *testing.T) {
	o := options{out: t.TempDir()}
	var log strings.Builder
	first, err := readSigning(o, person(phrase, phrase), said(&log))
	if err != nil || first.key == nil {
		t.Fatalf("readSigning() = %v, %v; want a key", first, err)
	}
	text, err := os.ReadFile(filepath.Join(o.out, keyName))
	if err != nil || strings.Contains(string(text), "BEGIN PRIVATE KEY") {
		t.Errorf("%s is %q, %v; want an encrypted key", keyName, text, err)
	}
	if info, err := os.Stat(filepath.Join(o.out, keyName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %v, %v; want 0600", keyName, info.Mode(), err)
	}
	file := filepath.Join(t.TempDir(), "passphrase")
	if err := os.WriteFile(file, []byte(phrase+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]secrets{"asked": person(phrase), "from a file": {file: file}} {
		again, err := readSigning(o, s, said(&log))
		if err != nil || !again.key.Equal(first.key) || string(again.trusted) != string(first.trusted) {
			t.Errorf("%s: readSigning() = %v; want the same key", name, err)
		}
	}
	if _, err := readSigning(o, person("another passphrase"), said(&log)); err == nil {
		t.Error("readSigning() with a wrong passphrase = nil; want an error")
	}
	// Where nobody can be asked, the image trusts the key, and no update is made.
	nobody, err := readSigning(o, person(), said(&log))
	if err != nil || nobody.key != nil || string(nobody.trusted) != string(first.trusted) {
		t.Errorf("readSigning() with nobody to ask = %v, %v; want the public key alone", nobody, err)
	}
}

func TestKeyIsNotMadeWithoutAPassphrase(t *testing.T) {
	for name, c := range map[string]struct {
		who  secrets
		want string // of the error; "" for an image that takes no updates
	}{
		"nobody to ask": {person(), ""}, "a short one": {person("short"), "at least 12"},
		"two different ones": {person(phrase, phrase+"s"), "differ"},
	} {
		o := options{out: t.TempDir()}
		var log strings.Builder
		got, err := readSigning(o, c.who, said(&log))
		if c.want == "" {
			if err != nil || got.key != nil || len(got.trusted) > 0 || !strings.Contains(log.String(), "ssh-keygen") {
				t.Errorf("%s: readSigning() = %v, %v, saying %q; want no key, and how to make one", name, got, err, log.String())
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: readSigning() = %v; want an error with %q", name, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(o.out, keyName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is a key all the same: %v", name, err)
		}
	}
}

// plainKey writes an unencrypted key, as builds did before.
func plainKey(t *testing.T, file string) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err == nil {
		err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// An unencrypted key of an earlier build gets a passphrase, and stays the key.
func TestEarlierKeyGetsAPassphrase(t *testing.T) {
	o := options{out: t.TempDir()}
	key := plainKey(t, filepath.Join(o.out, keyName))
	var log strings.Builder
	if got, err := readSigning(o, person(), said(&log)); err != nil || !got.key.Equal(key) || !strings.Contains(log.String(), "not encrypted") {
		t.Errorf("readSigning() with nobody to ask: %v, saying %q; want the key and a warning", err, log.String())
	}
	if got, err := readSigning(o, person(phrase, phrase), said(&log)); err != nil || !got.key.Equal(key) {
		t.Errorf("readSigning() = %v; want the key", err)
	}
	if got, err := readSigning(o, person(), said(&log)); err != nil || got.key != nil {
		t.Errorf("readSigning() afterwards with nobody to ask: key %v, %v; want none, as it is encrypted", got.key != nil, err)
	}
}

// A key from outside is read as it is, and other keys can be trusted besides it.
func TestKeyFromOutside(t *testing.T) {
	dir := t.TempDir()
	key := plainKey(t, filepath.Join(dir, "own.key"))
	other, err := update.Keys{plainKey(t, filepath.Join(dir, "x")).Public().(ed25519.PublicKey)}.PEM()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "other.pub"), other, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := options{out: t.TempDir(), key: filepath.Join(dir, "own.key"), trust: []string{filepath.Join(dir, "other.pub")}}
	got, err := readSigning(o, person(), t.Logf)
	if err != nil || !got.key.Equal(key) {
		t.Fatalf("readSigning() = %v; want the key of --key", err)
	}
	if keys, err := update.ParseKeys(got.trusted); err != nil || len(keys) != 2 || !keys[0].Equal(key.Public()) {
		t.Errorf("the image trusts %d keys, %v; want --key's and --trust's", len(keys), err)
	}
	o.key = noKey
	if got, err := readSigning(o, person(), t.Logf); err != nil || got.key != nil || string(got.trusted) != string(other) {
		t.Errorf("readSigning() with --key none = %v, %v; want --trust's alone", got, err)
	}
	o.trust = []string{filepath.Join(dir, "own.key")}
	if _, err := readSigning(o, person(), t.Logf); err == nil || !strings.Contains(err.Error(), "--trust") {
		t.Errorf("readSigning() with a private key in --trust = %v; want an error", err)
	}
}

// The key that the build tells people to make can be used.
func TestKeyOfSSHKeygen(t *testing.T) {
	keygen := testlab.NeedProgram(t, "ssh-keygen")
	o := options{out: t.TempDir()}
	file := filepath.Join(o.out, keyName)
	if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", phrase, "-f", file).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	got, err := readSigning(o, person(phrase), t.Logf)
	if err != nil || got.key == nil {
		t.Errorf("readSigning() = %v; want the key", err)
	}
	o = options{out: t.TempDir(), key: noKey, trust: []string{file + ".pub"}}
	if trusting, err := readSigning(o, person(), t.Logf); err != nil || string(trusting.trusted) != string(got.trusted) {
		t.Errorf("with --trust %s.pub the image trusts %q, %v; want %q", keyName, trusting.trusted, err, got.trusted)
	}
}

// A bundle has the minimum version that the build sets.
func TestMinimum(t *testing.T) {
	o := options{out: t.TempDir(), version: "0.5.1", minimum: "0.4"}
	if err := os.WriteFile(filepath.Join(o.out, "appliance.efi"), []byte("program"), 0o644); err != nil {
		t.Fatal(err)
	}
	key, trusted, err := throwaway()
	if err != nil {
		t.Fatal(err)
	}
	if err := signImage(o, signing{key, trusted}, true); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(o.out, "appliance.update"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	keys, err := update.ParseKeys(trusted)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := update.Open(f, keys)
	if err != nil || m.Allowed("0.3.9") == nil || m.Allowed("0.4") != nil || !errors.Is(m.Allowed("0.6"), update.ErrDowngrade) {
		t.Errorf("manifest %+v, %v; want one that 0.4 may install, and 0.3.9 and 0.6 may not", m, err)
	}
	// Without the key, the update of another image does not stay.
	if err := signImage(o, signing{}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("appliance.update is still there: %v", err)
	}
}
