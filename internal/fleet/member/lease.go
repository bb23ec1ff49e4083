package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

const (
	leasesDir = "leases"
	// maxLease bounds a lease's file: a plan may hold some pictures.
	maxLease = 32 << 20
	// maxParts bounds the parts that a box holds at a time: those of its devices, and results that wait for the head.
	maxParts = 500
	// maxArchives bounds the recordings of a part, and maxToken its token.
	maxArchives, maxToken = 1000, 512
)

// kept is what a box has on its disk of a part that it holds. It is written before what it says is done.
type kept struct {
	fleet.Assignment
	Request string    `json:"request"` // the claim that it came by
	Claimed time.Time `json:"claimed"`
	// Run is the ID of the box's run, once it is chosen; Queued says that the queue has had it.
	Run    string `json:"local_run,omitempty"`
	Queued bool   `json:"queued,omitempty"`
	Again  int    `json:"again,omitempty"` // how often it was put into the queue once more
	// Cancel says that the head wants it to stop.
	Cancel bool `json:"cancel,omitempty"`
	// Return is why the box gives the part back, if it does.
	Return string `json:"return,omitempty"`
}

// part is a part that the box holds, while it works on it.
type part struct {
	dir string // DATA/fleet

	mu       sync.Mutex
	kept     kept
	progress fleet.Progress
	state    string
	problem  string
	measured bool // its device is free again
	// next is a newer attempt of the part, which the head has given to this box before it was done with this one: it is
	// on the disk already. gone says that nothing is kept of the part any more. lose ends the work on this attempt.
	next    *kept
	gone    bool
	lose    context.CancelCauseFunc
	cancel  chan struct{} // closed when the head wants it to stop
	moved   chan struct{} // capacity 1: another trial has begun
	digests map[string]digested
}

// The states of a part, for people.
const (
	stateFetching  = "fetching"
	stateWaiting   = "waiting"
	stateRunning   = "running"
	stateHandingIn = "handing in"
	stateReturning = "returning"
)

func newPart(dir string, k kept) *part {
	p := &part{
		dir: dir, kept: k, cancel: make(chan struct{}), moved: make(chan struct{}, 1),
		digests: map[string]digested{}, state: stateFetching,
	}
	if k.Cancel {
		close(p.cancel)
	}
	return p
}

// checkAssignment returns an error for an assignment that no head of ours makes: its words become names of files.
func checkAssignment(a fleet.Assignment) error {
	if !store.ValidID(a.Part) || len(a.Part) > 100 { // there must be room for another attempt's number
		return fmt.Errorf("part: %.130q is no ID of a run", a.Part)
	}
	if a.Token == "" || len(a.Token) > maxToken || strings.ContainsFunc(a.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("token: it is missing, too long, or no word")
	}
	if len(a.Archives) > maxArchives {
		return fmt.Errorf("archives: %d are more than %d", len(a.Archives), maxArchives)
	}
	for i, one := range a.Archives {
		if !fleet.IsDigest(one.SHA256) || one.Bytes < 0 || one.Bytes > maxArchive {
			return fmt.Errorf("archives[%d]: its digest is none, or it has %d bytes of at most %d", i, one.Bytes, int64(maxArchive))
		}
	}
	return nil
}

// plan is what the box carries out. The head says what is measured, and not what of this box a plan may
// name: that an admin has asked for it is for the box alone to say.
func (k kept) plan() lab.Plan {
	own := k.Plan
	own.Device, own.Scope, own.Opened = k.Device, "", nil
	return own
}

func leaseFile(dir, part string) string { return filepath.Join(dir, leasesDir, part+".json") }

// change changes what is kept of the part, on the disk first.
func (p *part) change(f func(*kept)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.kept
	f(&next)
	if p.next == nil {
		if err := next.write(p.dir); err != nil {
			return err
		}
	}
	p.kept = next
	return nil
}

// follow keeps a newer attempt of the part, which begins when the work on this one has ended; the same attempt again
// changes nothing. It returns false if the box keeps nothing of the part any more.
func (p *part) follow(k kept) (held bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false, nil
	}
	if k.Attempt <= p.kept.Attempt || p.next != nil && k.Attempt <= p.next.Attempt {
		return true, nil
	}
	if err := k.write(p.dir); err != nil {
		return true, err
	}
	p.next = &k
	if p.lose != nil {
		p.lose(errLost)
	}
	return true, nil
}

func (k kept) write(dir string) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(leaseFile(dir, k.Part), text, 0o600)
}

// forget removes what is kept of the part, unless a newer attempt follows.
func (p *part) forget() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		return nil
	}
	err := os.Remove(leaseFile(p.dir, p.kept.Part))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, atomicfile.SyncDir(filepath.Join(p.dir, leasesDir)))
	p.gone = err == nil
	return err
}

func (p *part) get() kept {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept
}

func (p *part) token() string { return p.get().Token }

// say notes for people what is done with the part.
func (p *part) say(state, problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.problem = state, problem
}

// stop notes that the head wants the part to stop.
func (p *part) stop() error {
	if p.get().Cancel {
		return nil
	}
	err := p.change(func(k *kept) { k.Cancel = true })
	if err == nil {
		close(p.cancel)
	}
	return err
}

// stopped says whether the head wants the part to stop.
func (p *part) stopped() bool {
	select {
	case <-p.cancel:
		return true
	default:
		return false
	}
}

// readKept reads the parts that a box holds. One whose file cannot be read is an error beside the others.
func readKept(dir string) (all []kept, err error) {
	names, err := heldIn(dir)
	if err != nil {
		return nil, err
	}
	var wrong error
	for _, name := range names {
		var k kept
		text, err := readBounded(leaseFile(dir, name), maxLease)
		if err == nil {
			err = json.Unmarshal(text, &k)
		}
		if err == nil {
			err = checkAssignment(k.Assignment)
		}
		if err == nil && (k.Part != name || k.Run != "" && !store.ValidID(k.Run)) {
			err = errors.New("it is of another part")
		}
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("what is kept of part %s: %w", name, err))
			continue
		}
		all = append(all, k)
	}
	return all, wrong
}

// heldIn lists the parts that a box holds, by name.
func heldIn(dir string) (parts []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, leasesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && store.ValidID(name) && e.Type().IsRegular() {
			parts = append(parts, name)
		}
	}
	return parts, err
}

// neededIn says which runs are needed for the fleet, by their IDs. A part whose file cannot be read is needed under its
// own name.
func neededIn(dir string) map[string]string {
	needed := map[string]string{}
	names, _ := heldIn(dir) // a folder that cannot be read has no part that could be handed in
	for _, name := range names {
		needed[name] = "it is to be handed in to the head of the fleet"
	}
	all, _ := readKept(dir) // see above
	for _, k := range all {
		if k.Run != "" {
			needed[k.Run] = "it is to be handed in to the head of the fleet"
		}
	}
	return needed
}
