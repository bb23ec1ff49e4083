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
	"eidetic/internal/fleet/blob"
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
func (c *Client) openArchive(ctx context.Context, part, token, digest string, offset int64) (io.ReadCloser, error) {
	return c.open(ctx, partPath(part, "archives/"+digest), token, offset)
}

// openUpdate asks for the update that the box is to install. The caller closes the body.
func (c *Client) openUpdate(ctx context.Context, digest string, offset int64) (io.ReadCloser, error) {
	return c.open(ctx, "/updates/"+digest, "", offset)
}

func (c *Client) open(ctx context.Context, path, token string, offset int64) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set(fleet.LeaseHeader, token)
	}
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

// upload sends the content of a file that the head lacks, from where an earlier upload ended. part and token are empty
// for a file that somebody wants to see.
func (c *Client) upload(ctx context.Context, t Times, part, token, digest string, size int64, content io.ReaderAt) error {
	to, header := c.base+"/blobs/"+digest, http.Header{}
	if part != "" {
		to += "?part=" + url.QueryEscape(part)
		header.Set(fleet.LeaseHeader, token)
	}
	policy := blob.Policy{Pause: t.First, MostPause: t.Most, Patience: t.Call, Silence: t.Call}
	err := blob.Send(ctx, c.client, to, header, content, size, policy)
	var answered *blob.StatusError
	if errors.As(err, &answered) {
		if answered.Status == http.StatusConflict && answered.Type == fleet.LostProblem {
			return errLost
		}
		return &statusError{status: answered.Status, detail: clip(answered.Detail, maxProblem)}
	}
	return err
}
