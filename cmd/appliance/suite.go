package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"eidetic/internal/box/suites"
	"eidetic/internal/lab"
	"eidetic/internal/tell/suite"
	"eidetic/internal/tell/terminal"
)

// SuiteCmd compares browsers over many pages and journeys.
type SuiteCmd struct {
	Run      SuiteRunCmd      `cmd:"" help:"Measure every entry of a suite, the browsers taking turns; go on where an earlier call was cut off."`
	Ls       SuiteLsCmd       `cmd:"" help:"List the suites of this program, or the entries of one." example:"appliance suite ls eidetic-1"`
	Results  listCmd          `cmd:"" help:"List the results of a box, those that are being measured among them." example:"appliance suite results --box https://box.local:8080"`
	Stop     suiteResultCmd   `cmd:"" help:"Stop measuring a result on a box." example:"appliance suite stop s3k7v2m9qxab --box https://box.local:8080"`
	Resume   suiteResultCmd   `cmd:"" help:"Let a box go on with a result that failed or was stopped." example:"appliance suite resume s3k7v2m9qxab --box https://box.local:8080"`
	Show     SuiteShowCmd     `cmd:"" help:"Show a result: a row for each entry, the geometric mean, and the known answers." example:"appliance suite show out/suite"`
	Compare  SuiteCompareCmd  `cmd:"" help:"Say whether two results of one suite agree." example:"appliance suite compare out/monday out/tuesday --within 3"`
	Verify   SuiteVerifyCmd   `cmd:"" help:"Check the hashes of a result's reels, measure them again, and say whether that gives the same numbers." example:"appliance suite verify out/suite/suite.json"`
	Repeat   SuiteRepeatCmd   `cmd:"" help:"Run the suite of a result again, and say within which bounds both agree."`
	Fetch    SuiteFetchCmd    `cmd:"" help:"Find the newest releases of browsers in folders, packages and on servers, fetch them, and print their programs." example:"appliance suite fetch sources.yaml"`
	Releases SuiteReleasesCmd `cmd:"" help:"Make the series of each browser's releases from several results: did it become faster?" example:"appliance suite releases out/suite-*"`
}

// suiteRunFlags are those of commands that measure a suite.
type suiteRunFlags struct {
	Quiet bool `help:"Print no line for each trial."`
	hereFlags
}

// SuiteRunCmd measures a suite.
type SuiteRunCmd struct {
	Suite    string        `arg:"" default:"eidetic-1" help:"A suite of this program (appliance suite ls), or a file (${default})."`
	Browsers []string      `name:"browser" placeholder:"B" help:"A browser to compare: chromium, firefox-esr, or a program's path. Repeatable; the others are compared with the first. Without it those of the suite."`
	Trials   int           `placeholder:"N" help:"How many trials of each entry and browser; without it as the suite says."`
	Only     []string      `placeholder:"ENTRY" help:"Only this entry. Repeatable."`
	Seed     uint64        `default:"1" placeholder:"N" help:"Seed of the order of the trials (${default})."`
	Out      string        `default:"out/suite" type:"path" placeholder:"DIR" help:"Folder for the result and its runs (${default}); with --box for the result alone."`
	JSON     bool          `name:"json" help:"Print the table as JSON."`
	Device   string        `placeholder:"D" help:"With --box: which device; the first of the box's list without it."`
	Spread   int           `placeholder:"N" help:"With --box and a head: how many runs go on at the same time, on as many boxes (1)."`
	NoWait   bool          `help:"With --box: ask for the result, print its ID, and end."`
	Patience time.Duration `default:"5m" help:"With --box: how long to keep trying when the box stops answering (${default})."`
	boxFlags
	suiteRunFlags

	local bool // on this machine
}

// Help is shown by appliance suite run --help.
func (SuiteRunCmd) Help() string {
	return `Each entry of a suite is a page or a journey with its marks. It is one run, in which all browsers take turns in random order. The result
is one file, suite.json: every hash, version, condition and trial. If the command was cut off, type it again: it goes on, and tries entries
that failed again.

With --box a box measures it: a suite that is a file here is uploaded, with the recordings beside it. The box goes on after a restart, and
its page Suites shows the same. Ctrl-C stops it.

The status is 0 when every entry has valid trials, and its known answers hold where it has some; 1 when an answer does not hold; 3 when an
entry has no valid trial.

Example:
  appliance suite run
  appliance suite run knobs-1 --browser chromium --trials 3 --out out/knobs
  appliance suite run mine.yaml --browser chromium --browser /opt/firefox-nightly/firefox
  appliance suite run --browser chromium --browser nightly --box https://box.local:8080`
}

// Validate checks what kong cannot.
func (c *SuiteRunCmd) Validate() error {
	if c.Trials < 0 || c.Trials > 5000 {
		return fmt.Errorf("--trials %d: from 1 to 5000", c.Trials)
	}
	if err := suite.CheckBrowsers(c.Browsers); err != nil {
		return fmt.Errorf("--browser: %w", err)
	}
	c.local = !c.named()
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case c.local && (c.NoWait || c.Device != "" || c.Spread != 0):
		return errors.New("--no-wait, --device and --spread are for suites on a box (--box)")
	case c.Spread < 0 || c.Spread > suites.MostSpread:
		return fmt.Errorf("--spread %d: from 1 to %d", c.Spread, suites.MostSpread)
	case c.Patience < 0:
		return fmt.Errorf("--patience %v: at least 0", c.Patience)
	case !c.local:
		return c.refuseThere("suites")
	}
	return nil
}

// Run measures and shows.
func (c *SuiteRunCmd) Run(ctx context.Context, std *streams) error {
	if !c.local {
		return c.measureThere(ctx, std)
	}
	s, err := suite.Open(c.Suite)
	if err != nil {
		return usage(err)
	}
	names := c.Browsers
	if len(names) == 0 {
		names = s.Browsers
	}
	if len(names) == 0 {
		names = []string{lab.Chromium}
	}
	r := suite.New(s, versionLine(), names, c.Trials, c.Seed, time.Now().UTC())
	if r, err = c.measure(ctx, std, s, r, c.Out, c.Only); err != nil {
		return err
	}
	return c.tell(std, r)
}

// tell prints a result that is in the folder of --out, and returns its status.
func (c *SuiteRunCmd) tell(std *streams, r *suite.Result) error {
	found, err := foundIn(r)
	if err != nil {
		return err
	}
	found.keep(c.Only)
	if err := found.print(std, c.JSON); err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintf(std.out, "result: %s\n", filepath.Join(c.Out, suite.ResultFile))
	}
	return found.gate()
}

// measure carries out what a result still lacks.
func (f *suiteRunFlags) measure(
	ctx context.Context, std *streams, s *suite.Suite, r *suite.Result, out string, only []string,
) (*suite.Result, error) {
	for _, name := range only {
		if s.Index(name) < 0 {
			return nil, usage(fmt.Errorf("--only %s: %s has no such entry (appliance suite ls %s)", name, s.Name, s.File()))
		}
	}
	if _, err := makeOut(out); err != nil {
		return nil, cannot(err)
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return nil, cannot(err)
	}
	earlier, err := suite.ReadResult(out)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, usage(err)
	case !earlier.Same(r):
		return nil, usage(fmt.Errorf("--out %s holds a result of another suite, version, seed, or other browsers or trials: name another folder", out))
	default:
		r = earlier
	}
	bar := terminal.NewProgress(std.err)
	defer bar.Close()
	m := &suiteHere{suite: s, out: out, only: only, bar: bar, quiet: f.Quiet,
		run: RunCmd{Out: out, beside: ".", hereFlags: f.hereFlags}}
	if _, err := os.Stat(s.File()); err == nil {
		m.run.beside = filepath.Dir(s.File())
	}
	return r, m.all(ctx, r)
}

// suiteFound are the tables of a result.
type suiteFound struct {
	*suite.Table
	Known []suite.Known `json:"known,omitempty"`
}

func foundIn(r *suite.Result) (found suiteFound, err error) {
	if found.Table, err = r.Table(); err == nil {
		found.Known, err = r.Knowns()
	}
	return found, cannot(err)
}

// keep leaves out what was not asked for, if only some entries were.
func (f *suiteFound) keep(only []string) {
	if len(only) == 0 {
		return
	}
	asked := func(entry string) bool { return slices.Contains(only, entry) }
	f.Known = slices.DeleteFunc(f.Known, func(k suite.Known) bool { return !asked(k.Entry) })
	f.Rows = slices.DeleteFunc(f.Rows, func(r suite.Row) bool { return !asked(r.Entry) })
	f.Missing = slices.DeleteFunc(f.Missing, func(text string) bool {
		entry, _, _ := strings.Cut(text, ":")
		return !asked(entry)
	})
}

func (f suiteFound) print(std *streams, asJSON bool) error {
	if asJSON {
		return printJSON(std.out, f)
	}
	to := terminal.New(std.out)
	terminal.Marks(&to, f.Table)
	terminal.Known(&to, f.Known)
	return nil
}

// gate is the status of a result.
func (f suiteFound) gate() error {
	wrong, missing := 0, len(f.Missing)
	for _, k := range f.Known {
		switch {
		case k.Measured == nil:
			missing++
		case !k.Holds:
			wrong++
		}
	}
	switch {
	case wrong > 0:
		return failed(fmt.Errorf("%d known %s not measured within the bound", wrong, lab.Plural(wrong, "answer is", "answers are")))
	case missing > 0:
		return cannot(fmt.Errorf("%d %s without a valid trial; the same command tries again", missing, lab.Plural(missing, "row is", "rows are")))
	}
	return nil
}

// suiteResultCmd is about one result of a box.
type suiteResultCmd struct {
	ID string `arg:"" name:"id" help:"The result's ID (appliance suite results)."`
	boxFlags
}

// Run implements the command.
func (c *suiteResultCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, things{"id": c.ID}, nil, false)
}

// SuiteLsCmd lists suites.
type SuiteLsCmd struct {
	Suite string `arg:"" optional:"" help:"A suite of this program, or a file: list its entries."`
	Text  bool   `help:"Print the suite's file, to make another of it."`
}

// Run lists.
func (c *SuiteLsCmd) Run(std *streams) error {
	to := terminal.New(std.out)
	if c.Suite == "" {
		list := terminal.Table{Head: []string{"suite", "entries", "about"}}
		for _, name := range suite.Shipped() {
			s, err := suite.Open(name)
			if err != nil {
				return cannot(err)
			}
			list.Add("", name, fmt.Sprint(len(s.Entries)), s.About)
		}
		list.Print(&to)
		return nil
	}
	s, err := suite.Open(c.Suite)
	if err != nil {
		return usage(err)
	}
	if c.Text {
		_, err := std.out.Write(s.Text())
		return err
	}
	list := terminal.Table{Head: []string{"entry", "weight", "type, marks and known answers"}}
	for _, e := range s.Entries {
		what := ""
		for _, name := range e.Names() {
			what += ", " + name
		}
		list.Add("", e.Name, fmt.Sprint(e.Counts()), terminal.Plain(e.Type)+"  "+terminal.Plain(what[min(2, len(what)):]))
	}
	list.Print(&to)
	return nil
}

// SuiteShowCmd shows a result.
type SuiteShowCmd struct {
	File string `arg:"" type:"path" help:"A result, suite.json, or the folder that it is in."`
	JSON bool   `name:"json" help:"Print the table as JSON."`
}

// Run shows.
func (c *SuiteShowCmd) Run(std *streams) error {
	r, err := suite.ReadResult(c.File)
	if err != nil {
		return usage(err)
	}
	found, err := foundIn(r)
	if err != nil {
		return err
	}
	return found.print(std, c.JSON)
}
