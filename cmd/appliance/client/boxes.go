package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"os"

	"eidetic/internal/web/panel"
)

// What a fleet's head answers; see docs/fleet.md.
type (
	Box         = panel.Box
	BoxChange   = panel.BoxChange
	BoxReadings = panel.BoxReadings
	JoinCode    = panel.JoinCode
	Reference   = panel.Reference
	Rollout     = panel.Rollout
)

const referencePath = "/api/v1/reference"

func boxPath(name string) string { return "/api/v1/boxes/" + url.PathEscape(name) }

func boxDevicePath(name, device, part string) string {
	return boxPath(name) + "/devices/" + url.PathEscape(device) + "/" + part
}

// Boxes lists the boxes of a fleet by name. A panel that is no head's answers with status 404.
func (c *Client) Boxes(ctx context.Context) ([]Box, error) {
	all, _, err := c.Fleet(ctx)
	return all, err
}

// Fleet lists the boxes by name, and says how far their newest update is; nil if there was none.
func (c *Client) Fleet(ctx context.Context) ([]Box, *Rollout, error) {
	var list struct {
		Boxes   []Box
		Rollout *Rollout
	}
	err := c.exchange(ctx, http.MethodGet, "/api/v1/boxes", "", nil, &list)
	return list.Boxes, list.Rollout, err
}

// UpdateBoxes has the boxes of a fleet install the signed update in a file, one after another: those with the names, in
// this order, or all, and of these those with the labels, KEY=PATTERN. starts is called before the upload.
func (c *Client) UpdateBoxes(ctx context.Context, file string, boxes, labels []string, starts func(size int64)) (r Rollout, err error) {
	f, err := os.Open(file)
	if err != nil {
		return r, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return r, err
	}
	path := "/api/v1/boxes/update?" + url.Values{"box": boxes, "label": labels}.Encode()
	starts(info.Size())
	err = c.upload(ctx, http.MethodPost, path, f, info.Size(), &r,
		"Content-Type", "application/octet-stream", "Idempotency-Key", rand.Text()) // the answer may be lost
	return r, err
}

// StopUpdate stops the update of the boxes that goes on.
func (c *Client) StopUpdate(ctx context.Context) (r Rollout, err error) {
	return r, c.exchange(ctx, http.MethodPost, "/api/v1/boxes/update/stop", "", nil, &r)
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
	return r, c.exchange(ctx, http.MethodPut, referencePath, "", map[string]any{"plan": q, "every": every}, &r)
}

// RemoveReference has the boxes measure no reference; what they measured stays.
func (c *Client) RemoveReference(ctx context.Context) error {
	return c.exchange(ctx, http.MethodDelete, referencePath, "", nil, nil)
}
