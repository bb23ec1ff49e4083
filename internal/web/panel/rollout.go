package panel

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

const (
	// maxBundle bounds an update: a program of 416 MiB, and room for what stands before it.
	maxBundle = 417 << 20
	// mostAsked bounds the boxes and labels that an update names.
	mostAsked = 1000
)

func rolloutType() reflect.Type { return reflect.TypeFor[Rollout]() }

// rollouts registers the routes of an update of the fleet's boxes.
func (p boxesFeature) rollouts(e *echo.Echo, api huma.API) {
	texts := &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}
	one := map[string]*huma.MediaType{"application/json": {Schema: api.OpenAPI().Components.Schemas.Schema(rolloutType(), true, "Rollout")}}
	p.raw(e, api, &huma.Operation{
		OperationID: "update-boxes", Method: http.MethodPost, Path: "/api/v1/boxes/update", Summary: "Update the boxes, one after another",
		Tags: []string{tagFleet},
		Description: "The body is a signed bundle. Each box checks its signature itself. A box gets no new runs, ends what it carries out, measures the reference, installs the update, and measures again; " +
			"only if it measures as before the next one follows. GET /api/v1/boxes says how far it is.",
		Parameters: []*huma.Param{
			{Name: "box", In: "query", Schema: texts, Explode: new(true), Description: "Name of a box; may be repeated. Without one: all boxes"},
			{Name: "label", In: "query", Schema: texts, Explode: new(true), Description: "KEY=PATTERN: boxes with this label; may be repeated", Example: "room=2.*"},
			{Name: keyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: new(128), Pattern: keyPattern},
				Description: "Chosen by you, different for each request: one that is repeated with its key, because the answer was lost, is answered with the update that the first began, as long as there is no newer one"},
		},
		RequestBody: &huma.RequestBody{Required: true, Content: bytesOf("application/octet-stream")},
		Responses: map[string]*huma.Response{
			"202": {Description: "The update has begun", Content: one}, "404": {Description: "There is no such box"},
			"409": {Description: "Another update goes on"}, "413": {Description: "The bundle is too large"}, "422": {Description: "The body is no bundle, or no box is asked for"},
		},
	}, p.updateBoxes)
	huma.Register(api, huma.Operation{
		OperationID: "stop-update", Method: http.MethodPost, Path: "/api/v1/boxes/update/stop", Summary: "Stop the update of the boxes", Tags: []string{tagFleet},
		Description: "Boxes whose turn has not come stay as they are. One that was told to install the update may do so all the same, and stays in maintenance.",
		Security:    needsToken(), Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, _ *noInput) (*rolloutBody, error) {
		r, err := p.Boxes.StopUpdate(ctx, identityOf(ctx).Name)
		if err == nil {
			note(ctx, r.ID)
		}
		return &rolloutBody{r}, p.toHTTPError(err)
	})
}

type rolloutBody struct{ Body Rollout }

func (p boxesFeature) updateBoxes(c echo.Context) error {
	r := c.Request()
	query := r.URL.Query()
	u := BoxUpdate{Boxes: query["box"], Labels: query["label"], By: identityOf(r.Context()).Name, Key: r.Header.Get(keyHeader)}
	for name := range query {
		if !slices.Contains([]string{"box", "label"}, name) {
			return echo.NewHTTPError(http.StatusUnprocessableEntity, clip(name)+": there is no such parameter: write box or label")
		}
	}
	switch {
	case len(u.Boxes)+len(u.Labels) > mostAsked:
		return echo.NewHTTPError(http.StatusUnprocessableEntity, fmt.Sprintf("more than %d boxes and labels are asked for", mostAsked))
	case r.Header[keyHeader] != nil && !validKey.MatchString(u.Key):
		return echo.NewHTTPError(http.StatusUnprocessableEntity, wrongKey)
	case r.ContentLength > maxBundle:
		return echo.NewHTTPError(http.StatusRequestEntityTooLarge, fmt.Sprintf("the update has more than %d bytes", int64(maxBundle)))
	}
	u.Bundle = http.MaxBytesReader(c.Response(), r.Body, maxBundle)
	made, err := p.Boxes.Update(r.Context(), u)
	if err != nil {
		return err
	}
	note(r.Context(), fmt.Sprintf("%s to %d boxes", made.Version, len(made.Boxes)))
	return c.JSON(http.StatusAccepted, made)
}
