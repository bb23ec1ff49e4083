package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/automation"
	"eidetic/internal/lab"
	"eidetic/internal/tell/terminal"
)

// AlertsCmd shows and acknowledges the alerts of a box.
type AlertsCmd struct {
	Ls  AlertsLsCmd  `cmd:"" default:"withargs" help:"List the alerts that a gate stops at." example:"appliance alerts ls --tag checkout --box https://box.local:8080"`
	Ack AlertsAckCmd `cmd:"" help:"Acknowledge an alert." example:"appliance alerts ack 12 --note 'the new checkout, as planned' --box https://box.local:8080"`

	Resolve AlertsResolveCmd `cmd:"" help:"Say that an alert is over: repaired, or no regression." example:"appliance alerts resolve 12 --note 'reverted in 3f1c' --box https://box.local:8080"`
	Assign  AlertsAssignCmd  `cmd:"" help:"Say who looks after an alert, and give the address of a bug." example:"appliance alerts assign 12 --owner ada --bug https://bugs.shop.example/4711 --box https://box.local:8080"`
	Accept  AlertsAcceptCmd  `cmd:"" help:"Accept an alert until a day, with a reason." example:"appliance alerts accept 12 --reason 'until the cache is there' --until 2026-12-31 --box https://box.local:8080"`
}

// Help is shown by appliance alerts --help.
func (AlertsCmd) Help() string {
	return `A box raises an alert when the level of a page's numbers changes from run to run, or when a scheduled comparison says slower: once for
each change, with its size, its p-value, and what else changed in that run. Listing needs a token of the scope read, the others one of
the scope run.

The status of the list is 1 while there is an alert that something became slower and nobody has resolved or accepted it. One that is
acknowledged still counts. An acceptance ends on its day.

Example:
  appliance alerts --box https://box.local:8080
  appliance alerts --all --tag team-checkout
  appliance alerts ack 7 --note "ada looks at it"
  appliance alerts resolve 7 --note "reverted in 3f1c"`
}

// AlertsLsCmd lists alerts.
type AlertsLsCmd struct {
	All   bool   `help:"Also those that somebody has resolved or accepted, and where something became faster."`
	Tag   string `placeholder:"TAG" help:"Those with the tag."`
	Limit int    `default:"50" placeholder:"N" help:"At most so many, the newest (${default})."`
	JSON  bool   `name:"json" help:"Print the list as JSON."`
	boxFlags
}

// Run implements the command.
func (c *AlertsLsCmd) Run(ctx context.Context, std *streams) error {
	var bad []automation.Alert
	err := show(&c.boxFlags, std, c.JSON, func(box *client.Client) (all []automation.Alert, err error) {
		if bad, err = box.Alerts(ctx, false, c.Tag, c.Limit); err != nil || !c.All {
			return bad, err
		}
		return box.Alerts(ctx, true, c.Tag, c.Limit)
	}, func(all []automation.Alert) error {
		printAlerts(std.out, all, c.All)
		return nil
	})
	if err == nil && len(bad) > 0 {
		return failed(nil)
	}
	return err
}

// printAlerts prints alerts for a person.
func printAlerts(out io.Writer, all []automation.Alert, also bool) {
	if len(all) == 0 && also {
		fmt.Fprintln(out, "There are no alerts.")
	} else if len(all) == 0 {
		fmt.Fprintln(out, "No alert says that something became slower, except resolved and accepted ones.")
	}
	for _, a := range all {
		fmt.Fprintf(out, "%d  %s: %s (95 %% interval %s)\n", a.ID, terminal.Plain(nameOfSeries(a.Row)), terminal.Plain(a.Text),
			intervalOf(a.Low, a.High, terminal.Plain(a.Unit)))
		for _, n := range a.Near {
			var facts []string
			for _, f := range n.Changed {
				facts = append(facts, terminal.Plain(fmt.Sprintf("%s from %s to %s", f.Name, f.Before, f.After)))
			}
			where := "in that run"
			if n.Run != a.Run {
				where = "in " + terminal.Plain(n.Run)
			}
			fmt.Fprintf(out, "   %s changed: %s\n", where, strings.Join(facts, "; "))
		}
		for _, r := range a.Rows {
			fmt.Fprintf(out, "   and %s: %s\n", terminal.Plain(nameOfSeries(r)), terminal.Plain(r.Text))
		}
		if a.Owner != "" || a.Bug != "" {
			fmt.Fprintf(out, "   %s\n", terminal.Plain(strings.TrimSpace("owner "+cmp.Or(a.Owner, "nobody")+" "+a.Bug)))
		}
		if len(a.Tags) > 0 {
			fmt.Fprintf(out, "   tags: %s\n", terminal.Plain(strings.Join(a.Tags, ", ")))
		}
		if a.Done != nil {
			fmt.Fprintf(out, "   acknowledged by %s on %s: %s\n", terminal.Plain(a.Done.By), terminal.Clock(a.Done.At), terminal.Plain(a.Done.Note))
		}
		if b := a.Bisection; b != nil {
			fmt.Fprintf(out, "   %s\n", terminal.Plain(bisectionWords(b)))
		}
		if d := a.Accepted; d != nil {
			fmt.Fprintf(out, "   accepted by %s until %s: %s\n", terminal.Plain(d.By), terminal.Clock(d.Until), terminal.Plain(d.Reason))
		}
		if d := a.Resolved; d != nil {
			fmt.Fprintf(out, "   resolved by %s on %s: %s\n", terminal.Plain(d.By), terminal.Clock(d.At), terminal.Plain(d.Note))
		}
	}
}

// bisectionWords say what the search for an alert's revision has found, or is doing.
func bisectionWords(b *automation.Bisection) string {
	switch {
	case b.Text != "":
		return "bisect " + b.ID + ": " + b.Text
	case b.State == "due":
		return "a bisect begins when the schedule's run has ended"
	case b.ID == "":
		return "no bisect: " + b.Reason
	case b.Reason != "":
		return fmt.Sprintf("bisect %s %s: %s", b.ID, b.State, b.Reason)
	}
	return fmt.Sprintf("bisect %s between %.12s and %.12s: %s", b.ID, b.Good, b.Bad, b.State)
}

// intervalOf is an interval with three digits of its larger end.
func intervalOf(low, high float64, unit string) string {
	digits := 0
	for size := max(math.Abs(low), math.Abs(high)); size > 0 && size < 100 && digits < 4; size *= 10 {
		digits++
	}
	return strings.TrimSpace(lab.Signed(low, digits) + " … " + lab.Signed(high, digits) + " " + unit)
}

// nameOfSeries is what people know a series by.
func nameOfSeries(a automation.Row) string {
	if a.Name != "" {
		return a.Name
	}
	return a.Page
}

// AlertsAckCmd acknowledges an alert.
type AlertsAckCmd struct {
	ID   int64    `arg:"" name:"id" help:"The alert's number."`
	Note string   `placeholder:"TEXT" help:"What you found, or what is done about it."`
	Tag  []string `placeholder:"TAG" help:"A tag to add; may be repeated."`
	boxFlags
}

// Run implements the command.
func (c *AlertsAckCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	body := map[string]any{"note": c.Note}
	if len(c.Tag) > 0 {
		body["tags"] = c.Tag
	}
	return c.carryOut(ctx, std, k, things{"id": c.ID}, body, false)
}

// AlertsResolveCmd resolves an alert.
type AlertsResolveCmd struct {
	ID   int64  `arg:"" name:"id" help:"The alert's number."`
	Note string `placeholder:"TEXT" help:"What repaired it, or why it is no regression."`
	boxFlags
}

// Run implements the command.
func (c *AlertsResolveCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, things{"id": c.ID}, map[string]any{"note": c.Note}, false)
}

// AlertsAssignCmd says who looks after an alert.
type AlertsAssignCmd struct {
	ID    int64   `arg:"" name:"id" help:"The alert's number."`
	Owner *string `placeholder:"NAME" help:"Who looks after it; empty for nobody."`
	Bug   *string `placeholder:"URL" help:"Address of a bug; empty for none."`
	boxFlags
}

// Validate checks what kong cannot.
func (c *AlertsAssignCmd) Validate() error {
	if c.Owner == nil && c.Bug == nil {
		return errors.New("say --owner, --bug, or both")
	}
	return c.check()
}

// Run implements the command.
func (c *AlertsAssignCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, things{"id": c.ID}, automation.Keeping{Owner: c.Owner, Bug: c.Bug}, false)
}

// AlertsAcceptCmd accepts an alert for a time.
type AlertsAcceptCmd struct {
	ID     int64     `arg:"" name:"id" help:"The alert's number."`
	Reason string    `required:"" placeholder:"TEXT" help:"Why it may stay."`
	Until  time.Time `required:"" format:"2006-01-02" placeholder:"DAY" help:"The day from which on it gives status 1 again, such as 2026-12-31."`
	boxFlags
}

// Run implements the command.
func (c *AlertsAcceptCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	known, body := things{"id": c.ID, "until": c.Until.Format(time.DateOnly)}, map[string]any{"reason": c.Reason, "until": c.Until}
	return c.carryOut(ctx, std, k, known, body, false)
}
