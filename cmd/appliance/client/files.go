package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/keep/store"
	"eidetic/internal/tell/report"
	"eidetic/internal/web/panel"
)

// maxReport bounds a report, which has pictures in it.
const maxReport = 1 << 30

// Archives lists the recordings on the box.
func (c *Client) Archives(ctx context.Context) ([]panel.Archive, error) {
	var list struct{ Archives []panel.Archive }
	return list.Archives, c.exchange(ctx, http.MethodGet, "/api/v1/archives", "", nil, &list)
}

// UploadArchive uploads a recording unless the box has it, and returns its name
// there. The name holds a part of the file's digest, so that two scripts with
// different files of one name do not get each other's. starts is called before
// an upload.
func (c *Client) UploadArchive(ctx context.Context, file string, starts func(name string, size int64)) (name string, err error) {
	f, digest, size, err := openHashed(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	name = uploadName(file, digest)
	have, err := c.Archives(ctx)
	if err != nil {
		return "", err
	}
	for _, a := range have {
		if a.Name == name && a.Bytes == size {
			return name, nil
		}
	}
	starts(name, size)
	return name, c.uploadArchive(ctx, name, f, size)
}

// PutArchive uploads a recording under a name, unless the box has it. Another recording of that name is refused. starts
// is called before an upload.
func (c *Client) PutArchive(ctx context.Context, name, file string, starts func(size int64)) error {
	f, digest, size, err := openHashed(file)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := c.Archives(ctx)
	if err != nil {
		return err
	}
	for _, a := range have {
		if a.Name != name {
			continue
		}
		var there panel.ArchiveContents
		if err := c.exchange(ctx, http.MethodGet, "/api/v1/archives/"+url.PathEscape(name)+"/contents", "", nil, &there); err != nil {
			return err
		}
		if there.SHA256 != hex.EncodeToString(digest) {
			return errors.New("the box has another recording of this name: rename one of them")
		}
		return nil
	}
	starts(size)
	return c.uploadArchive(ctx, name, f, size)
}

// openHashed opens a file to be uploaded, and returns its SHA-256 and its size.
func openHashed(file string) (f *os.File, digest []byte, size int64, err error) {
	if f, err = os.Open(file); err != nil {
		return nil, nil, 0, err
	}
	sum := sha256.New()
	if size, err = io.Copy(sum, f); err != nil {
		f.Close()
		return nil, nil, 0, err
	}
	return f, sum.Sum(nil), size, nil
}

// uploadName is what a recording is called on the box.
func uploadName(file string, digest []byte) string {
	base := strings.TrimSuffix(filepath.Base(file), ".wacz")
	base = strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(base, "-"), "-_")
	if len(base) > 80 {
		base = base[:80]
	}
	if base == "" {
		base = "recording"
	}
	return base + "-" + hex.EncodeToString(digest[:8]) + ".wacz"
}

func (c *Client) uploadArchive(ctx context.Context, name string, content io.ReadSeeker, size int64) error {
	return c.upload(ctx, http.MethodPut, "/api/v1/archives/"+url.PathEscape(name), content, size, nil, "Content-Type", "application/wacz")
}

// upload sends a file; the answer is decoded into out unless that is nil. head is names of fields, each with its value.
func (c *Client) upload(ctx context.Context, method, path string, content io.ReadSeeker, size int64, out any, head ...string) error {
	return c.outcome(c.retry(ctx, func() error {
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return &localError{err}
		}
		limited, done := context.WithTimeout(ctx, transferLimit(size))
		defer done()
		answer, err := c.do(limited, method, path, io.NopCloser(content), func(r *http.Request) {
			r.ContentLength = size
			setFields(r, head)
		})
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if out == nil {
			return nil
		}
		return json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(out)
	}))
}

// transferLimit is how long a file of so many bytes may take.
func transferLimit(size int64) time.Duration {
	return fileLimit + time.Duration(size/slowestRate)*time.Second
}

// Fetch gets the report and the numbers of a run that has ended into dir. A file
// that the run does not have is left out: a run that failed early has no report.
func (c *Client) Fetch(ctx context.Context, id, dir string) error {
	all := []file{
		{"run.json", store.MaxRunBytes}, {"report.json", store.MaxRunBytes}, {report.FileName, maxReport}, {report.TimelineName, maxReport},
	}
	return c.fetchAll(ctx, id, all, dir)
}

// FetchCells gets the reports of a run's pages and users into dir, besides what Fetch gets.
func (c *Client) FetchCells(ctx context.Context, id string, cells int, dir string) error {
	var all []file
	for i := range cells {
		all = append(all, file{report.CellName(i), maxReport}, file{report.CellTimelineName(i), maxReport})
	}
	return c.fetchAll(ctx, id, all, dir)
}

// file is one of a run's files.
type file struct {
	name string
	most int64
}

func (c *Client) fetchAll(ctx context.Context, id string, all []file, dir string) error {
	for _, f := range all {
		err := c.retry(ctx, func() error { return c.fetchFile(ctx, id, f.name, dir, f.most) })
		var refused *RefusedError
		if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
			continue
		}
		if err != nil {
			return c.outcome(err)
		}
	}
	return nil
}

// fetchFile gets one file. Under its name is the whole of it, or what was there before.
func (c *Client) fetchFile(ctx context.Context, id, name, dir string, most int64) error {
	limited, done := context.WithTimeout(ctx, transferLimit(most))
	defer done()
	answer, err := c.do(limited, http.MethodGet, "/api/v1/runs/"+url.PathEscape(id)+"/artifacts/"+name, nil, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	f, err := atomicfile.Create(filepath.Join(dir, name), ".fetching-")
	if err != nil {
		return &localError{err}
	}
	defer f.Discard()
	into := &localWriter{w: f}
	n, err := io.Copy(into, io.LimitReader(answer.Body, most+1))
	local := errors.Join(into.err, f.Chmod(0o644))
	switch {
	case local != nil:
		return &localError{local}
	case err != nil:
		return err
	case n > most:
		return c.garbled(fmt.Sprintf("%s has more than %d MiB", name, most>>20))
	}
	if err := f.Commit(); err != nil {
		return &localError{err}
	}
	return nil
}

// localWriter keeps the errors of a file here apart from those of the connection.
type localWriter struct {
	w   io.Writer
	err error
}

func (l *localWriter) Write(p []byte) (n int, err error) {
	n, l.err = l.w.Write(p)
	return n, l.err
}
