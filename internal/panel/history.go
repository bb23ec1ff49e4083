package panel

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/history"
	"eidetic/internal/lab"
	"eidetic/internal/store"
)

// mostSeries bounds the series whose numbers are in one answer.
const mostSeries = 10

// Histories is the answer of /api/v1/history.
type Histories struct {
	Series  []SeriesHistory `json:"series" doc:"That of the newest run first"`
	LeftOut bool            `json:"left_out,omitempty" doc:"Whether more series match: ask for fewer by page, link, device or series"`
	// Needed goes with every history, so that a page can say it.
	Needed int     `json:"needed" doc:"Runs that a change point needs at least"`
	Level  float64 `json:"level" doc:"Largest p-value of a change point"`
}

// SeriesHistory is a series, and its numbers where the request says which series it wants.
type SeriesHistory struct {
	store.SeriesEntry
	Runs      []history.RunPoint  `json:"runs,omitempty" doc:"The newest runs, in order of time"`
	Metrics   []history.Metric    `json:"metrics,omitempty" doc:"Their medians, and the points at which the level changed"`
	Available []history.Available `json:"available,omitempty" doc:"Metrics that can be asked for"`
}

type (
	historyInput struct {
		Series string   `query:"series" pattern:"^[0-9a-f]{16}$" doc:"Key of a series"`
		Name   string   `query:"name" maxLength:"1000" doc:"Name of the runs" example:"checkout"`
		Page   string   `query:"page" maxLength:"8192" doc:"URL under test" example:"https://www.shop.example/"`
		Link   string   `query:"link" maxLength:"1000" doc:"Link of the control, as it was asked for" example:"4g"`
		Device string   `query:"device" maxLength:"1000" doc:"Name of the device"`
		Metric []string `query:"metric" maxItems:"8" doc:"Metrics, with commas between; without them the four that a verdict rests on" example:"speed_index_ms"`
		Limit  int      `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"Most runs of each series, the newest; of a list most series"`
	}
	historyBody struct{ Body Histories }
)

func (p *Panel) histories(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "history", Method: http.MethodGet, Path: "/api/v1/history", Summary: "How a page's numbers changed from run to run", Tags: []string{tagRuns},
		Description: "A series is the runs of one name on one page, link and device that are done. Without a name, page, link, device or series the answer lists the series that there are, without their numbers.",
		Security:    needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusUnprocessableEntity},
	}, p.history)
}

func (p *Panel) history(ctx context.Context, in *historyInput) (*historyBody, error) {
	want := store.Series{Name: in.Name, Page: in.Page, Link: in.Link, Device: in.Device}
	list := in.Series == "" && want == store.Series{}
	most := mostSeries
	if list {
		most = in.Limit
	}
	found, err := p.Store.Series(ctx, in.Series, want, most+1)
	if err != nil {
		return nil, p.ours(err)
	}
	if len(found) == 0 && !list {
		return nil, huma.Error404NotFound("no run that is done belongs to such a series; GET /api/v1/history lists those that there are")
	}
	body := Histories{Series: []SeriesHistory{}, LeftOut: len(found) > most, Needed: history.Needed(), Level: history.Level}
	for _, e := range found[:min(most, len(found))] {
		one := SeriesHistory{SeriesEntry: e}
		if !list {
			if err := p.fill(ctx, &one, in); err != nil {
				return nil, err
			}
		}
		body.Series = append(body.Series, one)
	}
	return &historyBody{body}, nil
}

// fill puts in the numbers of a series.
func (p *Panel) fill(ctx context.Context, s *SeriesHistory, in *historyInput) error {
	past, err := p.Store.Past(ctx, s.Key, in.Limit)
	if err != nil {
		return p.ours(err)
	}
	s.Runs, s.Available, s.Metrics = history.Runs(past), history.Metrics(past), []history.Metric{}
	names := in.Metric
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
		m, err := p.finder.Of(ctx, past, s.Runs, name)
		if err != nil {
			return p.ours(fmt.Errorf("history of series %s: %w", s.Key, err))
		}
		s.Metrics = append(s.Metrics, m)
	}
	return nil
}

// defaults are the guards, or what else there is where there is none of them.
func defaults(available []history.Available) []string {
	names := metricNames(available)
	guards := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return lab.GuardPlace(name) == len(lab.Guards()) })
	if len(guards) > 0 {
		return guards // in their order, as the metrics are
	}
	return names[:min(len(names), len(lab.Guards()))]
}

func metricNames(available []history.Available) []string {
	names := make([]string, len(available))
	for i, a := range available {
		names[i] = a.Metric
	}
	return names
}
