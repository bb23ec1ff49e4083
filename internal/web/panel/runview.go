package panel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/store"
	"eidetic/internal/tell/runview"
)

type (
	viewInput struct {
		ID     string `path:"id" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Identifier of the run" example:"20261121-091400-demo"`
		Cell   string `query:"cell" maxLength:"200" doc:"Of a run of many pages or users: the one to show, as cells names it" example:"checkout / anna"`
		Step   string `query:"step" maxLength:"1000" doc:"Of a journey: the step whose metrics to show; without it the metrics that decide the verdict" example:"search"`
		Metric string `query:"metric" maxLength:"1000" doc:"A further metric to show" example:"unique_fps"`
	}
	viewBody struct{ Body *runview.View }
)

func (p *Panel) runViews(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "view-run", Method: http.MethodGet, Path: "/api/v1/runs/{id}/view",
		Summary: "What the page of a run shows", Tags: []string{tagRuns},
		Description: "The result in words, and the values of all trials for the metrics that decide it: a small part of run.json. While the run is in " +
			"progress it has the trials so far, and no effects.",
		Security: needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusUnprocessableEntity},
	}, p.view)
}

func (p *Panel) view(ctx context.Context, in *viewInput) (*viewBody, error) {
	found, err := p.get(ctx, &idInput{in.ID})
	if err != nil {
		return nil, err
	}
	v, err := runview.Of(found.Body, runview.Choice{Cell: in.Cell, Step: in.Step, Metric: in.Metric})
	if unknown := (*runview.UnknownError)(nil); errors.As(err, &unknown) {
		return nil, huma.Error404NotFound(err.Error())
	}
	if err != nil {
		return nil, p.internalError(err)
	}
	v.Waits = found.Body.Waits
	v.Planned = p.planned(ctx, found.Body)
	if !p.hasFile(in.ID, v.Report) {
		v.Report = ""
	}
	if thin, ok := p.Store.ThinnedAt(in.ID); ok {
		v.Thinned = fmt.Sprintf("The films were deleted on %s, because %s.", thin.At.Format(time.DateOnly), thin.Why)
		for i := range v.Trials {
			v.Trials[i].Reel = false
		}
	}
	return &viewBody{v}, nil
}

// hasFile says whether a run's folder has a file.
func (p *Panel) hasFile(id, name string) bool {
	root, err := p.Store.Files(id)
	if err != nil {
		return false
	}
	defer root.Close()
	f, _, err := store.OpenFile(root, name)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}
