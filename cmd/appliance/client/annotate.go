package client

import (
	"context"
	"net/http"
	"net/url"

	"eidetic/internal/web/panel"
)

// Annotate puts notes onto the timeline of a run in progress.
func (c *Client) Annotate(ctx context.Context, id string, notes []panel.Note) error {
	_, err := c.send(ctx, http.MethodPost, "/api/v1/runs/"+url.PathEscape(id)+"/annotations", map[string]any{"annotations": notes})
	return err
}
