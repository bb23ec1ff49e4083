package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/fleet"
)

// Store keeps blobs. It is safe for concurrent use, also by several processes.
//
// A blob has a time: when it was put, or when Has last found it (within [Renewal]). So a blob that somebody has just
// been told of is young, and [Collect] leaves it alone.
type Store interface {
	// Has returns the size of a blob and whether it is there.
	Has(ctx context.Context, digest string) (size int64, has bool, err error)
	// Put keeps a blob, which is there as a whole afterwards or not at all. Content whose size or digest is another is
	// refused with ErrDigest. A blob that is there already is put again: what has gone bad becomes good.
	Put(ctx context.Context, digest string, size int64, content io.Reader) error
	// Open returns ErrNotFound for a blob that is not there.
	Open(ctx context.Context, digest string) (Blob, error)
	// Remove removes a blob whose time is before the given one and says whether it did. One that is not there is no
	// error.
	Remove(ctx context.Context, digest string, before time.Time) (removed bool, err error)
	// List goes through all blobs, in the order of their digests as far as nothing is put meanwhile.
	List(ctx context.Context) iter.Seq2[Info, error]
}

// Info is a line of a store's list.
type Info struct {
	Digest string
	Bytes  int64
	Time   time.Time
}

// Blob is an open blob. Whoever reads it from start to end gets ErrDigest in place of its last bytes if they are not
// what they were.
type Blob interface {
	io.ReadSeekCloser
	Size() int64
}

// Renewal is the age from which on Has makes a blob young again.
const Renewal = 30 * time.Minute

var (
	// ErrNotFound is of a blob that is not there.
	ErrNotFound = fmt.Errorf("no such blob: %w", fs.ErrNotExist)
	// ErrDigest is of content that is not what its digest says.
	ErrDigest = errors.New("the content does not match its SHA-256")
	// ErrNoRoom is of a store or a staging folder that is full.
	ErrNoRoom = errors.New("no room")
	// ErrRefused is of a store that takes no call until a person has put its settings or ours right.
	ErrRefused = errors.New("the store refuses it")
)

// CheckDigest returns an error for what is no SHA-256 in lower-case hexadecimal.
func CheckDigest(digest string) error {
	if !fleet.IsDigest(digest) {
		return fmt.Errorf("%.70q is no SHA-256 in lower-case hexadecimal", digest)
	}
	return nil
}

// Place gives a blob a path, in a folder that exists: as a hard link where the store has files on the same file system,
// which costs no room, and else as a copy. A file that is at the path is an error (fs.ErrExist). A link shares content,
// mode and time with the store: nobody may write into the file; replacing it is all right. The caller syncs the path's
// folder.
func Place(ctx context.Context, s Store, digest, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("place the blob %.12s: %w: %s", digest, fs.ErrExist, path)
	}
	if f, ok := s.(*Folder); ok {
		return f.link(ctx, digest, path)
	}
	return Copy(ctx, s, digest, path)
}

// Copy gives a blob a path as a file of its own, which may be written into. A file that is at the path is replaced.
func Copy(ctx context.Context, s Store, digest, path string) error {
	b, err := s.Open(ctx, digest)
	if err != nil {
		return err
	}
	defer b.Close()
	f, err := atomicfile.Create(path, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := io.Copy(f, withContext{ctx, b}); err != nil {
		return fmt.Errorf("copy the blob %.12s to %s: %w", digest, path, noRoom(err))
	}
	return f.Commit()
}

// withContext is a reader that ends with its context.
type withContext struct {
	ctx context.Context
	io.Reader
}

func (r withContext) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// checked is a reader of content that must have a size and a digest. It keeps the last bytes back until it knows that
// all are right: whoever stores what it gives never has a whole file of wrong content.
type checked struct {
	from   io.Reader
	digest string
	left   int64
	hash   hash.Hash
	err    error
}

func newChecked(from io.Reader, digest string, size int64) *checked {
	return &checked{from: from, digest: digest, left: size, hash: sha256.New()}
}

func (c *checked) Read(p []byte) (int, error) {
	if c.err != nil || len(p) == 0 {
		return 0, c.err
	}
	if c.left == 0 { // an empty blob, or all has been read
		if c.err = c.end(); c.err == nil {
			c.err = io.EOF
		}
		return 0, c.err
	}
	n, err := c.from.Read(p[:min(int64(len(p)), c.left)])
	c.hash.Write(p[:n])
	c.left -= int64(n)
	switch {
	case c.left == 0:
		if c.err = c.end(); c.err != nil {
			return 0, c.err
		}
		c.err = io.EOF
		return n, nil
	case errors.Is(err, io.EOF):
		c.err = fmt.Errorf("%w: it ends %d bytes early", ErrDigest, c.left)
	case err != nil:
		c.err = err
	default:
		return n, nil
	}
	return n, c.err
}

// end checks the digest, and that nothing follows.
func (c *checked) end() error {
	if got := hex.EncodeToString(c.hash.Sum(nil)); got != c.digest {
		return fmt.Errorf("%w: it is %.12s…, not %.12s…", ErrDigest, got, c.digest)
	}
	var more [1]byte
	switch n, err := io.ReadFull(c.from, more[:]); {
	case n > 0:
		return fmt.Errorf("%w: it is longer than it should be", ErrDigest)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// verified is a blob that checks itself while it is read from start to end; seeking to the start begins anew.
type verified struct {
	io.ReadSeekCloser
	digest string
	size   int64
	at     int64     // where the reader is
	hashed int64     // how much of the content is in hash, or -1 if the reader left the order
	hash   hash.Hash // of the content up to hashed
}

func newVerified(from io.ReadSeekCloser, digest string, size int64) *verified {
	return &verified{ReadSeekCloser: from, digest: digest, size: size, hash: sha256.New()}
}

// Size is of the whole blob.
func (v *verified) Size() int64 { return v.size }

func (v *verified) Read(p []byte) (int, error) {
	if v.at == 0 && v.hashed != 0 {
		v.hash.Reset()
		v.hashed = 0
	}
	n, err := v.ReadSeekCloser.Read(p)
	if n > 0 && v.at == v.hashed {
		v.hash.Write(p[:n])
		v.hashed += int64(n)
		if v.hashed == v.size && hex.EncodeToString(v.hash.Sum(nil)) != v.digest {
			return 0, fmt.Errorf("blob %.12s: %w: the store has lost or changed a part of it", v.digest, ErrDigest)
		}
	}
	v.at += int64(n)
	if errors.Is(err, io.EOF) && v.at < v.size {
		return n, fmt.Errorf("blob %.12s: %w: the store has only %d of %d bytes", v.digest, ErrDigest, v.at, v.size)
	}
	return n, err
}

// Seek sets where the next Read starts.
func (v *verified) Seek(offset int64, whence int) (int64, error) {
	at, err := v.ReadSeekCloser.Seek(offset, whence)
	if err == nil {
		v.at = at
	}
	return at, err
}
