package ledger

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"eidetic/internal/fleet"
)

// Claim is a box's wish for a part.
type Claim struct {
	BoxID string
	// Request is the box's name for this claim. The same name again is answered with the same assignment while its
	// lease lives, and with ErrNothing once the box has ended or returned that part. A box chooses a new name when it
	// has been given a part.
	Request string
	Free    []string // devices without a run
}

// Bounds of a claim.
const (
	maxRequest = 200
	mostLooks  = 64 // queues that a claim takes from before it gives up
	seenIdle   = time.Minute
	unseen     = 10 // leases after which a silent box counts as gone
)

// waiting is what the parts of a queue need.
type waiting struct {
	need fleet.Need
	bars []bar
}

// bar is a device that gave a part back.
type bar struct{ Box, Device string }

// candidate is a queue from which a box could take.
type candidate struct {
	queue   string
	first   place // of its first part
	devices []string
	// reference says that boxes get it, too, that get no other runs.
	reference bool
}

// place is where a part stands in the order of all that wait.
type place struct{ priority, tag, n int64 }

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.priority, o.priority), cmp.Compare(p.tag, o.tag), cmp.Compare(p.n, o.n))
}

// IsReserved says whether a box gets no runs but those of the reference.
func (b Box) IsReserved() bool {
	return b.Health == fleet.HealthBad || b.Health == fleet.HealthMaintenance
}

// Claim gives a box the first part that one of its free devices can carry out: by priority, then in turns between
// series. It returns ErrNothing if there is none. One look at the first part of each queue that fits decides; parts
// behind it are not read.
func (l *Ledger) Claim(ctx context.Context, c Claim) (fleet.Assignment, error) {
	if len(c.Request) > maxRequest || len(c.Free) > fleet.MaxDevices {
		return fleet.Assignment{}, fmt.Errorf("%w: the claim's name has more than %d bytes, or it has more than %d devices", errInvalid, maxRequest, fleet.MaxDevices)
	}
	c.Request = cmp.Or(c.Request, rand.Text())
	all, err := l.look(ctx, c)
	if err != nil {
		return fleet.Assignment{}, named("claim", err)
	}
	var a fleet.Assignment
	err = l.update(ctx, "claim", func(tx *tx) error {
		b, err := tx.holdBox(ctx, c.BoxID)
		if err != nil {
			return err
		}
		if a, err = l.repeat(ctx, tx, c); err != nil || a.Part != "" {
			return err
		}
		a, err = l.take(ctx, tx, b, c, all)
		return err
	})
	if err != nil {
		return fleet.Assignment{}, err
	}
	return a, nil
}

// Queue is what the parts of one queue need, of which the first is First.
type Queue struct {
	Name  string
	Need  fleet.Need
	First int64
}

// Waiting lists the queues in which parts wait.
func (l *Ledger) Waiting(ctx context.Context) (all []Queue, err error) {
	q := l.reader()
	queues, err := l.queues(ctx, q)
	if err != nil {
		return nil, named("list queues", err)
	}
	firsts, err := q.firsts(ctx, slices.Collect(maps.Keys(queues)))
	for _, c := range firsts {
		all = append(all, Queue{c.queue, queues[c.queue].need, c.first.n})
	}
	return all, named("list queues", err)
}

// queues lists what the parts of each open queue need.
func (l *Ledger) queues(ctx context.Context, q querier) (map[string]waiting, error) {
	all := map[string]waiting{}
	return all, q.each(ctx, func(scan func(...any) error) error {
		var queue, need, bars string
		if err := scan(&queue, &need, &bars); err != nil {
			return err
		}
		w, err := l.needs.get(queue, func() (w waiting, err error) {
			return w, errors.Join(json.Unmarshal([]byte(need), &w.need), json.Unmarshal([]byte(bars), &w.bars))
		})
		if err != nil {
			return fmt.Errorf("queue %s: %w", queue, err)
		}
		all[queue] = w
		return nil
	}, `SELECT queue, need, bars FROM fleet_needs`)
}

// mostLooked bounds the queues that one statement looks into.
const mostLooked = 1000

// firsts finds the first part of each of some queues; those in which nothing waits are left out.
func (q querier) firsts(ctx context.Context, queues []string) (all []candidate, err error) {
	for some := range slices.Chunk(queues, mostLooked) {
		in, args := anyOf(some)
		err = errors.Join(err, q.each(ctx, func(scan func(...any) error) error {
			var c candidate
			var first *string
			if err := scan(&c.queue, &first); err != nil || first == nil {
				return err
			}
			if _, err := fmt.Sscan(*first, &c.first.priority, &c.first.tag, &c.first.n); err != nil {
				return fmt.Errorf("queue %s: %w", c.queue, err)
			}
			all = append(all, c)
			return nil
		}, `SELECT n.queue, (SELECT p.priority || ' ' || p.tag || ' ' || p.n FROM fleet_parts p
			WHERE p.queue = n.queue AND p.state = 'queued' ORDER BY p.priority, p.tag, p.n LIMIT 1)
			FROM fleet_needs n WHERE n.queue IN `+in, args...))
	}
	return all, err
}

// look lists the queues that a box could take from, the most urgent first. It does not keep others from writing.
// Without a queue it returns ErrNothing, unless the claim is a repeated one.
func (l *Ledger) look(ctx context.Context, c Claim) (all []candidate, err error) {
	q := l.reader()
	b, err := q.box(ctx, `id = ? AND removed = 0`, c.BoxID)
	if err != nil {
		return nil, err
	}
	if l.now().Sub(b.Seen) >= seenIdle {
		if err := l.changeBox(ctx, b.ID, `seen = ?`, at(l.now())); err != nil {
			return nil, err
		}
	}
	if len(c.Free) > 0 {
		all, err = l.candidates(ctx, q, b, c.Free)
	}
	if err != nil || len(all) > 0 {
		return all, err
	}
	var n int
	err = q.row(ctx, `SELECT count(*) FROM fleet_attempts WHERE box = ? AND request = ?`, b.ID, hashOf(c.Request)).Scan(&n)
	if err == nil && n == 0 {
		err = ErrNothing
	}
	return nil, err
}

func (l *Ledger) candidates(ctx context.Context, q querier, b Box, free []string) (all []candidate, err error) {
	queues, err := l.queues(ctx, q)
	if err != nil {
		return nil, err
	}
	devices, gaveBack := map[string][]string{}, map[string][]string{}
	for queue, w := range queues {
		for _, d := range b.Offer.Devices {
			if !slices.Contains(free, d.Name) {
				continue
			}
			switch w.stateOf(&b, d, time.Time{}) {
			case Free:
				devices[queue] = append(devices[queue], d.Name)
			case GaveBack:
				gaveBack[queue] = append(gaveBack[queue], d.Name)
			}
		}
	}
	maps.DeleteFunc(gaveBack, func(queue string, _ []string) bool { return len(devices[queue]) > 0 })
	if len(gaveBack) > 0 { // it gets these only if nobody else can carry them out
		boxes, err := q.boxes(ctx)
		if err != nil {
			return nil, err
		}
		lost := l.now().Add(-unseen * l.lease)
		for queue, names := range gaveBack {
			if w := queues[queue]; !slices.ContainsFunc(w.places(boxes, lost, nil), Place.isOpen) {
				devices[queue] = names
			}
		}
	}
	all, err = q.firsts(ctx, slices.Collect(maps.Keys(devices)))
	for i := range all {
		all[i].devices, all[i].reference = devices[all[i].queue], queues[all[i].queue].need.Reference
	}
	slices.SortFunc(all, func(a, b candidate) int { return a.first.compare(b.first) })
	return all, err
}

// repeat answers a claim that was made before. It returns an empty assignment for a new one.
func (l *Ledger) repeat(ctx context.Context, tx *tx, c Claim) (fleet.Assignment, error) {
	var part string
	err := tx.row(ctx, `SELECT part FROM fleet_attempts WHERE box = ? AND request = ?`, c.BoxID, hashOf(c.Request)).Scan(&part)
	if errors.Is(err, sql.ErrNoRows) {
		return fleet.Assignment{}, nil
	}
	if err != nil {
		return fleet.Assignment{}, err
	}
	p, err := tx.hold(ctx, part)
	if err != nil {
		return fleet.Assignment{}, err
	}
	a, nonce, err := tx.attempt(ctx, `part = ? AND box = ? AND request = ?`, part, c.BoxID, hashOf(c.Request))
	if err != nil {
		return fleet.Assignment{}, err
	}
	err = l.keep(ctx, tx, p, a)
	switch {
	case err == nil:
		given := fleet.Assignment{Device: a.device, Token: tokenOf(nonce, c.Request), LeaseFor: l.lease}
		return given, scanAssignment(tx.row(ctx, `SELECT `+assignmentColumns+` FROM fleet_parts WHERE id = ?`, p.id), &given)
	case !errors.Is(err, ErrLost):
		return fleet.Assignment{}, err
	case a.state != attemptVanished:
		return fleet.Assignment{}, ErrNothing // a claim that was long under way
	}
	// Its first answer was lost, and so is its lease: what the box asks for now is another part.
	_, err = tx.exec(ctx, `UPDATE fleet_attempts SET request = NULL WHERE part = ? AND attempt = ?`, p.id, a.attempt)
	return fleet.Assignment{}, err
}

// take claims the first part of the first queue that has one for a device that is free.
func (l *Ledger) take(ctx context.Context, tx *tx, b Box, c Claim, all []candidate) (fleet.Assignment, error) {
	var busy []string
	if err := tx.each(ctx, func(scan func(...any) error) error {
		var device string
		err := scan(&device)
		busy = append(busy, device)
		return err
	}, `SELECT device FROM fleet_attempts WHERE box = ? AND state = 'live'`, b.ID); err != nil {
		return fleet.Assignment{}, err
	}
	looks := 0
	for _, queue := range all {
		i := slices.IndexFunc(queue.devices, func(d string) bool { return !slices.Contains(busy, d) })
		if i < 0 || b.IsReserved() && !queue.reference { // it may have become so since the look
			continue
		}
		if looks++; looks > mostLooks {
			break
		}
		a, err := tx.lend(ctx, queue.queue, b.ID, queue.devices[i], c.Request, l.lease)
		if !errors.Is(err, sql.ErrNoRows) { // others took them
			return a, err
		}
	}
	return fleet.Assignment{}, ErrNothing
}

// lend takes the first part of a queue and writes its lease. It returns sql.ErrNoRows if there is none.
func (tx *tx) lend(ctx context.Context, queue, box, device, request string, lease time.Duration) (fleet.Assignment, error) {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	nonce := hex.EncodeToString(secret)
	a := fleet.Assignment{Device: device, Token: tokenOf(nonce, request), LeaseFor: lease}
	taken := tx.row(ctx, `UPDATE fleet_parts SET state = 'running', attempt = attempt + 1 WHERE id = (
		SELECT id FROM fleet_parts WHERE queue = ? AND state = 'queued' ORDER BY priority, tag, n LIMIT 1`+tx.skipLocked()+`)
		RETURNING `+assignmentColumns, queue)
	if err := scanAssignment(taken, &a); err != nil {
		return a, err
	}
	if _, err := tx.exec(ctx, `INSERT INTO fleet_attempts (part, attempt, box, device, request, nonce, token, state, until, claimed)
		VALUES (?, ?, ?, ?, ?, ?, ?, 'live', ?, ?)`,
		a.Part, a.Attempt, box, device, hashOf(request), nonce, hashOf(a.Token), at(tx.now.Add(lease)), at(tx.now)); err != nil {
		return a, err
	}
	_, err := tx.exec(ctx, `UPDATE fleet_runs SET state = 'running', started = ? WHERE id = ? AND state = 'queued'`, at(tx.now), a.Run)
	return a, err
}

// tokenOf makes a lease's token. The database has the nonce and the SHA-256 of the request and of the token: with them
// a repeated claim is given the same token, and a reader of the database knows none.
func tokenOf(nonce, request string) string {
	h := hmac.New(sha256.New, []byte(nonce))
	h.Write([]byte(request))
	return hex.EncodeToString(h.Sum(nil))
}

const assignmentColumns = `id, run, attempt, plan, archives`

// scanAssignment reads what an assignment says of a part.
func scanAssignment(row *sql.Row, a *fleet.Assignment) error {
	var plan, archives string
	if err := row.Scan(&a.Part, &a.Run, &a.Attempt, &plan, &archives); err != nil {
		return err
	}
	if err := errors.Join(json.Unmarshal([]byte(plan), &a.Plan), json.Unmarshal([]byte(archives), &a.Archives)); err != nil {
		return fmt.Errorf("part %s: %w", a.Part, err)
	}
	return nil
}
