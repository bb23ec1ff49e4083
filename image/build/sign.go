package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"eidetic/image/pack"
	"eidetic/image/update"
)

// signOnly makes an update of an EFI program that was built before, such as one that was signed
// for Secure Boot since.
func signOnly(o options, s secrets, say func(string, ...any)) error {
	signs, err := readSigning(o, s, say)
	if err == nil && signs.key == nil {
		err = errors.New("--sign needs a key")
	}
	if err != nil {
		return err
	}
	base, ok := strings.CutSuffix(o.sign, ".efi")
	if !ok {
		return fmt.Errorf("--sign %s: not an .efi file", o.sign)
	}
	say("%s.update: version %s, for %s and newer", base, o.version, o.minimum)
	return signFile(o, base, signs.key)
}

// signFile makes BASE.update from BASE.efi.
func signFile(o options, base string, key ed25519.PrivateKey) error {
	program, err := os.ReadFile(base + ".efi")
	if err != nil {
		return err
	}
	file, err := os.Create(base + ".update")
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := update.Sign(file, update.Manifest{Version: o.version, Minimum: o.minimum}, program, key); err != nil {
		return err
	}
	return file.Close()
}

// signImage makes appliance.update, or removes one that is of another image.
func signImage(o options, s signing, built bool) error {
	if s.key != nil {
		return signFile(o, filepath.Join(o.out, "appliance"), s.key)
	}
	if !built {
		return nil
	}
	err := os.Remove(filepath.Join(o.out, "appliance.update"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// testKeys are those of one test build: its images trust the first; the update to the version
// after it, which the first signed, trusts the second alone.
type testKeys struct {
	first, second             ed25519.PrivateKey
	trustsFirst, trustsSecond []byte
}

func newTestKeys() (k testKeys, err error) {
	if k.first, k.trustsFirst, err = throwaway(); err != nil {
		return k, err
	}
	k.second, k.trustsSecond, err = throwaway()
	return k, err
}

// updateKeyFile is where an image has the keys that it trusts.
const updateKeyFile = "usr/lib/appliance/update.pub"

// testUpdates makes three updates of the test build: one that works (next) and brings another
// key; and, signed by that, one whose service never starts (bad), and one of an older version
// (old).
func testUpdates(ctx context.Context, o options, kernel, initrd []byte, keys testKeys) error {
	for i, name := range []string{"appliance-test-next", "appliance-test-bad"} {
		newer := o
		newer.version, newer.minimum = fmt.Sprintf("%s.%d", o.version, i+1), o.version
		layer := make(pack.Tree)
		layer.Add("usr/lib/os-release", 0o644, osRelease(newer.version))
		layer.Add(updateKeyFile, 0o644, keys.trustsSecond)
		key := keys.first
		if name == "appliance-test-bad" {
			key = keys.second
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
		if err := signFile(newer, filepath.Join(o.out, name), key); err != nil {
			return err
		}
		if err := os.Remove(program); err != nil {
			return err
		}
	}
	old, err := os.Create(filepath.Join(o.out, "appliance-test-old.update"))
	if err != nil {
		return err
	}
	defer func() { _ = old.Close() }()
	// It is refused by its version, so nobody misses the program.
	if err := update.Sign(old, update.Manifest{Version: o.version, Minimum: "0"}, []byte("none"), keys.second); err != nil {
		return err
	}
	return old.Close()
}
