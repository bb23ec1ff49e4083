package head

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Bounds of what is asked for and listed at once.
const (
	mostListed = 1000 // runs that wait
	mostIDs    = 1000 // runs of one name in one second
	mostEach   = 50   // runs of one plan
)

// Add puts a plan into the queue, and returns the ID of its run; of several, which are added all or none, that of the
// first. Its errors are as those of [runqueue.Queue.Add], and a [lab.AwayError] while the database or the store of
// files is away.
func (h *Head) Add(ctx context.Context, plan lab.Plan, once store.Once) (id string, err error) {
	if err := h.check(plan); err != nil { // first: what a plan may not name is no matter of which boxes there are
		return "", err
	}
	plans, err := h.spread(ctx, plan)
	if err != nil {
		return "", err
	}
	runs := make([]ledger.NewRun, len(plans))
	for i, p := range plans {
		if runs[i], err = h.newRun(ctx, p); err != nil {
			return "", err
		}
	}
	runs[0].Once = once
	return h.insert(ctx, runs...)
}

// rejected marks an error as one of the plan.
func rejected(err error) error { return &runqueue.RejectedError{Err: err} }

// spread returns the plans that on.each makes of one.
func (h *Head) spread(ctx context.Context, p lab.Plan) ([]lab.Plan, error) {
	need, err := fleet.NeedOf(p)
	if err != nil {
		return nil, rejected(err)
	}
	boxes, err := h.ledger.Boxes(ctx)
	if err != nil {
		return nil, err
	}
	fits := slices.DeleteFunc(slices.Clone(boxes), func(b ledger.Box) bool { return len(need.Could(b.Name, b.Offer)) == 0 })
	if len(fits) == 0 {
		return nil, rejected(nobody(need, boxes))
	}
	each := ""
	if p.On != nil {
		each = p.On.Each
	}
	var plans []lab.Plan
	switch each {
	case "":
		return []lab.Plan{p}, nil
	case "box":
		for _, b := range fits {
			one, on := p, *p.On
			on.Each, on.Boxes = "", []string{b.Name}
			one.On, one.Name = &on, named(p.Name, b.Name)
			plans = append(plans, one)
		}
	case "browser":
		for _, name := range browsersOf(need, fits) {
			one, on := p, *p.On
			on.Each = ""
			one.On, one.Name = &on, named(p.Name, name)
			browser := lab.Browser{Name: name}
			if p.Browser != nil {
				browser = *p.Browser
				browser.Name, browser.Command = name, ""
			}
			one.Browser = &browser
			plans = append(plans, one)
		}
	default:
		return nil, rejected(fmt.Errorf("on.each: %.40q is neither box nor browser", each))
	}
	if len(plans) == 0 || len(plans) > mostEach {
		return nil, rejected(fmt.Errorf("on.each: it makes %d runs; at least 1 and at most %d are possible", len(plans), mostEach))
	}
	return plans, nil
}

func named(name, of string) string { return strings.TrimSpace(name + " " + of) }

// browsersOf lists the browsers of the devices that fit, without those that an admin has added: they are one box's.
func browsersOf(need fleet.Need, boxes []ledger.Box) (all []string) {
	for _, b := range boxes {
		names := need.Could(b.Name, b.Offer)
		for _, d := range b.Offer.Devices {
			for _, name := range d.Browsers {
				if slices.Contains(names, d.Name) && slices.Contains([]string{lab.Chromium, lab.Firefox, lab.FirefoxESR}, name) {
					all = append(all, name)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// nobody says that no box fits a need: a run that nobody can carry out would wait for ever.
func nobody(need fleet.Need, boxes []ledger.Box) error {
	if len(boxes) == 0 {
		return errNoBox
	}
	var has []string
	places := ledger.Places(need, boxes)
	for _, p := range places {
		has = append(has, nameOf(p))
	}
	return fmt.Errorf("no box has what the plan asks for: %s; there are: %s", nearest(need, places), lab.Clip(strings.Join(has, ", "), 500))
}

// check says what is wrong with a plan, whichever box and device carries it out.
func (h *Head) check(p lab.Plan) error {
	p.On, p.Device = nil, ""
	if err := h.Check(p); err != nil {
		return rejected(err)
	}
	return nil
}

// newRun is what becomes of a plan in the ledger, without an ID.
func (h *Head) newRun(ctx context.Context, p lab.Plan) (r ledger.NewRun, err error) {
	if err := h.check(p); err != nil { // for each browser it is another plan
		return r, err
	}
	need, err := fleet.NeedOf(p)
	if err != nil {
		return r, rejected(err)
	}
	r = ledger.NewRun{Plan: p, Series: cmp.Or(p.Name, p.FirstPage())}
	if len(r.Series) > 200 {
		r.Series = r.Series[:200]
	}
	if p.On != nil {
		r.Priority = p.On.Priority
	}
	for _, part := range fleet.Split(p) {
		own, files, err := h.withRecordings(ctx, part)
		if err != nil {
			return r, err
		}
		r.Parts = append(r.Parts, ledger.NewPart{Plan: own, Need: need, Archives: files})
	}
	return r, nil
}

// insert gives runs IDs and puts them into the ledger, all or none. It returns the ID of the first.
func (h *Head) insert(ctx context.Context, runs ...ledger.NewRun) (string, error) {
	bases := make([]string, len(runs))
	for i := range runs {
		bases[i] = h.Store.FreeID(h.Now(), runs[i].Plan.Name)
	}
	for n := 1; ; n++ {
		taken := map[string]bool{}
		for i, base := range bases {
			runs[i].ID = numbered(base, n)
			for k := n + 1; taken[runs[i].ID]; k++ {
				runs[i].ID = numbered(base, k)
			}
			taken[runs[i].ID] = true
		}
		id, err := h.ledger.AddRuns(ctx, runs...)
		if errors.Is(err, store.ErrExists) && n < mostIDs {
			continue
		}
		if err == nil && id == runs[0].ID {
			h.tell(runs)
		}
		return id, err
	}
}

// numbered is the nth of the IDs that a run may have.
func numbered(id string, n int) string {
	if n == 1 {
		return id
	}
	return id + "-" + strconv.Itoa(n)
}

// tell tells those who listen, and boxes that wait, of runs that were added.
func (h *Head) tell(runs []ledger.NewRun) {
	for _, r := range runs {
		h.events.Publish(runqueue.Progress{Run: r.ID, State: store.StateQueued, Of: r.Plan.Total()})
		for _, p := range r.Parts {
			h.waiters.wake(p.Need)
		}
	}
}

// withRecordings keeps the recordings that a plan replays as blobs, and names them by their digests: they are what they
// were when the run was asked for, whatever becomes of the names. A RejectedError says that there is no such recording.
func (h *Head) withRecordings(ctx context.Context, p lab.Plan) (lab.Plan, []fleet.ArchiveFile, error) {
	var files []fleet.ArchiveFile
	p, err := p.MapArchives(func(field, name string) (string, error) {
		file, err := h.Archive(name)
		if err != nil {
			return "", rejected(fmt.Errorf("%s: %w", field, err))
		}
		digest, size, err := h.keep(ctx, file)
		if errors.Is(err, fs.ErrNotExist) { // it was deleted meanwhile
			err = rejected(err)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", field, err)
		}
		one := fleet.ArchiveFile{Name: digest + ".wacz", SHA256: digest, Bytes: size}
		if !slices.Contains(files, one) {
			files = append(files, one)
		}
		return one.Name, nil
	})
	return p, files, err
}

// digestCache knows the digests of files that have not changed.
type digestCache struct {
	mu    sync.Mutex
	known map[string]fileDigest
}

type fileDigest struct {
	size   int64
	change time.Time
	digest string
}

// keep puts a file into the blobs.
func (h *Head) keep(ctx context.Context, path string) (digest string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	h.digests.mu.Lock()
	known, ok := h.digests.known[path]
	h.digests.mu.Unlock()
	if !ok || known.size != info.Size() || !known.change.Equal(info.ModTime()) {
		sum := sha256.New()
		n, err := io.Copy(sum, f)
		if err != nil {
			return "", 0, err
		}
		known = fileDigest{n, info.ModTime(), hex.EncodeToString(sum.Sum(nil))}
		h.digests.mu.Lock()
		if h.digests.known == nil || len(h.digests.known) > 1000 {
			h.digests.known = map[string]fileDigest{}
		}
		h.digests.known[path] = known
		h.digests.mu.Unlock()
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return "", 0, err
		}
	}
	if _, has, err := h.Blobs.Has(ctx, known.digest); err != nil || has {
		return known.digest, known.size, err
	}
	return known.digest, known.size, h.Blobs.Put(ctx, known.digest, known.size, f)
}

// Get returns a run that has not ended, or that ended and left nothing, as a job; or store.ErrNotFound.
func (h *Head) Get(ctx context.Context, id string) (store.Job, error) {
	r, err := h.ledger.Run(ctx, id)
	if err != nil {
		return store.Job{}, err
	}
	if isEnd(r.State) && h.Store.Has(id) {
		return store.Job{}, store.ErrNotFound
	}
	return jobOf(r), nil
}

// List lists the jobs, the newest first: all runs that have begun, and the newest that wait.
func (h *Head) List(ctx context.Context) ([]store.Job, error) {
	var jobs []store.Job
	for _, f := range []ledger.Filter{
		{States: []string{store.StateQueued}, Limit: mostListed},
		{States: []string{store.StateRunning, stateAssembling}, Limit: mostListed},
		{States: []string{store.StateFailed, store.StateInterrupted, store.StateDone}, Limit: 200},
	} {
		runs, err := h.ledger.Runs(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			if !isEnd(r.State) || !h.Store.Has(r.ID) {
				jobs = append(jobs, jobOf(r))
			}
		}
	}
	slices.SortStableFunc(jobs, func(a, b store.Job) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID)) })
	return jobs, nil
}

// stateAssembling is the ledger's state of a run whose parts have all ended.
const stateAssembling = "assembling"

func jobOf(r ledger.Run) store.Job {
	j := store.Job{ID: r.ID, Device: r.Plan.Device, Created: r.Created, State: r.State, Error: r.Error, Plan: r.Plan}
	switch r.State {
	case stateAssembling:
		j.State = store.StateRunning
	case store.StateDone: // its files are on their way
		j.State = store.StateRunning
	}
	return j
}

// Cancel is [runqueue.Queue.Cancel] for the fleet: a run that is in progress ends when its box has heard of it.
func (h *Head) Cancel(ctx context.Context, id string) error {
	r, err := h.ledger.Run(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case isEnd(r.State) && h.Store.Has(id):
		return store.ErrNotFound
	case isEnd(r.State):
		return h.ledger.RemoveRun(ctx, id)
	case r.State == stateAssembling:
		return runqueue.ErrEnding
	}
	if err := h.ledger.CancelRun(ctx, id); err != nil {
		return err
	}
	h.ended.ring()
	return nil
}

// Removed is called when a person or the retention has deleted the files of a run.
func (h *Head) Removed(ctx context.Context, id string) error {
	err := h.ledger.RemoveRun(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Thinned is called when the retention has deleted the evidence of a run: the blobs go as well, and nobody can fetch
// them again.
func (h *Head) Thinned(ctx context.Context, id string) error {
	err := h.ledger.Thin(ctx, id, store.IsNumbers)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	h.untidy.ring()
	return err
}

// InProgress is empty: a head may be restarted at any time, as its boxes go on.
func (h *Head) InProgress(context.Context) (string, error) { return "", nil }
