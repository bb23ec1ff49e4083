// Package update puts a new version of the box's system beside the running
// one, so that the boot loader tries it and falls back by itself.
//
// In flow a signed bundle from a file or a stream, the EFI partition and the
// public keys that the running system carries; out flows the EFI partition, on which
// the new version has replaced the one that is not running. Nothing is trusted before
// its signature is checked, and an interruption at any byte leaves a partition that
// boots the running version.
//
// A bundle is the line "EIDETIC UPDATE 1\n", the length of the manifest (4
// bytes, big-endian), the manifest (JSON), an Ed25519 signature (RFC 8032) of
// all that came before, and the EFI program. Boot counting follows
// systemd's Automatic Boot Assessment (systemd.io/AUTOMATIC_BOOT_ASSESSMENT).
package update

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
)

const (
	magic       = "EIDETIC UPDATE 1\n"
	maxManifest = 4096
	// MaxSize bounds the EFI program, also of an image with browsers.
	MaxSize = 416 << 20
)

// Manifest is the signed description of an update.
type Manifest struct {
	// Version of the system in the bundle: numbers and dots.
	Version string `json:"version"`
	// Minimum is the oldest version that may install the bundle.
	Minimum string `json:"minimum"`
	// Size and SHA256 (hexadecimal) are those of the EFI program.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Errors by which a caller distinguishes a refusal from a failure.
var (
	ErrSignature = errors.New("not signed by a key that this box trusts")
	ErrDowngrade = errors.New("not newer than what the box has")
	ErrTooOld    = errors.New("not made for a system as old as this")
	ErrUnproven  = errors.New("update: the running system has not proved itself healthy yet; wait a minute")
	ErrDamaged   = errors.New("damaged")
)

// Sign writes a bundle of program, whose length and hash it computes.
func Sign(w io.Writer, m Manifest, program []byte, key ed25519.PrivateKey) error {
	sum := sha256.Sum256(program)
	m.Size, m.SHA256 = int64(len(program)), hex.EncodeToString(sum[:])
	if err := m.validate(); err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	head := append([]byte(magic), binary.BigEndian.AppendUint32(nil, uint32(len(text)))...)
	head = append(head, text...)
	for _, part := range [][]byte{head, ed25519.Sign(key, head), program} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// Open reads a bundle's manifest, checks that one of keys signed it, and returns a
// reader of the program. The reader gives ErrDamaged instead of io.EOF unless
// it delivered exactly what was signed.
func Open(r io.Reader, keys Keys) (Manifest, io.Reader, error) {
	var m Manifest
	if len(keys) == 0 {
		return m, nil, errors.New("update: this system trusts no key")
	}
	head, text, signature, err := readHead(r)
	if err != nil {
		return m, nil, err
	}
	if !keys.verify(append(head, text...), signature) {
		return m, nil, fmt.Errorf("update: %w", ErrSignature)
	}
	m, err = parseManifest(text)
	if err != nil {
		return m, nil, fmt.Errorf("update: manifest: %w", err)
	}
	return m, &checked{r: io.LimitReader(r, m.Size), left: m.Size, want: m.SHA256, sum: sha256.New()}, nil
}

// ReadManifest reads the manifest of a bundle up to its program, and does not look at the signature: it is for those
// who only pass a bundle on.
func ReadManifest(r io.Reader) (Manifest, error) {
	_, text, _, err := readHead(r)
	if err != nil {
		return Manifest{}, err
	}
	m, err := parseManifest(text)
	if err != nil {
		return Manifest{}, fmt.Errorf("update: %w: manifest: %w", ErrDamaged, err)
	}
	return m, nil
}

// readHead reads what stands before a bundle's program: head and text are what is signed.
func readHead(r io.Reader) (head, text, signature []byte, err error) {
	head = make([]byte, len(magic)+4)
	if err := readFull(r, head, "in its first bytes"); err != nil {
		return nil, nil, nil, err
	}
	if string(head[:len(magic)]) != magic {
		return nil, nil, nil, fmt.Errorf("update: %w: not an update bundle", ErrDamaged)
	}
	size := binary.BigEndian.Uint32(head[len(magic):])
	if size > maxManifest {
		return nil, nil, nil, fmt.Errorf("update: %w: a manifest of %d bytes, at most %d", ErrDamaged, size, maxManifest)
	}
	rest := make([]byte, int(size)+ed25519.SignatureSize)
	if err := readFull(r, rest, "within the manifest"); err != nil {
		return nil, nil, nil, err
	}
	return head, rest[:size], rest[size:], nil
}

// readFull fills b. A bundle that ends early is damaged; after a read error, the bundle
// itself may be intact.
func readFull(r io.Reader, b []byte, where string) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("update: %w: it ends %s", ErrDamaged, where)
	}
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	return nil
}

// parseManifest parses a manifest strictly, although its signature was checked.
func parseManifest(text []byte) (Manifest, error) {
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, err
	}
	if d.More() {
		return m, errors.New("more than one value")
	}
	return m, m.validate()
}

func (m Manifest) validate() error {
	for field, v := range map[string]string{"version": m.Version, "minimum": m.Minimum} {
		if _, err := parseVersion(v); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	if m.Size < 1 || m.Size > MaxSize {
		return fmt.Errorf("size: %d bytes are not 1 to %d", m.Size, int64(MaxSize))
	}
	if sum, err := hex.DecodeString(m.SHA256); err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("sha256: %q is not a SHA-256 in hexadecimal", m.SHA256)
	}
	return nil
}

// Allowed returns an error unless a system of version running may install the bundle.
func (m Manifest) Allowed(running string) error {
	if Compare(m.Version, running) <= 0 {
		return fmt.Errorf("update: %s is %w (%s)", m.Version, ErrDowngrade, running)
	}
	if Compare(running, m.Minimum) < 0 {
		return fmt.Errorf("update: %s is %w: install %s or newer first, this is %s", m.Version, ErrTooOld, m.Minimum, running)
	}
	return nil
}

// checked reads a program and checks at its end that it is the signed one.
type checked struct {
	r    io.Reader
	left int64
	want string
	sum  hash.Hash
}

// Read implements io.Reader. It returns the last bytes only if the hash of the whole program is right.
func (c *checked) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	c.left -= int64(n)
	if c.left == 0 && hex.EncodeToString(c.sum.Sum(nil)) != strings.ToLower(c.want) {
		return 0, fmt.Errorf("update: %w: the program is not the one that was signed", ErrDamaged)
	}
	if errors.Is(err, io.EOF) && c.left > 0 {
		return n, fmt.Errorf("update: %w: %d bytes of the program are missing", ErrDamaged, c.left)
	}
	return n, err
}

// maxParts bounds how many numbers a version has.
const maxParts = 8

// parseVersion reads numbers with dots between them.
func parseVersion(text string) ([]uint32, error) {
	parts := strings.Split(text, ".")
	if len(parts) > maxParts {
		return nil, fmt.Errorf("%q has more than %d numbers", text, maxParts)
	}
	v := make([]uint32, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 32)
		if err != nil || strconv.FormatUint(n, 10) != p {
			return nil, fmt.Errorf("%q is not a version: numbers and dots, without leading zeros", text)
		}
		v[i] = uint32(n)
	}
	return v, nil
}

// Compare orders versions by their numbers: 0.10 is newer than 0.9, and 1.0
// newer than 1. It returns -1, 0 or 1; a text that is not a version counts as the oldest.
func Compare(a, b string) int {
	x, _ := parseVersion(a)
	y, _ := parseVersion(b)
	for i := range min(len(x), len(y)) {
		switch {
		case x[i] < y[i]:
			return -1
		case x[i] > y[i]:
			return 1
		}
	}
	switch {
	case len(x) < len(y):
		return -1
	case len(x) > len(y):
		return 1
	}
	return 0
}
