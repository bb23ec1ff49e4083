package main

import (
	"fmt"

	"eidetic/internal/lab"
	"eidetic/internal/tell/suite"
	"eidetic/internal/tell/terminal"
)

// SuiteReleasesCmd shows how a suite's geometric mean went on from release to release.
type SuiteReleasesCmd struct {
	Results []string `arg:"" name:"result" type:"path" help:"Results of one suite, or the folders that they are in."`
	JSON    bool     `name:"json" help:"Print the series as JSON."`
}

// Help is shown by appliance suite releases --help.
func (SuiteReleasesCmd) Help() string {
	return `Each browser of each result is a release. Those of one family are a series, in the order of their versions, and
those of one version in the order of time. Each is compared with the one before it by the ratio of the geometric means.
The findings are corrected by Holm's method.

The status is 1 when the newest release of a browser is slower than the one before it, 0 otherwise.

Example:
  appliance suite run --browser /opt/chromium-156/chromium --browser /opt/chromium-157/chromium --out out/suite-157
  appliance suite releases out/suite-*`
}

// Run compares.
func (c *SuiteReleasesCmd) Run(std *streams) error {
	var results []*suite.Result
	for _, file := range c.Results {
		r, err := suite.ReadResult(file)
		if err != nil {
			return usage(err)
		}
		results = append(results, r)
	}
	all, err := suite.Releases(results)
	if err != nil {
		return usage(err)
	}
	if c.JSON {
		if err := printJSON(std.out, all); err != nil {
			return cannot(err)
		}
	} else {
		to := terminal.New(std.out)
		list := terminal.Table{Head: []string{"release", "result of", "geometric mean", "times the one before", "95 % interval", "finding"}}
		for _, r := range all {
			cells, finding, colour := []string{"–", "–"}, "first", ""
			if r.Ratio != nil {
				cells, finding = terminal.RatioCells(r.Ratio), r.Ratio.Finding()
				colour = map[string]string{lab.Slower: terminal.Red, lab.Faster: terminal.Green}[finding]
			}
			name := r.Version
			if name == "" {
				name = r.Browser
			}
			list.Add(colour, append(append([]string{terminal.Plain(name), r.Begun.Format("2006-01-02 15:04"), fmt.Sprintf("%.1f", r.Score.Value)},
				cells...), finding)...)
		}
		list.Print(&to)
	}
	for i, r := range all {
		if newest := i == len(all)-1 || all[i+1].Family != r.Family; newest && r.Ratio.Finding() == lab.Slower {
			return failed(fmt.Errorf("%s is slower than the release before it", terminal.Plain(r.Version)))
		}
	}
	return nil
}
