package panel

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/automation"
)

// ByAlert is the ID of an alert in the path of a request.
type ByAlert struct {
	ID int64 `path:"id" minimum:"1" doc:"Identifier of the alert" example:"7"`
}

type (
	alertsInput struct {
		State  string `query:"state" enum:"open,bad,all" default:"open" doc:"open: those of which nobody has said anything. bad: those that a gate stops at, since something became slower and it is neither resolved nor accepted for now, acknowledged or not"`
		Series string `query:"series" pattern:"^[0-9a-f]{16}$" doc:"Key of a series"`
		Tag    string `query:"tag" maxLength:"24" doc:"A tag that they have"`
		Before int64  `query:"before" minimum:"0" doc:"ID of the last alert of the page before"`
		Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Most alerts in the response"`
	}
	ackInput struct {
		ByAlert
		Body struct {
			Note string   `json:"note,omitempty" maxLength:"1000" doc:"What you found, or what is done about it" example:"the new checkout, as planned"`
			Tags []string `json:"tags,omitempty" maxItems:"14" doc:"More tags: letters, digits and dashes, at most 24 each"`
		}
	}
	resolveInput struct {
		ByAlert
		Body struct {
			Note string `json:"note,omitempty" maxLength:"1000" doc:"What repaired it, or why it is no regression" example:"reverted in 3f1c"`
		}
	}
	acceptInput struct {
		ByAlert
		Body struct {
			Reason string    `json:"reason" minLength:"1" maxLength:"1000" doc:"Why it may stay" example:"the new checkout needs it until the cache is there"`
			Until  time.Time `json:"until" doc:"From when on it counts as if nobody had accepted it: within a year" example:"2026-12-31T00:00:00Z"`
		}
	}
	assignInput struct {
		ByAlert
		Body automation.Keeping
	}
	alertBody  struct{ Body automation.Alert }
	alertsBody struct {
		Body struct {
			Alerts []automation.Alert `json:"alerts" doc:"The newest first"`
		}
	}
)

// alerts registers the routes of the steps of histories that people are told of.
func (p automationFeature) alerts(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-alerts", Method: http.MethodGet, Path: "/api/v1/alerts", Summary: "List the alerts", Tags: []string{tagAutomation},
		Description: "An alert is raised once for what changed together: the levels of metrics that decide verdicts, from one run to the next, or between the same two revisions. Its rows are the other metrics, lines and pages. While it is open, its numbers become more exact with each run.",
		Security:    needsToken(),
	}, func(ctx context.Context, in *alertsInput) (*alertsBody, error) {
		all, err := p.Automation.Alerts(ctx, automation.Filter{
			Open: in.State == "open", Bad: in.State == "bad", Series: in.Series, Tag: in.Tag, Before: in.Before, Limit: in.Limit,
		})
		body := &alertsBody{}
		body.Body.Alerts = all
		return body, p.automationError(err, "")
	})
	huma.Register(api, huma.Operation{
		OperationID: "get-alert", Method: http.MethodGet, Path: "/api/v1/alerts/{id}", Summary: "One alert", Tags: []string{tagAutomation},
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *ByAlert) (*alertBody, error) {
		a, err := p.Automation.Alert(ctx, in.ID)
		return &alertBody{a}, p.automationError(err, "alert "+strconv.FormatInt(in.ID, 10))
	})
	huma.Register(api, huma.Operation{
		OperationID: "assign-alert", Method: http.MethodPatch, Path: "/api/v1/alerts/{id}", Summary: "Say who looks after an alert", Tags: []string{tagAutomation},
		Description: "And where it is written about. It says nothing of how bad it is.",
		Security:    needsToken(), Errors: []int{http.StatusNotFound, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *assignInput) (*alertBody, error) {
		a, err := p.Automation.Assign(ctx, in.ID, in.Body)
		return &alertBody{a}, p.automationError(err, "alert "+strconv.FormatInt(in.ID, 10))
	})
	huma.Register(api, huma.Operation{
		OperationID: "acknowledge-alert", Method: http.MethodPost, Path: "/api/v1/alerts/{id}/acknowledgement", Summary: "Acknowledge an alert",
		Tags: []string{tagAutomation}, Description: "It keeps the name of your token, the time and the note. An alert is acknowledged once. It stays bad for a gate.",
		Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *ackInput) (*alertBody, error) {
		a, err := p.Automation.Acknowledge(ctx, in.ID, identityOf(ctx).Name, in.Body.Note, in.Body.Tags)
		return &alertBody{a}, p.automationError(err, "alert "+strconv.FormatInt(in.ID, 10))
	})
	huma.Register(api, huma.Operation{
		OperationID: "resolve-alert", Method: http.MethodPost, Path: "/api/v1/alerts/{id}/resolution", Summary: "Resolve an alert",
		Tags: []string{tagAutomation}, Description: "It was mended, or is none. An alert is resolved once; if the same happens again, another alert is raised.",
		Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *resolveInput) (*alertBody, error) {
		a, err := p.Automation.Resolve(ctx, in.ID, identityOf(ctx).Name, in.Body.Note)
		return &alertBody{a}, p.automationError(err, "alert "+strconv.FormatInt(in.ID, 10))
	})
	huma.Register(api, huma.Operation{
		OperationID: "accept-alert", Method: http.MethodPost, Path: "/api/v1/alerts/{id}/acceptance", Summary: "Accept an alert for a time",
		Tags: []string{tagAutomation}, Description: "Until then it is not bad for a gate, and the same is not raised anew. It may be accepted again, with another end.",
		Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *acceptInput) (*alertBody, error) {
		a, err := p.Automation.Accept(ctx, in.ID, identityOf(ctx).Name, in.Body.Reason, in.Body.Until)
		return &alertBody{a}, p.automationError(err, "alert "+strconv.FormatInt(in.ID, 10))
	})
}
