package panel

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"eidetic/internal/base/bounded"
	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/redact"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// Health is the response of /api/v1/health.
type Health struct {
	Status  string `json:"status" enum:"ok,failing" doc:"failing when a part gives no sign of life; the response's status is then 503"`
	Version string `json:"version" doc:"Version of the appliance"`
	Token   bool   `json:"token" doc:"Whether the other calls need a token"`
	Starts  bool   `json:"starts" doc:"Whether runs can be started here"`
	Joins   bool   `json:"joins" doc:"Whether this is a box that can belong to the head of a fleet"`
	Parts   []Part `json:"parts" doc:"The watched parts of the service: panel, network, capture"`
	// Warnings do not make the health fail: the service works in spite of them.
	Warnings []string `json:"warnings,omitempty" doc:"Problems to fix, in spite of which the service works" example:"the configuration has a mistake: the defaults are used"`
	// Fingerprint lets the console show it; whoever is connected has seen the certificate.
	Fingerprint string `json:"fingerprint,omitempty" doc:"SHA-256 of the panel's certificate; absent if it has none. Compare it with the box's screen, not with this" example:"3b1c…"`
	// Fleet has no names, which are nobody's business without a token.
	Fleet *FleetHealth `json:"fleet,omitempty" doc:"Of the head of a fleet: how many boxes are in which state"`
}

// Part is a part of the service that a watchdog observes.
type Part struct {
	Name  string `json:"name" doc:"Its name" example:"panel"`
	OK    bool   `json:"ok" doc:"Whether it gave a sign of life in time"`
	AgoMS int64  `json:"ago_ms" doc:"Milliseconds since its last sign of life"`
}

// Runs is a page of the list of runs.
type Runs struct {
	Runs []store.Entry `json:"runs" doc:"Runs, newest first; waiting runs come before all others"`
	Next string        `json:"next,omitempty" doc:"Value of before for the next page; absent on the last one"`
}

type (
	noInput    struct{}
	healthBody struct {
		Status int
		Body   Health
	}
	listInput struct {
		Before string `query:"before" maxLength:"128" doc:"ID of the last run of the page before"`
		Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Most runs in the response"`

		// What the runs are filtered by.
		Series  string    `query:"series" pattern:"^[0-9a-f]{16}$" doc:"Key of a series of the history: its runs, which are done"`
		Name    string    `query:"name" maxLength:"1000" doc:"Name of the run" example:"checkout"`
		Page    string    `query:"page" maxLength:"8192" doc:"URL under test; of a run of many pages that is done, any of them" example:"https://www.shop.example/"`
		Link    string    `query:"link" maxLength:"1000" doc:"Link of the control, as it was asked for" example:"4g"`
		Device  string    `query:"device" maxLength:"1000" doc:"Name of the device"`
		Browser string    `query:"browser" maxLength:"1000" doc:"Browser of the virtual device, if not Chromium as it is" example:"firefox-esr"`
		State   string    `query:"state" enum:"queued,running,done,failed,interrupted" doc:"State of the run"`
		Verdict string    `query:"verdict" enum:"slower,faster,mixed,none,equivalent,unknown" doc:"Verdict of the run's comparison"`
		Kind    string    `query:"kind" enum:"plan,film,qualification" doc:"What the run is: the execution of a plan, a film of a device's screen, or the qualification of a grabber"`
		Since   time.Time `query:"since" doc:"Runs that started then or later (RFC 3339)" example:"2026-11-21T00:00:00Z"`
		Until   time.Time `query:"until" doc:"Runs that started before (RFC 3339)" example:"2026-11-22T00:00:00Z"`
	}
	listBody struct{ Body Runs }
	idInput  struct {
		ID string `path:"id" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Identifier of the run" example:"20261121-091400-demo"`
	}
	runBody struct{ Body *lab.Run }
)

const (
	tagRuns   = "runs"
	tagSystem = "system"
)

func needsToken() []map[string][]string { return []map[string][]string{{"token": {}}} }

// routes registers the REST interface.
func (p *Panel) routes(e *echo.Echo) {
	config := huma.DefaultConfig("Eidetic", p.Version)
	config.Info.Description = "Runs of the appliance: their results, their recordings, and how to start new ones. Errors are problem details (RFC 9457)."
	config.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	// huma's documentation page would load scripts from another site, and its schema links
	// would add a field to run.json that the file does not have.
	config.DocsPath, config.SchemasPath, config.CreateHooks = "", "", nil
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: bounded.JSON}
	config.Formats = map[string]huma.Format{"application/json": format, "json": format}
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "A token of the panel: the box's own, which may do everything, or one made by POST /api/v1/tokens, whose scope is read, run or admin. The role of an operation is the least scope that it needs. A loopback panel without a token needs none."},
	}
	config.Transformers = append(config.Transformers, inWords, forReaders)
	api := humaecho.New(e, config)
	p.api = api
	api.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) {
		if name := notANumber(ctx); name != "" {
			_ = huma.WriteErr(api, ctx, http.StatusUnprocessableEntity, name+": it must be a finite number") // the client has gone
			return
		}
		next(ctx)
	})
	huma.Register(api, huma.Operation{
		OperationID: "health", Method: http.MethodGet, Path: "/api/v1/health", Summary: "Is the appliance up?", Tags: []string{tagSystem},
		Description: "Needs no token and reveals nothing about runs.",
		Responses: map[string]*huma.Response{"503": {Description: "A part of the service gives no sign of life; the body is the same",
			Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/Health"}}}}},
	}, p.health)
	huma.Register(api, huma.Operation{
		OperationID: "list-runs", Method: http.MethodGet, Path: "/api/v1/runs", Summary: "List runs", Tags: []string{tagRuns},
		Security: needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusUnprocessableEntity},
	}, p.list)
	huma.Register(api, huma.Operation{
		OperationID: "get-run", Method: http.MethodGet, Path: "/api/v1/runs/{id}", Summary: "One run, as in its run.json",
		Tags:        []string{tagRuns},
		Description: "A run in the queue has the state queued and no trials.",
		Security:    needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound},
	}, p.get)
	p.histories(api)
	p.betweens(api)
	p.registry(api)
	p.annotations(api)
	p.exports(api)
	p.pins(api)
	p.runViews(api)
	p.agains(api)
	p.trialFrames(e, api)
	p.artifacts(e, api)
	p.streams(e, api)
	p.metrics(e, api)
	p.access(e, api)
	for _, add := range p.Modules {
		add(p)
	}
	describeScopes(api.OpenAPI())
	describeKeys(api.OpenAPI())
}

// OpenAPI is the description of the REST interface.
func (p *Panel) OpenAPI() *huma.OpenAPI { return p.api.OpenAPI() }

// WithParts shows the health of the service's parts.
func WithParts(parts func() []Part) Module {
	return func(p *Panel) {
		p.states = append(p.states, func(_ context.Context, h *Health) { h.Parts = append(h.Parts, parts()...) })
	}
}

// WithAlerts shows problems to fix that come and go.
func WithAlerts(alerts func() []string) Module {
	return func(p *Panel) {
		p.states = append(p.states, func(_ context.Context, h *Health) { h.Warnings = append(h.Warnings, alerts()...) })
	}
}

func (p *Panel) health(ctx context.Context, _ *noInput) (*healthBody, error) {
	answer := Health{Status: "ok", Version: p.Version, Token: !p.Token.IsZero(), Parts: []Part{}, Warnings: slices.Clone(p.Warnings),
		Fingerprint: p.Fingerprint}
	for _, add := range p.states {
		add(ctx, &answer)
	}
	status := http.StatusOK
	for _, part := range answer.Parts {
		if !part.OK {
			answer.Status, status = "failing", http.StatusServiceUnavailable
		}
	}
	return &healthBody{status, answer}, nil
}

func (p *Panel) get(ctx context.Context, in *idInput) (*runBody, error) {
	run, err := p.Store.Run(in.ID)
	if err == nil {
		run.State = p.stateOf(ctx, in.ID, run.State)
		return p.withWaits(ctx, run)
	}
	if errors.Is(err, store.ErrNotFound) {
		job, queueErr := p.queue.Get(ctx, in.ID)
		if queueErr == nil {
			return p.withWaits(ctx, runOf(job))
		}
		if !errors.Is(queueErr, store.ErrNotFound) {
			return nil, p.internalError(queueErr)
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, huma.Error404NotFound("there is no run " + clip(in.ID))
	}
	// The folder exists, but its content is not a run; the caller may see what is wrong
	// with it.
	return nil, huma.Error422UnprocessableEntity("the run cannot be read: " + err.Error())
}

// forReader is a value for whoever may not start a run with its plan: without users' cookies and storage, typed texts
// and users of addresses.
func forReader[T any](ctx context.Context, v T) T {
	if identityOf(ctx).Scope.Allows(credentials.Run) {
		return v
	}
	return redact.Copy(v, redact.Users)
}

// forReaders is forReader for all answers, so that a new route that answers with a plan gives no secrets away. A run is its
// reader's already, and may be large; what is public has no plans.
func forReaders(ctx huma.Context, _ string, body any) (any, error) {
	_, isRun := body.(*lab.Run)
	if isRun || body == nil || identityOf(ctx.Context()).Scope == "" {
		return body, nil
	}
	return forReader(ctx.Context(), body), nil
}

// withWaits says of a run in the queue what it waits for.
func (p *Panel) withWaits(ctx context.Context, run *lab.Run) (*runBody, error) {
	run = forReader(ctx, run)
	waits, err := p.waits(ctx, run.State, run.ID)
	if err != nil {
		return nil, p.internalError(err)
	}
	run.Waits = waits
	return &runBody{run}, nil
}

// stopping is the error text while the service stops: the request is fine and may be
// repeated once the service runs again.
const stopping = "the appliance is stopping; ask again"

// retryAway is the Retry-After of what is asked of somebody who is away.
var retryAway = strconv.Itoa(int(lab.AwayFor.Seconds())) // constant

// internalError logs an error that is not the client's, and hides its text from the client.
func (p *Panel) internalError(err error) error {
	if errors.Is(err, context.Canceled) {
		return huma.Error503ServiceUnavailable(stopping)
	}
	var away *lab.AwayError
	if errors.As(err, &away) {
		p.Log.Warn("panel", "err", away.Err)
		return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable(away.Error()), http.Header{"Retry-After": {retryAway}})
	}
	p.Log.Error("panel", "err", err)
	if isNoSpace(err) {
		return huma.NewError(http.StatusInsufficientStorage, noSpace)
	}
	return huma.Error500InternalServerError("something went wrong on our side; the log says what")
}

// notANumber names a parameter of a request that is no finite number and is read as one: huma cannot answer what is
// wrong with it, since JSON has no such numbers.
func notANumber(ctx huma.Context) string {
	for _, p := range ctx.Operation().Parameters {
		if p.In != "query" || p.Schema == nil || p.Schema.Type != huma.TypeNumber {
			continue
		}
		if v, err := strconv.ParseFloat(ctx.Query(p.Name), 64); err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			return p.Name
		}
	}
	return ""
}

// inWords puts what the validator says of a request into plain words.
func inWords(_ huma.Context, _ string, body any) (any, error) {
	if problem, ok := body.(*huma.ErrorModel); ok {
		for _, detail := range problem.Errors {
			detail.Message = plan.InWords(detail.Message)
		}
	}
	return body, nil
}
