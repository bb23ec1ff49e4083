package member

import (
	"errors"
	"os"
	"strings"
	"time"

	"eidetic/internal/fleet"
)

// Status is what people see of the box's place in a fleet.
type Status struct {
	Identity           // zero when it belongs to no head
	Contact  time.Time // the head's last answer since the service started; zero for none
	Problem  string    // of the last call that failed, if none has succeeded since, or why the box is no member
	Health   string    // what the head says of the box, and why
	Reason   string
	Parts    []PartStatus
}

// PartStatus is a part that the box holds.
type PartStatus struct {
	Part, Run, Device string // Run is the box's own, empty before it is chosen
	Attempt           int
	State             string // fetching, waiting, running, handing in or returning
	Progress          fleet.Progress
	Problem           string
	Since             time.Time // when it was claimed
}

// Status returns how the box stands with its head. The error is of a box that keeps something of a head that cannot be
// read.
func (k *Keeper) Status() (st Status, err error) {
	k.mu.Lock()
	s := k.session
	k.mu.Unlock()
	if s == nil {
		st.Identity, err = readIdentity(k.Dir)
		if errors.Is(err, ErrNotJoined) {
			return st, nil
		}
		return st, err
	}
	parts := s.list()
	s.mu.Lock()
	st.Identity, st.Contact, st.Problem, st.Health, st.Reason = s.identity, s.contact, s.problem, s.health.Health, s.health.Reason
	s.mu.Unlock()
	for _, p := range parts {
		p.mu.Lock()
		st.Parts = append(st.Parts, PartStatus{
			Part: p.kept.Part, Run: p.kept.Run, Device: p.kept.Device, Attempt: p.kept.Attempt, State: p.state, Progress: p.progress,
			Problem: p.problem, Since: p.kept.Claimed,
		})
		p.mu.Unlock()
	}
	return st, nil
}

// DefaultName is a name for this machine in a fleet, from its host name.
func DefaultName() string {
	host, _ := os.Hostname() // without one it is a box
	host, _, _ = strings.Cut(strings.ToLower(host), ".")
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, host), "-")
	if fleet.CheckBoxName(name) != nil {
		return "box"
	}
	return name
}
