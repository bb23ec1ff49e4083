package panel

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/automation"
)

type (
	putScheduleInput struct {
		ByName
		Matching
		Body automation.Timing
	}
	firingsInput struct {
		ByName
		Limit int `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Most times in the response"`
	}
	scheduleBody struct {
		ETag string `header:"ETag"`
		Body automation.Schedule
	}
	schedulesBody struct {
		Body struct {
			Schedules []automation.Schedule `json:"schedules" doc:"In order of their names"`
		}
	}
	firingBody  struct{ Body automation.Firing }
	firingsBody struct {
		Body struct {
			Firings []automation.Firing `json:"firings" doc:"The newest first"`
		}
	}
)

// schedules registers the routes of what starts workflows at times.
func (p automationFeature) schedules(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-schedules", Method: http.MethodGet, Path: "/api/v1/schedules", Summary: "List the schedules", Tags: []string{tagAutomation},
		Security: needsToken(),
	}, func(ctx context.Context, _ *noInput) (*schedulesBody, error) {
		all, err := p.Automation.Schedules(ctx)
		body := &schedulesBody{}
		body.Body.Schedules = all
		return body, p.automationError(err, "")
	})
	huma.Register(api, huma.Operation{
		OperationID: "get-schedule", Method: http.MethodGet, Path: "/api/v1/schedules/{name}", Summary: "A schedule", Tags: []string{tagAutomation},
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *ByName) (*scheduleBody, error) {
		s, err := p.Automation.Schedule(ctx, in.Name)
		return &scheduleBody{etag(s.Revision), s}, p.automationError(err, "schedule "+clip(in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "put-schedule", Method: http.MethodPut, Path: "/api/v1/schedules/{name}", Summary: "Make or change a schedule", Tags: []string{tagAutomation},
		Description: "It starts the newest version of a workflow, every so often or at the times of a cron expression. A schedule that exists is changed only with If-Match.",
		Security:    needsToken(),
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity, http.StatusInsufficientStorage},
	}, func(ctx context.Context, in *putScheduleInput) (*scheduleBody, error) {
		expect, err := in.expect(false)
		if err != nil {
			return nil, err
		}
		s, err := p.Automation.PutSchedule(ctx, in.Name, in.Body, identityOf(ctx).Name, expect)
		return &scheduleBody{etag(s.Revision), s}, p.automationError(err, "schedule "+clip(in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "remove-schedule", Method: http.MethodDelete, Path: "/api/v1/schedules/{name}", Summary: "Remove a schedule", Tags: []string{tagAutomation},
		Description:   "With its history. Runs that it started stay.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusPreconditionFailed},
	}, func(ctx context.Context, in *removeInput) (*struct{}, error) {
		expect, err := in.expect(true)
		if err != nil {
			return nil, err
		}
		return nil, p.automationError(p.Automation.RemoveSchedule(ctx, in.Name, expect), "schedule "+clip(in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "start-schedule", Method: http.MethodPost, Path: "/api/v1/schedules/{name}/firings", Summary: "Start a schedule's run now",
		Tags: []string{tagAutomation}, Description: "Besides its times, with the newest revision if it has a repository. What becomes of it is the newest of its times.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *ByName) (*firingBody, error) {
		f, err := p.Automation.FireNow(ctx, in.Name)
		return &firingBody{f}, p.automationError(err, "schedule "+clip(in.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "list-firings", Method: http.MethodGet, Path: "/api/v1/schedules/{name}/firings", Summary: "What became of a schedule's times",
		Tags: []string{tagAutomation}, Description: "For each time: the run, or why there is none. The newest 500 are kept.",
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *firingsInput) (*firingsBody, error) {
		if _, err := p.Automation.Schedule(ctx, in.Name); err != nil {
			return nil, p.automationError(err, "schedule "+clip(in.Name))
		}
		all, err := p.Automation.Firings(ctx, in.Name, in.Limit)
		body := &firingsBody{}
		body.Body.Firings = all
		return body, p.automationError(err, "")
	})
}
