package panel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/bisection"
	"eidetic/internal/box/bisects"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// NewBisect is the response to a request for a bisect.
type NewBisect struct {
	bisects.Bisect
	Secret string `json:"secret" doc:"With which the posts to the hook are signed; it cannot be shown again" example:"whsec_…"`
}

// ByBisect is the ID of a bisect in the path of a request.
type ByBisect struct {
	ID string `path:"id" maxLength:"32" pattern:"^[a-z0-9]+$" doc:"Identifier of the bisect" example:"b3k7v2m9qxab"`
}

// Deployment is what a hook says of a revision that it was asked for.
type Deployment struct {
	Revision string `json:"revision" maxLength:"200" doc:"The revision that the box asked for"`
	OK       bool   `json:"ok" doc:"Whether it is deployed; if not, it cannot be tried and is left out"`
	Error    string `json:"error,omitempty" maxLength:"1000" doc:"Why it cannot be deployed"`
}

// reason is why the revision cannot be tried, or "".
func (d Deployment) reason() string {
	switch {
	case d.OK:
		return ""
	case d.Error != "":
		return "the hook says so: " + d.Error
	}
	return "the hook says so"
}

// BisectHook is where revisions are deployed.
type BisectHook struct {
	URL    string     `json:"url" maxLength:"2000" doc:"Is posted each revision that is to be deployed. It begins with https://; http:// and hosts in private networks need webhooks.allow in the configuration, and with a token of the scope run every host does" example:"https://deploy.shop.example/eidetic"`
	Secret lab.Secret `json:"secret,omitzero" maxLength:"200" doc:"whsec_ and 24 to 64 bytes in Base64; without it the box makes one"`
	Limit  float64    `json:"limit_s,omitempty" minimum:"1" maximum:"86400" default:"900" doc:"How long a deployment may take; a revision that takes longer cannot be tried"`
}

// Repository is one of the box's configuration.
type Repository struct {
	Name    string `json:"name" example:"shop"`
	Problem string `json:"problem,omitempty" doc:"Why it cannot be used on this machine"`
}

type (
	newBisectInput struct {
		Body struct {
			Name       string               `json:"name,omitempty" maxLength:"100" doc:"What you call it" example:"checkout, v41 to v42"`
			Plan       SaidPlan             `json:"plan" doc:"What is measured, as for POST /api/v1/runs, with one arm and one page; {revision} in page, archive, inject, link, browser, match or state stands for the revision"`
			Revisions  []bisection.Revision `json:"revisions" minItems:"2" maxItems:"1000" doc:"The oldest first: the first is known to be good, the last to be bad"`
			Hook       BisectHook           `json:"hook" doc:"What deploys a revision"`
			Metric     string               `json:"metric,omitempty" maxLength:"300" doc:"The number that changed; without it speed_index_ms, and journey_ms of a plan with steps" example:"speed_index_ms"`
			Confidence float64              `json:"confidence,omitempty" minimum:"0.5" maximum:"0.9999" default:"0.95" doc:"The probability from which on a culprit is named"`
			Least      float64              `json:"least,omitempty" minimum:"0" maximum:"1000000000" doc:"The smallest difference that matters, in the metric's unit: good and bad are not told apart further"`
			Pairs      int                  `json:"pairs,omitempty" minimum:"10" maximum:"10000" default:"800" doc:"How many pairs of trials are made at most"`
			Seed       uint64               `json:"seed,omitempty" default:"1" doc:"Seed of everything random"`
			Spread     int                  `json:"spread,omitempty" minimum:"1" maximum:"50" default:"1" doc:"Over how many runs at the same time the pairs of an experiment are divided. A head gives them to as many boxes; let on in the plan name boxes of one kind"`
		}
	}
	deployedInput struct {
		ByBisect
		Body Deployment
	}
	headDeployedInput struct {
		ByName
		Body Deployment
	}
	cancelBisectInput struct {
		ByBisect
		Files bool `query:"files" doc:"Delete a bisect that has ended, with its journal; its runs stay"`
	}
	newBisectBody struct {
		Location string `header:"Location" doc:"Address of the bisect"`
		Body     NewBisect
	}
	bisectBody       struct{ Body bisects.Bisect }
	repositoriesBody struct {
		Body struct {
			Repositories []Repository `json:"repositories" doc:"In order of their names"`
		}
	}
	bisectsBody struct {
		Body struct {
			Bisects []bisects.Bisect `json:"bisects" doc:"The newest first, without the probabilities of their revisions"`
		}
	}
)

// bisectFeature has the routes of bisects.
type bisectFeature struct {
	*Panel
	Bisects *bisects.Keeper
}

// WithBisects finds the revision that changed a number.
func WithBisects(k *bisects.Keeper) Module {
	return func(shell *Panel) {
		p := bisectFeature{shell, k}
		p.bisectRoutes(p.api)
		shell.held = append(shell.held, func(_ context.Context, recording string) (string, error) {
			return usedBy("bisect %s replays it: wait for its end, or cancel it", k.Holds(recording)), nil
		})
	}
}

// bisectRoutes registers the routes of bisects that the box makes by itself.
func (p bisectFeature) bisectRoutes(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "make-bisect", Method: http.MethodPost, Path: "/api/v1/bisects", Summary: "Find the revision that changed a number",
		Tags: []string{tagAutomation},
		Description: "The hook is posted the revision that is to be deployed, signed as Standard Webhooks says. Any success but 202 means that it is deployed; " +
			"202 that PUT …/deployment will say so; 422 that this revision cannot be tried. Another answer of 4xx or 3xx ends the bisect, others are asked again. " +
			"The trials are runs of the queue. One bisect goes on at a time, and goes on after a restart.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(), MaxBodyBytes: maxPlanBody,
		Errors: []int{
			http.StatusForbidden, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusInsufficientStorage,
		},
	}, p.makeBisect)
	huma.Register(api, huma.Operation{
		OperationID: "list-bisects", Method: http.MethodGet, Path: "/api/v1/bisects", Summary: "List the bisects", Tags: []string{tagAutomation}, Security: needsToken(),
	}, func(context.Context, *noInput) (*bisectsBody, error) {
		body := &bisectsBody{}
		body.Body.Bisects = p.Bisects.List()
		return body, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "get-bisect", Method: http.MethodGet, Path: "/api/v1/bisects/{id}", Summary: "What a bisect knows", Tags: []string{tagAutomation},
		Description: "While it goes on, the probability of each revision so far, the trials spent, and what it is doing; then the culprit, or why there is none.",
		Security:    needsToken(), Errors: []int{http.StatusNotFound},
	}, func(_ context.Context, in *ByBisect) (*bisectBody, error) {
		b, err := p.Bisects.Get(in.ID)
		return &bisectBody{b}, p.bisectError(err, in.ID)
	})
	huma.Register(api, huma.Operation{
		OperationID: "answer-deployment", Method: http.MethodPut, Path: "/api/v1/bisects/{id}/deployment",
		Summary:       "Say that a revision is deployed",
		Tags:          []string{tagAutomation},
		Description:   "From a hook that answered 202, or whose answer was lost.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(),
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(_ context.Context, in *deployedInput) (*struct{}, error) {
		return nil, p.bisectError(p.Bisects.Deployed(in.ID, in.Body.Revision, in.Body.reason()), in.ID)
	})
	huma.Register(api, huma.Operation{
		OperationID: "resume-bisect", Method: http.MethodPost, Path: "/api/v1/bisects/{id}/resume", Summary: "Let a bisect go on that has failed",
		Tags:        []string{tagAutomation},
		Description: "From what it knows: nothing that was measured is measured again.",
		Security:    needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, func(_ context.Context, in *ByBisect) (*bisectBody, error) {
		b, err := p.Bisects.Resume(in.ID)
		return &bisectBody{b}, p.bisectError(err, in.ID)
	})
	huma.Register(api, huma.Operation{
		OperationID: "repeat-bisect", Method: http.MethodPost, Path: "/api/v1/bisects/{id}/again", Summary: "Make a bisect again that has ended",
		Tags: []string{tagAutomation}, Description: "Another one, with the same plan, revisions and bounds, which measures everything anew.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(),
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *ByBisect) (*bisectBody, error) {
		b, err := p.Bisects.Again(ctx, in.ID, identityOf(ctx).Name)
		return &bisectBody{b}, p.bisectError(err, in.ID)
	})
	huma.Register(api, huma.Operation{
		OperationID: "list-repositories", Method: http.MethodGet, Path: "/api/v1/repositories", Summary: "List the repositories of the configuration",
		Tags: []string{tagAutomation}, Description: "Their names, which a schedule may say.", Security: needsToken(),
	}, func(context.Context, *noInput) (*repositoriesBody, error) {
		body := &repositoriesBody{}
		body.Body.Repositories = []Repository{}
		for _, name := range slices.Sorted(maps.Keys(p.Bisects.Repositories)) {
			one := Repository{Name: name}
			if err := p.Bisects.Repositories[name].Usable(); err != nil {
				one.Problem = err.Error()
			}
			body.Body.Repositories = append(body.Body.Repositories, one)
		}
		return body, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "answer-repository-deployment", Method: http.MethodPut, Path: "/api/v1/repositories/{name}/deployment",
		Summary: "Say that the newest revision is deployed", Tags: []string{tagAutomation},
		Description:   "For a run of a schedule, from the hook of a repository that answered 202.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(),
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(_ context.Context, in *headDeployedInput) (*struct{}, error) {
		err := p.Bisects.HeadDeployed(in.Name, in.Body.Revision, in.Body.reason())
		if errors.Is(err, store.ErrNotFound) {
			return nil, huma.Error404NotFound("the configuration has no repository " + clip(in.Name))
		}
		return nil, p.bisectError(err, "")
	})
	huma.Register(api, huma.Operation{
		OperationID: "cancel-bisect", Method: http.MethodDelete, Path: "/api/v1/bisects/{id}", Summary: "Cancel a bisect, or delete one that has ended",
		Tags:          []string{tagAutomation},
		Description:   "Its run in progress is cancelled too. With files=true a bisect that has ended is deleted; its runs stay.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, func(_ context.Context, in *cancelBisectInput) (*struct{}, error) {
		if in.Files {
			return nil, p.bisectError(p.Bisects.Remove(in.ID), in.ID)
		}
		return nil, p.bisectError(p.Bisects.Cancel(in.ID), in.ID)
	})
}

func (p bisectFeature) makeBisect(ctx context.Context, in *newBisectInput) (*newBisectBody, error) {
	q := bisects.Request{
		Name: in.Body.Name, Plan: in.Body.Plan.request.AskedBy(scopeOf(ctx)), Revisions: in.Body.Revisions,
		URL: in.Body.Hook.URL, Secret: in.Body.Hook.Secret,
		Limit: time.Duration(in.Body.Hook.Limit * float64(time.Second)), Metric: in.Body.Metric, Confidence: in.Body.Confidence,
		Least: in.Body.Least, Pairs: in.Body.Pairs, Seed: in.Body.Seed, Spread: in.Body.Spread, By: identityOf(ctx).Name,
		AnyHook: scopeOf(ctx) >= plan.ScopeAdmin,
	}
	if err := checkFields(q); err != nil {
		return nil, err
	}
	b, secret, err := p.Bisects.Make(ctx, q)
	if err := forbidden("body.plan", err); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, p.bisectError(err, "")
	}
	note(ctx, b.ID)
	return &newBisectBody{"/api/v1/bisects/" + b.ID, NewBisect{b, secret}}, nil
}

// checkFields checks the plan's fields with the first revision in place of its mark: in a host the mark itself would be
// no URL.
func checkFields(q bisects.Request) error {
	if err := bisection.CheckRevisions(q.Revisions); err != nil { // a list may be null, which has no least length
		return huma.Error422UnprocessableEntity("revisions: " + err.Error())
	}
	one, err := q.Plan.Of(q.Revisions[0].Name)
	if err != nil {
		return huma.Error422UnprocessableEntity("plan: " + err.Error())
	}
	if err := refused("body.plan", one.Problems()); err != nil {
		return err
	}
	if !one.Opens() {
		return opensNothing("body.plan")
	}
	return nil
}

// bisectError is the answer to what a keeper of bisects refuses.
func (p bisectFeature) bisectError(err error, id string) error {
	var wrong *bisects.WrongError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bisects.ErrHook):
		return huma.Error403Forbidden(adminsAlone,
			&huma.ErrorDetail{Message: bisects.ErrHook.Error(), Location: "body.hook.url"})
	case errors.As(err, &wrong):
		return huma.Error422UnprocessableEntity(strings.ToValidUTF8(err.Error(), ""))
	case errors.Is(err, store.ErrNotFound):
		return huma.Error404NotFound("there is no bisect " + clip(id))
	}
	for _, known := range []error{
		bisects.ErrMany, lab.ErrShare, bisects.ErrGoing, bisects.ErrOver, bisects.ErrNotAwaited, bisects.ErrNotFailed,
	} {
		if errors.Is(err, known) {
			return huma.Error409Conflict(known.Error())
		}
	}
	return p.internalError(fmt.Errorf("bisect: %w", err))
}
