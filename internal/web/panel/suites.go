package panel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"eidetic/internal/box/suites"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/suite"
)

const tagSuites = "suites"

// maxSuiteBody bounds a suite with what JSON escapes in it.
const maxSuiteBody = 1 << 20

// SuiteName is the name of a suite in the path of a request.
type SuiteName struct {
	Name string `path:"name" maxLength:"40" pattern:"^[a-z0-9][a-z0-9-]*$" doc:"Name of the suite" example:"eidetic-1"`
}

// BySuiteResult is the ID of a result in the path of a request.
type BySuiteResult struct {
	ID string `path:"id" maxLength:"32" pattern:"^[a-z0-9]+$" doc:"Identifier of the result" example:"s3k7v2m9qxab"`
}

// NewSuiteResult asks for a suite to be measured.
type NewSuiteResult struct {
	Suite    string   `json:"suite" maxLength:"40" doc:"Name of the suite" example:"eidetic-1"`
	Browsers []string `json:"browsers,omitempty" maxItems:"6" doc:"Those that are compared, as a plan names them; the first is what the others are held against. Without it those of the suite" example:"[\"chromium\",\"firefox-esr\"]"`
	Only     []string `json:"only,omitempty" maxItems:"60" doc:"The entries that are measured; without it all" example:"[\"load-article\"]"`
	Trials   int      `json:"trials,omitempty" minimum:"1" maximum:"5000" doc:"Of each entry and browser; without it as the suite says" example:"6"`
	Seed     uint64   `json:"seed,omitempty" default:"1" doc:"Of the order of the trials"`
	Device   string   `json:"device,omitempty" maxLength:"100" doc:"Name of the device; without it the first of the list" example:"virtual"`
	On       *lab.On  `json:"on,omitempty" doc:"For the head of a fleet: which boxes may carry the runs out, and how urgently"`
	Spread   int      `json:"spread,omitempty" minimum:"1" maximum:"50" default:"1" doc:"How many runs are in the queue at the same time. A head gives them to as many boxes; let on name boxes of one kind"`
}

type (
	putSuiteInput struct {
		SuiteName
		Match string `header:"If-Match" maxLength:"80" doc:"The ETag of the suite to replace, or *"`
		Body  struct {
			YAML string `json:"yaml" maxLength:"262144" doc:"The suite's text, as in a file (docs/suite.md)"`
		}
	}
	suiteResultInput  struct{ Body NewSuiteResult }
	cancelResultInput struct {
		BySuiteResult
		Files bool `query:"files" doc:"Delete a result that has ended; its runs stay"`
	}
	releasesBody struct {
		Body struct {
			Releases []suite.Release `json:"releases" doc:"One browser after another"`
		}
	}
	suiteBody struct {
		ETag string `header:"ETag"`
		Body suites.Suite
	}
	suitesBody struct {
		Body struct {
			Suites []suites.Suite `json:"suites" doc:"In order of their names, without their texts"`
		}
	}
	newSuiteResultBody struct {
		Location string `header:"Location" doc:"Address of the result"`
		Body     suites.Result
	}
	suiteResultBody  struct{ Body suites.Result }
	suiteResultsBody struct {
		Body struct {
			Results []suites.Result `json:"results" doc:"The newest first, without their entries and tables"`
		}
	}
)

// suiteFeature has the routes of suites.
type suiteFeature struct {
	*Panel
	Suites *suites.Keeper
}

// WithSuites compares browsers over many pages.
func WithSuites(k *suites.Keeper) Module {
	return func(shell *Panel) {
		p := suiteFeature{shell, k}
		p.suiteRoutes(p.router, p.api)
		shell.held = append(shell.held, func(_ context.Context, recording string) (string, error) {
			return usedBy("the result %s of a suite replays it: wait for its end, or stop it", k.Holds(recording)), nil
		})
	}
}

// suiteRoutes registers the routes of suites and their results.
func (p suiteFeature) suiteRoutes(e *echo.Echo, api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-suites", Method: http.MethodGet, Path: "/api/v1/suites", Summary: "List the suites", Tags: []string{tagSuites},
		Description: "Those of this program, and those that were uploaded. A suite is a set of pages and journeys by which browsers are compared.",
		Security:    needsToken(),
	}, func(context.Context, *noInput) (*suitesBody, error) {
		all, err := p.Suites.Suites()
		body := &suitesBody{}
		body.Body.Suites = all
		return body, p.suiteError(err, "")
	})
	huma.Register(api, huma.Operation{
		OperationID: "get-suite", Method: http.MethodGet, Path: "/api/v1/suites/{name}", Summary: "A suite with its text", Tags: []string{tagSuites},
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(_ context.Context, in *SuiteName) (*suiteBody, error) {
		s, err := p.Suites.Suite(in.Name)
		return &suiteBody{`"` + s.SHA256 + `"`, s}, p.suiteError(err, "suite "+clip(in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "list-suite-releases", Method: http.MethodGet, Path: "/api/v1/suites/{name}/releases", Summary: "The series of each browser's releases",
		Tags: []string{tagSuites}, Description: "From the results of the suite as it is now that have ended: releases by their versions, those of one version by time.",
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *SuiteName) (*releasesBody, error) {
		done, err := p.telling.Take(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		all, err := p.Suites.Releases(ctx, in.Name)
		body := &releasesBody{}
		body.Body.Releases = all
		return body, p.suiteError(err, "suite "+clip(in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "put-suite", Method: http.MethodPut, Path: "/api/v1/suites/{name}", Summary: "Upload a suite", Tags: []string{tagSuites},
		Description: "Its text names it as the path does. What its plans may name is judged by the scope of who uploads it, and of who has it measured. Recordings are uploaded by PUT /api/v1/archives.",
		Security:    needsToken(), MaxBodyBytes: maxSuiteBody,
		Errors: []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity, http.StatusInsufficientStorage},
	}, func(ctx context.Context, in *putSuiteInput) (*suiteBody, error) {
		s, err := p.Suites.PutSuite(in.Name, []byte(in.Body.YAML), strings.Trim(in.Match, `"`), identityOf(ctx).Name, scopeOf(ctx))
		return &suiteBody{`"` + s.SHA256 + `"`, s}, p.suiteError(err, "suite "+clip(in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "remove-suite", Method: http.MethodDelete, Path: "/api/v1/suites/{name}", Summary: "Remove a suite that was uploaded",
		Tags: []string{tagSuites}, Description: "Its results stay: they hold its text.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(),
		Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, func(_ context.Context, in *SuiteName) (*struct{}, error) {
		return nil, p.suiteError(p.Suites.RemoveSuite(in.Name), "suite "+clip(in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "measure-suite", Method: http.MethodPost, Path: "/api/v1/suite-results", Summary: "Measure a suite", Tags: []string{tagSuites},
		Description: "Each entry is a run of the queue. One result is measured at a time, and goes on after a restart; the others wait. " +
			"The result holds the text of the suite as it is now.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(),
		Errors: []int{
			http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusInsufficientStorage,
		},
	}, p.measureSuite)
	huma.Register(api, huma.Operation{
		OperationID: "list-suite-results", Method: http.MethodGet, Path: "/api/v1/suite-results", Summary: "List the results of suites",
		Tags: []string{tagSuites}, Security: needsToken(),
	}, func(context.Context, *noInput) (*suiteResultsBody, error) {
		body := &suiteResultsBody{}
		body.Body.Results = p.Suites.List()
		return body, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "get-suite-result", Method: http.MethodGet, Path: "/api/v1/suite-results/{id}", Summary: "What a result says so far",
		Tags: []string{tagSuites}, Description: "Its runs, the table of marks with ratios, intervals and geometric means, and the known answers.",
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(_ context.Context, in *BySuiteResult) (*suiteResultBody, error) {
		r, err := p.Suites.Get(in.ID)
		return &suiteResultBody{r}, p.suiteError(err, "result "+clip(in.ID))
	})
	p.raw(e, api, &huma.Operation{
		OperationID: "get-suite-result-file", Method: http.MethodGet, Path: "/api/v1/suite-results/{id}/file", Summary: "The result's file, suite.json",
		Tags: []string{tagSuites}, Description: "With every hash, version, condition and trial: appliance suite show, compare and repeat read it.",
		Parameters: []*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
			Description: "Identifier of the result", Example: "s3k7v2m9qxab"}},
		Responses: file("200", "application/json", "The file"),
	}, p.suiteResultFile)
	huma.Register(api, huma.Operation{
		OperationID: "resume-suite-result", Method: http.MethodPost, Path: "/api/v1/suite-results/{id}/resume", Summary: "Go on with a result",
		Tags: []string{tagSuites}, Description: "One that failed or was stopped goes on where it was; entries that have failed are tried again.",
		Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, func(_ context.Context, in *BySuiteResult) (*suiteResultBody, error) {
		r, err := p.Suites.Resume(in.ID)
		return &suiteResultBody{r}, p.suiteError(err, "result "+clip(in.ID))
	})
	huma.Register(api, huma.Operation{
		OperationID: "cancel-suite-result", Method: http.MethodDelete, Path: "/api/v1/suite-results/{id}", Summary: "Stop measuring a result, or delete one that has ended",
		Tags:          []string{tagSuites},
		Description:   "Its run in progress is cancelled too. With files=true a result that has ended is deleted; its runs stay.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, func(_ context.Context, in *cancelResultInput) (*struct{}, error) {
		act := p.Suites.Cancel
		if in.Files {
			act = p.Suites.Remove
		}
		return nil, p.suiteError(act(in.ID), "result "+clip(in.ID))
	})
}

func (p suiteFeature) measureSuite(ctx context.Context, in *suiteResultInput) (*newSuiteResultBody, error) {
	b := in.Body
	if b.On != nil && !p.fleet {
		return nil, huma.Error422UnprocessableEntity("on: this is one box; only the head of a fleet chooses among several (appliance head)")
	}
	r, err := p.Suites.Measure(ctx, suites.Request{
		Suite: b.Suite, Browsers: b.Browsers, Only: b.Only, Trials: b.Trials, Seed: b.Seed, Device: b.Device, On: b.On, Spread: b.Spread,
		By: identityOf(ctx).Name, Scope: scopeOf(ctx), Opens: p.reaches(ctx) == ReachesPages,
	})
	var beyond *plan.ScopeError
	if errors.As(err, &beyond) {
		return nil, huma.Error403Forbidden(adminsAlone, &huma.ErrorDetail{Message: strings.ToValidUTF8(err.Error(), ""), Location: "body"})
	}
	if err != nil {
		return nil, p.suiteError(err, "suite "+clip(b.Suite))
	}
	note(ctx, r.ID)
	return &newSuiteResultBody{"/api/v1/suite-results/" + r.ID, r}, nil
}

func (p suiteFeature) suiteResultFile(c echo.Context) error {
	name, err := p.Suites.File(c.Param("id"))
	if err != nil {
		return p.suiteError(err, "result "+clip(c.Param("id")))
	}
	f, err := os.Open(name)
	if err != nil {
		return p.internalError(fmt.Errorf("suite: %w", err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return p.internalError(fmt.Errorf("suite: %w", err))
	}
	c.Response().Header().Set("Content-Type", "application/json")
	http.ServeContent(c.Response(), restoreHead(c.Request()), "", info.ModTime(), f)
	return nil
}

// suiteError is the answer to what a keeper of suites refuses; what names the thing that the request is about.
func (p suiteFeature) suiteError(err error, what string) error {
	var wrong *suites.WrongError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return huma.Error422UnprocessableEntity(strings.ToValidUTF8(err.Error(), ""))
	case errors.Is(err, store.ErrNotFound):
		return huma.Error404NotFound("there is no " + what)
	case errors.Is(err, suites.ErrExists):
		return huma.NewError(http.StatusPreconditionFailed, what+": "+err.Error())
	}
	for _, known := range []error{suites.ErrMany, lab.ErrShare, suites.ErrGoing, suites.ErrOver, suites.ErrComplete, suites.ErrShipped} {
		if errors.Is(err, known) {
			return huma.Error409Conflict(strings.TrimPrefix(what+": "+known.Error(), ": "))
		}
	}
	return p.internalError(fmt.Errorf("suite: %w", err))
}
