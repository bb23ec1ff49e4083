package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"eidetic/internal/fleet"
)

// Wait says what is known of a part that waits, and of others of its run with the same need.
type Wait struct {
	Run   string
	Parts int // of the run that wait as this one does
	// Before counts the parts that come first on a device that this one may get; above MostBefore it is MostBefore+1.
	Before int
	Places []Place // all devices of the fleet, by box
	Back   *Back   // how it was given back last; nil if it never was
}

// MostBefore is up to which parts before another one are counted.
const MostBefore = 1000

// mostWaits bounds the parts that [Ledger.Waits] reads.
const mostWaits = 5000

// Place is a device of the fleet, as a part that waits finds it.
type Place struct {
	Box    Box
	Device string // "" for a box without devices
	State  PlaceState
	Lacks  []string // Lacking: what of the need
	Why    string   // NotReady: what the box says; Busy: the run, or "" for one of the box's own
}

// PlaceState says why a part is not on a device.
type PlaceState int

// The states of places. A part goes to one that is free, else to one that gets free; one that gave it back gets it only if there is
// neither.
const (
	Free PlaceState = iota
	Busy
	GaveBack
	NotReady
	Reserved // its box is bad or in maintenance
	Silent
	Lacking
)

// Back is how a part was given back.
type Back struct{ Box, Device, Why string }

// place says what a part of a queue finds on a device. silent is since when a box must have been seen; running are the runs of
// devices that carry a part out.
func (w waiting) place(b Box, d fleet.OfferedDevice, silent time.Time, running map[bar]string) Place {
	p := Place{Box: b, Device: d.Name, Lacks: w.need.Lacks(b.Name, b.Offer, d)}
	run, busy := running[bar{b.ID, d.Name}]
	switch {
	case len(p.Lacks) > 0:
		p.State = Lacking
	case b.Seen.Before(silent):
		p.State = Silent
	case b.IsReserved() && !w.need.Reference:
		p.State = Reserved
	case !d.Ready:
		p.State, p.Why = NotReady, d.Problem
	case slices.Contains(w.bars, bar{b.ID, d.Name}):
		p.State = GaveBack
	case busy || d.Busy:
		p.State, p.Why = Busy, run
	}
	return p
}

// places lists all devices of boxes.
func (w waiting) places(boxes []Box, silent time.Time, running map[bar]string) (all []Place) {
	for _, b := range boxes {
		for _, d := range b.Offer.Devices {
			all = append(all, w.place(b, d, silent, running))
		}
		if len(b.Offer.Devices) == 0 {
			all = append(all, Place{Box: b, State: Lacking, Lacks: []string{"a device"}})
		}
	}
	return all
}

// isOpen says whether a part gets the device, sooner or later.
func (p Place) isOpen() bool { return p.State == Free || p.State == Busy }

// Waits says of runs why parts of them wait, by run and then by part. Boxes that were not seen for a while count as silent. Runs of
// which nothing waits are left out.
func (l *Ledger) Waits(ctx context.Context, silent time.Duration, runs ...string) ([]Wait, error) {
	all, err := l.waits(ctx, l.now().Add(-silent), runs)
	return all, named("find out why parts wait", err)
}

func (l *Ledger) waits(ctx context.Context, silent time.Time, runs []string) (all []Wait, err error) {
	if len(runs) == 0 {
		return nil, nil
	}
	q := l.reader()
	first, err := q.waitingParts(ctx, runs)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	boxes, err := q.boxes(ctx)
	if err != nil {
		return nil, err
	}
	running, err := q.running(ctx)
	if err != nil {
		return nil, err
	}
	queues := map[string]waiting{}
	if err := l.firsts(ctx, q, func(c candidate, w waiting) { queues[c.queue] = w }); err != nil {
		return nil, err
	}
	places, rivals := map[string][]Place{}, map[string][]string{}
	for _, p := range first {
		w, ok := queues[p.queue]
		if !ok {
			continue // a box has taken it meanwhile
		}
		if _, ok := places[p.queue]; !ok {
			places[p.queue] = w.places(boxes, silent, running)
			rivals[p.queue] = rivalsOf(places[p.queue], queues)
		}
		one := Wait{Run: p.run, Parts: p.parts, Places: places[p.queue]}
		if one.Before, err = q.before(ctx, p, rivals[p.queue]); err != nil {
			return nil, err
		}
		if one.Back, err = q.back(ctx, p.id); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// waitingPart is the first part of a run in a queue, and how many there are.
type waitingPart struct {
	id, run, queue     string
	priority, tag, job int64
	parts              int
}

func (q querier) waitingParts(ctx context.Context, runs []string) (all []waitingPart, err error) {
	args := make([]any, 0, len(runs)+1)
	for _, run := range runs {
		args = append(args, run)
	}
	err = q.each(ctx, func(scan func(...any) error) error {
		var p waitingPart
		if err := scan(&p.id, &p.run, &p.queue, &p.priority, &p.tag, &p.job); err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(o waitingPart) bool { return o.run == p.run && o.queue == p.queue })
		if i < 0 {
			i, all = len(all), append(all, p)
		}
		all[i].parts++
		return nil
	}, `SELECT id, run, queue, priority, tag, job FROM fleet_parts WHERE run IN (?`+strings.Repeat(", ?", len(runs)-1)+`) AND state = 'queued'
		ORDER BY run, priority, tag, job LIMIT ?`, append(args, mostWaits)...)
	return all, err
}

// running maps devices to the runs of which they carry out a part.
func (q querier) running(ctx context.Context) (map[bar]string, error) {
	all := map[bar]string{}
	return all, q.each(ctx, func(scan func(...any) error) error {
		var on bar
		var run string
		err := scan(&on.Box, &on.Device, &run)
		all[on] = run
		return err
	}, `SELECT a.box, a.device, p.run FROM fleet_attempts a JOIN fleet_parts p ON p.id = a.part WHERE a.state = 'live'`)
}

// rivalsOf lists the queues whose parts may get one of the devices that a part waits for.
func rivalsOf(places []Place, queues map[string]waiting) []string {
	open := slices.DeleteFunc(slices.Clone(places), func(p Place) bool { return !p.isOpen() })
	return slices.DeleteFunc(slices.Collect(maps.Keys(queues)), func(queue string) bool {
		return !slices.ContainsFunc(open, func(p Place) bool { return queues[queue].wants(p) })
	})
}

// wants says whether a device could carry out parts of the queue.
func (w waiting) wants(p Place) bool {
	return slices.ContainsFunc(p.Box.Offer.Devices, func(d fleet.OfferedDevice) bool {
		return d.Name == p.Device && len(w.need.Lacks(p.Box.Name, p.Box.Offer, d)) == 0
	}) && !slices.Contains(w.bars, bar{p.Box.ID, p.Device})
}

// before counts the parts of some queues that come before a part.
func (q querier) before(ctx context.Context, p waitingPart, queues []string) (n int, err error) {
	if len(queues) == 0 {
		return 0, nil
	}
	args := make([]any, 0, len(queues)+4)
	for _, queue := range queues {
		args = append(args, queue)
	}
	err = q.row(ctx, `SELECT count(*) FROM (SELECT 1 FROM fleet_parts WHERE queue IN (?`+strings.Repeat(", ?", len(queues)-1)+`)
		AND state = 'queued' AND (priority, tag, job) < (?, ?, ?) LIMIT ?) AS earlier`, append(args, p.priority, p.tag, p.job, MostBefore+1)...).Scan(&n)
	return n, err
}

// back reads how a part was given back last.
func (q querier) back(ctx context.Context, part string) (*Back, error) {
	var one Back
	err := q.row(ctx, `SELECT b.name, a.device, a.why FROM fleet_attempts a JOIN fleet_boxes b ON b.id = a.box
		WHERE a.part = ? AND a.state IN ('returned', 'vanished') ORDER BY a.attempt DESC LIMIT 1`, part).Scan(&one.Box, &one.Device, &one.Why)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("part %s: %w", part, err)
	}
	return &one, nil
}
