package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Health tells how the box is; it needs no token. A box a part of which gives no sign of life
// answers with the status failing.
func (c *Client) Health(ctx context.Context) (h Health, err error) {
	limited, done := context.WithTimeout(ctx, answerLimit)
	defer done()
	answer, err := c.ask(limited, http.MethodGet, "/api/v1/health", nil, nil)
	if err != nil {
		return h, c.outcome(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
		return h, c.refusal(answer)
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&h)
	switch {
	case err == nil && h.Status != "":
		return h, nil
	case answer.StatusCode != http.StatusOK:
		return h, c.refusal(answer)
	}
	return h, &UnsuitableError{c.config.Base, "is not a panel of the appliance"}
}

// Devices lists what can be measured, and the links.
func (c *Client) Devices(ctx context.Context) (devices []Device, links []string, err error) {
	var list struct {
		Devices []Device
		Links   []string
	}
	err = c.exchange(ctx, http.MethodGet, "/api/v1/devices", "", nil, &list)
	return list.Devices, list.Links, err
}

// StartPlan is [Client.Start] with a plan. A field that has its zero value is left out, so
// that the box chooses.
func (c *Client) StartPlan(ctx context.Context, p Plan) (id string, err error) {
	return c.start(ctx, "/api/v1/runs", p)
}

// Runs lists runs, the newest first: at most limit, after the one that Next of the page before
// names. The first page has an empty before.
func (c *Client) Runs(ctx context.Context, before string, limit int) (list Runs, err error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if before != "" {
		query.Set("before", before)
	}
	return list, c.exchange(ctx, http.MethodGet, "/api/v1/runs?"+query.Encode(), "", nil, &list)
}

// DeleteRun deletes a run that has ended, with its files.
func (c *Client) DeleteRun(ctx context.Context, id string) error {
	return c.exchange(ctx, http.MethodDelete, "/api/v1/runs/"+url.PathEscape(id)+"?files=true", "", nil, nil)
}

// History returns the numbers of the series that a query selects, with the parameters of GET /api/v1/history; without a
// selection it lists the series.
func (c *Client) History(ctx context.Context, query url.Values) (h History, err error) {
	return h, c.exchange(ctx, http.MethodGet, "/api/v1/history?"+query.Encode(), "", nil, &h)
}

// Files lists the files of a run. more says that there are more than were listed.
func (c *Client) Files(ctx context.Context, id string) (files []File, more bool, err error) {
	var list struct {
		Files []File
		More  bool
	}
	err = c.exchange(ctx, http.MethodGet, "/api/v1/runs/"+url.PathEscape(id)+"/artifacts", "", nil, &list)
	return list.Files, list.More, err
}

// Open opens a file of a run by its path in the run's folder. The caller bounds what it reads,
// and closes it.
func (c *Client) Open(ctx context.Context, id, path string) (io.ReadCloser, error) {
	var escaped []string
	for part := range strings.SplitSeq(path, "/") {
		escaped = append(escaped, url.PathEscape(part))
	}
	return c.open(ctx, "/api/v1/runs/"+url.PathEscape(id)+"/artifacts/"+strings.Join(escaped, "/"))
}

// OpenArchive opens a recording on the box, as [Client.Open] opens a file.
func (c *Client) OpenArchive(ctx context.Context, name string) (io.ReadCloser, error) {
	return c.open(ctx, "/api/v1/archives/"+url.PathEscape(name))
}

func (c *Client) open(ctx context.Context, path string) (io.ReadCloser, error) {
	var content io.ReadCloser
	err := c.retry(ctx, func() error {
		answer, err := c.do(ctx, http.MethodGet, path, nil, nil)
		if err != nil {
			return err
		}
		content = answer.Body
		return nil
	})
	return content, c.outcome(err)
}

// RemoveArchive removes a recording.
func (c *Client) RemoveArchive(ctx context.Context, name string) error {
	return c.exchange(ctx, http.MethodDelete, "/api/v1/archives/"+url.PathEscape(name), "", nil, nil)
}

// Alert returns an alert.
func (c *Client) Alert(ctx context.Context, id int64) (a Alert, err error) {
	return a, c.exchange(ctx, http.MethodGet, "/api/v1/alerts/"+strconv.FormatInt(id, 10), "", nil, &a)
}

// isFailing tells the answer of a box that hangs from one that refuses.
func isFailing(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable
}
