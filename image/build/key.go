package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/image/update"
	"eidetic/internal/base/atomicfile"

	"golang.org/x/crypto/ssh"
	"golang.org/x/term"
)

const (
	// keyName and publicName are, in the folder of images, the key that signs updates unless --key
	// names another one, and its public half.
	keyName    = "update.key"
	publicName = "update.pub"
	// minPassphrase is the least number of bytes that a new key's passphrase has.
	minPassphrase = 12
	// noKey, as --key, makes no update.
	noKey = "none"
)

// signing is how updates of an image are signed, and what the image trusts.
type signing struct {
	key     ed25519.PrivateKey // nil: no update is made
	trusted []byte             // public keys (PEM); empty: the image takes no updates
}

// secrets asks for passphrases.
type secrets struct {
	file string // whose first line is the passphrase; "" asks at the terminal
	ask  func(prompt string) ([]byte, error)
}

// errNoPassphrase means that there is nobody to ask.
var errNoPassphrase = errors.New("the key has a passphrase, and there is no terminal to ask for it: --passphrase-file FILE") // constant

// terminal asks the person at this process's terminal.
func terminal(prompt string) ([]byte, error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, errNoPassphrase
	}
	fmt.Fprint(os.Stderr, prompt)
	defer fmt.Fprintln(os.Stderr)
	return term.ReadPassword(int(os.Stdin.Fd()))
}

// passphrase returns the passphrase of a key.
func (s secrets) passphrase(prompt string) ([]byte, error) {
	if s.file == "" {
		return s.ask(prompt)
	}
	f, err := os.Open(s.file)
	if err != nil {
		return nil, fmt.Errorf("--passphrase-file: %w", err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	if !lines.Scan() || len(lines.Bytes()) == 0 {
		return nil, fmt.Errorf("--passphrase-file %s: its first line is empty", s.file)
	}
	return bytes.Clone(lines.Bytes()), nil
}

// choose returns a passphrase for a key that has none.
func (s secrets) choose(prompt string) ([]byte, error) {
	passphrase, err := s.passphrase(prompt)
	if err != nil {
		return nil, err
	}
	if len(passphrase) < minPassphrase {
		return nil, fmt.Errorf("the passphrase needs at least %d characters", minPassphrase)
	}
	if s.file != "" {
		return passphrase, nil
	}
	again, err := s.passphrase("The same again: ")
	if err == nil && !bytes.Equal(again, passphrase) {
		err = errors.New("the two passphrases differ")
	}
	return passphrase, err
}

// readSigning finds the key. Without --key it is OUT/update.key, which is made, with a passphrase,
// if there is somebody to ask for one. It never is made without.
func readSigning(o options, s secrets, say func(string, ...any)) (signing, error) {
	var keys update.Keys
	for _, file := range o.trust {
		text, err := os.ReadFile(file)
		if err != nil {
			return signing{}, fmt.Errorf("--trust: %w", err)
		}
		more, err := publicKeys(text)
		if err != nil {
			return signing{}, fmt.Errorf("--trust %s: %w", file, err)
		}
		keys = append(keys, more...)
	}
	key, own, err := findKey(o, s, say)
	if err != nil {
		return signing{}, err
	}
	trusted, err := append(own, keys...).PEM()
	return signing{key, trusted}, err
}

// publicKeys reads public keys in PEM, or the one of a line that ssh-keygen wrote.
func publicKeys(text []byte) (update.Keys, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return update.ParseKeys(text)
	}
	if crypto, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := crypto.CryptoPublicKey().(ed25519.PublicKey); ok {
			return update.Keys{public}, nil
		}
	}
	return nil, errors.New("not an Ed25519 key")
}

// findKey returns the private key, if it can be used, and the public one, if it is known.
func findKey(o options, s secrets, say func(string, ...any)) (ed25519.PrivateKey, update.Keys, error) {
	if o.key == noKey {
		return nil, nil, nil
	}
	if o.key != "" {
		key, public, err := readKey(o.key, s)
		return key, update.Keys{public}, err
	}
	file := filepath.Join(o.out, keyName)
	key, public, err := readKey(file, s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		key, err = newKey(file, s)
		if errors.Is(err, errNoPassphrase) {
			say("no key: this image takes no updates, and none is made of it. To make a key, run make image at a terminal, or")
			say("    ssh-keygen -t ed25519 -f %s", file)
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		public = publicOf(key)
	case errors.Is(err, errNoPassphrase) && public != nil:
		say("appliance.update is not made: %v", err)
	case err != nil:
		return nil, nil, err
	default:
		if err := protect(file, key, s, say); err != nil {
			return nil, nil, err
		}
	}
	keys := update.Keys{public}
	text, err := keys.PEM()
	if err == nil {
		err = atomicfile.WriteFile(filepath.Join(o.out, publicName), text, 0o644)
	}
	return key, keys, err
}

// publicOf returns a key's public half, whose only type this is.
func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// readKey reads a private key: OpenSSH's format, or PKCS #8 without encryption. With the error
// errNoPassphrase it returns the public half, which is not encrypted.
func readKey(file string, s secrets) (ed25519.PrivateKey, ed25519.PublicKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	raw, err := ssh.ParseRawPrivateKey(text)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		passphrase, askErr := s.passphrase("Passphrase of " + file + ": ")
		if askErr != nil {
			public, err := lockedPublic(locked)
			return nil, public, errors.Join(askErr, err)
		}
		raw, err = ssh.ParseRawPrivateKeyWithPassphrase(text, passphrase)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	switch key := raw.(type) {
	case ed25519.PrivateKey: // of PKCS #8
		return key, publicOf(key), nil
	case *ed25519.PrivateKey: // of OpenSSH's format
		return *key, publicOf(*key), nil
	}
	return nil, nil, fmt.Errorf("%s: not an Ed25519 key", file)
}

// lockedPublic returns the public half of an encrypted key.
func lockedPublic(locked *ssh.PassphraseMissingError) (ed25519.PublicKey, error) {
	if key, ok := locked.PublicKey.(ssh.CryptoPublicKey); ok {
		if public, ok := key.CryptoPublicKey().(ed25519.PublicKey); ok {
			return public, nil
		}
	}
	return nil, errors.New("not an Ed25519 key in OpenSSH's format")
}

// newKey makes a key with a passphrase.
func newKey(file string, s secrets) (ed25519.PrivateKey, error) {
	passphrase, err := s.choose("A passphrase for the key that will sign updates, " + file + ": ")
	if err != nil {
		return nil, err
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return key, writeKey(file, key, passphrase)
}

func writeKey(file string, key ed25519.PrivateKey, passphrase []byte) error {
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "updates of the appliance", passphrase)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(file, pem.EncodeToMemory(block), 0o600)
}

// protect gives a key that lies unencrypted in the folder of images, as older builds left it, a
// passphrase.
func protect(file string, key ed25519.PrivateKey, s secrets, say func(string, ...any)) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err := ssh.ParseRawPrivateKey(text); err != nil {
		return nil // it has one
	}
	passphrase, err := s.choose("A passphrase for " + file + ", which has none: ")
	if errors.Is(err, errNoPassphrase) {
		say("warning: %s is not encrypted; whoever reads it can update your boxes. make image at a terminal gives it a passphrase", file)
		return nil
	}
	if err != nil {
		return err
	}
	return writeKey(file, key, passphrase)
}

// throwaway makes a key for one test build, which nobody keeps, and its public half (PEM).
func throwaway() (ed25519.PrivateKey, []byte, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	text, err := update.Keys{public}.PEM()
	return private, text, err
}
