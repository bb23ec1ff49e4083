package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/automation"
	"eidetic/internal/tell/terminal"
)

// ScheduleCmd manages what starts the workflows of a box.
type ScheduleCmd struct {
	Set    ScheduleSetCmd   `cmd:"" help:"Make a schedule, or change it." example:"appliance schedule set nightly --workflow checkout --cron '30 2 * * 1-5' --zone Europe/Berlin"`
	Ls     listCmd          `cmd:"" help:"List the schedules, with their next time." example:"appliance schedule ls --box https://box.local:8080"`
	Log    ScheduleLogCmd   `cmd:"" help:"Show what became of a schedule's times: the run, or why there is none." example:"appliance schedule log nightly --box https://box.local:8080"`
	Start  ScheduleStartCmd `cmd:"" help:"Start a schedule's run now, wait for it, and end as appliance run does." example:"appliance schedule start nightly --box https://box.local:8080"`
	Pause  schedulePauseCmd `cmd:"" help:"Let a schedule start nothing." example:"appliance schedule pause nightly --box https://box.local:8080"`
	Resume schedulePauseCmd `cmd:"" help:"Let a paused schedule go on." example:"appliance schedule resume nightly --box https://box.local:8080"`
	Rm     thingCmd         `cmd:"" help:"Remove a schedule." set:"thing=Name of the schedule." example:"appliance schedule rm nightly --box https://box.local:8080"`
}

// Help is shown by appliance schedule --help.
func (ScheduleCmd) Help() string {
	return `A schedule starts the newest version of a workflow, at an interval or at the times of a cron expression. After the box was off, one run
stands for all missed times. A time at which the previous run is still queued or running is skipped. Times are those of the box's clock.

Example:
  appliance schedule set often --workflow checkout --every 2h --box https://box.local:8080
  appliance schedule set nightly --workflow checkout --cron "30 2 * * 1-5" --zone Europe/Berlin
  appliance schedule log nightly`
}

// ScheduleSetCmd makes or changes a schedule.
type ScheduleSetCmd struct {
	Name     string `arg:"" help:"What to call it."`
	Workflow string `required:"" placeholder:"NAME" help:"The workflow that it starts."`
	Every    string `xor:"when" required:"" placeholder:"DURATION" help:"How often, counted from now: 1m to 31d, such as 2h or 1d."`
	Cron     string `xor:"when" required:"" placeholder:"FIELDS" help:"When: minute, hour, day of the month, month, day of the week."`
	Zone     string `placeholder:"ZONE" help:"Time zone of --cron, such as Europe/Berlin; without it UTC."`
	JSON     bool   `name:"json" help:"Print the answer of the box as JSON."`

	Repository string `placeholder:"NAME" help:"A repository of the box's configuration: its newest revision is deployed before each run, and an alert of a run begins a bisect."`
	Pairs      int    `placeholder:"N" help:"How many pairs of trials a bisect makes at most (800)."`
	Minutes    int    `placeholder:"N" help:"After how many minutes a bisect begins no new experiment; without it there is no bound."`
	Spread     int    `placeholder:"N" help:"With a head: over how many runs at the same time, on as many boxes, the pairs of an experiment are divided (1)."`
	boxFlags
}

// Validate checks what kong cannot.
func (c *ScheduleSetCmd) Validate() error {
	if c.Zone != "" && c.Cron == "" {
		return fmt.Errorf("--zone goes with --cron")
	}
	if c.Repository == "" && (c.Pairs != 0 || c.Minutes != 0 || c.Spread != 0) {
		return fmt.Errorf("--pairs, --minutes and --spread go with --repository")
	}
	return c.check()
}

// Run implements the command.
func (c *ScheduleSetCmd) Run(ctx context.Context, std *streams) error {
	return changeSchedule(ctx, std, &c.boxFlags, c.Name, c.JSON, true, func(t *automation.Timing) {
		*t = automation.Timing{Workflow: c.Workflow, Every: c.Every, Cron: c.Cron, Zone: c.Zone, Paused: t.Paused}
		if c.Repository != "" {
			t.Bisect = &automation.Bisecting{Repository: c.Repository, Pairs: c.Pairs, Minutes: c.Minutes, Spread: c.Spread}
		}
	})
}

// changeSchedule changes a schedule, or makes it.
func changeSchedule(ctx context.Context, std *streams, flags *boxFlags, name string, asJSON, makes bool,
	change func(*automation.Timing)) error {
	return show(flags, std, asJSON, func(box *client.Client) (client.Schedule, error) {
		old, err := box.Schedule(ctx, name)
		if err != nil && !(makes && isMissing(err)) {
			return old, err
		}
		revision := client.NewThing
		if err == nil {
			revision = old.Revision
		}
		timing := old.Timing
		change(&timing)
		return box.PutSchedule(ctx, name, timing, revision)
	}, func(s client.Schedule) error {
		fmt.Fprintf(std.out, "The schedule %s starts %s %s: %s.\n", terminal.Plain(s.Name), terminal.Plain(s.Workflow), whenOf(s), nextOf(s))
		return nil
	})
}

// whenOf says when a schedule is due, in words.
func whenOf(s automation.Schedule) string {
	if s.Every != "" {
		return "every " + terminal.Plain(s.Every)
	}
	return fmt.Sprintf("at %q (%s)", terminal.Plain(s.Cron), terminal.Plain(cmp.Or(s.Zone, "UTC")))
}

// nextOf says when a schedule is due next.
func nextOf(s automation.Schedule) string {
	switch {
	case s.Paused:
		return "it is paused"
	case s.Next == nil:
		return "the next time is not known yet"
	}
	return "next at " + terminal.Clock(*s.Next)
}

// ScheduleLogCmd shows what became of a schedule's times.
type ScheduleLogCmd struct {
	Name  string `arg:"" help:"Name of the schedule."`
	Limit int    `default:"20" placeholder:"N" help:"At most so many times, the newest (${default})."`
	JSON  bool   `name:"json" help:"Print the list as JSON."`
	boxFlags
}

// Run implements the command.
func (c *ScheduleLogCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, things{"name": c.Name, "limit": c.Limit}, nil, c.JSON)
}

// schedulePauseCmd pauses a schedule, or lets it go on.
type schedulePauseCmd struct {
	Name string `arg:"" help:"Name of the schedule."`
	boxFlags
}

// Run implements the command.
func (c *schedulePauseCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	paused := k.Selected().Name == "pause"
	return changeSchedule(ctx, std, &c.boxFlags, c.Name, false, false, func(t *automation.Timing) { t.Paused = paused })
}

// ScheduleStartCmd starts a schedule's run now, and waits for it.
type ScheduleStartCmd struct {
	Name   string `arg:"" help:"Name of the schedule."`
	NoWait bool   `help:"End as soon as the run is requested."`
	outcomeFlags
	boxFlags
}

// Run implements the command.
func (c *ScheduleStartCmd) Run(ctx context.Context, std *streams) error {
	return c.onBox(std, func(box *client.Client) error {
		asked, err := box.StartSchedule(ctx, c.Name)
		if err != nil || c.NoWait {
			return err
		}
		news := std.out
		if c.JSON || c.Quiet {
			news = std.err
		}
		w := &waiting{box: box, bar: terminal.NewProgress(news)}
		defer w.bar.Close()
		id, err := c.launched(ctx, box, asked.Due)
		if err != nil {
			return err
		}
		w.bar.Say("Run %s on %s", id, box.Base())
		run, err := box.Follow(ctx, id, w.show())
		if err != nil {
			return err
		}
		w.bar.Close()
		err = c.conclude(std, run, box.ReportURL(id), false, func(to *terminal.Console) { to.Line("The report is at " + box.ReportURL(id)) })
		return cmp.Or(err, gate(run, run.Plan.Compares()))
	})
}

// launched waits until there is a run for a time, which a revision may be deployed for first.
func (c *ScheduleStartCmd) launched(ctx context.Context, box *client.Client, due time.Time) (id string, err error) {
	const often = time.Second
	for {
		all, err := box.Firings(ctx, c.Name, 10)
		if err != nil {
			return "", err
		}
		for _, f := range all {
			switch {
			case !f.Due.Equal(due):
			case f.State == automation.FiringRun:
				return f.Run, nil
			case f.State != automation.FiringWaits:
				return "", cannot(fmt.Errorf("there is no run: %s", terminal.Plain(f.Reason)))
			}
		}
		select {
		case <-ctx.Done():
			return "", cannot(errors.New("interrupted; the schedule goes on"))
		case <-time.After(often):
		}
	}
}
