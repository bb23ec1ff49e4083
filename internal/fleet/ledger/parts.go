package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// Files lists what the attempt that ended a part handed in, or the present attempt so far.
func (l *Ledger) Files(ctx context.Context, part string) ([]fleet.File, error) {
	files, err := l.reader().partFiles(ctx, part)
	return files, named("list files", err)
}

func (q querier) partFiles(ctx context.Context, part string) (files []fleet.File, err error) {
	var list *string
	err = q.row(ctx, `SELECT (SELECT a.files FROM fleet_attempts a WHERE a.part = p.id AND a.state IN ('live', 'ended', 'kept') ORDER BY a.attempt DESC LIMIT 1)
		FROM fleet_parts p WHERE p.id = ?`, part).Scan(&list)
	if err != nil || list == nil {
		return nil, found(err, store.ErrNotFound)
	}
	if err := json.Unmarshal([]byte(*list), &files); err != nil {
		return nil, fmt.Errorf("files of part %s: %w", part, err)
	}
	return files, nil
}

// PartOf returns the part of a lease, as [Ledger.Renew] does, without renewing it.
func (l *Ledger) PartOf(ctx context.Context, lease Lease) (Part, error) {
	p, err := l.partOf(ctx, lease)
	return p, named("find a part", err)
}

func (l *Ledger) partOf(ctx context.Context, lease Lease) (Part, error) {
	q := l.reader()
	if _, err := q.box(ctx, `id = ? AND removed = 0`, lease.BoxID); err != nil {
		return Part{}, err
	}
	all, err := q.parts(ctx, `p.id = ?`, lease.Part)
	if err != nil {
		return Part{}, err
	}
	if len(all) == 0 {
		return Part{}, store.ErrNotFound
	}
	var a attempt
	err = q.row(ctx, `SELECT attempt, state FROM fleet_attempts WHERE part = ? AND box = ? AND token = ?`, lease.Part, lease.BoxID, hashOf(lease.Token)).
		Scan(&a.attempt, &a.state)
	if err != nil {
		return Part{}, found(err, ErrLost)
	}
	if !a.newest(held{state: all[0].State, attempt: all[0].Attempt}) {
		return Part{}, ErrLost
	}
	return all[0], nil
}

// parts reads parts with their attempts, by their index.
func (q querier) parts(ctx context.Context, where string, args ...any) (all []Part, err error) {
	place := map[string]int{}
	err = q.each(ctx, func(scan func(...any) error) error {
		var p Part
		var plan, archives, need, outcome string
		if err := scan(&p.ID, &p.Run, &p.Index, &plan, &archives, &need, &p.State, &p.Attempt, &outcome); err != nil {
			return err
		}
		err := errors.Join(
			json.Unmarshal([]byte(plan), &p.Plan), json.Unmarshal([]byte(archives), &p.Archives), json.Unmarshal([]byte(need), &p.Need))
		if outcome != "" {
			p.Outcome = &fleet.Outcome{}
			err = errors.Join(err, json.Unmarshal([]byte(outcome), p.Outcome))
		}
		if err != nil {
			return fmt.Errorf("part %s: %w", p.ID, err)
		}
		place[p.ID] = len(all)
		all = append(all, p)
		return nil
	}, `SELECT p.id, p.run, p.idx, p.plan, p.archives, p.need, p.state, p.attempt, p.outcome FROM fleet_parts p WHERE `+where+` ORDER BY p.idx`, args...)
	if err != nil {
		return nil, err
	}
	return all, q.each(ctx, func(scan func(...any) error) error {
		var a Attempt
		var part, state, progress, files string
		var claimed, ended int64
		if err := scan(&part, &a.Attempt, &a.BoxID, &a.Box, &a.Device, &state, &claimed, &ended, &a.Why, &progress, &files); err != nil {
			return err
		}
		a.Claimed, a.Ended = from(claimed), from(ended)
		if err := json.Unmarshal([]byte(files), &a.Files); err != nil {
			return fmt.Errorf("files of part %s: %w", part, err)
		}
		i, ok := place[part]
		if !ok {
			return nil // added between the two statements
		}
		return all[i].add(a, state, progress)
	}, `SELECT a.part, a.attempt, a.box, b.name, a.device, a.state, a.claimed, a.ended, a.why, a.progress, a.files
		FROM fleet_attempts a JOIN fleet_parts p ON p.id = a.part JOIN fleet_boxes b ON b.id = a.box
		WHERE `+where+` ORDER BY a.part, a.attempt`, args...)
}

func (p *Part) add(a Attempt, state, progress string) error {
	if state == attemptVanished || state == attemptReturned {
		p.Attempts = append(p.Attempts, a)
		return nil
	}
	p.BoxID, p.Box, p.Device = a.BoxID, a.Box, a.Device
	if p.Outcome != nil {
		p.Outcome.Files = a.Files
	}
	if err := json.Unmarshal([]byte(progress), &p.Progress); err != nil {
		return fmt.Errorf("progress of part %s: %w", p.ID, err)
	}
	return nil
}
