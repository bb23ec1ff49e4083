package panel

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/tell/compare"
)

type (
	betweenInput struct {
		ID        string  `path:"id" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Identifier of the run" example:"20261122-091400-demo"`
		Reference string  `query:"reference" required:"true" maxLength:"320" pattern:"^[A-Za-z0-9][A-Za-z0-9._/@-]*$" doc:"ID of the earlier run, or a reference: BRANCH@latest, BRANCH@VERSION or BRANCH@REVISION" example:"20261121-091400-demo"`
		Margin    float64 `query:"margin" minimum:"0" maximum:"1000" default:"5" doc:"Differences up to this percentage of the reference count as none"`
		Seed      uint64  `query:"seed" default:"1" doc:"Seed of the permutations and of the dither within a frame"`
	}
	betweenBody struct{ Body *compare.Between }
)

func (p *Panel) betweens(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "compare-runs", Method: http.MethodGet, Path: "/api/v1/runs/{id}/comparison",
		Summary: "Whether a run is slower than an earlier one", Tags: []string{tagRuns},
		Description: "Compares the controls of two runs that are done. The answer lists what else differs between them, since that may cause a difference too; the margin allows for it.",
		Security:    needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict,
			http.StatusUnprocessableEntity},
	}, p.between)
}

func (p *Panel) between(ctx context.Context, in *betweenInput) (*betweenBody, error) {
	run, err := p.get(ctx, &idInput{in.ID})
	if err != nil {
		return nil, err
	}
	id, named := in.Reference, ""
	if strings.Contains(id, "@") {
		if id, named, err = p.reference(ctx, run.Body, id); err != nil {
			return nil, err
		}
	}
	reference, err := p.get(ctx, &idInput{id})
	if err != nil {
		return nil, err
	}
	done, err := p.telling.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	found, err := compare.Runs(reference.Body, run.Body, in.Margin, in.Seed)
	if err != nil {
		return nil, huma.Error409Conflict(err.Error())
	}
	found.Named = named
	return &betweenBody{found}, nil
}
