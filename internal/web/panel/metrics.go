package panel

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"eidetic/internal/box/automation"
	"eidetic/internal/keep/store"
)

// metrics registers the numbers of the box for Prometheus. Their labels are states and names of
// parts, which are few, and on the head of a fleet of its boxes: nothing is counted by page, run or token.
func (p *Panel) metrics(e *echo.Echo, api huma.API) {
	p.numbers = newBoxCollector(p)
	p.scraped["runs"], p.scraped["queue"] = p.numbers.collectRuns, p.numbers.collectQueue
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), p.numbers)
	serve := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: promLog{p}, MaxRequestsInFlight: 4, EnableOpenMetrics: true,
	})
	p.raw(e, api, &huma.Operation{
		OperationID: "metrics", Method: http.MethodGet, Path: "/metrics", Summary: "Numbers for Prometheus", Tags: []string{tagSystem},
		Description: "Prometheus's text format, or OpenMetrics where the client asks for it.",
		Responses: map[string]*huma.Response{"200": {Description: "The numbers",
			Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}},
	}, echo.WrapHandler(serve))
}

// promLog passes the errors of a scrape to the log.
type promLog struct{ p *Panel }

// Println implements promhttp.Logger.
func (l promLog) Println(v ...any) { l.p.Log.Warn("panel: metrics", "err", v) }

// scrapeLimit is how long a scrape may take: a disk that hangs must not hold scrapes for ever.
const scrapeLimit = 5 * time.Second

// boxCollector reads what the panel knows when it is scraped.
type boxCollector struct {
	p                                                 *Panel
	build, runs, trials, waiting, running, free, size *prometheus.Desc
	deliveries, alerts, part, failed, warnings        *prometheus.Desc
	fleet                                             fleetDescs
}

func newBoxCollector(p *Panel) *boxCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("eidetic_"+name, help, labels, nil)
	}
	return &boxCollector{
		p:          p,
		build:      desc("build_info", "Always 1; the version of the appliance is a label.", "version"),
		runs:       desc("runs", "Runs that are kept, by state.", "state"),
		trials:     desc("trials", "Trials of the runs that are kept, by whether they entered the statistics.", "valid"),
		waiting:    desc("queue_length", "Runs that wait for their device."),
		running:    desc("queue_running", "Runs of the queue that are in progress."),
		free:       desc("disk_free_bytes", "Room on the disk of the data folder."),
		size:       desc("disk_size_bytes", "Size of the disk of the data folder."),
		deliveries: desc("webhook_deliveries", "Deliveries to webhooks that are kept, by state.", "state"),
		alerts:     desc("alerts_open", "Alerts that nobody has acknowledged."),
		part:       desc("part_up", "Whether a watched part of the service gave a sign of life in time.", "part"),
		warnings:   desc("warnings", "Problems that somebody should mend, as in health."),
		failed:     desc("scrape_failed", "Whether a part of these numbers could not be read.", "part"),
		fleet:      newFleetDescs(desc),
	}
}

// Describe implements prometheus.Collector.
func (c *boxCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range append(c.fleet.all(), c.build, c.runs, c.trials, c.waiting, c.running, c.free, c.size, c.deliveries, c.alerts, c.part,
		c.warnings, c.failed) {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *boxCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(c.build, 1, c.p.Version)
	for part, collect := range c.p.scraped {
		failed := 0.0
		if err := collect(ctx, gauge); err != nil {
			c.p.Log.Warn("panel: metrics", "part", part, "err", err)
			failed = 1
		}
		gauge(c.failed, failed, part)
	}
	health, _ := c.p.health(ctx, nil) // it never fails
	gauge(c.warnings, float64(len(health.Body.Warnings)))
	for _, part := range health.Body.Parts {
		up := 0.0
		if part.OK {
			up = 1
		}
		gauge(c.part, up, part.Name)
	}
}

// setGauge sets a number, and collect reads some of them.
type (
	setGauge = func(*prometheus.Desc, float64, ...string)
	collect  = func(context.Context, setGauge) error
)

func (c *boxCollector) collectRuns(ctx context.Context, gauge setGauge) error {
	all, err := c.p.Store.Totals(ctx)
	if err != nil {
		return err
	}
	for _, state := range []string{store.StateRunning, store.StateDone, store.StateFailed, store.StateInterrupted} {
		gauge(c.runs, float64(all.Runs[state]), state)
	}
	gauge(c.trials, float64(all.Valid), "true")
	gauge(c.trials, float64(all.Trials-all.Valid), "false")
	return nil
}

func (c *boxCollector) collectQueue(ctx context.Context, gauge setGauge) error {
	jobs, err := c.p.queue.List(ctx)
	if err != nil {
		return err
	}
	states := map[string]int{}
	for _, j := range jobs {
		states[j.State]++
	}
	gauge(c.waiting, float64(states[store.StateQueued]))
	gauge(c.running, float64(states[store.StateRunning]))
	return nil
}

// WithDisk tells Prometheus of the room and the size of the data folder's disk.
func WithDisk(room func() (free, size int64, err error)) Module {
	return func(p *Panel) {
		p.scraped["disk"] = func(_ context.Context, gauge setGauge) error {
			free, size, err := room()
			if err == nil {
				gauge(p.numbers.free, float64(free))
				gauge(p.numbers.size, float64(size))
			}
			return err
		}
	}
}

func (p automationFeature) collect(ctx context.Context, gauge setGauge) error {
	counts, err := p.Automation.DeliveryCounts(ctx)
	if err != nil {
		return err
	}
	for state, n := range counts {
		gauge(p.numbers.deliveries, float64(n), state)
	}
	open, err := p.Automation.Alerts(ctx, automation.Filter{Open: true, Limit: 1000})
	gauge(p.numbers.alerts, float64(len(open)))
	return err
}
