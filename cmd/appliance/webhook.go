package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/automation"
)

// WebhookCmd manages the addresses that a box tells of events.
type WebhookCmd struct {
	Make   WebhookMakeCmd   `cmd:"" help:"Make a webhook and print its secret, once."`
	Ls     WebhookLsCmd     `cmd:"" help:"List the webhooks."`
	Test   WebhookTestCmd   `cmd:"" help:"Have a test posted."`
	Log    WebhookLogCmd    `cmd:"" help:"Show what was posted, and what waits."`
	Pause  WebhookPauseCmd  `cmd:"" help:"Keep events, and post nothing."`
	Resume WebhookResumeCmd `cmd:"" help:"Let a paused webhook go on."`
	Rm     WebhookRmCmd     `cmd:"" help:"Remove a webhook."`
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

// hookOf finds a webhook by its name or its ID.
func hookOf(ctx context.Context, box *client.Client, name string) (automation.Hook, error) {
	all, err := box.Webhooks(ctx)
	if err != nil {
		return automation.Hook{}, boxError(err)
	}
	if i := slices.IndexFunc(all, func(h automation.Hook) bool { return h.Name == name || h.ID == name }); i >= 0 {
		return all[i], nil
	}
	return automation.Hook{}, usage(fmt.Errorf("the box has no webhook %q; appliance webhook ls lists them", name))
}

// WebhookMakeCmd makes a webhook.
type WebhookMakeCmd struct {
	Name       string   `arg:"" help:"What to call it."`
	URL        string   `arg:"" name:"url" help:"Where events are posted to."`
	Event      []string `placeholder:"EVENT" help:"run.finished, alert.raised or alert.acknowledged; may be repeated. Without one it is told of all."`
	SecretFile string   `type:"path" placeholder:"FILE" help:"File with the secret (whsec_…); without it the box makes one."`
	JSON       bool     `name:"json" help:"Print the answer of the box as JSON."`
	boxFlags
}

// Run implements the command.
func (c *WebhookMakeCmd) Run(ctx context.Context, std *streams) error {
	secret := ""
	if c.SecretFile != "" {
		text, err := os.ReadFile(c.SecretFile)
		if err != nil {
			return usage(fmt.Errorf("--secret-file: %w", err))
		}
		secret = strings.TrimSpace(string(text[:min(len(text), 1000)]))
	}
	box, err := c.boxOf(std)
	if err != nil {
		return usage(err)
	}
	defer box.Close()
	made, err := box.MakeWebhook(ctx, c.Name, c.URL, c.Event, secret)
	switch {
	case err != nil:
		return boxError(err)
	case c.JSON:
		return printJSON(std.out, made)
	}
	fmt.Fprintf(std.err, "The webhook %s is told of %s. The box cannot show its secret again:\n", client.Plain(made.Name),
		client.Plain(strings.Join(made.Events, ", ")))
	_, err = fmt.Fprintln(std.out, made.Secret)
	return err
}

// WebhookLsCmd lists the webhooks.
type WebhookLsCmd struct {
	JSON bool `name:"json" help:"Print the list as JSON."`
	boxFlags
}

// Run implements the command.
func (c *WebhookLsCmd) Run(ctx context.Context, std *streams) error {
	return listOf(std, &c.boxFlags, c.JSON, listing[automation.Hook]{
		get:   func(box *client.Client) ([]automation.Hook, error) { return box.Webhooks(ctx) },
		empty: "There are no webhooks. Make one with: appliance webhook make NAME URL",
		head:  []string{"NAME", "ID", "EVENTS", "STATE", "URL"},
		row: func(h automation.Hook) []string {
			state := "on"
			if h.Paused {
				state = "paused"
			}
			if h.Reason != "" {
				state += ": " + h.Reason
			}
			return []string{h.Name, h.ID, strings.Join(h.Events, ", "), state, h.URL}
		},
	})
}

// WebhookTestCmd has a test posted.
type WebhookTestCmd struct {
	Name string `arg:"" help:"Name or ID of the webhook."`
	boxFlags
}

// Run implements the command.
func (c *WebhookTestCmd) Run(ctx context.Context, std *streams) error {
	box, err := c.boxOf(std)
	if err != nil {
		return usage(err)
	}
	defer box.Close()
	h, err := hookOf(ctx, box, c.Name)
	if err != nil {
		return err
	}
	d, err := box.TestWebhook(ctx, h.ID)
	if err != nil {
		return boxError(err)
	}
	fmt.Fprintf(std.out, "The test is posted as %s. What came of it: appliance webhook log %s\n", client.Plain(d.ID), client.Plain(h.Name))
	return nil
}

// WebhookLogCmd shows deliveries.
type WebhookLogCmd struct {
	Name  string `arg:"" optional:"" help:"Name or ID of the webhook; without it all."`
	Limit int    `default:"20" placeholder:"N" help:"At most so many, the newest (${default})."`
	JSON  bool   `name:"json" help:"Print the list as JSON, with what is posted."`
	boxFlags
}

// Run implements the command.
func (c *WebhookLogCmd) Run(ctx context.Context, std *streams) error {
	box, err := c.boxOf(std)
	if err != nil {
		return usage(err)
	}
	defer box.Close()
	id := ""
	if c.Name != "" {
		h, err := hookOf(ctx, box, c.Name)
		if err != nil {
			return err
		}
		id = h.ID
	}
	all, err := box.Deliveries(ctx, id, c.Limit)
	switch {
	case err != nil:
		return boxError(err)
	case c.JSON:
		return printJSON(std.out, all)
	case len(all) == 0:
		fmt.Fprintln(std.out, "Nothing was posted yet.")
		return nil
	}
	rows := [][]string{{"MADE", "EVENT", "STATE", "ATTEMPTS", "STATUS", "WHAT"}}
	for _, d := range all {
		status, what := "", d.Error
		if d.Status > 0 {
			status = strconv.Itoa(d.Status)
		}
		if d.Next != nil && d.Attempts > 0 {
			what += "; again at " + clock(*d.Next)
		}
		rows = append(rows, []string{clock(d.Made), d.Event, d.State, strconv.Itoa(d.Attempts), status, what})
	}
	return printRows(std.out, rows)
}

// WebhookPauseCmd pauses a webhook.
type WebhookPauseCmd struct {
	Name string `arg:"" help:"Name or ID of the webhook."`
	boxFlags
}

// Run implements the command.
func (c *WebhookPauseCmd) Run(ctx context.Context, std *streams) error {
	return pauseWebhook(ctx, std, &c.boxFlags, c.Name, true)
}

// WebhookResumeCmd lets a webhook go on.
type WebhookResumeCmd struct {
	Name string `arg:"" help:"Name or ID of the webhook."`
	boxFlags
}

// Run implements the command.
func (c *WebhookResumeCmd) Run(ctx context.Context, std *streams) error {
	return pauseWebhook(ctx, std, &c.boxFlags, c.Name, false)
}

func pauseWebhook(ctx context.Context, std *streams, flags *boxFlags, name string, paused bool) error {
	box, err := flags.boxOf(std)
	if err != nil {
		return usage(err)
	}
	defer box.Close()
	h, err := hookOf(ctx, box, name)
	if err != nil {
		return err
	}
	if h, err = box.PauseWebhook(ctx, h.ID, paused); err != nil {
		return boxError(err)
	}
	state := "goes on"
	if h.Paused {
		state = "is paused: events wait"
	}
	fmt.Fprintf(std.out, "The webhook %s %s.\n", client.Plain(h.Name), state)
	return nil
}

// WebhookRmCmd removes a webhook.
type WebhookRmCmd struct {
	Name string `arg:"" help:"Name or ID of the webhook."`
	boxFlags
}

// Run implements the command.
func (c *WebhookRmCmd) Run(ctx context.Context, std *streams) error {
	box, err := c.boxOf(std)
	if err != nil {
		return usage(err)
	}
	defer box.Close()
	h, err := hookOf(ctx, box, c.Name)
	if err != nil {
		return err
	}
	if err := box.RemoveWebhook(ctx, h.ID); err != nil {
		return boxError(err)
	}
	fmt.Fprintf(std.out, "The webhook %s is removed.\n", client.Plain(h.Name))
	return nil
}
