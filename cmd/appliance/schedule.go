package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/automation"
)

// ScheduleCmd manages what starts the workflows of a box.
type ScheduleCmd struct {
	Set    ScheduleSetCmd    `cmd:"" help:"Make a schedule, or change it."`
	Ls     ScheduleLsCmd     `cmd:"" help:"List the schedules, with their next time."`
	Log    ScheduleLogCmd    `cmd:"" help:"Show what became of a schedule's times: the run, or why there is none."`
	Pause  SchedulePauseCmd  `cmd:"" help:"Let a schedule start nothing."`
	Resume ScheduleResumeCmd `cmd:"" help:"Let a paused schedule go on."`
	Rm     ScheduleRmCmd     `cmd:"" help:"Remove a schedule."`
}

// Help is shown by appliance schedule --help.
func (ScheduleCmd) Help() string {
	return `A schedule starts the newest version of a workflow, every so often or at the times of a cron expression. Times that pass while the box is
off are made up for by one run. A time at which the run before is still queued or running is skipped. Times are those of the box's clock.

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
	boxFlags
}

// Validate checks what kong cannot.
func (c *ScheduleSetCmd) Validate() error {
	if c.Zone != "" && c.Cron == "" {
		return fmt.Errorf("--zone goes with --cron")
	}
	return c.check()
}

// Run implements the command.
func (c *ScheduleSetCmd) Run(ctx context.Context, std *streams) error {
	return changeSchedule(ctx, std, &c.boxFlags, c.Name, c.JSON, true, func(t *automation.Timing) {
		*t = automation.Timing{Workflow: c.Workflow, Every: c.Every, Cron: c.Cron, Zone: c.Zone, Paused: t.Paused}
	})
}

// changeSchedule changes a schedule, or makes it.
func changeSchedule(ctx context.Context, std *streams, flags *boxFlags, name string, asJSON, makes bool,
	change func(*automation.Timing)) error {
	box, err := flags.boxOf(std)
	if err != nil {
		return usage(err)
	}
	defer box.Close()
	old, err := box.Schedule(ctx, name)
	if err != nil && !(makes && isMissing(err)) {
		return boxError(err)
	}
	revision := client.NewThing
	if err == nil {
		revision = old.Revision
	}
	timing := old.Timing
	change(&timing)
	s, err := box.PutSchedule(ctx, name, timing, revision)
	switch {
	case err != nil:
		return boxError(err)
	case asJSON:
		return printJSON(std.out, s)
	}
	fmt.Fprintf(std.out, "The schedule %s starts %s %s: %s.\n", client.Plain(s.Name), client.Plain(s.Workflow), whenOf(s), nextOf(s))
	return nil
}

// whenOf says when a schedule is due, in words.
func whenOf(s automation.Schedule) string {
	if s.Every != "" {
		return "every " + client.Plain(s.Every)
	}
	return fmt.Sprintf("at %q (%s)", client.Plain(s.Cron), client.Plain(cmp.Or(s.Zone, "UTC")))
}

// nextOf says when a schedule is due next.
func nextOf(s automation.Schedule) string {
	switch {
	case s.Paused:
		return "it is paused"
	case s.Next == nil:
		return "the next time is not known yet"
	}
	return "next at " + clock(*s.Next)
}

// ScheduleLsCmd lists the schedules.
type ScheduleLsCmd struct {
	JSON bool `name:"json" help:"Print the list as JSON."`
	boxFlags
}

// Run implements the command.
func (c *ScheduleLsCmd) Run(ctx context.Context, std *streams) error {
	return listOf(std, &c.boxFlags, c.JSON, listing[automation.Schedule]{
		get:   func(box *client.Client) ([]automation.Schedule, error) { return box.Schedules(ctx) },
		empty: "There are no schedules. Make one with: appliance schedule set NAME --workflow WORKFLOW --every 2h",
		head:  []string{"NAME", "WORKFLOW", "WHEN", "NEXT", "LAST"},
		row: func(s automation.Schedule) []string {
			next, last := "paused", ""
			if s.Next != nil {
				next = clock(*s.Next)
			}
			if s.Last != nil {
				last = firingWords(*s.Last)
			}
			return []string{s.Name, s.Workflow, whenOf(s), next, last}
		},
	})
}

// firingWords says what became of a time.
func firingWords(f automation.Firing) string {
	text := f.State
	switch {
	case f.State == automation.FiringRun:
		text = f.Run
	case f.Reason != "":
		text += ": " + f.Reason
	}
	if f.Missed > 0 {
		text += fmt.Sprintf(" (also for %d missed)", f.Missed)
	}
	return text
}

// ScheduleLogCmd shows what became of a schedule's times.
type ScheduleLogCmd struct {
	Name  string `arg:"" help:"Name of the schedule."`
	Limit int    `default:"20" placeholder:"N" help:"At most so many times, the newest (${default})."`
	JSON  bool   `name:"json" help:"Print the list as JSON."`
	boxFlags
}

// Run implements the command.
func (c *ScheduleLogCmd) Run(ctx context.Context, std *streams) error {
	return listOf(std, &c.boxFlags, c.JSON, listing[automation.Firing]{
		get:   func(box *client.Client) ([]automation.Firing, error) { return box.Firings(ctx, c.Name, c.Limit) },
		empty: "It has not been due yet.",
		head:  []string{"DUE", "AT", "MISSED", "WHAT BECAME OF IT"},
		row: func(f automation.Firing) []string {
			missed := f.Missed
			f.Missed = 0
			return []string{clock(f.Due), clock(f.At), strconv.Itoa(missed), firingWords(f)}
		},
	})
}

// SchedulePauseCmd pauses a schedule.
type SchedulePauseCmd struct {
	Name string `arg:"" help:"Name of the schedule."`
	boxFlags
}

// Run implements the command.
func (c *SchedulePauseCmd) Run(ctx context.Context, std *streams) error {
	return changeSchedule(ctx, std, &c.boxFlags, c.Name, false, false, func(t *automation.Timing) { t.Paused = true })
}

// ScheduleResumeCmd lets a schedule go on.
type ScheduleResumeCmd struct {
	Name string `arg:"" help:"Name of the schedule."`
	boxFlags
}

// Run implements the command.
func (c *ScheduleResumeCmd) Run(ctx context.Context, std *streams) error {
	return changeSchedule(ctx, std, &c.boxFlags, c.Name, false, false, func(t *automation.Timing) { t.Paused = false })
}

// ScheduleRmCmd removes a schedule.
type ScheduleRmCmd struct {
	Name string `arg:"" help:"Name of the schedule."`
	boxFlags
}

// Run implements the command.
func (c *ScheduleRmCmd) Run(ctx context.Context, std *streams) error {
	box, err := c.boxOf(std)
	if err != nil {
		return usage(err)
	}
	defer box.Close()
	if err := box.RemoveSchedule(ctx, c.Name); err != nil {
		return boxError(err)
	}
	fmt.Fprintf(std.out, "The schedule %s is removed. Its runs stay.\n", client.Plain(c.Name))
	return nil
}
