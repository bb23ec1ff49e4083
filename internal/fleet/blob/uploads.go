package blob

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/base/atomicfile"
)

// UploadsConfig says where unfinished uploads are kept and how many. What is 0 has the default that its comment names.
type UploadsConfig struct {
	Store Store
	// Dir is the staging folder. Several processes may share it. On the file system of a Folder, a finished upload is
	// moved into it without a copy.
	Dir        string
	PerOwner   int           // unfinished uploads of an owner: 64
	OwnerBytes int64         // their bytes, as announced: 64 GiB
	BlobBytes  int64         // of one upload: 16 GiB
	Age        time.Duration // since its last byte, after which Sweep removes an unfinished upload: 7 days
	Reserve    int64         // of the disk's bytes that uploads leave free: 0
	// Silence is for how long a request may send nothing before another one may take over its upload: 10 s. After six
	// times as long it is ended.
	Silence time.Duration
	Log     *slog.Logger
}

// Uploads receives blobs piece by piece. What has arrived survives the end of the connection, of the process (kill -9)
// and, once its offset was told, of the machine's power.
//
// An upload belongs to an owner, so that no owner writes into another's; two owners may upload the same blob at once,
// and the first that is whole ends both. Within an owner, one request at a time writes.
type Uploads struct {
	config UploadsConfig
	mu     sync.Mutex
	held   map[string]*holder // by the path of the upload without its length
	admits sync.Mutex         // making room for an upload is one step
}

// OpenUploads makes the staging folder unless it exists.
func OpenUploads(c UploadsConfig) (*Uploads, error) {
	c.PerOwner = cmp.Or(c.PerOwner, 64)
	c.OwnerBytes = cmp.Or(c.OwnerBytes, 64<<30)
	c.BlobBytes = cmp.Or(c.BlobBytes, 16<<30)
	c.Age = cmp.Or(c.Age, 7*24*time.Hour)
	c.Silence = cmp.Or(c.Silence, 10*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Store == nil || c.Dir == "" {
		return nil, errors.New("uploads need a store and a staging folder")
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("staging folder of uploads: %w", err)
	}
	return &Uploads{config: c, held: map[string]*holder{}}, nil
}

// holder is the request that writes an upload, or looks at it.
type holder struct {
	done chan struct{} // closed when it has left

	mu      sync.Mutex
	last    time.Time // when its last bytes came
	stopped bool
	limit   func(time.Time) // sets a deadline of its reads
}

// alive notes that bytes came, and says whether the request may go on.
func (h *holder) alive(silence time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped {
		h.last = time.Now()
		h.limit(h.last.Add(silence))
	}
	return !h.stopped
}

// stopIfSilent ends the request unless bytes have come lately. It returns the time until it could be silent for so
// long.
func (h *holder) stopIfSilent(silence time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := silence - time.Since(h.last)
	if left <= 0 {
		h.stopped = true
		h.limit(time.Unix(1, 0))
		return silence
	}
	return left
}

// errBusy is of an upload that another request is writing.
var errBusy = errors.New("another request is writing this upload")

// patience is how many times Silence a request waits for another one of the same upload.
const patience = 2

// hold waits until nobody else has the upload.
func (u *Uploads) hold(ctx context.Context, key string, limit func(time.Time)) (h *holder, release func(), err error) {
	h = &holder{done: make(chan struct{}), last: time.Now(), limit: limit}
	over := time.NewTimer(patience*u.config.Silence + u.config.Silence/2)
	defer over.Stop()
	for {
		u.mu.Lock()
		other := u.held[key]
		if other == nil {
			u.held[key] = h
			u.mu.Unlock()
			return h, func() { u.release(key, h) }, nil
		}
		u.mu.Unlock()
		next := time.NewTimer(other.stopIfSilent(u.config.Silence))
		select {
		case <-other.done:
		case <-next.C:
		case <-ctx.Done():
			err = ctx.Err()
		case <-over.C:
			err = errBusy
		}
		next.Stop()
		if err != nil {
			return nil, nil, err
		}
	}
}

func (u *Uploads) release(key string, h *holder) {
	h.mu.Lock()
	h.limit = func(time.Time) {} // the request may end now
	h.mu.Unlock()
	u.mu.Lock()
	delete(u.held, key)
	u.mu.Unlock()
	close(h.done)
}

// key is the path of an upload without its length.
func (u *Uploads) key(owner, digest string) string {
	sum := sha256.Sum256([]byte(owner))
	return filepath.Join(u.config.Dir, hex.EncodeToString(sum[:16]), digest)
}

// staged is an unfinished upload: a file KEY.LENGTH with what has arrived.
type staged struct {
	path   string
	length int64
	size   int64 // what has arrived
	time   time.Time
}

func (s staged) key() string { return strings.TrimSuffix(s.path, filepath.Ext(s.path)) }

// list returns the unfinished uploads in an owner's folder.
func list(dir string) (all []staged, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		digest, text, _ := strings.Cut(e.Name(), ".")
		length, bad := parseCount(text)
		info, gone := e.Info()
		if CheckDigest(digest) == nil && bad == nil && gone == nil && info.Mode().IsRegular() {
			all = append(all, staged{filepath.Join(dir, e.Name()), length, info.Size(), info.ModTime()})
		}
	}
	return all, err
}

// find returns the unfinished upload of a key; ok is false if there is none.
func find(key string) (s staged, ok bool, err error) {
	all, err := list(filepath.Dir(key))
	for _, s := range all {
		if s.key() == key {
			return s, true, nil
		}
	}
	return staged{}, false, err
}

// tooLarge is of uploads that no removal of others makes room for.
type tooLarge struct{ bytes, most int64 }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("%d bytes are more than the %d that an upload may have here", e.bytes, e.most)
}

// admit makes room for a new upload of an owner by removing its oldest ones that nobody writes.
func (u *Uploads) admit(key string, length int64) error {
	if most := min(u.config.BlobBytes, u.config.OwnerBytes); length > most {
		return &tooLarge{length, most}
	}
	all, err := list(filepath.Dir(key))
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b staged) int { return a.time.Compare(b.time) })
	number, bytes := len(all)+1, length
	for _, s := range all {
		bytes += s.length
	}
	for _, s := range all {
		if number <= u.config.PerOwner && bytes <= u.config.OwnerBytes {
			return nil
		}
		if u.discard(s) {
			u.config.Log.Warn("an unfinished upload was removed: its owner has begun too many", "upload", filepath.Base(s.path), "bytes", s.size)
			number, bytes = number-1, bytes-s.length
		}
	}
	if number <= u.config.PerOwner && bytes <= u.config.OwnerBytes {
		return nil
	}
	return fmt.Errorf("%w: %d uploads with %d bytes are being written at once, more than %d with %d: wait until some are whole",
		errBusy, number, bytes, u.config.PerOwner, u.config.OwnerBytes)
}

// discard removes an unfinished upload unless somebody holds it.
func (u *Uploads) discard(s staged) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held[s.key()] != nil {
		return false
	}
	f, err := lockFile(s.path, 0)
	if err != nil { // another process writes it
		return false
	}
	defer f.Close()
	return os.Remove(s.path) == nil
}

// lockFile opens a file that no other process writes. The kernel gives the lock back when the process ends.
func lockFile(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, errBusy
	}
	// Between the two calls another process may have moved the file into the store: it is a blob now.
	mine, err := f.Stat()
	if err == nil {
		var at fs.FileInfo
		if at, err = os.Stat(path); err == nil && os.SameFile(mine, at) {
			return f, nil
		}
	}
	f.Close()
	return nil, errBusy
}

// openStaged opens the unfinished upload of a key, which the caller holds, or begins one of a length.
func (u *Uploads) openStaged(key string, length int64) (*os.File, staged, error) {
	s, ok, err := find(key)
	if err != nil {
		return nil, s, err
	}
	if ok && s.length != length { // one of the two lengths is wrong, and only the newer one can become right
		if !removeLocked(s.path) {
			return nil, s, errBusy
		}
		ok = false
	}
	if !ok {
		u.admits.Lock()
		defer u.admits.Unlock()
		if err := u.admit(key, length); err != nil {
			return nil, s, err
		}
		if err := os.MkdirAll(filepath.Dir(key), 0o700); err != nil {
			return nil, s, err
		}
		s = staged{path: key + "." + strconv.FormatInt(length, 10), length: length}
	}
	f, err := lockFile(s.path, os.O_CREATE)
	if err != nil {
		return nil, s, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, s, err
	}
	s.size = info.Size()
	return f, s, nil
}

func removeLocked(path string) bool {
	f, err := lockFile(path, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return os.Remove(path) == nil
}

// room returns ErrNoRoom if the disk has not so many bytes besides the reserve.
func (u *Uploads) room(bytes int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(u.config.Dir, &st); err != nil {
		return err
	}
	free := int64(min(st.Bavail, 1<<40)) * st.Bsize // at most 2^52: no overflow
	if bytes > free-u.config.Reserve {
		return fmt.Errorf("%w: %d bytes are to come, %d are free, of which %d must stay so", ErrNoRoom, bytes, free, u.config.Reserve)
	}
	return nil
}

// sync puts an upload on the disk, with its name.
func (s staged) sync(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	dir := filepath.Dir(s.path)
	return errors.Join(atomicfile.SyncDir(dir), atomicfile.SyncDir(filepath.Dir(dir)))
}

// finish puts a whole upload into the store and removes it. After ErrDigest it is removed as well: it must begin anew.
func (u *Uploads) finish(ctx context.Context, f *os.File, s staged) error {
	digest := filepath.Base(s.key())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Minute+time.Duration(s.length>>20)*time.Second)
	defer cancel()
	err := u.store(ctx, f, s, digest)
	if err == nil || errors.Is(err, ErrDigest) {
		if gone := os.Remove(s.path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			return errors.Join(err, gone)
		}
	}
	return err
}

func (u *Uploads) store(ctx context.Context, f *os.File, s staged, digest string) error {
	content := func() io.Reader { return io.NewSectionReader(f, 0, s.length) }
	if folder, ok := u.config.Store.(*Folder); ok {
		if _, err := io.Copy(io.Discard, newChecked(content(), digest, s.length)); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		if err := folder.adopt(digest, s.path); !errors.Is(err, unix.EXDEV) {
			return err
		}
	}
	return u.config.Store.Put(ctx, digest, s.length, content())
}

// Sweep removes the unfinished uploads that are too old. Call it now and then.
func (u *Uploads) Sweep(now time.Time) error {
	owners, err := os.ReadDir(u.config.Dir)
	for _, owner := range owners {
		dir := filepath.Join(u.config.Dir, owner.Name())
		all, unread := list(dir)
		err = errors.Join(err, unread)
		for _, s := range all {
			if now.Sub(s.time) > u.config.Age && u.discard(s) {
				u.config.Log.Info("an unfinished upload was removed: it is too old", "upload", filepath.Base(s.path), "bytes", s.size)
			}
		}
		_ = os.Remove(dir) // only if it is empty
	}
	return err
}
