package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"eidetic/internal/keep/retention"
	"eidetic/internal/web/panel"
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
	switch {
	case into.err != nil:
		return into.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the answer ended in the middle; the box's log says why")
	}
	return c.outcome(err)
}

// Retention says what a policy would delete, or with apply deletes it. A policy that bounds nothing
// stands for the box's own.
func (c *Client) Retention(ctx context.Context, p retention.Policy, apply bool) (got panel.Retention, err error) {
	query := url.Values{}
	for name, v := range map[string]float64{"keep_days": float64(p.KeepDays), "keep_gb": p.KeepGB, "keep_free_gb": p.KeepFreeGB} {
		if v > 0 {
			query.Set(name, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	method := http.MethodGet
	if apply {
		method = http.MethodPost
	}
	text, err := c.send(ctx, method, "/api/v1/retention?"+query.Encode(), nil)
	if err != nil {
		return got, err
	}
	if json.Unmarshal(text, &got) != nil {
		return got, c.garbled("the answer about retention cannot be read")
	}
	return got, nil
}

// Pin keeps a run with all its files.
func (c *Client) Pin(ctx context.Context, id, why string) error {
	_, err := c.send(ctx, http.MethodPut, "/api/v1/runs/"+url.PathEscape(id)+"/pin", map[string]string{"why": why})
	return err
}

// Unpin removes the pin of a run.
func (c *Client) Unpin(ctx context.Context, id string) error {
	_, err := c.send(ctx, http.MethodDelete, "/api/v1/runs/"+url.PathEscape(id)+"/pin", nil)
	return err
}

// Support writes a support bundle to w.
func (c *Client) Support(ctx context.Context, w io.Writer) error {
	return c.download(ctx, "/api/v1/support", w)
}
