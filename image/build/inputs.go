package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// record is OUT/inputs.json: a checksum of the inputs of the images, and the files made
// from them. While both are unchanged, there is nothing to build.
type record struct {
	Version  string            `json:"version"`
	WiFi     bool              `json:"wifi"`
	Browsers []string          `json:"browsers,omitempty"`
	Inputs   string            `json:"inputs"`  // SHA-256
	Outputs  map[string]string `json:"outputs"` // size and time of each, by name
}

// inputs returns a checksum of everything that the images depend on: this program, the
// options, the lists and files of the source folder, the binary, the trusted keys,
// Debian's files as they were fetched, and the files taken from this machine.
func inputs(o options, archive string, trusted []byte) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, o.version, o.wifi, o.browsers, o.test, o.epoch, filepath.Base(archive))
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(sum, "%s", trusted)
	files := []string{self, o.binary, ukiStub, bootLoader}
	for _, folder := range []string{o.source, testPackages(archive)} {
		err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && !strings.HasSuffix(name, ".go") {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	for _, name := range append(files, archive) {
		if err := add(sum, name); err != nil && name == o.binary {
			return "", fmt.Errorf("%w; make build makes it", err)
		} else if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

func add(sum hash.Hash, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Fprintln(sum, filepath.Base(name), info.Size())
	_, err = io.Copy(sum, f)
	return err
}

// isBuilt reports whether the images of these inputs already exist.
func isBuilt(o options, inputs string) bool {
	text, err := os.ReadFile(filepath.Join(o.out, "inputs.json"))
	var r record
	if err != nil || json.Unmarshal(text, &r) != nil || r.Inputs != inputs || len(r.Outputs) == 0 {
		return false
	}
	for name, before := range r.Outputs {
		if now, err := stamp(filepath.Join(o.out, name)); err != nil || now != before {
			return false
		}
	}
	return true
}

// remember writes the record that isBuilt reads.
func remember(o options, inputs string) error {
	r := record{o.version, o.wifi, o.browsers, inputs, map[string]string{}}
	names := []string{"appliance.efi", "appliance.img"}
	if o.test {
		names = slices.Concat(
			names,
			[]string{"appliance-test.efi", "appliance-test.img", "appliance-test-next.update", "appliance-test-bad.update", "appliance-test-old.update"},
		)
	}
	for _, name := range names {
		s, err := stamp(filepath.Join(o.out, name))
		if err != nil {
			return err
		}
		r.Outputs[name] = s
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "inputs.json"), append(text, '\n'), 0o644)
}

// stamp returns the size and time of a file, which change when the file is written.
func stamp(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano()), nil
}
