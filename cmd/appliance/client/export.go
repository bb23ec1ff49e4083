package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"eidetic/internal/keep/store"
)

// Export says what is wanted of a run.
type Export struct {
	Format, Report, Picture string
	Trial                   int
}

// Export returns a run on the box in a format of other programs.
func (c *Client) Export(ctx context.Context, id string, e Export) ([]byte, error) {
	query := url.Values{"format": {e.Format}}
	if e.Report != "" {
		query.Set("report", e.Report)
	}
	if e.Trial != 0 {
		query.Set("trial", strconv.Itoa(e.Trial))
	}
	if e.Picture != "" {
		query.Set("picture", e.Picture)
	}
	text, err := c.request(ctx, http.MethodGet, "/api/v1/runs/"+url.PathEscape(id)+"/export?"+query.Encode(), nil, nil, store.MaxRunBytes)
	return text, c.outcome(err)
}
