// Command appliance is the whole product: the box's service and every tool
// that a person or a script uses, one file a command.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/willabides/kongplete"

	"eidetic/internal/keep/redact"
	"eidetic/internal/tell/export"
	"eidetic/internal/tell/terminal"
)

// CLI is the command line; each field is a command, declared in the file of its name.
type CLI struct {
	Demo      DemoCmd      `cmd:"" help:"Record a sample shop, replay it without its origins, film every load and measure it."`
	Measure   MeasureCmd   `cmd:"" help:"Measure a page of your own: record it, replay it, film every load, write a report."`
	Inside    InsideCmd    `cmd:"" hidden:"" help:"The half of a run that works in namespaces."`
	Serve     ServeCmd     `cmd:"" help:"Run the box: its panel, the networks of its ports, its devices."`
	Head      HeadCmd      `cmd:"" help:"Run the head of a fleet: one queue and one history for many boxes."`
	Box       BoxCmd       `cmd:"" hidden:"" help:"The commands that the units of the box run."`
	Run       RunCmd       `cmd:"" help:"Carry out a plan, here or on a box; the exit status says what was found: for scripts and CI."`
	Join      JoinCmd      `cmd:"" help:"Make a box a member of a fleet, by the link that the head shows."`
	Leave     LeaveCmd     `cmd:"" help:"Make a box leave its fleet."`
	Backup    BackupCmd    `cmd:"" help:"Write all that a box keeps into one file."`
	Restore   RestoreCmd   `cmd:"" help:"Put a backup in the place of what a data folder holds, or check one."`
	Retention RetentionCmd `cmd:"" help:"Say what evidence of old runs a box would delete, and delete it."`
	Pin       PinCmd       `cmd:"" help:"Keep a run of a box with all its files."`
	Support   SupportCmd   `cmd:"" help:"Make a file for whoever helps with a box, without secrets."`
	Token     TokenCmd     `cmd:"" help:"Make, list and revoke the tokens by which scripts and people use a box."`
	Boxes     BoxesCmd     `cmd:"" help:"See and manage the boxes of a fleet, by its head: ls, code, show, set, remove, measure, accept, reference, update."`
	Compare   CompareCmd   `cmd:"" help:"Say whether a run is slower than an earlier one, and what else differs between them."`
	Suite     SuiteCmd     `cmd:"" help:"Compare browsers over many pages and journeys: run, ls, show, compare, verify, repeat, fetch, releases, results, stop, resume."`
	Bisect    BisectCmd    `cmd:"" help:"Find the revision that made a page slower, by deploying and measuring as few as possible."`
	Series    SeriesCmd    `cmd:"" help:"Find the places where the level of any series of numbers changed, in a CSV file."`
	Export    ExportCmd    `cmd:"" help:"Write what a run found in a format of other programs: JUnit, Perfherder, CSV, Markdown."`
	Record    RecordCmd    `cmd:"" help:"Record pages, or what comes to a proxy, into an archive."`
	Replay    ReplayCmd    `cmd:"" help:"Answer from an archive: a proxy, a whole network, or pages in a browser of our own."`
	Inspect   InspectCmd   `cmd:"" hidden:"" help:"The process that checks a recording for the service."`
	Meter     MeterCmd     `cmd:"" hidden:"" help:"The process that measures how fast this machine is."`
	Visit     VisitCmd     `cmd:"" hidden:"" help:"The half of record and replay that runs in namespaces."`
	Capture   CaptureGroup `cmd:"" help:"Record a screen, losslessly, or measure what a grabber loses, delays and alters."`
	Control   ControlCmd   `cmd:"" help:"Press keys, type, click and drag on a device, and say when it got each event."`
	Gesture   GestureCmd   `cmd:"" help:"Record a gesture of a person, to be repeated by a step: record, show."`
	Reel      ReelCmd      `cmd:"" help:"Inspect a screen recording: info, verify, recover, frames, export."`
	Archive   ArchiveCmd   `cmd:"" help:"Inspect, change and convert a recording of the network: ls, cat, verify, rm, edit, trim, merge, import, export."`
	Devices   DevicesCmd   `cmd:"" help:"List what is plugged in: grabbers, and the ports and phones by which a device is driven."`
	Analyze   AnalyzeCmd   `cmd:"" help:"Measure a screen recording: when it changed, SpeedIndex, load histogram, heat map."`
	Link      LinkCmd      `cmd:"" help:"Test how exactly this machine emulates an access network, list the named ones, make traces."`
	Site      SiteCmd      `cmd:"" help:"Serve the sample shop: origins and name server, to record and to replay."`
	Doctor    DoctorCmd    `cmd:"" help:"Say what this machine can do, and what to do about the rest."`
	Version   VersionCmd   `cmd:"" help:"Print the version and what it was built from." example:"appliance version"`

	Completion CompletionCmd `cmd:"" help:"Print what makes bash, zsh or fish complete commands and flags."`
	Man        ManCmd        `cmd:"" help:"Print the manual page: appliance man | man -l -." example:"appliance man | man -l -"`

	Reference ReferenceCmd `cmd:"" help:"Keep runs on a box that later ones are compared with: set, ls, rm."`
	Workflow  WorkflowCmd  `cmd:"" help:"Keep plans on a box under names: put, ls, show, rm."`
	Errand    ErrandCmd    `cmd:"" help:"Film, record or qualify a device of a box between runs, or show its noise."`
	Schedule  ScheduleCmd  `cmd:"" help:"Have a box start workflows at set times: set, ls, log, start, pause, resume, rm."`
	Webhook   WebhookCmd   `cmd:"" help:"Have a box post events when runs end and alerts are raised: make, ls, test, log, pause, resume, rm."`
	History   HistoryCmd   `cmd:"" help:"Show how a page's numbers changed from run to run on a box: control, treatment or their difference."`
	Alerts    AlertsCmd    `cmd:"" help:"Show and answer the alerts of a box, that a page's numbers changed from run to run: ls, ack, resolve, accept, assign."`

	Timeline TimelineCmd `cmd:"" help:"Show what a trial's device, pages, programs and machine did: as a tree with times, or the path of timeline.html."`
	Annotate AnnotateCmd `cmd:"" help:"Put notes onto the timeline of a run in progress: one, or those of programs that write Streamline's format."`
}

// Exit statuses, the same for every command.
const (
	exitGood   = 0 // it worked, and what was checked is good
	exitFailed = 1 // a regression, or a check that failed
	exitUsage  = 2 // the command line or a file it names is wrong
	exitCannot = 3 // this machine, or its state, does not allow it
	exitUnsure = 4 // a budget cannot be judged with this many trials; nothing else is wrong
)

// exitError is an error with an exit status. Without an error inside, a person has
// been told already.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("ended with status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failed, usage and cannot mark err with an exit status; any other error is "cannot". A failure without an error has been
// told already.
func failed(err error) error { return &exitError{exitFailed, err} }
func usage(err error) error  { return marked(exitUsage, err) }
func cannot(err error) error { return marked(exitCannot, err) }

func marked(status int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{status, err}
}

// printJSON prints a value as indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(export.PlainJSON(w))
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], &streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(status)
}

// run parses args, runs the command and returns the exit status.
func run(ctx context.Context, args []string, std *streams) int {
	var cli CLI
	written := &output{Writer: std.out}
	std = &streams{in: std.in, out: written, err: std.err}
	status, helped, out := -1, exitGood, std.out
	if len(args) == 0 { // a person sees the commands, and a script gets the status of wrong usage
		args, helped, out = []string{"--help"}, exitUsage, std.err
	}
	parser, err := kong.New(&cli,
		kong.Name("appliance"),
		kong.Description("Measures how fast a device felt: records and replays its network, films its screen, and compares."),
		kong.Writers(out, std.err),
		kong.Help(printHelp),
		kong.Exit(func(code int) { status = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(std),
	)
	if err != nil {
		fmt.Fprintln(std.err, "appliance:", err)
		return exitCannot
	}
	addExamples(parser.Model)
	if kongplete.Complete(parser, kongplete.WithExitFunc(func(code int) { status = code })); status >= 0 {
		return status // a shell asked how the line may go on
	}
	if args, err = asKong(args); err != nil {
		return printError(usage(err), std.err)
	}
	command, err := parser.Parse(args)
	if status >= 0 { // --help was printed
		return max(status, helped, printError(written.or(nil), std.err))
	}
	if err != nil {
		fmt.Fprintln(std.err, "appliance:", told(err))
		fmt.Fprintf(std.err, "See %s --help.\n", commandOf(err))
		return exitUsage
	}
	return printError(written.or(command.Run()), std.err)
}

// commandOf is the command that a wrong use is of, as far as it was named.
func commandOf(err error) string {
	words := []string{"appliance"}
	if wrong := (*kong.ParseError)(nil); errors.As(err, &wrong) && wrong.Context != nil {
		for _, step := range wrong.Context.Path {
			if step.Command != nil {
				words = append(words, step.Command.Name)
			}
		}
	}
	return strings.Join(words, " ")
}

// addExamples puts the example of each command whose field has the tag example into the command's help.
func addExamples(app *kong.Application) {
	for _, n := range app.Leaves(false) {
		if example := n.Tag.Get("example"); example != "" {
			n.Detail = strings.TrimSpace(n.Detail + "\n\nExample:\n  " + example)
		}
	}
}

// printHelp prints a command's help and, for a group of commands with a default
// command, the help of that one, too.
func printHelp(o kong.HelpOptions, c *kong.Context) error {
	if err := kong.DefaultHelpPrinter(o, c); err != nil {
		return err
	}
	node := c.Selected()
	if node == nil || node.DefaultCmd == nil {
		return nil
	}
	fmt.Fprintln(c.Stdout)
	inner := *c
	inner.Path = append(slices.Clone(c.Path), &kong.Path{Command: node.DefaultCmd})
	return kong.DefaultHelpPrinter(o, &inner)
}

// printError prints an error for a person, unless it was printed before, and returns
// its exit status.
func printError(err error, w io.Writer) int {
	var known *exitError
	if err == nil || errors.As(err, &known) && known.err == nil {
		return statusOf(err)
	}
	fmt.Fprintln(w, "appliance:", told(err))
	return statusOf(err)
}

// told is an error's text, which may quote a recording, or an address of a command line or a plan with its password.
func told(err error) string { return terminal.Brief(redact.Users(terminal.Visible(err.Error()))) }

// statusOf is the exit status that an error stands for.
func statusOf(err error) int {
	var known *exitError
	switch {
	case err == nil:
		return exitGood
	case errors.As(err, &known):
		return known.status
	}
	return exitCannot
}
