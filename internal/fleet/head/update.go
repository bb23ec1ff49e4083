package head

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"eidetic/image/update"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// mostRolled bounds the boxes of one rollout.
const mostRolled = 5000

// Rollout implements panel.Boxes.
func (p people) Rollout(ctx context.Context) (*panel.Rollout, error) {
	r, _, err := p.h.rollout(ctx)
	if err != nil || r == nil {
		return nil, err
	}
	out := rolloutOf(r)
	return &out, nil
}

// Update implements panel.Boxes.
func (p people) Update(ctx context.Context, u panel.BoxUpdate) (out panel.Rollout, err error) {
	if !p.h.sending.TryLock() {
		return out, refuse(http.StatusConflict, "another update is being sent to the head: ask again in a while")
	}
	defer p.h.sending.Unlock()
	last, text, err := p.h.rollout(ctx)
	if err != nil {
		return out, err
	}
	key := ""
	if u.Key != "" {
		key = digestOf(u.By, u.Key)
	}
	repeats := last != nil && key != "" && last.Key == key
	if last != nil && last.State == rolloutRunning && !repeats {
		return out, refuse(http.StatusConflict, "the update to %s goes on: wait for its end, or stop it first", last.Update.Version)
	}
	var boxes []rolling
	if !repeats {
		if boxes, err = p.chosen(ctx, u); err != nil {
			return out, err
		}
	}
	bundle, err := p.h.receive(ctx, u.Bundle)
	if err != nil {
		return out, err
	}
	request := digestOf(append([]string{bundle.SHA256, strings.Join(u.Boxes, "\n")}, u.Labels...)...)
	if repeats {
		if last.Request != request {
			return out, refuse(http.StatusUnprocessableEntity, "Idempotency-Key: it came with another request before; a new request needs a new key")
		}
		return rolloutOf(last), nil
	}
	now := p.h.Now().UTC()
	bundle.ID = now.Format("20060102-150405") + "-" + strings.ToLower(rand.Text()[:6])
	r := rollout{
		Update: bundle, By: u.By, Key: key, Request: request, Began: now,
		State: rolloutRunning, Boxes: boxes,
	}
	to, err := json.Marshal(r)
	if err != nil {
		return out, err
	}
	if err := p.h.ledger.SwapSetting(ctx, rolloutSetting, text, to); err != nil {
		return out, changed(err)
	}
	p.h.Log.Info("the boxes are to be updated", "version", bundle.Version, "sha256", bundle.SHA256, "boxes", len(boxes), "by", u.By)
	p.h.rolling.ring()
	return rolloutOf(&r), nil
}

// changed is the answer to a person who was overtaken by another one, or by the rollout's next step.
func changed(err error) error {
	if errors.Is(err, ledger.ErrChanged) {
		return refuse(http.StatusConflict, "%w", err)
	}
	return err
}

// digestOf is the SHA-256 of texts.
func digestOf(texts ...string) string {
	sum := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(sum, "%d %s ", len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// chosen are the boxes that an update is for.
func (p people) chosen(ctx context.Context, u panel.BoxUpdate) ([]rolling, error) {
	boxes, err := p.h.ledger.Boxes(ctx) // by name
	if err != nil {
		return nil, err
	}
	var all []rolling
	add := func(b ledger.Box) error {
		for _, pattern := range u.Labels {
			has, err := fleet.HasLabel(b.Offer.Labels, pattern)
			if err != nil {
				return refuse(http.StatusUnprocessableEntity, "label: %w", err)
			}
			if !has {
				return nil
			}
		}
		if !slices.ContainsFunc(all, func(one rolling) bool { return one.ID == b.ID }) {
			all = append(all, rolling{ID: b.ID, Name: b.Name, State: boxWaiting})
		}
		return nil
	}
	for _, name := range u.Boxes {
		i := slices.IndexFunc(boxes, func(b ledger.Box) bool { return b.Name == name })
		if i < 0 {
			return nil, refuse(http.StatusNotFound, "there is no box %.70q in the fleet", name)
		}
		if err := add(boxes[i]); err != nil {
			return nil, err
		}
	}
	if len(u.Boxes) == 0 {
		for _, b := range boxes {
			if err := add(b); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case len(all) == 0:
		return nil, refuse(http.StatusUnprocessableEntity, "no box is asked for: the fleet has %d, and none has these labels", len(boxes))
	case len(all) > mostRolled:
		return nil, refuse(http.StatusUnprocessableEntity, "%d boxes are more than %d: choose some by their labels", len(all), mostRolled)
	}
	return all, nil
}

// receive keeps a bundle as a blob. It reads what the manifest says, and does not look at who signed it.
func (h *Head) receive(ctx context.Context, bundle io.Reader) (u fleet.Update, err error) {
	f, err := os.CreateTemp(h.staging(), "*.update")
	if err != nil {
		return u, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	sum := sha256.New()
	count := &counter{}
	from := io.TeeReader(bundle, io.MultiWriter(sum, f, count))
	m, err := update.ReadManifest(from)
	if err != nil {
		return u, unfit(err)
	}
	n, err := io.Copy(io.Discard, io.LimitReader(from, m.Size+1))
	switch {
	case err != nil:
		return u, unfit(err)
	case n < m.Size:
		return u, refuse(http.StatusUnprocessableEntity, "the update is cut off: %d bytes of its program are missing", m.Size-n)
	case n > m.Size:
		return u, refuse(http.StatusUnprocessableEntity, "the update is longer than it says: send the file as it was made")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return u, err
	}
	u = fleet.Update{Version: m.Version, SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: count.n}
	_, has, err := h.Blobs.Has(ctx, u.SHA256)
	if err == nil && !has {
		err = h.Blobs.Put(ctx, u.SHA256, u.Bytes, f)
	}
	return u, err
}

// unfit is an error of reading a bundle, for the one who sent it.
func unfit(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "the update has more than %d bytes", large.Limit)
	case errors.Is(err, update.ErrDamaged):
		return refuse(http.StatusUnprocessableEntity, "%w", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(http.StatusBadRequest, "the body could not be read to its end")
	}
	return err
}

// counter counts bytes.
type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) { c.n += int64(len(b)); return len(b), nil }

// mostStops bounds how often a stop is tried against steps of the rollout.
const mostStops = 20

// StopUpdate implements panel.Boxes. A box that was told already may have the update, and nobody has compared: it stays
// in maintenance.
func (p people) StopUpdate(ctx context.Context, by string) (out panel.Rollout, err error) {
	for range mostStops {
		r, text, err := p.h.rollout(ctx)
		if err != nil {
			return out, err
		}
		if r == nil || r.State != rolloutRunning {
			return out, refuse(http.StatusConflict, "no update goes on")
		}
		why := "stopped by " + lab.Clip(by, 100)
		var healths []ledger.BoxHealth
		released := ""
		if one := r.at(); one != nil && one.State != boxWaiting {
			t, err := p.h.turn(ctx, r, one)
			if err != nil {
				return out, err
			}
			if t.box != nil {
				t.stop(&halt{why: why, other: one.State == boxUpdating || one.State == boxChecking})
				if t.health != nil {
					healths = append(healths, *t.health)
					released = t.box.ID
				}
			}
		}
		r.State, r.Why, r.Ended = rolloutStopped, why, p.h.Now().UTC()
		to, err := json.Marshal(r)
		if err != nil {
			return out, err
		}
		err = p.h.ledger.SwapSetting(ctx, rolloutSetting, text, to, healths...)
		if errors.Is(err, ledger.ErrChanged) {
			continue
		}
		if err == nil && released != "" {
			err = p.h.judge(ctx, released)
		}
		p.h.bell.ring()
		return rolloutOf(r), err
	}
	return out, changed(ledger.ErrChanged)
}

// rolloutOf is a rollout for people.
func rolloutOf(r *rollout) panel.Rollout {
	out := panel.Rollout{
		ID: r.Update.ID, Version: r.Update.Version, State: r.State, Why: r.Why, Doing: doing(r), By: r.By,
		Began: r.Began, Ended: timeOf(r.Ended), Boxes: []panel.RolloutBox{},
	}
	for _, b := range r.Boxes {
		out.Boxes = append(out.Boxes, panel.RolloutBox{Name: b.Name, State: b.State, Since: timeOf(b.Since), Why: b.Why})
	}
	return out
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// doing says in words how far a rollout is.
func doing(r *rollout) string {
	updated, skipped := 0, []string{}
	for _, b := range r.Boxes {
		switch b.State {
		case boxUpdated:
			updated++
		case boxSkipped:
			skipped = append(skipped, b.Name)
		}
	}
	text := fmt.Sprintf("%d of %d boxes updated", updated, len(r.Boxes))
	if len(skipped) > 0 {
		text += ", " + lab.Clip(strings.Join(skipped, ", "), 300) + " skipped"
	}
	if b := r.at(); b != nil {
		text += "; " + b.Name + " " + map[string]string{
			boxWaiting: "comes next", boxDraining: "ends what it carries out", boxMeasuring: "measures the reference",
			boxUpdating: "installs the update", boxChecking: "runs the update and is compared with before",
		}[b.State]
	}
	if r.Why != "" {
		text += "; " + r.Why
	}
	return text
}
