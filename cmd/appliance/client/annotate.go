package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"eidetic/internal/web/panel"
)

// Annotate puts notes onto the timeline of a run in progress.
func (c *Client) Annotate(ctx context.Context, id string, notes []panel.Note) error {
	body, err := json.Marshal(map[string]any{"annotations": notes})
	if err != nil {
		return err
	}
	_, err = c.request(ctx, http.MethodPost, "/api/v1/runs/"+url.PathEscape(id)+"/annotations", body, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
	}, maxAnswer)
	return c.outcome(err)
}
