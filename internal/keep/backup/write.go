package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Writer writes a backup. Files come in ascending order of their names.
type Writer struct {
	tar    *tar.Writer
	m      Manifest
	last   string
	sums   bytes.Buffer
	buffer []byte
}

// NewWriter writes the head of a backup.
func NewWriter(w io.Writer, m Manifest) (*Writer, error) {
	m.Format = Format
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	b := &Writer{tar: tar.NewWriter(w), m: m, buffer: make([]byte, 1<<20)}
	return b, b.write(manifestName, bytes.NewReader(append(text, '\n')), int64(len(text))+1, 0o644, m.Made)
}

// Bytes adds a file that is in memory.
func (b *Writer) Bytes(name string, content []byte, modified time.Time) error {
	return b.add(name, bytes.NewReader(content), int64(len(content)), 0o600, modified)
}

// File adds an open file as long as it is now; what is appended meanwhile is left out.
func (b *Writer) File(name string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// The pages of a large file must not push out those of a trial's film. An error costs speed alone.
	defer func() { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }()
	return b.add(name, f, info.Size(), info.Mode().Perm(), info.ModTime())
}

// Tree adds the regular files below a folder whose names do not begin with a dot.
func (b *Writer) Tree(name string, root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
			return nil
		case d.Name()[0] == '.' && d.IsDir():
			return fs.SkipDir
		case d.Name()[0] == '.' || !d.Type().IsRegular():
			return nil
		}
		f, err := root.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file that has been renamed meanwhile
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return b.File(name+"/"+path, f)
	})
}

func (b *Writer) add(name string, content io.Reader, size int64, mode fs.FileMode, modified time.Time) error {
	if err := CheckName(name, b.m.Secrets); err != nil {
		return err
	}
	if !follows(b.last, name) {
		return fmt.Errorf("write backup: %q comes after %q", name, b.last)
	}
	b.last = name
	return b.write(name, content, size, mode, modified)
}

func (b *Writer) write(name string, content io.Reader, size int64, mode fs.FileMode, modified time.Time) error {
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size, Mode: int64(mode), ModTime: modified.Round(0), Format: tar.FormatPAX}
	if err := b.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	digest := sha256.New()
	n, err := io.CopyBuffer(onlyWriter{io.MultiWriter(b.tar, digest)}, io.LimitReader(content, size), b.buffer)
	if err == nil && n < size {
		err = fmt.Errorf("%s became shorter: %d of %d bytes", name, n, size)
	}
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	fmt.Fprintf(&b.sums, "%x  %s\n", digest.Sum(nil), name)
	return nil
}

// onlyWriter hides ReadFrom, which would not use the buffer.
type onlyWriter struct{ io.Writer }

// Close writes the end, without which the backup is incomplete.
func (b *Writer) Close() error {
	text := bytes.Clone(b.sums.Bytes())
	if err := b.write(sumsName, bytes.NewReader(text), int64(len(text)), 0o644, b.m.Made); err != nil {
		return err
	}
	return b.tar.Close()
}
