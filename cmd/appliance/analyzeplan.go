package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"eidetic/internal/keep/store"
	"eidetic/internal/metric"
	"eidetic/internal/plan"
	"eidetic/internal/run/execute"
	"eidetic/internal/tell/terminal"
	"eidetic/netlab/link"
)

// rescore judges the steps of an earlier run again.
func (c *AnalyzeCmd) rescore(std *streams) error {
	if c.File == "" {
		return usage(errors.New("--plan: name the folder of a run, such as out/run/runs/ID"))
	}
	q, err := plan.ReadFile(c.Plan)
	if err != nil {
		return usage(fmt.Errorf("--plan: %w", err))
	}
	run, err := store.ReadRun(c.File)
	if err != nil {
		return usage(fmt.Errorf("%s is no folder of a run: %w", c.File, err))
	}
	// Pictures are looked for beside the plan, and then in the run's own folder.
	asked, err := plan.Check(q, plan.Options{Scope: plan.ScopePerson, Traces: link.OpenFile, From: &plan.Folder{Path: filepath.Dir(c.Plan)}})
	if err != nil {
		var kept error
		from := &plan.Folder{Path: filepath.Join(c.File, execute.FilesFolder)}
		if asked, kept = plan.Check(q, plan.Options{Scope: plan.ScopePerson, Traces: link.OpenFile, From: from}); kept != nil {
			return usage(q.Locate(err))
		}
	}
	if len(q.Steps) == 0 && !run.Plan.Compares() {
		return usage(fmt.Errorf("--plan %s: it has no steps, and the run compares nothing: there is nothing to judge again", c.Plan))
	}
	var all []execute.Rescored
	if len(q.Steps) > 0 {
		all = execute.Rescore(run, c.File, asked)
	}
	judged := execute.Rejudge(run, all, asked)
	if c.JSON && len(q.Steps) == 0 {
		return printJSON(std.out, judged)
	}
	if c.JSON {
		return printJSON(std.out, all)
	}
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	if len(all) > 0 {
		fmt.Fprintln(table, "trial\tarm\tstep\tend\ttime to end\tbefore\tlast picture\t")
	}
	for _, r := range all {
		if r.Error != "" {
			fmt.Fprintf(table, "%d\t%s\t\t%s\t\t\t\t\n", r.Trial, r.Arm, terminal.Plain(r.Error))
			continue
		}
		for _, s := range r.Steps {
			if s.Expect == "" {
				continue
			}
			end := s.Expect
			if slices.Contains(r.Changed, s.Name) {
				end += " (changed)"
			}
			if len(s.Invalid) > 0 {
				end += ": " + strings.Join(s.Invalid, "; ")
			}
			name := metric.TimeToEnd.OfStep(s.Name)
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%.1f ms\t%.1f ms\t%.12s\t\n", r.Trial, r.Arm, terminal.Plain(s.Name), terminal.Plain(end),
				r.Metrics[name], r.Before[name], s.FinalFrame)
		}
	}
	if err := table.Flush(); err != nil || judged == nil {
		return err
	}
	to := terminal.New(std.out)
	terminal.Headline(&to, judged.Verdict, judged.Headline, judged.Detail)
	terminal.Effects(&to, judged, "control", "treatment", "with --json")
	return nil
}
