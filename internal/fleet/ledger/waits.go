package ledger

import (
	"context"
	"maps"
	"slices"
	"time"

	"eidetic/internal/fleet"
)

// Wait says what is known of a part that waits, and of others of its run with the same need.
type Wait struct {
	Run   string
	Parts int // of the run that wait as this one does
	Need  fleet.Need
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
	Box    *Box
	Device fleet.OfferedDevice // without a name for a box without devices, which is Lacking
	State  PlaceState
	Run    string // Busy: the run of the fleet that it carries out; "" for one of the box's own
}

// PlaceState says why a part is not on a device.
type PlaceState int

// The states of places. A part goes to one that is free, else to one that gets free; one that gave it back gets it only
// if there is neither.
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

// stateOf says what a part of a queue finds on a device, whether that carries something out or not: claims and the
// words for people rest on it. silent is since when a box must have been seen.
func (w waiting) stateOf(b *Box, d fleet.OfferedDevice, silent time.Time) PlaceState {
	switch {
	case !w.need.FitsDevice(b.Name, b.Offer, d):
		return Lacking
	case b.Seen.Before(silent):
		return Silent
	case b.IsReserved() && !w.need.Reference:
		return Reserved
	case !d.Ready:
		return NotReady
	case slices.Contains(w.bars, bar{b.ID, d.Name}):
		return GaveBack
	}
	return Free
}

// places lists all devices of boxes. running are the runs that devices carry out.
func (w waiting) places(boxes []Box, silent time.Time, running map[bar]string) (all []Place) {
	for i := range boxes {
		b := &boxes[i]
		for _, d := range b.Offer.Devices {
			p := Place{Box: b, Device: d, State: w.stateOf(b, d, silent)}
			if run, busy := running[bar{b.ID, d.Name}]; p.State == Free && (busy || d.Busy) {
				p.State, p.Run = Busy, run
			}
			all = append(all, p)
		}
		if len(b.Offer.Devices) == 0 {
			all = append(all, Place{Box: b, State: Lacking})
		}
	}
	return all
}

// Places lists the devices of boxes as a part with a need would find them that nobody gave back.
func Places(need fleet.Need, boxes []Box) []Place {
	return waiting{need: need}.places(boxes, time.Time{}, nil)
}

// isOpen says whether a part gets the device, sooner or later.
func (p Place) isOpen() bool { return p.State == Free || p.State == Busy }

// Waits says of runs why parts of them wait, by run and then by part. Boxes that were not seen for a while count as
// silent. Runs of which nothing waits are left out.
func (l *Ledger) Waits(ctx context.Context, silent time.Duration, runs ...string) ([]Wait, error) {
	all, err := l.waits(ctx, l.now().Add(-silent), runs)
	return all, named("find out why parts wait", err)
}

func (l *Ledger) waits(ctx context.Context, silent time.Time, runs []string) (all []Wait, err error) {
	q := l.reader()
	first, err := q.waitingParts(ctx, runs)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	boxes, err := q.boxes(ctx)
	if err != nil {
		return nil, err
	}
	under, err := q.underWay(ctx)
	if err != nil {
		return nil, err
	}
	running := map[bar]string{}
	for _, u := range under {
		running[bar{u.BoxID, u.Device}] = u.Run
	}
	queues, err := l.queues(ctx, q)
	if err != nil {
		return nil, err
	}
	back, err := q.backs(ctx, first)
	if err != nil {
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
		one := Wait{Run: p.run, Parts: p.parts, Need: w.need, Places: places[p.queue], Back: back[p.id]}
		if one.Before, err = q.before(ctx, p, rivals[p.queue]); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// waitingPart is the first part of a run in a queue, and how many there are.
type waitingPart struct {
	id, run, queue string
	place          place
	parts          int
}

func (q querier) waitingParts(ctx context.Context, runs []string) (all []waitingPart, err error) {
	if len(runs) == 0 {
		return nil, nil
	}
	in, args := anyOf(runs)
	err = q.each(ctx, func(scan func(...any) error) error {
		var p waitingPart
		if err := scan(&p.id, &p.run, &p.queue, &p.place.priority, &p.place.tag, &p.place.n); err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(o waitingPart) bool { return o.run == p.run && o.queue == p.queue })
		if i < 0 {
			i, all = len(all), append(all, p)
		}
		all[i].parts++
		return nil
	}, `SELECT id, run, queue, priority, tag, n FROM fleet_parts WHERE run IN `+in+` AND state = 'queued'
		ORDER BY run, priority, tag, n LIMIT ?`, append(args, mostWaits)...)
	return all, err
}

// rivalsOf lists the queues whose parts may get one of the devices that a part waits for.
func rivalsOf(places []Place, queues map[string]waiting) []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(queues)), func(queue string) bool {
		w := queues[queue]
		return !slices.ContainsFunc(places, func(p Place) bool { return p.isOpen() && w.stateOf(p.Box, p.Device, time.Time{}) == Free })
	})
}

// before counts the parts of some queues that come before a part.
func (q querier) before(ctx context.Context, p waitingPart, queues []string) (n int, err error) {
	if len(queues) == 0 {
		return 0, nil
	}
	in, args := anyOf(queues)
	err = q.row(ctx, `SELECT count(*) FROM (SELECT 1 FROM fleet_parts WHERE queue IN `+in+`
		AND state = 'queued' AND (priority, tag, n) < (?, ?, ?) LIMIT ?) AS earlier`, append(args, p.place.priority, p.place.tag, p.place.n, MostBefore+1)...).Scan(&n)
	return n, err
}

// backs says how parts were given back last; those that never were are left out.
func (q querier) backs(ctx context.Context, parts []waitingPart) (map[string]*Back, error) {
	ids := make([]string, 0, len(parts))
	for _, p := range parts {
		ids = append(ids, p.id)
	}
	in, args := anyOf(ids)
	all := map[string]*Back{}
	return all, q.each(ctx, func(scan func(...any) error) error {
		var part string
		var one Back
		err := scan(&part, &one.Box, &one.Device, &one.Why)
		all[part] = &one
		return err
	}, `SELECT a.part, b.name, a.device, a.why FROM fleet_attempts a JOIN fleet_boxes b ON b.id = a.box
		WHERE a.part IN `+in+` AND a.state IN ('returned', 'vanished') ORDER BY a.part, a.attempt`, args...)
}
