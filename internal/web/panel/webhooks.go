package panel

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/automation"
	"eidetic/internal/lab"
)

// NewWebhook is the response to a request for a webhook.
type NewWebhook struct {
	automation.Hook
	Secret string `json:"secret" doc:"With which its events are signed; it cannot be shown again" example:"whsec_…"`
}

// ByHook is the ID of a webhook in the path of a request.
type ByHook struct {
	ID string `path:"id" maxLength:"32" pattern:"^[a-z0-9]+$" doc:"Identifier of the webhook" example:"k3v7m2qxab"`
}

type (
	newHookInput struct {
		Body struct {
			Name   string     `json:"name" maxLength:"60" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"What you call it; no two have the same name" example:"chat"`
			As     string     `json:"as,omitempty" enum:"mail,github,gitlab,gerrit" doc:"How it is told: mail, to a mailto: address, by the server of the configuration; a commit status of GitHub or GitLab; a comment of Gerrit on the change of a culprit. Without it events as JSON, signed"`
			URL    string     `json:"url" maxLength:"2000" doc:"Where events are posted to; of GitHub https://api.github.com/repos/OWNER/NAME, of GitLab …/api/v4/projects/ID, of Gerrit …/a/changes/PROJECT~BRANCH. It begins with https://; http:// and hosts in private networks need webhooks.allow in the configuration" example:"https://hooks.shop.example/eidetic"`
			Events []string   `json:"events,omitempty" maxItems:"10" doc:"What it is told of: run.finished, alert.raised, alert.acknowledged; without it, of all"`
			Secret lab.Secret `json:"secret,omitzero" maxLength:"200" doc:"whsec_ and 24 to 64 bytes in Base64; without it the box makes one. Of a code host the token with which it is called; of Gerrit USER:PASSWORD"`
		}
	}
	pauseHookInput struct {
		ByHook
		Body struct {
			Paused bool `json:"paused" doc:"true keeps events until it is false again"`
		}
	}
	deliveriesInput struct {
		Webhook string `query:"webhook" maxLength:"32" pattern:"^[a-z0-9]*$" doc:"Identifier of a webhook"`
		State   string `query:"state" enum:"waiting,delivered,failed"`
		Before  int64  `query:"before" minimum:"0" doc:"Number of the last delivery of the page before"`
		Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Most deliveries in the response"`
	}
	hookBody    struct{ Body automation.Hook }
	newHookBody struct{ Body NewWebhook }
	hooksBody   struct {
		Body struct {
			Webhooks []automation.Hook `json:"webhooks" doc:"In order of their names"`
		}
	}
	deliveryBody   struct{ Body automation.Delivery }
	deliveriesBody struct {
		Body struct {
			Deliveries []automation.Delivery `json:"deliveries" doc:"The newest first"`
		}
	}
)

// webhooks registers the routes of the addresses that are told of events, and of the log of
// that.
func (p automationFeature) webhooks(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-webhooks", Method: http.MethodGet, Path: "/api/v1/webhooks", Summary: "List the webhooks", Tags: []string{tagAutomation},
		Security: needsToken(),
	}, func(ctx context.Context, _ *noInput) (*hooksBody, error) {
		all, err := p.Automation.Hooks(ctx)
		body := &hooksBody{}
		body.Body.Webhooks = all
		return body, p.automationError(err, "")
	})
	huma.Register(api, huma.Operation{
		OperationID: "make-webhook", Method: http.MethodPost, Path: "/api/v1/webhooks", Summary: "Make a webhook", Tags: []string{tagAutomation},
		Description:   "Events are posted as JSON and signed as Standard Webhooks says, or told as as says. The response holds the secret, once.",
		DefaultStatus: http.StatusCreated, Security: needsToken(),
		Errors: []int{http.StatusConflict, http.StatusUnprocessableEntity, http.StatusInsufficientStorage},
	}, func(ctx context.Context, in *newHookInput) (*newHookBody, error) {
		note(ctx, in.Body.Name)
		h, secret, err := p.Automation.MakeHook(ctx, in.Body.Name, in.Body.As, in.Body.URL, in.Body.Secret, in.Body.Events, identityOf(ctx).Name)
		if errors.Is(err, automation.ErrExists) {
			return nil, huma.Error409Conflict("webhook " + clip(in.Body.Name) + ": " + automation.ErrExists.Error())
		}
		return &newHookBody{NewWebhook{h, secret.Reveal()}}, p.automationError(err, "webhook "+clip(in.Body.Name))
	})
	huma.Register(api, huma.Operation{
		OperationID: "pause-webhook", Method: http.MethodPut, Path: "/api/v1/webhooks/{id}", Summary: "Pause a webhook, or let it go on", Tags: []string{tagAutomation},
		Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *pauseHookInput) (*hookBody, error) {
		h, err := p.Automation.PauseHook(ctx, in.ID, in.Body.Paused)
		return &hookBody{h}, p.automationError(err, "webhook "+clip(in.ID))
	})
	huma.Register(api, huma.Operation{
		OperationID: "remove-webhook", Method: http.MethodDelete, Path: "/api/v1/webhooks/{id}", Summary: "Remove a webhook", Tags: []string{tagAutomation},
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *ByHook) (*struct{}, error) {
		gone, err := p.Automation.RemoveHook(ctx, in.ID)
		note(ctx, gone.Name)
		return nil, p.automationError(err, "webhook "+clip(in.ID))
	})
	huma.Register(api, huma.Operation{
		OperationID: "test-webhook", Method: http.MethodPost, Path: "/api/v1/webhooks/{id}/test", Summary: "Post a test to a webhook", Tags: []string{tagAutomation},
		Description:   "It is the event webhook.test. The response is its delivery, which the list of deliveries shows as it goes on.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(), Errors: []int{http.StatusNotFound, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *ByHook) (*deliveryBody, error) {
		d, err := p.Automation.TestHook(ctx, in.ID, identityOf(ctx).Name)
		return &deliveryBody{d}, p.automationError(err, "webhook "+clip(in.ID))
	})
	huma.Register(api, huma.Operation{
		OperationID: "list-deliveries", Method: http.MethodGet, Path: "/api/v1/deliveries", Summary: "The log of what was posted to webhooks",
		Tags: []string{tagAutomation}, Description: "What waits, and the newest 2,000 of the others.", Security: needsToken(),
	}, func(ctx context.Context, in *deliveriesInput) (*deliveriesBody, error) {
		all, err := p.Automation.Deliveries(ctx, in.Webhook, in.State, in.Before, in.Limit)
		body := &deliveriesBody{}
		body.Body.Deliveries = all
		return body, p.automationError(err, "")
	})
}
