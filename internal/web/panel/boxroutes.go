package panel

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/store"
	"eidetic/internal/metric"
	"eidetic/internal/plan"
)

const tagFleet = "fleet"

// The states of a box, and its healths, in the order in which they are shown.
func boxStates() []string  { return []string{"idle", "reserved", "running", "lost"} }
func boxHealths() []string { return []string{"unknown", "good", "drifting", "bad", "maintenance"} }

type (
	boxesBody struct {
		Body struct {
			Boxes   []Box    `json:"boxes" doc:"In order of their names"`
			Rollout *Rollout `json:"rollout,omitempty" doc:"The newest update of the boxes"`
		}
	}
	boxBody struct{ Body Box }
	// OfBox is embedded, and huma reads only exported fields.
	OfBox struct {
		Name string `path:"name" maxLength:"63" pattern:"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$" doc:"Name of the box" example:"lab-1"`
	}
	changeBoxInput struct {
		OfBox
		Body BoxChange
	}
	boxDeviceInput struct {
		OfBox
		Device string `path:"device" maxLength:"300" doc:"Name of the device on that box" example:"virtual"`
	}
	joinCodeBody  struct{ Body JoinCode }
	readingsBody  struct{ Body BoxReadings }
	referenceBody struct{ Body Reference }
)

// boxesFeature has the routes of a fleet's boxes.
type boxesFeature struct {
	*Panel
	Boxes Boxes
}

// WithBoxes makes the panel that of a fleet's head.
func WithBoxes(boxes Boxes) Module {
	return func(shell *Panel) {
		p := boxesFeature{shell, boxes}
		p.boxes(p.api)
		p.referenceRoutes(p.api)
		p.rollouts(p.router, p.api)
		counts := &fleetCounts{}
		shell.states = append(shell.states, func(ctx context.Context, h *Health) {
			var warnings []string
			h.Fleet, warnings = counts.health(ctx, boxes)
			h.Warnings = append(h.Warnings, warnings...)
		})
		shell.fleet, shell.places = true, append(shell.places, p.addBoxes)
		shell.scraped["fleet"] = p.collect
	}
}

// boxes registers the routes of a fleet's boxes.
func (p boxesFeature) boxes(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-boxes", Method: http.MethodGet, Path: "/api/v1/boxes", Summary: "List the boxes of the fleet", Tags: []string{tagFleet},
		Security: needsToken(),
	}, func(ctx context.Context, _ *noInput) (*boxesBody, error) {
		all, err := p.Boxes.List(ctx)
		body := &boxesBody{}
		if err == nil {
			body.Body.Rollout, err = p.Boxes.Rollout(ctx)
		}
		body.Body.Boxes = append([]Box{}, all...)
		for i, b := range body.Body.Boxes {
			body.Body.Boxes[i].Devices = append([]BoxDevice{}, b.Devices...)
		}
		return body, p.toHTTPError(err)
	})
	huma.Register(api, huma.Operation{
		OperationID: "get-box", Method: http.MethodGet, Path: "/api/v1/boxes/{name}", Summary: "A box of the fleet", Tags: []string{tagFleet},
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *OfBox) (*boxBody, error) {
		box, err := p.box(ctx, in.Name)
		return &boxBody{box}, p.toHTTPError(err)
	})
	huma.Register(api, huma.Operation{
		OperationID: "change-box", Method: http.MethodPatch, Path: "/api/v1/boxes/{name}", Summary: "Change what people may change of a box",
		Tags:        []string{tagFleet},
		Description: "What is left out stays. Maintenance needs the scope run; bad and labels need the scope admin.",
		Security:    needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, p.changeBox)
	huma.Register(api, huma.Operation{
		OperationID: "remove-box", Method: http.MethodDelete, Path: "/api/v1/boxes/{name}", Summary: "Remove a box from the fleet", Tags: []string{tagFleet},
		Description:   "Its certificate is worth nothing from then on. What it was carrying out goes back into the queue; runs that it finished stay.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *OfBox) (*struct{}, error) {
		return nil, p.toHTTPError(p.Boxes.Remove(ctx, in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "make-join-code", Method: http.MethodPost, Path: "/api/v1/boxes/codes", Summary: "Let a box join", Tags: []string{tagFleet},
		Description:   "Makes a link with which one box can join, once: appliance join LINK on the box. The head keeps only the digest of its code.",
		DefaultStatus: http.StatusCreated, Security: needsToken(),
	}, func(ctx context.Context, _ *noInput) (*joinCodeBody, error) {
		code, err := p.Boxes.NewCode(ctx, identityOf(ctx).Name)
		if err == nil { // the code itself is a secret
			note(ctx, "valid until "+code.Expires.UTC().Format(time.RFC3339))
		}
		return &joinCodeBody{code}, p.toHTTPError(err)
	})
	huma.Register(api, huma.Operation{
		OperationID: "get-readings", Method: http.MethodGet, Path: "/api/v1/boxes/{name}/devices/{device}/readings",
		Summary: "What a device measured of the reference", Tags: []string{tagFleet},
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *boxDeviceInput) (*readingsBody, error) {
		r, err := p.Boxes.Readings(ctx, in.Name, deviceName(in.Device))
		r.Changed, r.Baselines = append([]string{}, r.Changed...), append([]BoxBaseline{}, r.Baselines...)
		r.Readings, r.Metrics = append([]BoxReading{}, r.Readings...), metricsOf(r.Readings)
		return &readingsBody{r}, p.toHTTPError(err)
	})
	huma.Register(api, huma.Operation{
		OperationID: "measure-reference", Method: http.MethodPost, Path: "/api/v1/boxes/{name}/devices/{device}/measurements",
		Summary: "Have a device measure the reference now", Tags: []string{tagFleet},
		Description:   "The run is the first in the queue of its device, in maintenance as well.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(),
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable},
	}, func(ctx context.Context, in *boxDeviceInput) (*startBody, error) {
		id, err := p.Boxes.Measure(ctx, in.Name, deviceName(in.Device))
		if err != nil {
			return nil, p.startError(err)
		}
		note(ctx, id)
		return startedAs(id), nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "accept-level", Method: http.MethodPut, Path: "/api/v1/boxes/{name}/devices/{device}/level", Summary: "Accept a device's level",
		Tags:          []string{tagFleet},
		Description:   "What the device measures now is its new baseline: after a change that is meant to stay, such as another version of a browser.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *boxDeviceInput) (*struct{}, error) {
		return nil, p.toHTTPError(p.Boxes.Rebase(ctx, in.Name, deviceName(in.Device)))
	})
}

// metricsOf names the metrics of readings for people, as reports do.
func metricsOf(readings []BoxReading) []BoxMetric {
	all := []BoxMetric{}
	for _, r := range readings {
		for _, l := range r.Levels {
			if !slices.ContainsFunc(all, func(m BoxMetric) bool { return m.Metric == l.Metric }) {
				all = append(all, BoxMetric{l.Metric, metric.Label(l.Metric)})
			}
		}
	}
	return all
}

// box finds a box by its name.
func (p boxesFeature) box(ctx context.Context, name string) (Box, error) {
	all, err := p.Boxes.List(ctx)
	if err != nil {
		return Box{}, err
	}
	i := slices.IndexFunc(all, func(b Box) bool { return b.Name == name })
	if i < 0 {
		return Box{}, &Refusal{http.StatusNotFound, fmt.Errorf("the fleet has no box %s", clip(name))}
	}
	return all[i], nil
}

func (p boxesFeature) changeBox(ctx context.Context, in *changeBoxInput) (*boxBody, error) {
	who, c := identityOf(ctx), in.Body
	if (c.Bad != nil || c.Labels != nil) && !who.Scope.Allows(credentials.Admin) {
		return nil, huma.Error403Forbidden(fmt.Sprintf("bad and labels need the scope admin, and the token %s has the scope %s: use another token",
			clip(who.Name), who.Scope))
	}
	switch {
	case c.Maintenance == nil && c.Bad == nil && c.Labels == nil && c.Reason == nil:
		return nil, huma.Error422UnprocessableEntity("nothing is to change: give maintenance, bad, reason or labels")
	case c.Maintenance != nil && c.Bad != nil && *c.Maintenance && *c.Bad:
		return nil, huma.Error422UnprocessableEntity("maintenance and bad: a box is in maintenance or bad, not both")
	}
	box, err := p.Boxes.Change(ctx, in.Name, c)
	if err == nil {
		note(ctx, changeWords(c))
	}
	return &boxBody{box}, p.toHTTPError(err)
}

// changeWords says for the audit log what was changed.
func changeWords(c BoxChange) string {
	var words []string
	if c.Maintenance != nil {
		words = append(words, fmt.Sprintf("maintenance %t", *c.Maintenance))
	}
	if c.Bad != nil {
		words = append(words, fmt.Sprintf("bad %t", *c.Bad))
	}
	if c.Labels != nil {
		words = append(words, fmt.Sprintf("%d labels", len(*c.Labels)))
	}
	if c.Reason != nil {
		words = append(words, "reason "+clip(*c.Reason))
	}
	return strings.Join(words, ", ")
}

// referenceRoutes registers the routes of what all boxes measure.
func (p boxesFeature) referenceRoutes(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "get-reference", Method: http.MethodGet, Path: "/api/v1/reference", Summary: "What all boxes measure", Tags: []string{tagFleet},
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, _ *noInput) (*referenceBody, error) {
		r, err := p.Boxes.Reference(ctx)
		if err == nil && r == nil {
			err = &Refusal{http.StatusNotFound, fmt.Errorf("the fleet has no reference: PUT /api/v1/reference sets one")}
		}
		if err != nil {
			return nil, p.toHTTPError(err)
		}
		return &referenceBody{*r}, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "put-reference", Method: http.MethodPut, Path: "/api/v1/reference", Summary: "Set what all boxes measure", Tags: []string{tagFleet},
		Description: "A plan of one page with a recording, without a treatment and without device, and how often each device measures it. " +
			"With another plan or recording the baselines begin anew.",
		Security: needsToken(), Errors: []int{http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *struct{ Body Reference }) (*referenceBody, error) {
		if err := checkReference(in.Body); err != nil {
			return nil, huma.Error422UnprocessableEntity(err.Error())
		}
		if err := p.Boxes.SetReference(ctx, in.Body); err != nil {
			return nil, p.startError(err)
		}
		note(ctx, fmt.Sprintf("%s every %s", clip(in.Body.Plan.FirstPage()), in.Body.Every))
		r, err := p.Boxes.Reference(ctx)
		if err != nil || r == nil {
			return &referenceBody{in.Body}, p.toHTTPError(err)
		}
		return &referenceBody{*r}, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "remove-reference", Method: http.MethodDelete, Path: "/api/v1/reference", Summary: "Have the boxes measure no reference",
		Tags:          []string{tagFleet},
		Description:   "What they measured stays.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, _ *noInput) (*struct{}, error) {
		return nil, p.toHTTPError(p.Boxes.RemoveReference(ctx))
	})
}

// checkReference returns an error for a reference whose numbers could not be compared from box to box.
func checkReference(r Reference) error {
	switch p := r.Plan; {
	case !(plan.Request{Plan: p}).Opens():
		return fmt.Errorf("plan.page: a reference needs a page, or steps whose first opens one")
	case p.Compares():
		return fmt.Errorf("plan.treatment: a reference has one arm: leave the treatment out")
	case p.IsMany():
		return fmt.Errorf("plan: a reference has one page and no users: leave pages and users out")
	case p.Device != "" || p.On != nil:
		return fmt.Errorf("plan.device: every device measures the reference: leave device and on out")
	case p.Archive == "":
		return fmt.Errorf("plan.archive: name a recording, so that every box replays the same")
	case p.From != nil:
		return fmt.Errorf("plan.from: only the box sets it")
	}
	_, err := automation.ParseTimes(r.Every, "", "", time.Now())
	return err
}

// addBoxes says of the runs in progress which boxes and devices carry them out.
func (p boxesFeature) addBoxes(ctx context.Context, runs []store.Entry) error {
	running := func(e store.Entry) bool { return e.State == store.StateRunning }
	if !slices.ContainsFunc(runs, running) {
		return nil
	}
	all, err := p.Boxes.List(ctx)
	if err != nil {
		return err
	}
	on := map[string][]string{}
	for _, b := range all {
		for _, d := range b.Devices {
			if d.Run != "" {
				on[d.Run] = append(on[d.Run], b.Name+"/"+d.Name)
			}
		}
	}
	for i, e := range runs {
		if running(e) && len(on[e.ID]) > 0 {
			runs[i].On = on[e.ID]
		}
	}
	return nil
}
