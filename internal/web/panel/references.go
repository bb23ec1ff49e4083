package panel

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/automation"
)

type (
	referencesInput struct {
		Name   string `query:"name" maxLength:"100" doc:"Name of the runs"`
		Branch string `query:"branch" maxLength:"100" doc:"A branch"`
		Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Most references in the response"`
	}
	putReferenceInput struct {
		Body struct {
			Branch   string `json:"branch" maxLength:"100" doc:"The branch" example:"main"`
			Run      string `json:"run" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Identifier of the run" example:"20261122-091400-demo"`
			Revision string `json:"revision,omitempty" maxLength:"200" doc:"What was measured; without it what the box deployed for the run" example:"3f1c"`
		}
	}
	byReference struct {
		ID int64 `path:"id" minimum:"1" doc:"Identifier of the reference" example:"4"`
	}
	runReferenceBody  struct{ Body automation.RunReference }
	runReferencesBody struct {
		Body struct {
			References []automation.RunReference `json:"references" doc:"The newest first"`
		}
	}
)

// runReferences registers the routes of the runs that others are compared with.
func (p automationFeature) runReferences(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-run-references", Method: http.MethodGet, Path: "/api/v1/references", Summary: "List the references", Tags: []string{tagAutomation},
		Description: "A reference is a run of a branch that later runs of the same name are compared with.", Security: needsToken(),
	}, func(ctx context.Context, in *referencesInput) (*runReferencesBody, error) {
		all, err := p.Automation.References(ctx, in.Name, in.Branch, in.Limit)
		body := &runReferencesBody{}
		body.Body.References = all
		return body, p.automationError(err, "")
	})
	huma.Register(api, huma.Operation{
		OperationID: "make-run-reference", Method: http.MethodPost, Path: "/api/v1/references", Summary: "Make a run a reference", Tags: []string{tagAutomation},
		Description:   "It becomes the newest version of its name and the branch. Its files, and with them its recordings, stay while it is one; the newest 20 of a name and branch are kept.",
		DefaultStatus: http.StatusCreated, Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *putReferenceInput) (*runReferenceBody, error) {
		done, err := p.read(ctx, in.Body.Run)
		if err != nil {
			return nil, err
		}
		defer done()
		run, err := p.get(ctx, &idInput{in.Body.Run})
		if err != nil {
			return nil, err
		}
		r, err := p.Automation.PutReference(ctx, in.Body.Branch, run.Body, in.Body.Revision, identityOf(ctx).Name)
		return &runReferenceBody{r}, p.automationError(err, "")
	})
	huma.Register(api, huma.Operation{
		OperationID: "remove-run-reference", Method: http.MethodDelete, Path: "/api/v1/references/{id}", Summary: "Remove a reference", Tags: []string{tagAutomation},
		Description: "Its run stays, and may be deleted again.", Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *byReference) (*struct{}, error) {
		return nil, p.automationError(p.Automation.RemoveReference(ctx, in.ID), "reference "+strconv.FormatInt(in.ID, 10))
	})
}
