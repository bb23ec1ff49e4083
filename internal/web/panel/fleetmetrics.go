package panel

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"eidetic/internal/keep/store"
)

// Bounds of what a box can make a scrape long by.
const (
	maxScrapedDevices = 64
	maxScrapedLevels  = 16 // of a device
)

// fleetDescs are the numbers of a fleet's head.
type fleetDescs struct{ boxes, seen, level, waiting *prometheus.Desc }

func newFleetDescs(desc func(name, help string, labels ...string) *prometheus.Desc) fleetDescs {
	return fleetDescs{
		boxes:   desc("boxes", "Boxes of the fleet, by state and health.", "state", "health"),
		seen:    desc("box_seen_timestamp_seconds", "When a box was last heard of, in seconds since 1970.", "box"),
		level:   desc("box_level_percent", "By how much the level of a device differs from its baseline.", "box", "device", "metric"),
		waiting: desc("queue_waiting", "Runs that wait, by priority: 1 is carried out first.", "priority"),
	}
}

func (d fleetDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{d.boxes, d.seen, d.level, d.waiting}
}

// collect reads the numbers of the head of a fleet. Their labels are the names of boxes that people let join, and
// of the devices and metrics of each, which are bounded.
func (p boxesFeature) collect(ctx context.Context, gauge setGauge) error {
	boxes, err := p.Boxes.List(ctx)
	if err != nil {
		return err
	}
	type kind struct{ state, health string }
	counts := map[kind]int{}
	for _, b := range boxes {
		counts[kind{b.State, b.Health}]++
	}
	for _, state := range boxStates() {
		for _, health := range boxHealths() {
			gauge(p.numbers.fleet.boxes, float64(counts[kind{state, health}]), state, health)
		}
	}
	seen := map[string]bool{} // Prometheus refuses a scrape in which a series is twice
	once := func(d *prometheus.Desc, v float64, labels ...string) {
		for i, l := range labels {
			labels[i] = strings.ToValidUTF8(l, "\ufffd")
		}
		if key := d.String() + strings.Join(labels, "\x00"); !seen[key] {
			seen[key] = true
			gauge(d, v, labels...)
		}
	}
	for _, b := range boxes {
		if !b.Seen.IsZero() {
			once(p.numbers.fleet.seen, float64(b.Seen.UnixMilli())/1e3, b.Name)
		}
		for _, d := range b.Devices[:min(len(b.Devices), maxScrapedDevices)] {
			for _, l := range d.Levels[:min(len(d.Levels), maxScrapedLevels)] {
				once(p.numbers.fleet.level, l.Percent, b.Name, d.Name, l.Metric)
			}
		}
	}
	return p.collectPriorities(ctx, gauge)
}

// mostUrgent and leastUrgent are the priorities that a plan can have, and usual is that of one that has none.
const (
	mostUrgent, leastUrgent = 1, 3
	usual                   = 2
)

func (p boxesFeature) collectPriorities(ctx context.Context, gauge setGauge) error {
	jobs, err := p.queue.List(ctx)
	if err != nil {
		return err
	}
	waiting := map[int]int{}
	for _, j := range jobs {
		if j.State != store.StateQueued {
			continue
		}
		priority := usual
		if j.Plan.On != nil {
			priority = cmp.Or(j.Plan.On.Priority, usual)
		}
		waiting[min(max(priority, mostUrgent), leastUrgent)]++
	}
	for priority := mostUrgent; priority <= leastUrgent; priority++ {
		gauge(p.numbers.fleet.waiting, float64(waiting[priority]), strconv.Itoa(priority))
	}
	return nil
}
