package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/fleet"
	"eidetic/internal/keep/pin"
	"eidetic/internal/keep/store"
)

// Identity is what the box keeps of its head: member.json.
type Identity struct {
	Head   string    `json:"head"` // host:port
	Pin    string    `json:"pin"`  // SHA-256 of the head's certificate
	ID     string    `json:"id"`   // that the head gave the box
	Name   string    `json:"name"` // of the box in the fleet
	Joined time.Time `json:"joined"`
}

const (
	identityFile = "member.json"
	// maxIdentity bounds the file.
	maxIdentity = 16 << 10
)

// readIdentity returns what the box keeps of its head in DATA/fleet, or ErrNotJoined.
func readIdentity(dir string) (id Identity, err error) {
	text, err := readBounded(filepath.Join(dir, identityFile), maxIdentity)
	if errors.Is(err, fs.ErrNotExist) {
		return id, ErrNotJoined
	}
	if err != nil {
		return id, err
	}
	if err := json.Unmarshal(text, &id); err != nil {
		return id, fmt.Errorf("%s: %w; leave the fleet and join it again", identityFile, err)
	}
	return id, errors.Join(fleet.CheckHost(id.Head), fleet.CheckBoxName(id.Name))
}

// Join makes the box whose folder DATA/fleet is dir a member of the fleet of the link's head. It is safe to repeat
// after a lost answer: the head knows the same box with the same code again.
func Join(ctx context.Context, link, name string, offer fleet.Offer, dir string) (Identity, error) {
	var none Identity
	to, err := fleet.ParseLink(link)
	if err != nil {
		return none, err
	}
	if err := fleet.CheckBoxName(name); err != nil {
		return none, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return none, err
	}
	switch old, err := readIdentity(dir); {
	case err == nil && (old.Pin != to.Pin || old.Name != name):
		return none, fmt.Errorf("%w, %s, as %s: leave it first (appliance leave)", ErrJoined, old.Head, old.Name)
	case err != nil && !errors.Is(err, ErrNotJoined):
		return none, err
	}
	if _, err := pin.LoadOrCreateBox(dir, time.Now); err != nil {
		return none, err
	}
	id := Identity{Head: to.Host, Pin: to.Pin, Name: name, Joined: time.Now().UTC()}
	call, err := Dial(dir, id, joinLimit)
	if err != nil {
		return none, err
	}
	defer call.Close()
	if id.ID, err = call.join(ctx, to.Code, name, offer); err != nil {
		return none, err
	}
	text, err := json.MarshalIndent(id, "", " ")
	if err != nil {
		return none, err
	}
	return id, atomicfile.WriteFile(filepath.Join(dir, identityFile), append(text, '\n'), 0o600)
}

// joinLimit is how long joining may take.
const joinLimit = 30 * time.Second

// HoldsError says that a box cannot leave its head, because it holds parts.
type HoldsError struct{ Parts []string }

func (e *HoldsError) Error() string {
	return fmt.Sprintf("the box holds %d parts of its head's runs, which are under way or wait to be handed in (%.100s …): wait, or leave by force, which forgets them",
		len(e.Parts), e.Parts[0])
}

// Leave forgets the head of the box whose folder DATA/fleet is dir, while no service works in it. With force it does so
// while the box holds parts; their runs stay on the box. The head is not told: it removes the box by itself.
func Leave(dir string, force bool) error {
	if _, err := readIdentity(dir); errors.Is(err, ErrNotJoined) {
		return err
	}
	parts, err := heldIn(dir)
	if err != nil {
		return err
	}
	if len(parts) > 0 && !force {
		return &HoldsError{parts}
	}
	// First the identity: a box that is killed between the two must not work for the head without its parts.
	if err := os.Remove(filepath.Join(dir, identityFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, part := range parts {
		if err := os.Remove(leaseFile(dir, part)); err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(dir)
}

// Join is [Join] for a box that works: it is a member from now on.
func (k *Keeper) Join(ctx context.Context, link, name string) (Identity, error) {
	id, err := Join(ctx, link, name, k.Offer(ctx), k.Dir)
	if err == nil {
		k.wake()
	}
	return id, err
}

// Leave is [Leave] for a box that works: the runs of parts that it holds are cancelled.
func (k *Keeper) Leave(ctx context.Context, force bool) error {
	k.mu.Lock()
	s := k.session
	k.leaving = true
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.leaving = false
		k.mu.Unlock()
		k.wake() // where it could not leave, it goes on
	}()
	if s != nil {
		s.stop(ErrNotJoined)
		select {
		case <-s.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	runs := neededIn(k.Dir)
	if err := Leave(k.Dir, force); err != nil {
		return err
	}
	for run := range runs {
		if err := k.Queue.Cancel(ctx, run); err != nil && !errors.Is(err, store.ErrNotFound) {
			k.Log.Warn("a run of the fleet that was left goes on", "run", run, "error", err)
		}
	}
	return nil
}

func (k *Keeper) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

func readBounded(path string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, info, err := store.OpenFile(root, filepath.Base(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	text := make([]byte, info.Size())
	n, err := f.ReadAt(text, 0)
	if int64(n) == info.Size() {
		err = nil
	}
	return text, err
}
