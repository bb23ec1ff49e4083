package panel

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/automation"
	"eidetic/internal/keep/store"
	"eidetic/internal/metric"
	"eidetic/internal/tell/history"
)

// Bounds of the series in one answer: with numbers, and with what is asked of their newest runs.
const (
	mostSeries = 10
	mostSteady = 100
)

// Histories is the response of /api/v1/history.
type Histories struct {
	Series  []SeriesHistory `json:"series" doc:"Series, the one of the newest run first"`
	LeftOut bool            `json:"left_out,omitempty" doc:"Whether more series match: narrow the request by page, link, device or series"`
	// Needed is part of every history, so that a page can show it.
	Needed int     `json:"needed" doc:"Fewest runs that can have a change point, in a series without comparisons"`
	Level  float64 `json:"level" doc:"Largest p-value of a change point, in a series without comparisons"`
}

// SeriesHistory is a series, with its numbers if the request selects series.
type SeriesHistory struct {
	store.SeriesEntry
	Steady    *history.Steady     `json:"steady,omitempty" doc:"How much its newest runs scatter, if the request of a list asks for it"`
	Runs      []history.RunPoint  `json:"runs,omitempty" doc:"The newest runs, in order of time"`
	Metrics   []history.Metric    `json:"metrics,omitempty" doc:"The numbers of the runs, and the points at which their level changed: each metric with its lines"`
	Lines     []string            `json:"lines,omitempty" enum:"control,treatment,difference" doc:"Lines that can be asked for"`
	Needed    int                 `json:"needed,omitempty" doc:"Fewest runs of this series that can have a change point"`
	Level     float64             `json:"level,omitempty" doc:"Largest p-value of a change point of this series"`
	Available []history.Available `json:"available,omitempty" doc:"Metrics that can be asked for"`
	Alerts    []automation.Alert  `json:"alerts,omitempty" doc:"The newest of its alerts that are open"`
}

type (
	historyInput struct {
		Steady  bool     `query:"steady" doc:"In a list, say of each series how much its newest 10 runs scatter: at most 100 series"`
		Series  string   `query:"series" pattern:"^[0-9a-f]{16}$" doc:"Key of a series"`
		Name    string   `query:"name" maxLength:"1000" doc:"Name of the runs" example:"checkout"`
		Page    string   `query:"page" maxLength:"8192" doc:"URL under test" example:"https://www.shop.example/"`
		Link    string   `query:"link" maxLength:"1000" doc:"Link of the control, as it was asked for" example:"4g"`
		Device  string   `query:"device" maxLength:"1000" doc:"Name of the device"`
		Browser string   `query:"browser" maxLength:"1000" doc:"Browser of the virtual device, if not Chromium as it is" example:"firefox-esr"`
		Metric  []string `query:"metric" maxItems:"8" doc:"Metrics, separated by commas; by default the four that decide a verdict" example:"speed_index_ms"`
		Line    []string `query:"line" maxItems:"3" enum:"control,treatment,difference" doc:"What is followed of each metric, separated by commas: the level of an arm, or treatment less control. Without it the control" example:"difference"`
		Limit   int      `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"Most runs of each series, the newest; in a list, most series"`
	}
	historyBody struct{ Body Histories }
)

func (p *Panel) histories(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "history", Method: http.MethodGet, Path: "/api/v1/history", Summary: "How a page's numbers changed from run to run",
		Tags:        []string{tagRuns},
		Description: "A series is the finished runs with the same name, page, link, device and browser. Without a name, page, link, device, browser or series in the request, the answer lists all series without their numbers.",
		Security:    needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusUnprocessableEntity},
	}, p.history)
}

func (p *Panel) history(ctx context.Context, in *historyInput) (*historyBody, error) {
	want := store.Series{Name: in.Name, Page: in.Page, Link: in.Link, Device: in.Device, Browser: in.Browser}
	list := in.Series == "" && want == store.Series{}
	most := mostSeries
	if list {
		most = in.Limit
		if in.Steady {
			most = min(most, mostSteady)
		}
	}
	found, err := p.Store.Series(ctx, in.Series, want, most+1)
	if err != nil {
		return nil, p.internalError(err)
	}
	if len(found) == 0 && !list {
		return nil, huma.Error404NotFound("no finished run belongs to such a series; GET /api/v1/history lists the series")
	}
	body := Histories{Series: []SeriesHistory{}, LeftOut: len(found) > most}
	body.Needed, body.Level = history.RuleOf(nil).Needed, history.Level
	for _, e := range found[:min(most, len(found))] {
		one := SeriesHistory{SeriesEntry: e}
		switch {
		case !list:
			if err := p.fill(ctx, &one, in); err != nil {
				return nil, err
			}
		case in.Steady:
			past, err := p.Store.Past(ctx, e.Key, history.SteadyRuns)
			if err != nil {
				return nil, p.internalError(err)
			}
			how := history.SteadyOf(past)
			one.Steady = &how
		}
		body.Series = append(body.Series, one)
	}
	return &historyBody{body}, nil
}

// fill adds the numbers of a series.
func (p *Panel) fill(ctx context.Context, s *SeriesHistory, in *historyInput) error {
	past, err := p.Store.Past(ctx, s.Key, in.Limit)
	if err != nil {
		return p.internalError(err)
	}
	if s.Alerts, err = p.alertsOf(ctx, s.Key); err != nil {
		return p.internalError(err)
	}
	s.Runs, s.Available, s.Metrics, s.Lines = history.Runs(past), history.Metrics(past), []history.Metric{}, history.LinesOf(past)
	s.Needed, s.Level = history.RuleOf(past).Needed, history.RuleOf(past).Level
	names, lines := in.Metric, in.Line
	if len(lines) == 0 {
		lines = history.Lines()[:1]
	}
	if len(names) == 0 {
		names = defaults(s.Available)
	}
	for i, name := range names {
		if !slices.ContainsFunc(s.Available, func(a history.Available) bool { return a.Metric == name }) {
			return huma.Error422UnprocessableEntity("the series "+s.Key+" has no such metric", &huma.ErrorDetail{
				Location: "query.metric", Value: name, Message: "there are: " + strings.Join(metricNames(s.Available), ", "),
			})
		}
		if slices.Contains(names[:i], name) {
			continue
		}
		for _, line := range history.Lines() {
			if !slices.Contains(lines, line) || !slices.Contains(s.Lines, line) {
				continue
			}
			m, err := p.finder.Of(ctx, past, s.Runs, name, line)
			if err != nil {
				return p.internalError(fmt.Errorf("history of series %s: %w", s.Key, err))
			}
			s.Metrics = append(s.Metrics, m)
		}
	}
	return nil
}

// defaults returns the guards that are available, or all metrics if no guard is.
func defaults(available []history.Available) []string {
	names := metricNames(available)
	guards := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return metric.GuardPlace(name) == len(metric.Guards()) })
	if len(guards) > 0 {
		return guards // metrics are sorted, guards first
	}
	return names[:min(len(names), len(metric.Guards()))]
}

func metricNames(available []history.Available) []string {
	names := make([]string, len(available))
	for i, a := range available {
		names[i] = a.Metric
	}
	return names
}
