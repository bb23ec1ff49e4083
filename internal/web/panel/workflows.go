package panel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/automation"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

const tagAutomation = "automation"

// automationFeature has the routes of workflows, schedules, webhooks, alerts and references.
type automationFeature struct {
	*Panel
	Automation *automation.Keeper
}

// WithAutomation keeps workflows, schedules, webhooks, alerts and references.
func WithAutomation(k *automation.Keeper) Module {
	return func(shell *Panel) {
		p := automationFeature{shell, k}
		p.workflows(p.api)
		p.schedules(p.api)
		p.webhooks(p.api)
		p.alerts(p.api)
		p.runReferences(p.api)
		shell.kept = append(shell.kept, p.workflowWith)
		shell.cited = append(shell.cited, p.referenceTo)
		shell.reference, shell.alertsOf = p.referenceNamed, p.openAlerts
		shell.scraped["automation"] = p.collect
	}
}

// workflowWith says which workflow replays a recording.
func (p automationFeature) workflowWith(ctx context.Context, name string) (string, error) {
	all, err := p.Automation.Workflows(ctx)
	if err != nil {
		return "", err
	}
	for _, w := range all {
		full, err := p.Automation.Workflow(ctx, w.Name, 0)
		if err == nil && full.Plan != nil && p.replays(*full.Plan, name) {
			return "workflow " + w.Name + " replays it: change the workflow or remove it first", nil
		}
	}
	return "", nil
}

// referenceTo says which reference a run is.
func (p automationFeature) referenceTo(ctx context.Context, run string) (string, error) {
	name, err := p.Automation.ReferTo(ctx, run)
	if err != nil || name == "" {
		return "", err
	}
	return "it is the reference " + name + ": remove that first (DELETE /api/v1/references/ID)", nil
}

func (p automationFeature) referenceNamed(ctx context.Context, run *lab.Run, name string) (id, version string, err error) {
	r, err := p.Automation.ReferenceFor(ctx, run, name)
	if err != nil {
		return "", "", p.automationError(err, "")
	}
	return r.Run, fmt.Sprintf("%s@%d", r.Branch, r.Version), nil
}

func (p automationFeature) openAlerts(ctx context.Context, series string) ([]automation.Alert, error) {
	return p.Automation.Alerts(ctx, automation.Filter{Open: true, Series: series, Limit: mostSeries})
}

// KeptPlan is a plan that is to be kept under a name.
type KeptPlan struct {
	Plan lab.Plan `json:"plan" doc:"What it asks for"`
	Tags []string `json:"tags,omitempty" maxItems:"14" doc:"Which alerts about its runs get: letters, digits and dashes, at most 24 each" example:"[\"team-checkout\"]"`
}

// WorkflowRun asks for a run of a workflow.
type WorkflowRun struct {
	Version int `json:"version,omitempty" minimum:"1" doc:"Which of the versions that are kept; without it the newest"`
	// Change is a JSON Merge Patch (RFC 7396).
	Change *SaidPlan `json:"change,omitempty" doc:"What of the plan is changed for this run alone, as a JSON Merge Patch (RFC 7396): a field that is given replaces the plan's, and null removes it"`
}

// ByName is the name in the path of a request. It is exported, as are the other parts of
// inputs, for huma, which sees no others.
type ByName struct {
	Name string `path:"name" maxLength:"60" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"Its name" example:"checkout"`
}

// Matching are the headers that say what must be there for a change (RFC 9110, section 13.1).
type Matching struct {
	Match     string `header:"If-Match" maxLength:"40" doc:"The ETag of what is changed, or *"`
	NoneMatch string `header:"If-None-Match" maxLength:"40" doc:"* makes a new one only"`
}

type (
	getWorkflowInput struct {
		ByName
		Version int `query:"version" minimum:"1" doc:"Which of the versions that are kept; without it the newest"`
	}
	putWorkflowInput struct {
		ByName
		Matching
		Body KeptPlan
	}
	removeInput struct {
		ByName
		Matching
	}
	runWorkflowInput struct {
		ByName
		Key  string       `header:"Idempotency-Key" minLength:"1" maxLength:"128" pattern:"^[!-~]+$" doc:"As of POST /api/v1/runs"`
		Body *WorkflowRun `required:"false"`
	}
	workflowBody struct {
		ETag string `header:"ETag"`
		Body automation.Workflow
	}
	workflowsBody struct {
		Body struct {
			Workflows []automation.Workflow `json:"workflows" doc:"In order of their names"`
		}
	}
)

// workflows registers the routes of the plans that are kept under a name.
func (p automationFeature) workflows(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-workflows", Method: http.MethodGet, Path: "/api/v1/workflows", Summary: "List the workflows", Tags: []string{tagAutomation},
		Description: "A workflow is a plan that the box keeps under a name.", Security: needsToken(),
	}, func(ctx context.Context, _ *noInput) (*workflowsBody, error) {
		all, err := p.Automation.Workflows(ctx)
		body := &workflowsBody{}
		body.Body.Workflows = all
		return body, p.automationError(err, "")
	})
	huma.Register(api, huma.Operation{
		OperationID: "get-workflow", Method: http.MethodGet, Path: "/api/v1/workflows/{name}", Summary: "A workflow with its plan", Tags: []string{tagAutomation},
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *getWorkflowInput) (*workflowBody, error) {
		w, err := p.Automation.Workflow(ctx, in.Name, in.Version)
		return &workflowBody{etag(w.Version), w}, p.automationError(err, "workflow "+clip(in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "put-workflow", Method: http.MethodPut, Path: "/api/v1/workflows/{name}", Summary: "Keep a plan under a name", Tags: []string{tagAutomation},
		Description: "A workflow that exists is changed only with If-Match; that makes a new version. The newest 20 are kept.",
		Security:    needsToken(), MaxBodyBytes: maxPlanBody,
		Errors: []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity, http.StatusInsufficientStorage},
	}, p.putWorkflow)
	huma.Register(api, huma.Operation{
		OperationID: "remove-workflow", Method: http.MethodDelete, Path: "/api/v1/workflows/{name}", Summary: "Remove a workflow", Tags: []string{tagAutomation},
		Description:   "With all its versions. Its runs stay, and a workflow that gets the name again goes on counting.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(),
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
	}, func(ctx context.Context, in *removeInput) (*struct{}, error) {
		expect, err := in.expect(true)
		if err != nil {
			return nil, err
		}
		return nil, p.automationError(p.Automation.RemoveWorkflow(ctx, in.Name, expect), "workflow "+clip(in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "run-workflow", Method: http.MethodPost, Path: "/api/v1/workflows/{name}/runs", Summary: "Start a run of a workflow",
		Tags: []string{tagAutomation}, Description: "The run keeps the workflow's name and version in plan.from of its run.json.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(), MaxBodyBytes: maxPlanBody,
		Errors: []int{http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusServiceUnavailable, http.StatusInsufficientStorage},
	}, p.runWorkflow)
}

func (p automationFeature) putWorkflow(ctx context.Context, in *putWorkflowInput) (*workflowBody, error) {
	if !(plan.Request{Plan: in.Body.Plan}).Opens() {
		return nil, opensNothing("body.plan")
	}
	expect, err := in.expect(false)
	if err != nil {
		return nil, err
	}
	w, err := p.Automation.PutWorkflow(ctx, in.Name, p.askedBy(ctx, in.Body.Plan), in.Body.Tags, identityOf(ctx).Name, expect)
	if err := forbidden("body.plan", err); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, p.automationError(err, "workflow "+clip(in.Name))
	}
	note(ctx, "version "+strconv.Itoa(w.Version))
	return &workflowBody{etag(w.Version), w}, nil
}

func (p automationFeature) runWorkflow(ctx context.Context, in *runWorkflowInput) (*startBody, error) {
	asked := WorkflowRun{}
	if in.Body != nil {
		asked = *in.Body
	}
	w, err := p.Automation.Workflow(ctx, in.Name, asked.Version)
	if err != nil {
		return nil, p.automationError(err, "workflow "+clip(in.Name))
	}
	once, err := onceFor(ctx, in.Key, struct {
		Workflow string
		Asked    WorkflowRun
	}{in.Name, asked})
	if err != nil {
		return nil, p.internalError(err)
	}
	var change func(lab.Plan) (lab.Plan, error)
	if asked.Change != nil && !asked.Change.request.IsEmpty() {
		change = func(kept lab.Plan) (lab.Plan, error) {
			changed, err := plan.Request{Plan: kept}.With(asked.Change.request)
			if err != nil {
				return kept, err
			}
			if err := refused("body.change", changed.Problems()); err != nil {
				return kept, err
			}
			// The kept plan keeps its scope; what is changed is this token's.
			if err := asked.Change.request.Allowed(scopeOf(ctx)); err != nil {
				return kept, forbidden("body.change", err)
			}
			return p.changedBy(ctx, kept, changed.WithDefaults()), nil
		}
	}
	id, err := p.Automation.Start(ctx, w, change, once)
	var said huma.StatusError
	if errors.As(err, &said) {
		return nil, said
	}
	if err != nil {
		return nil, p.startError(err)
	}
	note(ctx, id)
	return startedAs(id), nil
}

// etag is the ETag of a version.
func etag(version int) string { return `"` + strconv.Itoa(version) + `"` }

// expect reads what must be there for a change. Without a header a removal goes ahead, and
// anything else makes a new one only.
func (in Matching) expect(removal bool) (e automation.Expect, err error) {
	switch {
	case in.NoneMatch != "" && (in.NoneMatch != "*" || in.Match != ""):
		return e, huma.Error422UnprocessableEntity("If-None-Match: only * can be given, without If-Match")
	case in.NoneMatch == "*":
		return e, nil
	case in.Match == "*" || in.Match == "" && removal:
		return automation.Expect{Any: true}, nil
	case in.Match == "":
		return e, nil
	}
	version, err := strconv.Atoi(strings.Trim(in.Match, `"`))
	if err != nil || version < 1 {
		return e, huma.NewError(http.StatusPreconditionFailed, "If-Match: "+clip(in.Match)+" is no ETag that the box gave")
	}
	return automation.Expect{Version: version}, nil
}

// automationError is the answer for an error of the keeper; what names the thing that the
// request is about.
func (p automationFeature) automationError(err error, what string) error {
	var wrong *automation.WrongError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return huma.Error422UnprocessableEntity(err.Error())
	case errors.Is(err, store.ErrNotFound):
		return huma.Error404NotFound("there is no " + what)
	case errors.Is(err, automation.ErrVersion):
		return huma.Error404NotFound(what + ": " + automation.ErrVersion.Error())
	case errors.Is(err, automation.ErrExists):
		return huma.NewError(http.StatusPreconditionFailed, what+": "+automation.ErrExists.Error()+": choose another, or send its ETag in If-Match to change it")
	case errors.Is(err, automation.ErrChanged):
		return huma.NewError(http.StatusPreconditionFailed, what+": "+automation.ErrChanged.Error()+": read it again")
	}
	for _, known := range []error{automation.ErrMany, lab.ErrShare, automation.ErrInUse, automation.ErrDone, automation.ErrResolved} {
		if errors.Is(err, known) {
			return huma.Error409Conflict(what + ": " + known.Error())
		}
	}
	return p.internalError(err)
}
