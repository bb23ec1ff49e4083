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
	"slices"
	"time"

	"github.com/riverqueue/river/riverdriver"

	"eidetic/internal/fleet"
)

// Claim is a box's wish for a part.
type Claim struct {
	BoxID string
	// Request is the box's name for this claim. The same name again is answered with the same assignment while its lease lives, and
	// with ErrNothing once the box has ended or returned that part. A box chooses a new name when it has been given a part.
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
	queue              string
	priority, tag, job int64 // of its first part
	devices            []string
	reference          bool // boxes get it that get no other runs, too
}

// IsReserved says whether a box gets no runs but those of the reference.
func (b Box) IsReserved() bool {
	return b.Health == fleet.HealthBad || b.Health == fleet.HealthMaintenance
}

// Claim gives a box the first part that one of its free devices can carry out: by priority, then in turns between series. It
// returns ErrNothing if there is none. One look at the first part of each queue that fits decides; parts behind it are not read.
func (l *Ledger) Claim(ctx context.Context, c Claim) (fleet.Assignment, error) {
	if len(c.Request) > maxRequest || len(c.Free) > fleet.MaxDevices {
		return fleet.Assignment{}, fmt.Errorf("%w: the claim's name has more than %d bytes, or it has more than %d devices", errInvalid, maxRequest, fleet.MaxDevices)
	}
	c.Request = cmp.Or(c.Request, rand.Text())
	all, repeated, err := l.look(ctx, c)
	if err != nil {
		return fleet.Assignment{}, named("claim", err)
	}
	if len(all) == 0 && !repeated {
		return fleet.Assignment{}, ErrNothing
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
	err = l.firsts(ctx, l.reader(), func(c candidate, w waiting) { all = append(all, Queue{c.queue, w.need, c.job}) })
	return all, named("list queues", err)
}

// firsts calls f for each queue in which parts wait. c has no devices yet.
func (l *Ledger) firsts(ctx context.Context, q querier, f func(c candidate, w waiting)) error {
	return q.each(ctx, func(scan func(...any) error) error {
		var c candidate
		var need, bars string
		if err := scan(&c.queue, &need, &bars, &c.priority, &c.tag, &c.job); err != nil {
			return err
		}
		w, err := l.needs.get(c.queue, func() (w waiting, err error) {
			return w, errors.Join(json.Unmarshal([]byte(need), &w.need), json.Unmarshal([]byte(bars), &w.bars))
		})
		if err != nil {
			return fmt.Errorf("queue %s: %w", c.queue, err)
		}
		f(c, w)
		return nil
	}, `SELECT n.queue, n.need, n.bars, p.priority, p.tag, p.job FROM fleet_needs n JOIN fleet_parts p ON p.id = (
		SELECT q.id FROM fleet_parts q WHERE q.queue = n.queue AND q.state = 'queued' ORDER BY q.priority, q.tag, q.job LIMIT 1)`)
}

// look lists the queues that a box could take from, the most urgent first, and whether the claim is a repeated one. It
// does not keep others from writing.
func (l *Ledger) look(ctx context.Context, c Claim) (all []candidate, repeated bool, err error) {
	q := l.reader()
	b, err := q.box(ctx, `id = ? AND removed = 0`, c.BoxID)
	if err != nil {
		return nil, false, err
	}
	if l.now().Sub(b.Seen) >= seenIdle {
		if err := l.changeBox(ctx, b.ID, `seen = ?`, at(l.now())); err != nil {
			return nil, false, err
		}
	}
	var n int
	if err := q.row(ctx, `SELECT count(*) FROM fleet_attempts WHERE box = ? AND request = ?`, b.ID, hashOf(c.Request)).Scan(&n); err != nil {
		return nil, false, err
	}
	if len(c.Free) > 0 {
		all, err = l.candidates(ctx, q, b, c.Free)
	}
	return all, n > 0, err
}

func (l *Ledger) candidates(ctx context.Context, q querier, b Box, free []string) (all []candidate, err error) {
	var barred []candidate // only for devices that gave them back
	var needs []waiting
	err = l.firsts(ctx, q, func(c candidate, w waiting) {
		c.reference = w.need.Reference
		var back []string
		for _, d := range b.Offer.Devices {
			if !slices.Contains(free, d.Name) {
				continue
			}
			switch w.stateOf(&b, d, time.Time{}) {
			case Free:
				c.devices = append(c.devices, d.Name)
			case GaveBack:
				back = append(back, d.Name)
			}
		}
		switch {
		case len(c.devices) > 0:
			all = append(all, c)
		case len(back) > 0:
			c.devices = back
			barred, needs = append(barred, c), append(needs, w)
		}
	})
	if err == nil && len(barred) > 0 {
		all, err = l.withBarred(ctx, q, all, barred, needs)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.tag, b.tag), cmp.Compare(a.job, b.job))
	})
	return all, err
}

// withBarred adds queues whose parts nobody else can carry out.
func (l *Ledger) withBarred(ctx context.Context, q querier, all, barred []candidate, needs []waiting) ([]candidate, error) {
	boxes, err := q.boxes(ctx)
	if err != nil {
		return nil, err
	}
	lost := l.now().Add(-unseen * l.lease)
	for i, c := range barred {
		others := slices.ContainsFunc(needs[i].places(boxes, lost, nil), Place.isOpen)
		if !others {
			all = append(all, c)
		}
	}
	return all, nil
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
		return tx.assignment(ctx, p.id, a.attempt, a.device, tokenOf(nonce, c.Request), l.lease)
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
		got, err := tx.jobs.JobGetAvailable(ctx, &riverdriver.JobGetAvailableParams{
			ClientID: b.ID, Kind: []string{partArgs{}.Kind()}, MaxAttemptedBy: maxAttemptedBy, MaxToLock: 1, Now: &tx.now, Queue: queue.queue,
		})
		if err != nil {
			return fleet.Assignment{}, err
		}
		if len(got.Jobs) == 0 {
			continue // others took them
		}
		job := got.Jobs[0]
		var args partArgs
		if err := errors.Join(got.DecodeErrors[job.ID], json.Unmarshal(job.EncodedArgs, &args)); err != nil {
			return fleet.Assignment{}, fmt.Errorf("job %d: %w", job.ID, err)
		}
		return tx.lend(ctx, args.Part, job.Attempt, b.ID, queue.devices[i], c.Request, l.lease)
	}
	return fleet.Assignment{}, ErrNothing
}

// maxAttemptedBy bounds River's own list of who tried a job.
const maxAttemptedBy = 10

// lend writes the lease of a part whose job was taken.
func (tx *tx) lend(
	ctx context.Context, part string, attempt int, box, device, request string, lease time.Duration,
) (fleet.Assignment, error) {
	nonce := make([]byte, sha256.Size)
	_, _ = rand.Read(nonce) // never fails
	token := tokenOf(hex.EncodeToString(nonce), request)
	rows, err := tx.exec(ctx, `UPDATE fleet_parts SET state = 'running', attempt = ? WHERE id = ? AND state = 'queued'`, attempt, part)
	if err != nil {
		return fleet.Assignment{}, err
	}
	if rows == 0 {
		return fleet.Assignment{}, fmt.Errorf("the job of part %s waited, but the part did not", part)
	}
	if _, err := tx.exec(ctx, `INSERT INTO fleet_attempts (part, attempt, box, device, request, nonce, token, state, until, claimed)
		VALUES (?, ?, ?, ?, ?, ?, ?, 'live', ?, ?)`,
		part, attempt, box, device, hashOf(request), hex.EncodeToString(nonce), hashOf(token), at(tx.now.Add(lease)), at(tx.now)); err != nil {
		return fleet.Assignment{}, err
	}
	if _, err := tx.exec(ctx, `UPDATE fleet_runs SET state = 'running', started = ? WHERE state = 'queued' AND id = (SELECT run FROM fleet_parts WHERE id = ?)`,
		at(tx.now), part); err != nil {
		return fleet.Assignment{}, err
	}
	return tx.assignment(ctx, part, attempt, device, token, lease)
}

// tokenOf makes a lease's token. The database has the nonce and the SHA-256 of the request and of the token: with them a
// repeated claim is given the same token, and a reader of the database knows none.
func tokenOf(nonce, request string) string {
	h := hmac.New(sha256.New, []byte(nonce))
	h.Write([]byte(request))
	return hex.EncodeToString(h.Sum(nil))
}

func (tx *tx) assignment(
	ctx context.Context, part string, attempt int, device, token string, lease time.Duration,
) (fleet.Assignment, error) {
	a := fleet.Assignment{Part: part, Attempt: attempt, Device: device, Token: token, LeaseFor: lease}
	var plan, archives string
	if err := tx.row(ctx, `SELECT run, plan, archives FROM fleet_parts WHERE id = ?`, part).Scan(&a.Run, &plan, &archives); err != nil {
		return a, err
	}
	if err := errors.Join(json.Unmarshal([]byte(plan), &a.Plan), json.Unmarshal([]byte(archives), &a.Archives)); err != nil {
		return a, fmt.Errorf("part %s: %w", part, err)
	}
	return a, nil
}
