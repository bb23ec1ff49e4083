package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/store"
	"eidetic/netlab/link"
	"eidetic/netlab/replay"
)

// Order is what a run is to do; it is the plan in run.json.
type Order struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Device string `json:"device,omitempty"` // what it was asked of, where there is more than one
	Arms   []Arm  `json:"arms"`             // the control, and where two are compared the treatment
	Trials int    `json:"trials"`           // of each arm
	// Timing of a replay: recorded, none, or fixed:20ms.
	Timing string `json:"timing"`
	// Still is how long screen and network must be still at a load's end, Limit
	// how long it may take.
	Still Duration `json:"still"`
	Limit Duration `json:"limit"`
	Seed  uint64   `json:"seed"` // of everything that is drawn by lot
	// Tolerance is how much blur a valid trial may have; 0 is one frame, which is
	// relaxed where the machine cannot keep it.
	Tolerance Duration `json:"tolerance,omitzero"`
	// Live loads the page from its origins in every trial; nothing is replayed.
	Live bool `json:"live,omitempty"`
	// OpenTrace opens the trace files that links name; nil refuses them, as is
	// right for orders that came over a network.
	OpenTrace func(name string) (io.ReadCloser, error) `json:"-"`
}

// Arm is one side of a comparison.
type Arm struct {
	Name    string `json:"name"` // lab.Control or lab.Treatment
	Page    string `json:"page"`
	Archive string `json:"archive,omitempty"` // file to replay; without it the page is recorded first
	Link    string `json:"link"`              // name or parameters of a profile
}

// Duration is written as "1.5s".
type Duration struct{ time.Duration }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

// MinStill is the shortest time after which a page may be taken for loaded.
const MinStill = 200 * time.Millisecond

// MaxTolerance is the largest blur that a plan may allow.
const MaxTolerance = time.Minute

// maxLoading bounds what all trials of an order may take to load together. The
// series of each frame are held for the report until the run ends: at 60 frames
// a second half a gigabyte.
const maxLoading = store.MaxTrials * time.Minute

// Validate says what is wrong with the order.
func (o Order) Validate() error {
	if !store.ValidID(o.ID) {
		return fmt.Errorf("order: %q is no identifier of a run", o.ID)
	}
	if n := len(o.Arms); n < 1 || n > 2 || o.Arms[0].Name != lab.Control || n == 2 && o.Arms[1].Name != lab.Treatment {
		return errors.New("order: the arms are control and, where two are compared, treatment")
	}
	if o.Trials < 1 || o.Trials*len(o.Arms) > store.MaxTrials {
		return fmt.Errorf("trials: %d for each of %d arms; at least 1, and at most %d in all", o.Trials, len(o.Arms), store.MaxTrials)
	}
	if n := o.Trials * len(o.Arms); o.Limit.Duration > maxLoading/time.Duration(n) {
		return fmt.Errorf("%d trials with a limit of %v each: that is more than %v in all; ask for fewer, or for a lower limit", n, o.Limit, maxLoading)
	}
	if o.Still.Duration < MinStill || o.Limit.Duration < o.Still.Duration {
		return fmt.Errorf("still %v and limit %v: at least %v, and the limit no shorter", o.Still, o.Limit, MinStill)
	}
	if o.Tolerance.Duration < 0 || o.Tolerance.Duration > MaxTolerance {
		return fmt.Errorf("tolerance %v: above 0 and at most %v, or 0 for one frame that is relaxed where the machine cannot keep it", o.Tolerance, MaxTolerance)
	}
	if _, err := replay.ParseTiming(o.Timing); err != nil {
		return fmt.Errorf("timing: %w", err)
	}
	for _, a := range o.Arms {
		if err := ValidPage(a.Page); err != nil {
			return fmt.Errorf("page of the %s: %w", a.Name, err)
		}
		if o.Live && a.Archive != "" {
			return errors.New("a live run replays nothing: leave out the archive")
		}
	}
	_, err := o.links()
	return err
}

// ValidPage says what is wrong with the URL of a page.
func ValidPage(page string) error {
	u, err := url.Parse(page)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%q: it must be an absolute http or https URL", page)
	}
	return nil
}

// profile is an arm's link.
type profile struct {
	link.Profile
	facts map[string]any
}

func (o Order) links() (map[string]profile, error) {
	all := map[string]profile{}
	for _, a := range o.Arms {
		p, err := link.Reader{Open: o.OpenTrace}.Parse(a.Link)
		if err != nil {
			return nil, fmt.Errorf("link of the %s: %w", a.Name, err)
		}
		all[a.Name] = profile{p, asMap(p)}
	}
	return all, nil
}

// SyncURL leads from the box's green page to a page under test.
func SyncURL(page string) string { return "http://box.test/sync?next=" + url.QueryEscape(page) }

// asMap turns a struct into what its JSON holds.
func asMap(v any) map[string]any {
	content, err := json.Marshal(v)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	m := map[string]any{}
	if err := json.Unmarshal(content, &m); err != nil {
		return map[string]any{"error": err.Error()}
	}
	return m
}
