package member

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"time"

	"eidetic/internal/fleet"
)

const (
	// maxArchive bounds a recording, as the panel bounds an upload.
	maxArchive = 4 << 30
	// archiveSuffix ends the name of a recording that came from the head; before it stands its digest.
	archiveSuffix = ".wacz"
	// archivesKept is how long a recording is kept after the last part that used it.
	archivesKept = 7 * 24 * time.Hour
)

// fetchAll fetches the recordings of a part that the box lacks. What the box cannot take is a [returned].
func (s *session) fetchAll(ctx context.Context, p *part) error {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-own.Done():
		case <-p.cancel:
			cancel()
		}
	}()
	for _, a := range p.get().Archives {
		if s.hasArchive(a) {
			continue
		}
		from := s.newFileReader(own, a, func(ctx context.Context, offset int64) (io.ReadCloser, bool, error) {
			token := p.token()
			body, err := s.call.openArchive(ctx, p.get().Part, token, a.SHA256, offset)
			return body, errors.Is(err, errLost) && p.token() == token || isFinal(err) && !errors.Is(err, errLost), err
		})
		err := s.Archives.Put(own, a.SHA256+archiveSuffix, from)
		from.close()
		switch {
		case err == nil:
		case p.stopped():
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errLost):
			return errLost
		default:
			return &returned{clip(fmt.Sprintf("the recording %.100s: %v", a.Name, err), maxReason)}
		}
	}
	return nil
}

// hasArchive says whether the box has a recording, byte for byte.
func (s *session) hasArchive(a fleet.ArchiveFile) bool {
	f, err := s.Archives.Open(a.SHA256 + archiveSuffix)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil || n != a.Bytes || hex.EncodeToString(sum.Sum(nil)) != a.SHA256 {
		return false
	}
	_ = os.Chtimes(f.Name(), time.Time{}, s.Now()) // at worst it is fetched again
	return true
}

// fileReader reads a recording, or an update, from the head. Where the connection ends early it goes on in another one;
// content with another digest is an error in place of its end, so that whoever reads it keeps nothing.
type fileReader struct {
	ctx     context.Context
	session *session
	file    fleet.ArchiveFile
	// from opens a connection at an offset; final says that the same call would get the same error again.
	from func(ctx context.Context, offset int64) (body io.ReadCloser, final bool, err error)

	body   io.ReadCloser
	ended  func() // of the connection
	stall  *stalled
	offset int64
	sum    hash.Hash
	failed retry
}

func (s *session) newFileReader(
	ctx context.Context, f fleet.ArchiveFile, from func(context.Context, int64) (io.ReadCloser, bool, error),
) *fileReader {
	return &fileReader{ctx: ctx, session: s, file: f, from: from, sum: sha256.New()}
}

func (r *fileReader) close() {
	if r.body != nil {
		_ = r.body.Close()
		r.ended()
		r.body = nil
	}
}

func (r *fileReader) Read(b []byte) (int, error) {
	for {
		if err := r.open(); err != nil {
			return 0, err
		}
		n, err := r.stall.reader(r.body).Read(b)
		r.offset += int64(n)
		_, _ = r.sum.Write(b[:n]) // a hash takes everything
		if r.offset > r.file.Bytes {
			return 0, fmt.Errorf("it has more than the %d bytes that the head said", r.file.Bytes)
		}
		if n > 0 {
			r.failed = retry{}
			return n, nil
		}
		if errors.Is(err, io.EOF) && r.offset == r.file.Bytes {
			if got := hex.EncodeToString(r.sum.Sum(nil)); got != r.file.SHA256 {
				return 0, fmt.Errorf("its SHA-256 is %s and not %s", got, r.file.SHA256)
			}
			return 0, io.EOF
		}
		if err != nil {
			r.close()
			r.failed.wait(r.ctx, r.session.Times, nil)
		}
	}
}

// open opens a connection if there is none.
func (r *fileReader) open() error {
	for r.body == nil {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		ctx, stall, done := watchStall(r.ctx, r.session.Times.Call)
		body, final, err := r.from(ctx, r.offset)
		r.session.heard(err)
		if err == nil {
			r.body, r.ended, r.stall = body, done, stall
			return nil
		}
		done()
		if final {
			return err
		}
		r.failed.wait(r.ctx, r.session.Times, nil)
	}
	return nil
}

// tidy removes recordings that came from the head and that nothing has used for a week.
func (s *session) tidy(ctx context.Context) {
	names, err := s.Archives.Names()
	jobs, jobsErr := s.Queue.List(ctx)
	if errors.Join(err, jobsErr) != nil {
		return // another part will come
	}
	needed := map[string]bool{}
	for _, p := range s.list() {
		for _, a := range p.get().Archives {
			needed[a.SHA256+archiveSuffix] = true
		}
	}
	for _, j := range jobs {
		for _, name := range j.Plan.Archives() {
			needed[name] = true
		}
	}
	for _, name := range names {
		digest, ok := strings.CutSuffix(name, archiveSuffix)
		if !ok || !fleet.IsDigest(digest) || needed[name] {
			continue
		}
		f, err := s.Archives.Open(name)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		_ = f.Close() // it was only looked at
		if err != nil || s.Now().Sub(info.ModTime()) < archivesKept {
			continue
		}
		if err := s.Archives.Remove(name); err != nil {
			s.Log.Warn("a recording of the fleet cannot be removed", "recording", name, "error", err)
		}
	}
}
