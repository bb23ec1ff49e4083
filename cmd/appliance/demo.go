package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/run/sandbox"
	"eidetic/netlab/archive"
)

// DemoCmd is the main job, end to end, on this machine alone.
type DemoCmd struct {
	Trials  int           `default:"10" help:"How many times the recorded page is loaded, on each link."`
	Link    string        `default:"cable" help:"Access network of the device: a name (see appliance link names) or parameters such as rtt=28ms,down=5mbit,up=1mbit."`
	Against string        `name:"treatment-link" placeholder:"LINK" help:"Compare: trials on this link, as the treatment, take turns with those on --link, the control. The exit status is 1 when it is slower, and 3 when too few trials are valid to tell."`
	Backend string        `default:"packet" enum:"packet,conn" help:"What emulates the link: packets, or connections to compare with (${default})."`
	Out     string        `default:"out/demo" type:"path" help:"Folder for the run and its report."`
	Archive string        `type:"existingfile" placeholder:"A.wacz" help:"Replay this recording instead of making one of the sample shop."`
	Page    string        `placeholder:"URL" help:"With --archive: the page to load; the first that the recording names, by default."`
	Live    bool          `help:"Load the page from its servers in every trial, with nothing replayed or seeded: shows how much a replay reduces the spread."`
	Still   time.Duration `default:"1.5s" help:"A page has loaded when screen and network have been still for this long."`
	Limit   time.Duration `default:"60s" help:"A load that takes longer is ended, and invalid."`
	Seed    uint64        `default:"1" help:"Seed of everything random, the sample shop's layout included."`

	Tolerance time.Duration `placeholder:"DURATION" help:"How late the link or the recorder may be in a valid trial; without it one frame (16.7ms), relaxed where this machine cannot keep that. One that is given is never relaxed."`
	panelFlags
	outcomeFlags
	matchFlags
	sandboxFlags
	processorFlags
}

// matchFlags say how requests are matched, and what is done with those that are not.
type matchFlags struct {
	Match string `default:"" enum:",strict,normal,loose" placeholder:"POLICY" help:"How far a request may differ from the recorded one that answers it: strict, not at all; normal, not in what can change the answer; loose, the most similar one is taken. Without it normal, and loose for a recording that another program made."`
	Miss  string `default:"404" enum:"404,fill" help:"What is done with a request that the recording lacks: 404, which makes the trial invalid; fill, which fetches it from its origin once, and then answers the same in all trials of both arms (${default})."`
}

// Help is shown by appliance demo --help.
func (DemoCmd) Help() string {
	return `Records a sample shop from real HTTPS origins in network namespaces, stops the origins, loads the page from the
recording in a fresh Chromium for each trial, films every load at 60 Hz, measures it, and writes report.html.
With --treatment-link two links are compared, and the report says whether the second one is slower.

Example:
  appliance demo --trials 3 --link 3gfast --no-serve --out out/demo
  appliance demo --archive recording.wacz --trials 5
  appliance demo --link lte --treatment-link 3g --no-serve`
}

// Validate checks what kong cannot.
func (d *DemoCmd) Validate() error {
	if d.Archive == "" && d.Page != "" {
		return errors.New("--page goes with --archive")
	}
	if d.Archive != "" && d.Live {
		return errors.New("--archive and --live exclude each other")
	}
	// choosePage finds and checks the page later; the rest of the plan is checked here.
	whole := *d
	whole.Page = samplesite.Home
	return checkFlags(whole.inside(time.Unix(0, 0)).Plan, d.Trials, d.Still, d.Limit)
}

// choosePage finds the page to load. It opens the archive to be replayed, so that a
// person is told what is wrong with it before anything starts.
func (d *DemoCmd) choosePage() error {
	if d.Archive == "" {
		d.Page = samplesite.Home
		return nil
	}
	a, err := archive.Open(d.Archive)
	if err != nil {
		return fmt.Errorf("--archive: %w", err)
	}
	// The half in namespaces sees the real folders only.
	if d.Archive, err = filepath.EvalSymlinks(d.Archive); err != nil {
		return fmt.Errorf("--archive: %w", err)
	}
	if d.Page == "" {
		if len(a.Pages()) == 0 {
			return fmt.Errorf("--archive %s: it names no page; say which with --page URL", d.Archive)
		}
		d.Page = a.Pages()[0].URL
	}
	if err := plan.CheckPage(d.Page); err != nil {
		return fmt.Errorf("--page %w", err)
	}
	return nil
}

// Run checks what can be checked first, works inside namespaces, then serves.
func (d *DemoCmd) Run(ctx context.Context, std *streams) error {
	if err := d.choosePage(); err != nil {
		return usage(err)
	}
	l := localRun{panelFlags: d.panelFlags, outcomeFlags: d.outcomeFlags, Out: d.Out, Compare: d.Against != ""}
	in := d.inside(time.Now())
	if in.Origins == sandbox.OriginsOutside {
		var err error
		if in.Reach, err = (&originFlags{}).reach(ctx, d.Page); err != nil {
			return usage(err)
		}
	}
	return l.run(ctx, std, &in)
}

// inside is the task of the half in namespaces, begun at now.
func (d *DemoCmd) inside(now time.Time) sandbox.Task {
	in := sandbox.Task{ID: store.NewID(now, "demo"), Out: d.Out, Connections: d.Backend == "conn", NoSandbox: d.NoSandbox,
		KeepProcessors: d.KeepProcessors, Plan: lab.Plan{
			Name: "demo", Trials: d.Trials, Live: d.Live, Seed: d.Seed, Timing: "recorded", Miss: d.Miss,
			Still: d.Still.Seconds(), Limit: d.Limit.Seconds(), Tolerance: d.Tolerance.Seconds() * 1e3,
			Arm: lab.Arm{Page: d.Page, Archive: d.Archive, Link: d.Link, Match: d.Match},
		}}
	if d.Against != "" {
		in.Plan.Treatment = &lab.Arm{Link: d.Against}
	}
	switch {
	case d.Archive == "", d.Miss == lab.MissFill && isSample(d.Page):
		in.Origins = sandbox.OriginsSample
	case d.Miss == lab.MissFill:
		in.Origins = sandbox.OriginsOutside
	}
	return in
}

// isSample tells the pages of the sample shop.
func isSample(page string) bool {
	u, err := url.Parse(page)
	return err == nil && samplesite.Hosts()[u.Hostname()].IsValid()
}
