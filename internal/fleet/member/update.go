package member

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"eidetic/internal/fleet"
)

// maxUpdate bounds an update that a head tells of, as the panel bounds one.
const maxUpdate = 417 << 20

// updating is what the head has told the box to install. It tells it again with each answer to a description, so that a
// box that was killed in the middle begins anew.
type updating struct {
	mu      sync.Mutex
	told    *fleet.Update
	refused string        // why the box does not install it
	changed chan struct{} // closed when told changes
}

func newUpdating() *updating {
	return &updating{changed: make(chan struct{})}
}

// tell takes what the head says, nil for nothing, and says whether that is something else than before.
func (u *updating) tell(to *fleet.Update) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if to == nil && u.told == nil || to != nil && u.told != nil && *to == *u.told {
		return false
	}
	u.told, u.refused = to, ""
	close(u.changed)
	u.changed = make(chan struct{})
	return true
}

// checked returns what the head says, or nil for what no head of ours says.
func checked(u *fleet.Update) (*fleet.Update, error) {
	if u != nil && (!fleet.IsDigest(u.SHA256) || u.Bytes < 1 || u.Bytes > maxUpdate ||
		len(u.Version) > fleet.MaxImageBytes || len(u.ID) > fleet.MaxImageBytes) {
		return nil, fmt.Errorf("the head tells of an update %.70q of %d bytes with the SHA-256 %.70q", u.Version, u.Bytes, u.SHA256)
	}
	return u, nil
}

// now is what the box is to install, unless it has refused it.
func (u *updating) now() *fleet.Update {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.refused != "" {
		return nil
	}
	return u.told
}

func (u *updating) refuse(what *fleet.Update, why string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told == what {
		u.refused = why
	}
}

// addImage says in the description of the box which image runs, and why it does not install what it is told.
func (s *session) addImage(o *fleet.Offer) {
	if s.Updater == nil {
		return
	}
	status, err := s.Updater.Status()
	if err != nil {
		s.Log.Error("the version of the box's image cannot be read", "error", err)
	}
	o.Image = status.Running
	s.updating.mu.Lock()
	defer s.updating.mu.Unlock()
	if s.updating.refused != "" {
		o.Update = &fleet.UpdateState{ID: s.updating.told.ID, Error: clip(s.updating.refused, fleet.MaxErrorBytes-10)}
	}
}

// keepUpdated installs what the head tells the box to, until the context ends.
func (s *session) keepUpdated(ctx context.Context) {
	for ctx.Err() == nil {
		s.updating.mu.Lock()
		changed := s.updating.changed
		s.updating.mu.Unlock()
		if told := s.updating.now(); told != nil {
			own, cancel := context.WithCancel(ctx)
			go func() { // the head may take it back
				select {
				case <-own.Done():
				case <-changed:
					cancel()
				}
			}()
			if err := s.install(own, *told); err != nil && own.Err() == nil {
				s.Log.Error("the box does not install the update of its head", "version", told.Version, "error", err)
				s.updating.refuse(told, err.Error())
			}
			cancel()
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// install hands an update to the box's updater when nothing is measured, and waits until the box restarts. An error
// says why the update is not installed.
func (s *session) install(ctx context.Context, u fleet.Update) error {
	look := time.NewTicker(s.Times.Look)
	defer look.Stop()
	accepted := false
	for ctx.Err() == nil {
		status, err := s.Updater.Status()
		last := status.Last == u.Version && !status.Installing
		switch {
		case err != nil:
			return fmt.Errorf("the state of the box's software cannot be read: %w", err)
		case status.Running == u.Version, status.Installing:
		case last && status.FellBack:
			return fmt.Errorf("%s was installed and did not become healthy, so that the box went back to %s", u.Version, status.Running)
		case accepted && last && status.Error != "":
			return fmt.Errorf("it cannot be installed: %.500s", status.Error)
		case accepted:
		case s.isMeasuring(ctx):
		default:
			if err := s.passOn(ctx, u); err != nil {
				return err
			}
			accepted = true
		}
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
	return nil
}

// isMeasuring says whether a run goes on or a part is under way: an update would cut it short.
func (s *session) isMeasuring(ctx context.Context) bool {
	id, err := s.Queue.InProgress(ctx)
	if err != nil || id != "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		p.mu.Lock()
		measured := p.measured
		p.mu.Unlock()
		if !measured {
			return true
		}
	}
	return false
}

// passOn fetches an update from the head into the box's updater.
func (s *session) passOn(ctx context.Context, u fleet.Update) error {
	from := func(ctx context.Context, offset int64) (io.ReadCloser, bool, error) {
		body, err := s.call.openUpdate(ctx, u.SHA256, offset)
		return body, isFinal(err), err
	}
	bundle := s.newFileReader(ctx, fleet.ArchiveFile{SHA256: u.SHA256, Bytes: u.Bytes}, from)
	defer bundle.close()
	s.Log.Info("the box fetches an update from its head", "version", u.Version, "sha256", u.SHA256)
	if err := s.Updater.Update(ctx, bundle); err != nil {
		return err
	}
	s.Log.Info("the update is being installed", "version", u.Version)
	return nil
}
