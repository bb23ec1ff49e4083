package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"eidetic/internal/fleet"
)

// stalled cancels a transfer in which no byte has moved for a while.
type stalled struct {
	timer *time.Timer
	limit time.Duration
}

func watchStall(ctx context.Context, limit time.Duration) (context.Context, *stalled, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stalled{limit: limit}
	s.timer = time.AfterFunc(limit, func() { cancel(errors.New("nothing has moved for " + limit.String())) })
	return ctx, s, func() { s.timer.Stop(); cancel(nil) }
}

// reader passes the bytes on, and notes that they move.
func (s *stalled) reader(from io.Reader) io.Reader { return stallReader{s, from} }

type stallReader struct {
	*stalled
	from io.Reader
}

func (r stallReader) Read(p []byte) (int, error) {
	r.timer.Reset(r.limit)
	return r.from.Read(p)
}

// openArchive asks for a recording of a part from an offset on. The caller closes the body.
func (c *caller) openArchive(ctx context.Context, part, token, digest string, offset int64) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+partPath(part, "archives/"+digest), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set(fleet.LeaseHeader, token)
	if offset > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-")
	}
	res, err := c.client.Do(req)
	if err != nil {
		return nil, unreachable(err)
	}
	want := http.StatusOK
	if offset > 0 {
		want = http.StatusPartialContent
	}
	if res.StatusCode != want {
		defer res.Body.Close()
		if res.StatusCode/100 == 2 {
			return nil, fmt.Errorf("the head answers %d in place of %d", res.StatusCode, want)
		}
		return nil, problemOf(res)
	}
	return res.Body, nil
}

// mostResets bounds how often one upload goes back to where the head says that it is.
const mostResets = 20

// upload sends the content of a file that the head lacks, from where an earlier upload ended. The digest of the content is
// checked by the head. part and token are empty for a file that somebody wants to see.
func (c *caller) upload(ctx context.Context, part, token, digest string, size int64, content io.ReaderAt) error {
	path := c.base + "/blobs/" + digest
	if part != "" {
		path += "?part=" + url.QueryEscape(part)
	}
	offset, whole, err := c.uploaded(ctx, path, token)
	if err != nil || whole {
		return err
	}
	for range mostResets {
		if offset < 0 || offset > size {
			return fmt.Errorf("the head says that it has %d bytes of a file of %d", offset, size)
		}
		err := c.send(ctx, path, token, offset, size, content)
		var s *statusError
		if !errors.As(err, &s) || s.status != http.StatusConflict || s.offset == offset {
			return err
		}
		offset = s.offset
	}
	return errors.New("the head says each time that it is at another place of the file")
}

// uploaded asks how much of a file the head has.
func (c *caller) uploaded(ctx context.Context, path, token string) (offset int64, whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, path, http.NoBody)
	if err != nil {
		return 0, false, err
	}
	if token != "" {
		req.Header.Set(fleet.LeaseHeader, token)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return 0, false, unreachable(err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound:
		return 0, false, nil
	case res.StatusCode/100 != 2:
		return 0, false, problemOf(res)
	case res.Header.Get("Upload-Complete") == "?1":
		return 0, true, nil
	}
	offset, err = strconv.ParseInt(res.Header.Get("Upload-Offset"), 10, 64)
	if err != nil {
		err = fmt.Errorf("the head says nothing of how far the upload is: %w", err)
	}
	return offset, false, err
}

// send sends the rest of a file.
func (c *caller) send(ctx context.Context, path, token string, offset, size int64, content io.ReaderAt) error {
	ctx, stall, done := watchStall(ctx, c.limit)
	defer done()
	body := stall.reader(io.NewSectionReader(content, offset, size-offset))
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, path, io.NopCloser(body))
	if err != nil {
		return err
	}
	req.ContentLength = size - offset
	if req.ContentLength == 0 {
		req.Body = http.NoBody
	}
	req.Header.Set("Content-Type", "application/offset+octet-stream")
	req.Header.Set("Upload-Offset", strconv.FormatInt(offset, 10))
	req.Header.Set("Upload-Length", strconv.FormatInt(size, 10))
	if token != "" {
		req.Header.Set(fleet.LeaseHeader, token)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return unreachable(errors.Join(err, context.Cause(ctx)))
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return problemOf(res)
	}
	return nil
}
