package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/sandbox"
)

// MeasureCmd measures a page of one's own, from its origin to the report.
type MeasureCmd struct {
	URL     string `arg:"" help:"The page, such as https://localhost:3000/."`
	Against string `placeholder:"URL" help:"Compare: a second page, the treatment, whose trials take turns with those of the first, the control. The exit status is 1 when it is slower, and 3 when too few trials are valid to tell."`

	Trials *int   `placeholder:"N" help:"How many times each page is loaded (10; at most 60 with --find)."`
	Link   string `default:"cable" help:"Access network of the device: a name (see appliance link names) or parameters such as rtt=28ms,down=5mbit,up=1mbit."`
	Out    string `default:"out/measure" type:"path" help:"Folder for the run and its report (${default})."`

	Browser    string        `default:"chromium" placeholder:"NAME" help:"chromium, firefox, firefox-esr, or the path of a browser's program (${default})."`
	End        string        `placeholder:"END" help:"What ends a load, for a page that never rests: 'network 1s', 'still 1s in 0%,0%,100%,50%', 'done NAME' and others of docs/scenarios.md. Without it the page has loaded when all is still."`
	Still      time.Duration `default:"1.5s" help:"A page has loaded when screen and network have been still for this long (${default})."`
	Limit      time.Duration `default:"60s" help:"A load that takes longer is ended, and invalid (${default})."`
	Timing     string        `placeholder:"T" help:"When the replay answers: recorded, shared (with --against: what both pages ask for takes the same time in both, so the pages are compared), none, or fixed:20ms. Without it recorded, and shared with --against; recorded with --against compares the servers too, over several recordings of each."`
	Recordings int           `placeholder:"N" help:"With --against: how often each page is recorded; each pair of trials replays one recording of each, and the report says whether the servers differ. Without it 6 with --timing recorded, else 1."`
	Find       string        `placeholder:"DIFFERENCE" help:"With --against: the difference to be detected with 80 % probability, such as 10ms or 1%: after eight pairs the run chooses how many of --trials it makes."`
	Traces     int           `placeholder:"N" help:"With --against: N extra trials of each page, in which the browser traces itself: they say why the pages differ, and enter no statistic. 10 name most causes (docs/timeline.md)."`
	OnDialog   string        `enum:",accept,dismiss" default:"" placeholder:"ANSWER" help:"accept or dismiss: the answer to a page that asks a person something in a window of the browser's own (alert, confirm, prompt, print, a permission, whether to leave). Without it the window is shown, and the trial is invalid."`
	Blank      bool          `name:"expect-blank" help:"The page is meant to show nothing: a trial counts although its screen stays blank."`
	Seed       uint64        `default:"1" help:"Seed of everything random (${default})."`
	Tolerance  time.Duration `placeholder:"DURATION" help:"How late the link or the recorder may be in a valid trial; without it one frame (16.7ms), relaxed where this machine cannot keep that. One that is given is never relaxed."`
	panelFlags
	outcomeFlags
	measureFlags
	pageFlags
	matchFlags
	sandboxFlags
	processorFlags
}

// Help is shown by appliance measure --help.
func (MeasureCmd) Help() string {
	return `Records the page from its server, then loads the recording again and again in a fresh Chromium for each trial,
films every load at 60 Hz, measures it, and writes report.html. The server is needed for the recording alone.
The page may be on any port of any host that this machine reaches: localhost, a name of /etc/hosts, a private address.

Example:
  appliance measure http://localhost:3000/
  appliance measure https://localhost:3000/ --insecure-origin --link 4g --no-serve
  appliance measure https://shop.example/ --against https://staging.shop.example/ --trials 20`
}

// Validate checks what kong cannot.
func (c *MeasureCmd) Validate() error {
	if c.URL == "" {
		return errors.New("name the page, such as: appliance measure https://localhost:3000/")
	}
	if c.Traces != 0 && c.Against == "" {
		return errors.New("--traces say why two pages differ: name the second with --against URL")
	}
	c.URL, c.Against = c.withoutUser(c.URL), c.withoutUser(c.Against)
	p := c.task(time.Unix(0, 0)).Plan
	return checkFlags(p, p.Trials, c.Still, c.Limit)
}

// pages are those of the arms.
func (c *MeasureCmd) pages() []string {
	if c.Against == "" {
		return []string{c.URL}
	}
	return []string{c.URL, c.Against}
}

// Run records, replays, measures and shows.
func (c *MeasureCmd) Run(ctx context.Context, std *streams) error {
	t := c.task(time.Now())
	var err error
	if t.Reach, err = c.reach(ctx, c.pages()...); err != nil {
		return usage(err)
	}
	l := localRun{panelFlags: c.panelFlags, outcomeFlags: c.outcomeFlags, Out: c.Out, Compare: c.Against != ""}
	return l.run(ctx, std, &t)
}

// task is the task of the half in namespaces, begun at now.
func (c *MeasureCmd) task(now time.Time) sandbox.Task {
	t := sandbox.Task{ID: store.NewID(now, "measure"), Out: c.Out, Origins: sandbox.OriginsOutside, NoSandbox: c.NoSandbox,
		KeepProcessors: c.KeepProcessors, Plan: lab.Plan{
			Name: "measure", Trials: c.trials(), Seed: c.Seed, Timing: c.Timing, Recordings: c.Recordings, Find: c.Find, Miss: c.Miss,
			Still: c.Still.Seconds(), Limit: c.Limit.Seconds(), Tolerance: c.Tolerance.Seconds() * 1e3,
			OnDialog: c.OnDialog, ExpectBlank: c.Blank, Traces: c.Traces,
			Arm: lab.Arm{Page: c.URL, Link: c.Link, Match: c.Match, Browser: lab.BrowserNamed(c.Browser)},
		}}
	t.Plan.Measure = c.plan()
	if c.End != "" {
		t.Plan.Steps = []lab.Step{{Name: "load", Open: c.URL, End: c.End}}
	}
	if c.Against != "" {
		t.Plan.Treatment = &lab.Arm{Page: c.Against}
	}
	return t
}

// trials are those that were asked for, or the plan's own default.
func (c *MeasureCmd) trials() int {
	if c.Trials != nil {
		return *c.Trials
	}
	return lab.Plan{Find: c.Find}.WithDefaults().Trials
}

// measureFlags say what is measured on the recordings besides what every load has.
type measureFlags struct {
	Metrics    []string `placeholder:"LIST" help:"Also measure these, by name or group, separated by commas: all (every index of a page load), rate, motion, blank, tearing, stable, window, response, shift, colours. See docs/metrics.md."`
	Guard      []string `placeholder:"LIST" help:"With --against: measurements that the verdict rests on besides those of every load, such as layout_instability; each is measured."`
	Regions    []string `sep:"none" placeholder:"NAME=X,Y,W,H" help:"Also measure this part of the content area, in pixels or per cent (header=0%,0%,100%,20%); may be repeated."`
	Ignore     []string `sep:"none" placeholder:"X,Y,W,H" help:"Part of the content area that does not count, such as a carousel; may be repeated."`
	FrameCodes bool     `help:"Draw a code onto the page in each animation frame, which places what the page reports (marks, largest paint, long tasks) on frames."`
	PageMarks  bool     `help:"Have an observer in the page report its marks, paints, long tasks, layout shifts and slow events, for the timeline."`
}

// plan is nil where nothing is asked for. What is wrong with it the check of plans says.
func (f measureFlags) plan() *lab.Measure {
	m := lab.Measure{Metrics: f.Metrics, Guards: f.Guard, Ignore: f.Ignore, FrameCodes: f.FrameCodes, PageMarks: f.PageMarks}
	for _, text := range f.Regions {
		name, area, _ := strings.Cut(text, "=")
		m.Regions = append(m.Regions, lab.MeasureRegion{Name: name, Area: area})
	}
	if len(m.Metrics)+len(m.Guards)+len(m.Ignore)+len(m.Regions) == 0 && !m.FrameCodes && !m.PageMarks {
		return nil
	}
	return &m
}
