package client

import (
	"context"
	"encoding/json"
	"net/http"

	"eidetic/internal/web/panel"
)

// JoinFleet makes the box a member of the fleet of the link's head; without a name the box chooses one.
func (c *Client) JoinFleet(ctx context.Context, link, name string) (st panel.FleetStatus, err error) {
	text, err := c.send(ctx, http.MethodPut, "/api/v1/fleet", map[string]string{"link": link, "name": name})
	if err != nil {
		return st, err
	}
	if json.Unmarshal(text, &st) != nil || !st.Joined {
		return st, c.garbled("the answer does not say that the box has joined")
	}
	st.Head, st.Name = Plain(st.Head), Plain(st.Name)
	return st, nil
}

// LeaveFleet makes the box leave its fleet; with force also while it holds parts.
func (c *Client) LeaveFleet(ctx context.Context, force bool) error {
	path := "/api/v1/fleet"
	if force {
		path += "?force=true"
	}
	_, err := c.send(ctx, http.MethodDelete, path, nil)
	return err
}
