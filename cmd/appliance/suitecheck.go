package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"eidetic/internal/box/suites"
	"eidetic/internal/lab"
	"eidetic/internal/tell/suite"
	"eidetic/internal/tell/terminal"
)

// SuiteVerifyCmd measures the reels of a result again.
type SuiteVerifyCmd struct {
	File string `arg:"" type:"path" help:"A result, suite.json, with its runs beside it, or the folder."`
	JSON bool   `name:"json" help:"Print what was found as JSON."`
}

// Help is shown by appliance suite verify --help.
func (SuiteVerifyCmd) Help() string {
	return `A result says of each trial which reel it rests on, by its SHA-256. This checks the hashes, measures every reel by this program, and
compares all numbers with those in the file. No browser is needed. The status is 0 when all agree, and 1 when something does not.`
}

// Run verifies.
func (c *SuiteVerifyCmd) Run(ctx context.Context, std *streams) error {
	r, err := suite.ReadResult(c.File)
	if err != nil {
		return usage(err)
	}
	s, err := r.Source()
	if err != nil {
		return usage(err)
	}
	dir := filepath.Dir(suite.FileOf(c.File))
	var all []suites.Verified
	bad := 0
	for i := range r.Entries {
		if ctx.Err() != nil {
			return cannot(ctx.Err())
		}
		if r.Entries[i].State == suite.StateBegun {
			continue // there is nothing said of it yet
		}
		v := suites.Verify(dir, s, &r.Entries[i])
		bad += len(v.Problems)
		all = append(all, v)
	}
	if c.JSON {
		if err := printJSON(std.out, all); err != nil {
			return cannot(err)
		}
	} else {
		printVerified(std, all)
	}
	switch {
	case len(all) == 0:
		return cannot(errors.New("the result has no run yet"))
	case bad > 0:
		return failed(fmt.Errorf("%d %s: the result is not what its reels say", bad, lab.Plural(bad, "thing does not agree", "things do not agree")))
	}
	return nil
}

func printVerified(std *streams, all []suites.Verified) {
	to := terminal.New(std.out)
	list := terminal.Table{Head: []string{"entry", "reels", "numbers", "agrees"}}
	for _, v := range all {
		word, colour := "yes", terminal.Green
		if len(v.Problems) > 0 {
			word, colour = fmt.Sprintf("no: %s", terminal.Plain(lab.Clip(v.Problems[0], 160))), terminal.Red
		}
		list.Add(colour, v.Entry, fmt.Sprint(v.Reels), fmt.Sprint(v.Numbers), word)
	}
	list.Print(&to)
}

// withinFlag is the bound of an agreement.
type withinFlag struct {
	Within float64 `default:"1" placeholder:"PERCENT" help:"How far the geometric means may be apart (${default})."`
	JSON   bool    `name:"json" help:"Print what was found as JSON."`
}

// Validate checks what kong cannot.
func (f withinFlag) Validate() error {
	if !(f.Within > 0 && f.Within <= 100) {
		return fmt.Errorf("--within %v: a percentage, at most 100", f.Within)
	}
	return nil
}

// tell prints whether two results agree.
func (f withinFlag) tell(std *streams, earlier, later *suite.Result) error {
	all, different, err := suite.Agree(earlier, later, f.Within)
	if err != nil {
		return cannot(err)
	}
	if f.JSON {
		err := printJSON(std.out, struct {
			Browsers  []suite.Agreement `json:"browsers"`
			Different []string          `json:"different,omitempty"`
		}{all, different})
		if err != nil {
			return cannot(err)
		}
	} else {
		to := terminal.New(std.out)
		list := terminal.Table{Head: []string{"browser", "later ÷ earlier", "95 % interval", "agrees within", "finding"}}
		for _, a := range all {
			interval, bound := "–", "–"
			if a.Ratio.Confidence > 0 {
				interval, bound = fmt.Sprintf("%.4f … %.4f", a.Ratio.Low, a.Ratio.High), fmt.Sprintf("± %.1f %%", a.Bound)
			}
			list.Add("", terminal.Plain(a.Browser), fmt.Sprintf("%.4f", a.Ratio.Value), interval, bound, a.Words())
		}
		list.Print(&to)
		for _, d := range different {
			to.Line("Not alike: " + terminal.Plain(d))
		}
	}
	unknown := false
	for _, a := range all {
		switch a.Finding {
		case lab.Slower, lab.Faster:
			return failed(fmt.Errorf("%s: %s", a.Browser, a.Words()))
		case lab.Unknown:
			unknown = true
		}
	}
	if unknown {
		return &exitError{exitUnsure, fmt.Errorf("whether they agree within %g %% cannot be said with so few trials", f.Within)}
	}
	return nil
}

// SuiteCompareCmd compares two results.
type SuiteCompareCmd struct {
	Earlier string `arg:"" type:"path" help:"A result, or the folder that it is in."`
	Later   string `arg:"" type:"path" help:"Another of the same suite."`
	withinFlag
}

// Help is shown by appliance suite compare --help.
func (SuiteCompareCmd) Help() string {
	return `The status is 0 when the 95 % interval of each browser's ratio lies within the bound; 1 when one lies beyond it; 4 when there are too
few trials to say.`
}

// Run compares.
func (c *SuiteCompareCmd) Run(std *streams) error {
	earlier, err := suite.ReadResult(c.Earlier)
	if err != nil {
		return usage(err)
	}
	later, err := suite.ReadResult(c.Later)
	if err != nil {
		return usage(err)
	}
	return c.tell(std, earlier, later)
}

// SuiteRepeatCmd measures a suite again.
type SuiteRepeatCmd struct {
	File     string   `arg:"" type:"path" help:"A result, or the folder that it is in."`
	Out      string   `default:"out/suite-again" type:"path" placeholder:"DIR" help:"Folder for the new result (${default})."`
	Programs []string `name:"program" placeholder:"PATH" help:"A program that the result names by its path, and that may be started. Repeatable."`
	withinFlag
	suiteRunFlags
}

// Help is shown by appliance suite repeat --help.
func (SuiteRepeatCmd) Help() string {
	return `Runs the suite that the result holds, with the same browsers by name, trials and seed, on this machine, and compares the geometric
means as suite compare does. The same call goes on where it was cut off.

A result may come from somebody else. Unless its suite is one of this program, its plans name no program, file or device of this machine,
and reach private networks only with --allow-private. A suite that you trust runs by appliance suite run.

Example:
  appliance suite repeat out/suite/suite.json --within 1`
}

// Run repeats.
func (c *SuiteRepeatCmd) Run(ctx context.Context, std *streams) error {
	earlier, err := suite.ReadResult(c.File)
	if err != nil {
		return usage(err)
	}
	s, err := earlier.Source()
	if err != nil {
		return usage(err)
	}
	for _, b := range earlier.Browsers {
		if named := lab.BrowserNamed(b); named != nil && named.Command != "" && !slices.Contains(c.Programs, b) {
			return usage(fmt.Errorf("%s compares the program %s: a file from somebody else starts no program here by itself; add --program %s if it may",
				c.File, terminal.Plain(b), terminal.Plain(b)))
		}
	}
	if !s.IsShipped() {
		if err := suites.CheckStrange(s); err != nil {
			return usage(fmt.Errorf("%w; a suite that you trust runs by appliance suite run, and suite compare compares the results", err))
		}
		c.Strange = true
	}
	later := suite.New(s, versionLine(), earlier.Browsers, earlier.Trials, earlier.Seed, time.Now().UTC())
	if later, err = c.measure(ctx, std, s, later, c.Out, nil); err != nil {
		return err
	}
	if !c.JSON {
		found, err := foundIn(later)
		if err != nil {
			return err
		}
		if err := found.print(std, false); err != nil {
			return err
		}
	}
	return c.tell(std, earlier, later)
}
