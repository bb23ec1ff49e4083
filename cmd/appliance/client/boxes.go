package client

import (
	"context"
	"net/http"
	"net/url"

	"eidetic/internal/panel"
)

// What a fleet's head answers; see docs/fleet.md.
type (
	Box         = panel.Box
	BoxChange   = panel.BoxChange
	BoxReadings = panel.BoxReadings
	JoinCode    = panel.JoinCode
	Reference   = panel.Reference
)

const referencePath = "/api/v1/reference"

func boxPath(name string) string { return "/api/v1/boxes/" + url.PathEscape(name) }

func boxDevicePath(name, device, part string) string {
	return boxPath(name) + "/devices/" + url.PathEscape(device) + "/" + part
}

// Boxes lists the boxes of a fleet by name. A panel that is no head's answers with status 404.
func (c *Client) Boxes(ctx context.Context) ([]Box, error) {
	var list struct{ Boxes []Box }
	return list.Boxes, c.exchange(ctx, http.MethodGet, "/api/v1/boxes", "", nil, &list)
}

// GetBox returns a box.
func (c *Client) GetBox(ctx context.Context, name string) (b Box, err error) {
	return b, c.exchange(ctx, http.MethodGet, boxPath(name), "", nil, &b)
}

// MakeJoinCode makes a link with which one box can join, once.
func (c *Client) MakeJoinCode(ctx context.Context) (made JoinCode, err error) {
	err = c.exchange(ctx, http.MethodPost, "/api/v1/boxes/codes", "", nil, &made)
	if err == nil && (made.Link == "" || Plain(made.Link) != made.Link) {
		err = c.garbled("the answer holds no link")
	}
	return made, err
}

// ChangeBox changes of a box what is not nil.
func (c *Client) ChangeBox(ctx context.Context, name string, change BoxChange) (b Box, err error) {
	return b, c.exchange(ctx, http.MethodPatch, boxPath(name), "", change, &b)
}

// RemoveBox removes a box from the fleet; runs that it finished stay.
func (c *Client) RemoveBox(ctx context.Context, name string) error {
	return c.exchange(ctx, http.MethodDelete, boxPath(name), "", nil, nil)
}

// Readings returns what a device of a box measured of the reference, oldest first.
func (c *Client) Readings(ctx context.Context, box, device string) (r BoxReadings, err error) {
	return r, c.exchange(ctx, http.MethodGet, boxDevicePath(box, device, "readings"), "", nil, &r)
}

// MeasureReference has a device of a box measure the reference now, and returns the ID of the run.
func (c *Client) MeasureReference(ctx context.Context, box, device string) (run string, err error) {
	var accepted panel.Accepted
	err = c.exchange(ctx, http.MethodPost, boxDevicePath(box, device, "measurements"), "", nil, &accepted)
	return accepted.ID, err
}

// AcceptLevel makes what a device measures now its baseline.
func (c *Client) AcceptLevel(ctx context.Context, box, device string) error {
	return c.exchange(ctx, http.MethodPut, boxDevicePath(box, device, "level"), "", nil, nil)
}

// Reference returns what all boxes measure; without one the head answers with status 404.
func (c *Client) Reference(ctx context.Context) (r Reference, err error) {
	return r, c.exchange(ctx, http.MethodGet, referencePath, "", nil, &r)
}

// SetReference has all boxes measure a request's plan every so often.
func (c *Client) SetReference(ctx context.Context, q *Request, every string) (r Reference, err error) {
	return r, c.exchange(ctx, http.MethodPut, referencePath, "", map[string]any{"plan": q.body, "every": every}, &r)
}

// RemoveReference has the boxes measure no reference; what they measured stays.
func (c *Client) RemoveReference(ctx context.Context) error {
	return c.exchange(ctx, http.MethodDelete, referencePath, "", nil, nil)
}
