package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// Entry is a file as it comes out of a backup.
type Entry struct {
	*tar.Header
	Content io.Reader
}

// Read reads a whole backup and calls each for every file in it, which must read the content
// or return an error. most bounds the bytes of all files. Only after Read has returned nil is
// it known that the files are what was backed up.
func Read(r io.Reader, most int64, each func(Manifest, Entry) error) (Manifest, error) {
	in := &reader{tar: tar.NewReader(r), sums: sha256.New(), left: most}
	err := in.read(each)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = refuse("it ends in the middle: it was cut off when it was made or copied")
	case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrFieldTooLong), errors.Is(err, tar.ErrInsecurePath):
		err = refuse("%w", err)
	}
	return in.m, err
}

// Verify reads a whole backup and keeps nothing of it.
func Verify(r io.Reader) (Manifest, error) {
	return Read(r, 1<<62, func(_ Manifest, e Entry) error {
		_, err := io.Copy(io.Discard, e.Content)
		return err
	})
}

type reader struct {
	tar   *tar.Reader
	m     Manifest
	sums  hash.Hash // of the SHA256SUMS that there must be
	last  string
	files int
	left  int64
}

func (in *reader) read(each func(Manifest, Entry) error) error {
	if err := in.manifest(); err != nil {
		return err
	}
	for {
		h, err := in.next()
		if err == io.EOF {
			return refuse("it has no %s at its end: it was cut off when it was made", sumsName)
		}
		if err != nil {
			return err
		}
		if h.Name == sumsName {
			return in.end(h)
		}
		if err := in.file(h, each); err != nil {
			return err
		}
	}
}

// next returns the next header, which is that of a plain file.
func (in *reader) next() (*tar.Header, error) {
	h, err := in.tar.Next()
	if err != nil {
		return nil, err
	}
	if in.files++; in.files > mostFiles {
		return nil, refuse("it has more than %d files", mostFiles)
	}
	if h.Typeflag != tar.TypeReg {
		return nil, refuse("%.100q is a link, a folder or a device: a backup has plain files alone", h.Name)
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return nil, refuse("%.100q is a sparse file", h.Name)
		}
	}
	if h.Size < 0 || h.Size > in.left {
		return nil, refuse("%.100q has %d bytes, and there is room for %d", h.Name, h.Size, in.left)
	}
	in.left -= h.Size
	return h, nil
}

func (in *reader) manifest() error {
	h, err := in.next()
	if err == io.EOF {
		return refuse("it is empty")
	}
	if err != nil {
		return err
	}
	if h.Name != manifestName || h.Size > maxManifest {
		return refuse("its first file is %.100q with %d bytes, and not a %s", h.Name, h.Size, manifestName)
	}
	var text bytes.Buffer
	if err := in.copy(&text, h); err != nil {
		return err
	}
	if err := json.Unmarshal(text.Bytes(), &in.m); err != nil {
		return refuse("%s: %w", manifestName, err)
	}
	if in.m.Format != Format {
		return refuse("%s: format %.60q is not %s: another version of the appliance made it", manifestName, in.m.Format, Format)
	}
	if in.m.Runs < 0 || in.m.Recordings < 0 || in.m.Bytes < 0 {
		return refuse("%s: a number in it is negative", manifestName)
	}
	if in.m.Bytes > in.left {
		return refuse("it has %d bytes, and there is room for %d", in.m.Bytes, in.left)
	}
	return nil
}

// copy copies a file and adds it to the sums.
func (in *reader) copy(w io.Writer, h *tar.Header) error {
	digest := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, digest), in.tar); err != nil {
		return err
	}
	fmt.Fprintf(in.sums, "%x  %s\n", digest.Sum(nil), h.Name)
	return nil
}

func (in *reader) file(h *tar.Header, each func(Manifest, Entry) error) error {
	if err := CheckName(h.Name, in.m.Secrets); err != nil {
		return err
	}
	if !follows(in.last, h.Name) {
		return refuse("%.100q comes after %.100q: the files are not in order, or one is there twice", h.Name, in.last)
	}
	in.last = h.Name
	digest := sha256.New()
	content := &counted{r: io.TeeReader(in.tar, digest)}
	if err := each(in.m, Entry{h, content}); err != nil {
		return err
	}
	if content.n != h.Size {
		return fmt.Errorf("restore: %d of the %d bytes of %s were read", content.n, h.Size, h.Name)
	}
	fmt.Fprintf(in.sums, "%x  %s\n", digest.Sum(nil), h.Name)
	return nil
}

// counted counts the bytes that were read.
type counted struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// end compares the sums, and looks for what comes after them.
func (in *reader) end(h *tar.Header) error {
	digest := sha256.New()
	if _, err := io.Copy(digest, in.tar); err != nil {
		return err
	}
	if !bytes.Equal(digest.Sum(nil), in.sums.Sum(nil)) {
		return refuse("its content does not have the checksums of %s: it was damaged or changed", h.Name)
	}
	if _, err := in.tar.Next(); err != io.EOF {
		return refuse("there is more after %s", h.Name)
	}
	return nil
}
