package panel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Note is an annotation as it is sent to a run.
type Note struct {
	Op     string  `json:"op,omitempty" enum:"set,mark,begin,end,pause,resume,send,receive" default:"set" doc:"set begins an interval that the group's next one ends, and without a text only ends it; mark is an instant; intervals of begin and end may lie in each other; what lies between pause and resume is not their own time; an arrow leads from send to receive of one text"`
	Text   string  `json:"text,omitempty" maxLength:"4096" doc:"What the timeline shows" example:"cache is warm"`
	Group  string  `json:"group,omitempty" maxLength:"100" doc:"Its row on the timeline; without it panel" example:"server"`
	Colour string  `json:"colour,omitempty" pattern:"^#[0-9A-Fa-f]{6}$" doc:"Of its background" example:"#800000"`
	Ago    float64 `json:"ago_ms,omitempty" minimum:"0" maximum:"60000" doc:"How long before the request it was made, in ms" example:"1.5"`
}

type annotateInput struct {
	ID   string `path:"id" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Identifier of the run" example:"20261121-091400-demo"`
	Body struct {
		Annotations []Note `json:"annotations" minItems:"1" maxItems:"200" doc:"Annotations, the oldest first"`
	}
}

func (p *Panel) annotations(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "annotate-run", Method: http.MethodPost, Path: "/api/v1/runs/{id}/annotations",
		Summary: "Put notes onto the timeline of a run in progress", Tags: []string{tagRuns},
		Description:   "Each belongs to the trial in which it comes, and its time is that of the request's arrival less ago_ms: it was made before that.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), MaxBodyBytes: 2 << 20,
		Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, p.annotate)
}

func (p *Panel) annotate(ctx context.Context, in *annotateInput) (*struct{}, error) {
	now, wall := lab.Monotonic(), time.Now()
	found, err := p.get(ctx, &idInput{in.ID})
	if err != nil {
		return nil, err
	}
	if found.Body.State != store.StateRunning {
		return nil, huma.Error409Conflict("the run is not in progress: annotations belong to the trial in which they come")
	}
	list := make([]lab.Annotation, 0, len(in.Body.Annotations))
	for i, n := range in.Body.Annotations {
		at := now.Add(-time.Duration(n.Ago * 1e6))
		a := lab.Annotation{Op: n.Op, Text: n.Text, Group: n.Group, Colour: n.Colour, Source: "panel", Wall: wall, Earliest: at, Latest: at}
		a = a.Clean()
		if err := a.Check(); err != nil {
			return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("annotations[%d]: %v", i, err))
		}
		list = append(list, a)
	}
	switch err := p.Store.Annotate(in.ID, list...); {
	case errors.Is(err, store.ErrAnnotations):
		return nil, huma.Error409Conflict(store.ErrAnnotations.Error())
	case err != nil:
		return nil, p.internalError(err)
	}
	return nil, nil
}
