package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/image/pack"
	"eidetic/image/update"
)

// signingKey reads the key that signs updates. Without --key it uses a key of this
// machine, created if it does not exist: boxes built here accept updates built here.
func signingKey(o options) (ed25519.PrivateKey, error) {
	file := o.key
	if file == "" {
		file = filepath.Join(o.out, "update.key")
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && o.key == "" {
		text, err = newKey(file)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: not PEM", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: not an Ed25519 key", file)
	}
	return private, nil
}

func newKey(file string) ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return text, os.WriteFile(file, text, 0o600)
}

func publicPEM(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// signFile makes NAME.update from NAME.efi. Every older version may install it.
func signFile(o options, name string, key ed25519.PrivateKey) error {
	program, err := os.ReadFile(filepath.Join(o.out, name+".efi"))
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(o.out, name+".update"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := update.Sign(file, update.Manifest{Version: o.version, Minimum: "0"}, program, key); err != nil {
		return err
	}
	return file.Close()
}

// testUpdates makes two updates of the test build: one that works, and one
// whose service never starts.
func testUpdates(ctx context.Context, o options, kernel, initrd []byte, key ed25519.PrivateKey) error {
	for i, name := range []string{"appliance-test-next", "appliance-test-bad"} {
		newer := o
		newer.version = fmt.Sprintf("%s.%d", o.version, i+1)
		layer := make(pack.Tree)
		layer.Add("usr/lib/os-release", 0o644, osRelease(newer.version))
		if name == "appliance-test-bad" {
			// An unpacked symbolic link replaces the file of the layer below.
			layer.Link("etc/systemd/system/appliance.service", "/dev/null")
			layer.Add(
				"etc/systemd/system/appliance-bless.service.d/50-test.conf",
				0o644,
				[]byte(
					"# The test does not wait as long as a person would.\n[Service]\nExecStart=\nExecStart=/usr/bin/appliance box bless --within 3s\n",
				),
			)
		}
		over, err := compress(layer, o.epoch)
		if err != nil {
			return err
		}
		program := filepath.Join(o.out, name+".efi")
		if err := writeUKI(ctx, newer, program, kernel, append(initrd[:len(initrd):len(initrd)], over...)); err != nil {
			return err
		}
		if err := signFile(newer, name, key); err != nil {
			return err
		}
		if err := os.Remove(program); err != nil {
			return err
		}
	}
	return nil
}
