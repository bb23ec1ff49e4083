package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"eidetic/internal/base/bounded"
)

// WebhookCmd manages the addresses that a box tells of events.
type WebhookCmd struct {
	Make   WebhookMakeCmd `cmd:"" help:"Make a webhook and print its secret, once." example:"appliance webhook make ci https://ci.example.org/hook --event run.finished --box https://box.local:8080"`
	Ls     listCmd        `cmd:"" help:"List the webhooks." example:"appliance webhook ls --box https://box.local:8080"`
	Test   thingCmd       `cmd:"" help:"Have a test posted." set:"thing=Name or ID of the webhook." example:"appliance webhook test ci --box https://box.local:8080"`
	Log    WebhookLogCmd  `cmd:"" help:"Show what was posted, and what waits." example:"appliance webhook log ci --box https://box.local:8080"`
	Pause  thingCmd       `cmd:"" help:"Keep events, and post nothing." set:"thing=Name or ID of the webhook." example:"appliance webhook pause ci --box https://box.local:8080"`
	Resume thingCmd       `cmd:"" help:"Let a paused webhook go on." set:"thing=Name or ID of the webhook." example:"appliance webhook resume ci --box https://box.local:8080"`
	Rm     thingCmd       `cmd:"" help:"Remove a webhook." set:"thing=Name or ID of the webhook." example:"appliance webhook rm ci --box https://box.local:8080"`
}

// Help is shown by appliance webhook --help.
func (WebhookCmd) Help() string {
	return `A box posts events to an address of yours: run.finished, alert.raised and alert.acknowledged. They are signed as Standard Webhooks
(standardwebhooks.com) says, and posted again, for three days, until the answer is 2xx. The box calls public addresses only; its
configuration (webhooks.allow) can name hosts in private networks. All commands need a token of the scope admin.

Example:
  appliance webhook make chat https://hooks.shop.example/eidetic --event alert.raised --box https://box.local:8080 > chat.secret
  appliance webhook test chat
  appliance webhook log chat`
}

// WebhookMakeCmd makes a webhook.
type WebhookMakeCmd struct {
	Name       string   `arg:"" help:"What to call it."`
	URL        string   `arg:"" name:"url" help:"Where events are posted to."`
	Event      []string `placeholder:"EVENT" help:"run.finished, alert.raised or alert.acknowledged; may be repeated. Without one all are posted."`
	As         string   `enum:",mail,github,gitlab,gerrit" default:"" placeholder:"WAY" help:"What is sent: mail, to mailto:ADDRESS; a commit status of github or gitlab; a review comment of gerrit. Without it events, as JSON."`
	SecretFile string   `type:"path" placeholder:"FILE" help:"File with the secret (whsec_…); without it the box makes one. For github and gitlab their token, for gerrit USER:PASSWORD."`
	JSON       bool     `name:"json" help:"Print the answer of the box as JSON."`
	boxFlags
}

// Run implements the command.
func (c *WebhookMakeCmd) Run(ctx context.Context, std *streams) error {
	body, made := things{"name": c.Name, "url": c.URL}, calls()["webhook make"]
	if c.As != "" { // its secret is no new one
		body["as"] = c.As
		made.note, made.said = "The webhook {name} is told of {events}.", ""
	}
	if len(c.Event) > 0 {
		body["events"] = c.Event
	}
	if c.SecretFile != "" {
		const most = 1000
		text, err := readNamed(c.SecretFile, most)
		if err != nil {
			return usage(fmt.Errorf("--secret-file: %w", err))
		}
		body["secret"] = strings.TrimSpace(string(bounded.UTF8(text)))
	}
	return c.make(ctx, std, "webhook", made, nil, body, c.JSON)
}

// WebhookLogCmd shows deliveries.
type WebhookLogCmd struct {
	Name  string `arg:"" optional:"" help:"Name or ID of the webhook; without it all."`
	Limit int    `default:"20" placeholder:"N" help:"At most so many, the newest (${default})."`
	JSON  bool   `name:"json" help:"Print the list as JSON, with what is posted."`
	boxFlags
}

// Run implements the command.
func (c *WebhookLogCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, things{"name": c.Name, "limit": c.Limit}, nil, c.JSON)
}
