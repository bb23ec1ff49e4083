package panel

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/metric"
)

// Registry is what is known of all metrics.
type Registry struct {
	Metrics []MetricEntry `json:"metrics" doc:"The metrics, the most telling first"`
}

// MetricEntry is what is known of a metric.
type MetricEntry metric.Entry

type registryBody struct{ Body Registry }

// registry registers the route that tells what is measured.
func (p *Panel) registry(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-metrics", Method: http.MethodGet, Path: "/api/v1/metrics",
		Summary: "What is measured: names, units, definitions", Tags: []string{tagRuns},
		Description: "One entry for each metric, as reports, histories and exports name it.",
		Security:    needsToken(), Errors: []int{http.StatusUnauthorized},
	}, p.listMetrics)
}

func (p *Panel) listMetrics(context.Context, *noInput) (*registryBody, error) {
	var body registryBody
	for _, m := range metric.All() {
		body.Body.Metrics = append(body.Body.Metrics, MetricEntry(m.Entry()))
	}
	return &body, nil
}
