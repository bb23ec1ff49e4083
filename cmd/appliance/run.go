package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/terminal"
)

// RunCmd asks a box for a run, waits for it, and ends with the status that stands for what it found.
type RunCmd struct {
	boxFlags
	File     string        `arg:"" optional:"" type:"path" placeholder:"PLAN" help:"What to run: a file with a plan, as with --plan."`
	Plan     string        `xor:"what" type:"path" placeholder:"FILE" help:"What to run, as YAML or JSON with the fields of POST /api/v1/runs (docs/api.md); a flag goes before a field."`
	Workflow string        `xor:"what" placeholder:"NAME" help:"What to run: a workflow that the box keeps (see appliance workflow), or a version of it, such as checkout@3; a flag goes before a field, for this run alone."`
	Out      string        `type:"path" placeholder:"DIR" help:"Put report.json and run.json into this folder, and with a box report.html; on this machine the whole run is kept there, in runs/."`
	NoWait   bool          `help:"Ask for the run, print its ID, and end."`
	Resume   bool          `help:"On this machine: go on with the unfinished run of the same plan that --out holds, if there is one."`
	pause    time.Duration // the first between attempts; tests set a short one
	Patience time.Duration `default:"5m" help:"How long to keep trying when the box stops answering (${default})."`
	outcomeFlags
	requestFlags
	gateFlags
	hereFlags

	local  bool   // on this machine
	beside string // where the files are that a plan without a file names
}

// requestFlags are the fields of a request; what is not given is the box's default.
type requestFlags struct {
	Page    *string  `placeholder:"URL" help:"Page under test."`
	Archive *string  `placeholder:"A" help:"Recording to replay: a file here, which is brought to the box; a file name there; or the ID of a run that made one."`
	Browser *string  `placeholder:"B" help:"Browser of the virtual device: chromium, firefox, firefox-esr, or a program's path."`
	Link    *string  `placeholder:"LINK" help:"Access network: a name (see appliance link names) or parameters."`
	Trials  *int     `placeholder:"N" help:"How many trials, of each arm."`
	Timing  *string  `placeholder:"T" help:"When a replay answers: recorded, shared (the same in both arms), none, or fixed:20ms."`
	Match   *string  `placeholder:"P" help:"How far a request may differ from the recorded one: strict, normal or loose."`
	Miss    *string  `placeholder:"M" help:"What is done with a request that the recording lacks: 404, or fill, which fetches it from its origin once, for all trials of both arms."`
	Still   *float64 `placeholder:"SECONDS" help:"A page has loaded when screen and network have been still for this long."`
	Limit   *float64 `placeholder:"SECONDS" help:"A load that takes longer is invalid."`
	Seed    *uint64  `placeholder:"N" help:"Seed of everything random."`
	// Tolerance is a duration for people, and milliseconds in a request.
	Tolerance  *time.Duration `placeholder:"DURATION" help:"How late the link or the recorder may be in a valid trial (16.7ms); one that is given is never relaxed."`
	Looks      *int           `placeholder:"N" help:"Compare: test N times, 2 to 10, and end as soon as the verdict is certain."`
	Margin     *float64       `placeholder:"PERCENT" help:"Compare: differences of up to this many percent do not matter."`
	Primary    *string        `placeholder:"METRIC" help:"Compare: the one metric that the verdict rests on."`
	Find       *string        `placeholder:"DIFFERENCE" help:"Compare: the difference to be detected with 80 % probability, such as 10ms or 1%: after eight pairs the run chooses how many of the trials it makes."`
	Recordings *int           `placeholder:"N" help:"Compare two pages that the run records: how often each is recorded."`
	Device     *string        `placeholder:"D" help:"Which device; the first of the box's list without it."`
	Name       *string        `placeholder:"TEXT" help:"What you call the run."`

	TreatmentPage    *string `placeholder:"URL" help:"Compare: page of the treatment."`
	TreatmentLink    *string `placeholder:"LINK" help:"Compare: access network of the treatment."`
	TreatmentBrowser *string `placeholder:"B" help:"Compare: browser of the treatment."`
	TreatmentArchive *string `placeholder:"A" help:"Compare: recording of the treatment, like --archive."`
}

// Help is shown by appliance run --help.
func (RunCmd) Help() string {
	return `Carries out a plan and prints what was found: on this machine, with a browser in namespaces of its own, or on a box (appliance
serve) that --box names. Of a box each trial is shown as it ends. Ctrl-C cancels the run; a second one leaves at once. A connection that is
lost and a box that restarts are waited for.

The status is 0 when no difference was found, or the treatment is faster, or there is no second arm; 1 when it is slower or mixed;
2 when the command line is wrong or the box refused the request; 3 when there is no verdict: too few valid trials, a run that
failed or was cancelled, a box that does not answer; 4 when nothing else is wrong and a budget cannot be judged with this many trials.
With --reference the comparison with that run counts, too, and the worse of both decides.

Example:
  appliance run --token-file out/box/token --page https://www.shop.example/ --link lte
  appliance run --box https://box.local:8080 --page https://www.shop.example/ --archive shop.wacz --treatment-archive new.wacz --out report
  appliance run checkout.yaml --trials 16 --out out/checkout
  appliance run --workflow checkout --box https://box.local:8080
  git diff --name-only main... | appliance run --workflow checkout --changed-paths - --reference main@latest`
}

// Validate checks what kong cannot.
func (c *RunCmd) Validate() error {
	switch {
	case c.File != "" && (c.Plan != "" || c.Workflow != ""):
		return fmt.Errorf("%s: name one plan, by its file, --plan or --workflow", c.File)
	case c.File != "":
		c.Plan = c.File
	}
	c.local = !c.named() && !c.NoWait && c.Workflow == ""
	if err := c.check(); err != nil {
		return err
	}
	if c.Resume && (!c.local || c.Out == "") {
		return errors.New("--resume is for runs on this machine, with --out: a box goes on with its unfinished runs by itself")
	}
	if !c.local {
		if err := c.refuseThere("runs"); err != nil {
			return err
		}
	}
	if c.Page == nil && c.Plan == "" && c.Workflow == "" {
		return errors.New("say what to run: --page URL, or --plan FILE, or --workflow NAME of a box")
	}
	if _, _, err := parseVersion(c.Workflow); err != nil {
		return fmt.Errorf("--workflow %w", err)
	}
	if c.NoWait && (c.Out != "" || c.JSON || c.Quiet) {
		return errors.New("--no-wait goes without --out, --json and --quiet: there is nothing to fetch yet")
	}
	if c.Patience < 0 {
		return fmt.Errorf("--patience %v: at least 0", c.Patience)
	}
	return c.checkGate(c)
}

// Run implements the command.
func (c *RunCmd) Run(ctx context.Context, std *streams) error {
	q, err := c.request()
	if err != nil {
		return usage(err)
	}
	why, needed := "", true
	if c.Workflow == "" {
		if q, why, needed, err = c.selects(std, q, q); err != nil {
			return usage(err)
		}
		if !needed {
			return c.unneeded(std, why)
		}
	}
	if c.local {
		return c.here(ctx, std, q)
	}
	if err := attachFiles(&q); err != nil {
		return usage(q.Locate(err))
	}
	config, err := c.config(std.err)
	if err != nil {
		return usage(err)
	}
	config.Patience, config.FirstPause = c.Patience, c.pause
	if c.Out != "" {
		if _, err := makeOut(c.Out); err != nil {
			return cannot(err)
		}
	}
	news := std.out
	if c.JSON || c.NoWait { // whose output is for programs
		news = std.err
	}
	if c.Quiet {
		news = io.Discard
	}
	w := &waiting{
		box: client.New(config),
		bar: terminal.NewProgress(news), workflow: c.Workflow,
	}
	defer w.box.Close()
	defer w.bar.Close()
	if c.Workflow != "" && (len(c.Tag) > 0 || c.ChangedPaths != "") {
		name, version, _ := parseVersion(c.Workflow) // it was checked
		flow, err := w.box.Workflow(ctx, name, version)
		if err != nil {
			return boxError(err)
		}
		if q, why, needed, err = c.selects(std, q, plan.Request{Plan: *flow.Plan}); err != nil {
			return usage(err)
		}
		if !needed {
			return c.unneeded(std, why)
		}
	}
	if why != "" {
		w.bar.Say("%s.", why)
	}
	id, err := w.start(ctx, q)
	if err != nil {
		return err
	}
	if c.NoWait && ctx.Err() == nil {
		fmt.Fprintf(std.out, "%s\n", id)
		return nil
	}
	run, err := w.box.Follow(ctx, id, w.show())
	if ctx.Err() != nil {
		return w.cancel(ctx, id)
	}
	if err != nil {
		return boxError(err)
	}
	return c.conclude(ctx, std, w, run, q.Compares() || run.Plan.Treatment != nil)
}

// request is the plan with the flags over it.
func (c *RunCmd) request() (q plan.Request, err error) {
	if c.Plan != "" {
		if q, err = plan.ReadFile(c.Plan); err != nil {
			return q, fmt.Errorf("--plan: %w", err)
		}
	}
	err = errors.Join(
		set(&q, "page", c.Page), set(&q, "archive", c.Archive), set(&q, "link", c.Link), setBrowser(&q, "browser", c.Browser),
		set(&q, "trials", c.Trials), set(&q, "timing", c.Timing), set(&q, "match", c.Match), set(&q, "miss", c.Miss),
		set(&q, "still_s", c.Still), set(&q, "limit_s", c.Limit), set(&q, "seed", c.Seed), set(&q, "tolerance_ms", inMS(c.Tolerance)),
		set(&q, "looks", c.Looks), set(&q, "margin_percent", c.Margin), set(&q, "primary", c.Primary),
		set(&q, "find", c.Find), set(&q, "recordings", c.Recordings),
		set(&q, "device", c.Device), set(&q, "name", c.Name),
		set(&q, "treatment.page", c.TreatmentPage), set(&q, "treatment.link", c.TreatmentLink),
		set(&q, "treatment.archive", c.TreatmentArchive), setBrowser(&q, "treatment.browser", c.TreatmentBrowser),
	)
	if err == nil && !q.Opens() && c.Workflow == "" {
		err = fmt.Errorf("%s names no page, and there is no --page URL", q.File())
	}
	return q, err
}

// attachFiles puts what lies beside the plan, and is named in it, into the request to a box.
func attachFiles(q *plan.Request) error { return q.Attach(plan.Folder{Path: filepath.Dir(q.File())}) }

// set says a field for which there is a flag.
func set[T any](q *plan.Request, field string, value *T) error {
	if value == nil {
		return nil
	}
	return q.Set(field, *value)
}

// setBrowser says a browser by its name, or by the path of its program.
func setBrowser(q *plan.Request, field string, value *string) error {
	if value == nil {
		return nil
	}
	return q.Set(field, lab.BrowserNamed(*value))
}

// inMS is a duration as a plan has it.
func inMS(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	ms := float64(*d) / float64(time.Millisecond)
	return &ms
}

// conclude prints what was found, and fetches it.
func (c *RunCmd) conclude(ctx context.Context, std *streams, w *waiting, run *lab.Run, compared bool) error {
	w.bar.Close()
	if c.Out != "" {
		if err := errors.Join(w.box.Fetch(ctx, run.ID, c.Out), w.box.FetchCells(ctx, run.ID, len(run.Cells), c.Out)); err != nil {
			return boxError(fmt.Errorf("fetching the report into %s: %w", c.Out, err))
		}
	}
	where := ""
	if run.Environment.Appliance != "" { // it got as far as a folder
		where = w.box.ReportURL(run.ID)
	}
	err := c.outcomeFlags.conclude(std, run, where, false, func(to *terminal.Console) {
		if where != "" {
			to.Line("The report is at " + where)
		}
		if c.Out != "" {
			to.Line("Report and numbers are in " + c.Out)
		}
	})
	return cmp.Or(err, c.onBox(ctx, std, w.box, run, gate(run, compared)))
}
