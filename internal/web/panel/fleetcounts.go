package panel

import (
	"context"
	"sync"
	"time"
)

// FleetHealth counts the boxes of a fleet by their states.
type FleetHealth struct {
	Idle     int `json:"idle" doc:"Boxes that wait for work"`
	Reserved int `json:"reserved" doc:"Boxes whose devices are busy with runs of their own"`
	Running  int `json:"running" doc:"Boxes that carry out runs of the fleet"`
	Lost     int `json:"lost" doc:"Boxes of which nothing was heard for a while"`
}

const (
	countsFor   = 2 * time.Second // how old the counts may be: anybody may ask for the health
	countsLimit = 3 * time.Second // how long a database may take to answer
)

// fleetCounts keeps the counts for a moment.
type fleetCounts struct {
	mu       sync.Mutex
	at       time.Time
	counts   FleetHealth
	warnings []string
}

// health counts the boxes, or says why they cannot be counted.
func (f *fleetCounts) health(ctx context.Context, boxes Boxes) (*FleetHealth, []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() || time.Since(f.at) >= countsFor {
		// Whoever asks may hang up: the next one wants the answer, too.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countsLimit)
		defer cancel()
		all, err := boxes.List(ctx)
		f.at, f.counts, f.warnings = time.Now(), FleetHealth{}, nil
		if err != nil {
			f.warnings = []string{"the boxes of the fleet cannot be listed: the log says why"}
		}
		for _, b := range all {
			f.counts.add(b.State)
		}
	}
	counts := f.counts
	return &counts, f.warnings
}

func (h *FleetHealth) add(state string) {
	switch state {
	case "idle":
		h.Idle++
	case "reserved":
		h.Reserved++
	case "running":
		h.Running++
	default:
		h.Lost++
	}
}
