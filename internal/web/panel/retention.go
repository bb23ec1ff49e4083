package panel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/retention"
	"eidetic/internal/keep/store"
)

// Retainer deletes the evidence of old runs.
type Retainer interface {
	// Policy is that of the configuration.
	Policy() retention.Policy
	// Preview says what a policy would delete; Apply deletes it, and says what it deleted.
	Preview(ctx context.Context, p retention.Policy) (Retention, error)
	Apply(ctx context.Context, p retention.Policy) (Retention, error)
}

// Retention is what a policy means for the runs that there are.
type Retention struct {
	Policy retention.Policy `json:"policy"`
	retention.Decision
	Free int64 `json:"free" doc:"Bytes that are free on the disk"`
	Disk int64 `json:"disk" doc:"Bytes of the disk"`
	More int   `json:"more,omitempty" doc:"How many runs besides those in the lists"`
}

type (
	retentionInput struct {
		KeepDays int `query:"keep_days" minimum:"0" maximum:"36500" doc:"In place of the configuration's policy"`
		// Texts: huma panics over a number that is NaN.
		KeepGB     string `query:"keep_gb" pattern:"^[0-9]{1,6}([.][0-9]{1,6})?$" doc:"In place of the configuration's policy" example:"1.5"`
		KeepFreeGB string `query:"keep_free_gb" pattern:"^[0-9]{1,6}([.][0-9]{1,6})?$" doc:"In place of the configuration's policy"`
	}
	retentionBody struct{ Body Retention }
	pinInput      struct {
		ID   string `path:"id" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Identifier of the run" example:"20261121-091400-demo"`
		Body struct {
			Why string `json:"why,omitempty" maxLength:"500" doc:"What it is kept for" example:"the reference of the release"`
		}
	}
	pinBody struct{ Body store.Pin }
)

// mostRetained bounds the runs in each list of an answer.
const mostRetained = 1000

// retentionFeature has the routes of retention.
type retentionFeature struct {
	*Panel
	Retainer Retainer
}

// WithRetention deletes the evidence of old runs, and brings the page of storage.
func WithRetention(r Retainer) Module {
	return func(p *Panel) {
		retentionFeature{p, r}.retention(p.api)
		p.storage = true
	}
}

func (p retentionFeature) retention(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "preview-retention", Method: http.MethodGet, Path: "/api/v1/retention", Summary: "What retention would delete",
		Tags:        []string{tagSystem},
		Description: "Deletes nothing. Without a policy in the request it is that of the configuration. Only evidence is ever deleted: films, pictures, recordings and logs of runs; their numbers and reports stay.",
		Security:    needsToken(),
	}, func(ctx context.Context, in *retentionInput) (*retentionBody, error) {
		done, err := p.telling.Take(ctx) // retention itself, on a full disk too, waits for one preview and not for all
		if err != nil {
			return nil, err
		}
		defer done()
		return p.retain(ctx, in, p.Retainer.Preview)
	})
	huma.Register(api, huma.Operation{
		OperationID: "apply-retention", Method: http.MethodPost, Path: "/api/v1/retention", Summary: "Delete what retention would delete",
		Tags: []string{tagSystem}, Description: "The answer has what was deleted.", Security: needsToken(),
	}, func(ctx context.Context, in *retentionInput) (*retentionBody, error) {
		body, err := p.retain(ctx, in, p.Retainer.Apply)
		if body != nil {
			note(ctx, fmt.Sprintf("the evidence of %d runs, %d MB", len(body.Body.Delete)+body.Body.More, body.Body.Frees/1_000_000))
		}
		return body, err
	})
}

func (p retentionFeature) retain(ctx context.Context, in *retentionInput, do func(context.Context, retention.Policy) (Retention, error)) (
	*retentionBody, error,
) {
	policy := retention.Policy{KeepDays: in.KeepDays}
	policy.KeepGB, _ = strconv.ParseFloat(in.KeepGB, 64) // the pattern has numbers alone, or it is empty
	policy.KeepFreeGB, _ = strconv.ParseFloat(in.KeepFreeGB, 64)
	if !policy.Set() {
		policy = p.Retainer.Policy()
	}
	got, err := do(ctx, policy)
	if err != nil {
		return nil, p.toHTTPError(err)
	}
	for n := len(got.Delete) - mostRetained; n > 0; n = 0 {
		got.Delete, got.More = got.Delete[:mostRetained], n
	}
	got.Kept, got.Held = got.Kept[:min(len(got.Kept), mostRetained)], got.Held[:min(len(got.Held), mostRetained)]
	return &retentionBody{got}, nil
}

// pins registers the pins of runs.
func (p *Panel) pins(api huma.API) {
	errs := []int{http.StatusNotFound}
	huma.Register(api, huma.Operation{
		OperationID: "pin-run", Method: http.MethodPut, Path: "/api/v1/runs/{id}/pin", Summary: "Keep a run with all its files", Tags: []string{tagRuns},
		Description: "Neither retention nor a request deletes anything of a pinned run.", Security: needsToken(), Errors: errs,
	}, func(ctx context.Context, in *pinInput) (*pinBody, error) {
		pin := store.Pin{By: identityOf(ctx).Name, At: time.Now().UTC(), Why: in.Body.Why}
		if err := p.Store.Pin(in.ID, pin); err != nil {
			return nil, p.pinError(in.ID, err)
		}
		return &pinBody{pin}, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "get-pin", Method: http.MethodGet, Path: "/api/v1/runs/{id}/pin", Summary: "Who pinned a run, and why", Tags: []string{tagRuns},
		Security: needsToken(), Errors: errs,
	}, func(_ context.Context, in *idInput) (*pinBody, error) {
		pin, err := p.Store.Pinned(in.ID)
		if err == nil && pin == nil {
			err = store.ErrNotFound
		}
		if err != nil {
			return nil, p.pinError(in.ID, err)
		}
		return &pinBody{*pin}, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "unpin-run", Method: http.MethodDelete, Path: "/api/v1/runs/{id}/pin", Summary: "Remove the pin of a run", Tags: []string{tagRuns},
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: errs,
	}, func(_ context.Context, in *idInput) (*struct{}, error) {
		return nil, p.pinError(in.ID, p.Store.Unpin(in.ID))
	})
}

func (p *Panel) pinError(id string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNotFound):
		return huma.Error404NotFound("there is no run " + clip(id) + ", or it has no pin")
	}
	return p.internalError(err)
}
