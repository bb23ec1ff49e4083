package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/lab"
	"eidetic/internal/tell/history"
	"eidetic/internal/tell/terminal"
)

// HistoryCmd shows how the numbers of a page changed from run to run.
type HistoryCmd struct {
	Series string `placeholder:"KEY" help:"Key of a series, from the list."`
	Name   string `placeholder:"NAME" help:"Name of the runs."`
	Page   string `placeholder:"URL" help:"Page under test."`
	Metric string `default:"speed_index_ms" placeholder:"METRIC" help:"The number that is shown (${default})."`
	Line   string `default:"control" enum:"control,treatment,difference" placeholder:"LINE" help:"What is followed: control, treatment, or difference (treatment less control)."`
	Limit  int    `default:"30" placeholder:"N" help:"At most so many runs of each series, the newest (${default})."`
	Steady bool   `help:"In the list: how much the newest 10 runs of each series scatter, the least steady first."`
	JSON   bool   `name:"json" help:"Print the answer of the box as JSON."`
	boxFlags
}

// Help is shown by appliance history --help.
func (HistoryCmd) Help() string {
	return `Runs of one name, page, link, device and browser are a series. Without --series, --name or --page the series are listed. With one of these,
the numbers of each run and the places where their level changed are printed: of the control, of the treatment, or of their difference.

Example:
  appliance history --box https://box.local:8080
  appliance history --steady                  # which page is flaky?
  appliance history --name checkout --line difference`
}

// Run implements the command.
func (c *HistoryCmd) Run(ctx context.Context, std *streams) error {
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	list := c.Series == "" && c.Name == "" && c.Page == ""
	if c.Steady && !list {
		return usage(errors.New("--steady is of the list: leave out --series, --name and --page"))
	}
	if list {
		query.Set("limit", "500")
		if c.Steady {
			query.Set("steady", "true")
		}
	} else {
		query.Set("metric", c.Metric)
		query.Set("line", c.Line)
	}
	for name, value := range map[string]string{"series": c.Series, "name": c.Name, "page": c.Page} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return show(&c.boxFlags, std, c.JSON, func(box *client.Client) (client.History, error) {
		return box.History(ctx, query)
	}, func(found client.History) error {
		switch {
		case c.Steady:
			return printSteady(std.out, found)
		case list:
			return printSeries(std.out, found)
		}
		for i, s := range found.Series {
			if i > 0 {
				fmt.Fprintln(std.out)
			}
			if err := printHistory(std.out, s, c.Line); err != nil {
				return err
			}
		}
		return nil
	})
}

// printSeries prints the list of all series.
func printSeries(out io.Writer, all client.History) error {
	if len(all.Series) == 0 {
		_, err := fmt.Fprintln(out, "No run is done yet.")
		return err
	}
	rows := [][]string{{"SERIES", "NAME", "RUNS", "LAST", "LINK", "DEVICE", "BROWSER", "PAGE"}}
	for _, s := range all.Series {
		rows = append(rows, []string{s.Key, s.Name, strconv.Itoa(s.Count), terminal.Clock(s.Last), s.Link, s.Device, s.Browser, s.Page})
	}
	return terminal.Rows(out, rows)
}

// printSteady prints how much the runs of each series scatter, most first.
func printSteady(out io.Writer, all client.History) error {
	if len(all.Series) == 0 {
		_, err := fmt.Fprintln(out, "No run is done yet.")
		return err
	}
	percent := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return strconv.FormatFloat(*v, 'f', 1, 64)
	}
	rows := [][]string{{"SERIES", "RUNS", "LEFT OUT %", "WITHIN %", "BETWEEN %", "OF", "NAME", "LINK", "DEVICE", "BROWSER", "PAGE"}}
	most := func(a, b client.SeriesHistory) int { return cmp.Compare(scatter(b), scatter(a)) }
	for _, s := range slices.SortedStableFunc(slices.Values(all.Series), most) {
		rows = append(rows, []string{s.Key, strconv.Itoa(s.Steady.Runs), percent(&s.Steady.LeftOut), percent(s.Steady.Within),
			percent(s.Steady.Between), s.Steady.Label, s.Name, s.Link, s.Device, s.Browser, s.Page})
	}
	if err := terminal.Rows(out, rows); err != nil || !all.LeftOut {
		return err
	}
	_, err := fmt.Fprintln(out, "There are more series: these are those of the newest runs.")
	return err
}

// scatter is what series are ordered by: the largest of their spreads and the share of trials that was left out.
func scatter(s client.SeriesHistory) float64 {
	worst := s.Steady.LeftOut
	for _, v := range []*float64{s.Steady.Within, s.Steady.Between} {
		if v != nil {
			worst = max(worst, *v)
		}
	}
	return worst
}

// printHistory prints a line of a series.
func printHistory(out io.Writer, s client.SeriesHistory, line string) error {
	fmt.Fprintf(out, "%s  %s  %s\n", terminal.Plain(s.Key), terminal.Plain(s.Name), terminal.Plain(s.Page))
	for _, m := range s.Metrics {
		steps := map[string]string{}
		for _, step := range m.Steps {
			steps[step.Run] = step.Text
			fmt.Fprintln(out, terminal.Plain(step.Text))
		}
		fmt.Fprintf(out, "%s: %s\n", terminal.Plain(m.Label), terminal.Plain(m.Text))
		head, number := "MEDIAN", func(v float64) string { return lab.Millis(v) }
		if line == history.Difference {
			head, number = "DIFFERENCE", func(v float64) string { return lab.Signed(v, 1) }
		}
		rows := [][]string{{"RUN", "N", head, "95 % INTERVAL", "UNIT", "STEP"}}
		for _, v := range m.Values {
			mark := ""
			if steps[v.Run] != "" {
				mark = "◆"
			}
			rows = append(rows, []string{v.Run, strconv.Itoa(v.N), number(v.Median), number(v.Low) + " … " + number(v.High), m.Unit, mark})
		}
		if err := terminal.Rows(out, rows); err != nil {
			return err
		}
	}
	if len(s.Metrics) == 0 {
		fmt.Fprintf(out, "These runs have no %s: each has one arm.\n", line)
	}
	return nil
}
