package client

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// Backup writes all that the box keeps to w: see package backup. It asks once, since what was
// written cannot be taken back.
func (c *Client) Backup(ctx context.Context, secrets bool, w io.Writer) error {
	path := "/api/v1/backup"
	if secrets {
		path += "?secrets=true"
	}
	return c.download(ctx, path, w)
}

// download copies a file of any length.
func (c *Client) download(ctx context.Context, path string, w io.Writer) error {
	answer, err := c.do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return c.outcome(err)
	}
	defer answer.Body.Close()
	into := &localWriter{w: w}
	_, err = io.Copy(into, answer.Body)
	if into.err != nil {
		return into.err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return c.outcome(errors.New("the answer ended in the middle; the box's log says why"))
	}
	if err != nil {
		return c.outcome(err)
	}
	return nil
}
