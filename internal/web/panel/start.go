package panel

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// runFeature has the routes that start runs and check plans.
type runFeature struct {
	*Panel
	Browsers plan.Browsers
	Apps     plan.Apps
}

// WithRuns lets runs be started, which wait in the queue; plans may name these browsers and apps of the configuration.
func WithRuns(q Queue, browsers plan.Browsers, apps plan.Apps) Module {
	return func(shell *Panel) {
		p := runFeature{shell, browsers, apps}
		p.starts(p.api)
		p.plans(p.api)
		shell.queue = q
		shell.states = append(shell.states, func(_ context.Context, h *Health) { h.Starts = true })
	}
}

func progressType() reflect.Type { return reflect.TypeFor[Progress]() }

func backupType() reflect.Type { return reflect.TypeFor[Backup]() }

func archiveType() reflect.Type { return reflect.TypeFor[Archive]() }

type (
	startInput struct {
		Key  string `header:"Idempotency-Key" minLength:"1" maxLength:"128" pattern:"^[!-~]+$" doc:"Chosen by you, different for each run: a request that is repeated with its key, because the response was lost, gets the first response and starts no second run. Keys are kept for a day"`
		Body lab.Plan
	}
	cancelInput struct {
		ID    string `path:"id" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Identifier of the run" example:"20261121-091400-demo"`
		Files bool   `query:"files" doc:"Delete the files of a run that has ended"`
	}
	startBody struct {
		Location string `header:"Location" doc:"Address of the run"`
		Body     Accepted
	}
)

// Accepted is the response to a request for a run.
type Accepted struct {
	ID     string `json:"id" doc:"Identifier of the run"`
	State  string `json:"state" enum:"queued"`
	Run    string `json:"run" doc:"Address of the run"`
	Events string `json:"events" doc:"Address of its progress, as server-sent events"`
}

func (p runFeature) starts(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "start-run", Method: http.MethodPost, Path: "/api/v1/runs", Summary: "Start a run", Tags: []string{tagRuns},
		Description:   "The run waits in the queue of its device, which survives a restart of the appliance.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(), MaxBodyBytes: maxPlanBody,
		Errors: []int{
			http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusServiceUnavailable,
			http.StatusInsufficientStorage,
		},
	}, p.start)
	plan.NamePrograms(api.OpenAPI().Components.Schemas)
	huma.Register(api, huma.Operation{
		OperationID: "cancel-run", Method: http.MethodDelete, Path: "/api/v1/runs/{id}",
		Summary: "Cancel a run that waits or is in progress, or delete one that has ended", Tags: []string{tagRuns},
		Description:   "A waiting run is removed from the queue. A run in progress is stopped and stays listed as interrupted. With files=true a run that has ended is deleted with all its files, and so is the recording that it made; this cannot be undone. A run whose recording is needed is kept: the answer is 409 and says by what.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(),
		Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict},
	}, p.cancel)
}

func (p runFeature) start(ctx context.Context, in *startInput) (*startBody, error) {
	if !(plan.Request{Plan: in.Body}).Opens() {
		return nil, opensNothing("body")
	}
	once, err := onceFor(ctx, in.Key, in.Body)
	if err != nil {
		return nil, p.internalError(err)
	}
	if in.Body.From != nil {
		return nil, huma.Error422UnprocessableEntity("from: only the box sets it; POST /api/v1/workflows/NAME/runs starts a run of a workflow")
	}
	id, err := p.queue.Add(ctx, p.askedBy(ctx, in.Body), once)
	if err != nil {
		return nil, p.startError(err)
	}
	note(ctx, id)
	return startedAs(id), nil
}

// opensNothing is the answer to a plan without a page.
func opensNothing(at string) error {
	return huma.Error422UnprocessableEntity("validation failed", &huma.ErrorDetail{
		Message: "a page is missing, or steps whose first opens one", Location: at,
	})
}

// refused is the answer to a plan with problems, whose place in the request is at; nil without one.
func refused(at string, problems []*lab.FieldError) error {
	if len(problems) == 0 {
		return nil
	}
	details := make([]error, 0, len(problems))
	for _, p := range problems {
		details = append(details, &huma.ErrorDetail{Message: p.Err.Error(), Location: strings.TrimSuffix(at+"."+p.Path, ".")})
	}
	return huma.Error422UnprocessableEntity("validation failed", details...)
}

// scopeOf is whose a plan is that comes with a request.
func scopeOf(ctx context.Context) plan.Scope {
	if identityOf(ctx).Scope.Allows(credentials.Admin) {
		return plan.ScopeAdmin
	}
	return plan.ScopeRun
}

// Reaches says where pages may be that a run records.
type Reaches string

// What is reached, from the least. With ReachesPages, a plan of the scope admin opens the hosts of its pages, as the
// command line does: only this machine reaches the panel, and who has that scope could as well start a program here.
const (
	ReachesPublic  Reaches = "public"
	ReachesPages   Reaches = "pages"
	ReachesPrivate Reaches = "private"
)

// reaches is where the pages may be that a client names.
func (p *Panel) reaches(ctx context.Context) Reaches {
	if p.Reaches == ReachesPages && scopeOf(ctx) < plan.ScopeAdmin {
		return ReachesPublic
	}
	return cmp.Or(p.Reaches, ReachesPublic)
}

// askedBy is a plan with the notes of who asks for it.
func (p *Panel) askedBy(ctx context.Context, asked lab.Plan) lab.Plan {
	asked = plan.AskedBy(asked, scopeOf(ctx))
	if p.reaches(ctx) == ReachesPages {
		asked = plan.Opening(asked)
	}
	return asked
}

// changedBy is a kept plan that was changed, with the notes of who kept it and who changed it: what the keeper opened
// stays open, an admin opens the hosts that the change names, and no other is opened.
func (p *Panel) changedBy(ctx context.Context, kept, changed lab.Plan) lab.Plan {
	asked := plan.AskedBy(changed, max(plan.ScopeOf(kept), scopeOf(ctx)))
	if asked.Opened = kept.Opened; p.reaches(ctx) == ReachesPages {
		asked = plan.Opening(asked, kept.Origins()...)
	}
	return asked
}

// adminsAlone is what a plan's refusal says besides the field and what to do.
const adminsAlone = "the box's admin alone names this"

// forbidden is the answer to a plan, at a place of the request, that names what its token may not name; nil to any
// other error.
func forbidden(at string, err error) error {
	var beyond *plan.ScopeError
	var field *lab.FieldError
	if !errors.As(err, &beyond) || !errors.As(beyond, &field) {
		return nil
	}
	return huma.Error403Forbidden(adminsAlone, &huma.ErrorDetail{Message: field.Err.Error(), Location: at + "." + field.Path})
}

// startError is the answer to a run that the queue does not take.
func (p *Panel) startError(err error) error {
	var rejected *runqueue.RejectedError
	var refused *Refusal
	if err := forbidden("body", err); err != nil {
		return err
	}
	switch {
	case errors.Is(err, store.ErrFull):
		return huma.Error503ServiceUnavailable(err.Error())
	case errors.As(err, &refused):
		return huma.NewError(refused.Status, refused.Error())
	case errors.As(err, &rejected):
		return huma.Error422UnprocessableEntity(rejected.Error())
	case errors.Is(err, store.ErrKeyUsed):
		return huma.Error422UnprocessableEntity("Idempotency-Key: it came with another request before; a new request needs a new key")
	}
	return p.internalError(err)
}

// maxPlanBody bounds a plan with the files that are sent with it, which are longer by a third in Base64.
const maxPlanBody = 7 << 20

// schemaName names the schema of a type by the type, but a plan's step, as the step of a history
// has that name, what a bisect and a suite find, and what the page of a run shows. Clients that are generated have these names, so
// the parts that only say how huma takes a body are left out.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[lab.Step]() {
		return "PlanStep"
	}
	name := huma.DefaultSchemaNamer(t, hint)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if strings.HasSuffix(t.PkgPath(), "/bisection") {
		return "Bisect" + name
	}
	if strings.HasSuffix(t.PkgPath(), "/box/suites") || strings.HasSuffix(t.PkgPath(), "/tell/suite") {
		return "Suite" + strings.TrimPrefix(name, "Suite")
	}
	if strings.HasSuffix(t.PkgPath(), "/runview") {
		return "RunView" + strings.TrimPrefix(name, "View")
	}
	if input, ok := strings.CutSuffix(name, "InputBody"); ok {
		return input + "Input"
	}
	return strings.TrimSuffix(name, "BodyBody")
}

// startedAs is the response to a request for a run, and to its repetitions.
func startedAs(id string) *startBody {
	address := "/api/v1/runs/" + id
	return &startBody{address, Accepted{id, store.StateQueued, address, address + "/events"}}
}

// onceFor identifies a request for a run by its key and a digest of its body.
func onceFor(ctx context.Context, key string, body any) (store.Once, error) {
	asked, err := json.Marshal(body)
	if err != nil {
		return store.Once{}, err
	}
	digest := sha256.Sum256(asked)
	return store.Once{Key: ownKey(ctx, key), Request: hex.EncodeToString(digest[:])}, nil
}

func (p runFeature) cancel(ctx context.Context, in *cancelInput) (*struct{}, error) {
	job, err := p.queue.Get(ctx, in.ID)
	if errors.Is(err, store.ErrNotFound) && in.Files {
		return nil, p.remove(ctx, in.ID)
	}
	if err == nil && in.Files && inQueue(job.State) {
		return nil, huma.NewError(http.StatusConflict, "the run waits or goes on: cancel it first, without files=true")
	}
	if errors.Is(err, store.ErrNotFound) && p.Store.Has(in.ID) {
		return nil, huma.Error404NotFound("run " + clip(in.ID) + " has ended: files=true deletes it with its files")
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, huma.Error404NotFound("no run " + clip(in.ID) + " waits or goes on")
	}
	if err != nil {
		return nil, p.internalError(err)
	}
	if in.Files && p.Store.Has(in.ID) { // an interrupted run may be in the queue as well
		if err := p.remove(ctx, in.ID); err != nil {
			return nil, err
		}
	}
	err = p.queue.Cancel(ctx, job.ID)
	switch {
	case errors.Is(err, runqueue.ErrEnding):
		return nil, huma.NewError(http.StatusConflict, err.Error())
	case err != nil && !errors.Is(err, store.ErrNotFound): // a job that has ended meanwhile counts as cancelled
		return nil, p.internalError(err)
	}
	return nil, nil
}

// runOf shows a waiting job as a run.
func runOf(j store.Job) *lab.Run {
	j.Plan.Files = nil
	return &lab.Run{
		ID: j.ID, Name: j.Plan.Name, Wall: j.Created, State: j.State, Error: j.Error, Page: j.Plan.FirstPage(), Plan: j.Plan,
		Trials: []*lab.Trial{}, Summary: []lab.Summary{},
	}
}
