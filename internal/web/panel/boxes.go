package panel

import (
	"context"
	"io"
	"time"

	"eidetic/internal/lab"
)

// Boxes are the boxes of a fleet, as its head knows them. Errors are shown to the client if they are a [Refusal].
type Boxes interface {
	// List lists the boxes by name.
	List(ctx context.Context) ([]Box, error)
	// NewCode makes a code with which one box can join.
	NewCode(ctx context.Context, by string) (JoinCode, error)
	// Change changes what people may change of a box.
	Change(ctx context.Context, name string, c BoxChange) (Box, error)
	// Remove forgets a box: its certificate is worth nothing from then on, and its parts go back into the queue.
	Remove(ctx context.Context, name string) error
	// Readings are what a device of a box measured of the reference, oldest first.
	Readings(ctx context.Context, name, device string) (BoxReadings, error)
	// Reference is what all boxes measure; nil if there is none.
	Reference(ctx context.Context) (*Reference, error)
	SetReference(ctx context.Context, r Reference) error
	// RemoveReference ends the measurements; the readings stay.
	RemoveReference(ctx context.Context) error
	// Measure has a device of a box measure the reference now; it returns the run.
	Measure(ctx context.Context, name, device string) (run string, err error)
	// Rebase accepts a box's level as it is now.
	Rebase(ctx context.Context, name, device string) error
	// Rollout is the newest update of the boxes; nil if there was none.
	Rollout(ctx context.Context) (*Rollout, error)
	// Update has boxes install a signed bundle, one after another. The head does not check who signed it: each box
	// does.
	Update(ctx context.Context, u BoxUpdate) (Rollout, error)
	// StopUpdate ends the update: boxes whose turn has not come stay as they are.
	StopUpdate(ctx context.Context, by string) (Rollout, error)
}

// BoxUpdate is an update that is asked for.
type BoxUpdate struct {
	Bundle io.Reader
	Boxes  []string // names, in their order; none: all
	Labels []string // KEY=PATTERN: boxes that have all of these
	By     string   // name of the token
	Key    string   // of a request that may be repeated, or ""
}

// Rollout is an update that the boxes of a fleet install, one after another.
type Rollout struct {
	ID      string       `json:"id" doc:"Identifies it" example:"20261124-090000-k7qm3v"`
	Version string       `json:"version" doc:"Version that the boxes get" example:"1.4"`
	State   string       `json:"state" enum:"running,done,stopped" doc:"stopped: a box has a problem, or a person stopped it"`
	Why     string       `json:"why,omitempty" doc:"Why it stopped"`
	Doing   string       `json:"doing" doc:"How far it is, in words" example:"1 of 3 boxes updated; lab-2 measures the reference"`
	By      string       `json:"by" doc:"Name of the token that asked for it"`
	Began   time.Time    `json:"began"`
	Ended   *time.Time   `json:"ended,omitempty"`
	Boxes   []RolloutBox `json:"boxes" doc:"In their order"`
}

// RolloutBox is a box of such an update.
type RolloutBox struct {
	Name  string     `json:"name" example:"lab-1"`
	State string     `json:"state" enum:"waiting,draining,measuring,updating,checking,updated,skipped,failed" doc:"draining: it gets no new runs, and those that it carries out end; measuring: it measures the reference; updating: it is told to install the update; checking: it runs the update and measures the reference again; failed: the update stopped at it"`
	Since *time.Time `json:"since,omitempty" doc:"When that began"`
	Why   string     `json:"why,omitempty" doc:"Why it was skipped or failed"`
}

// Box is a box of a fleet.
type Box struct {
	Name     string            `json:"name" doc:"Its name" example:"lab-1"`
	ID       string            `json:"id" doc:"Identifier that the head gave it"`
	State    string            `json:"state" enum:"idle,reserved,running,lost" doc:"idle; reserved: its devices are busy with runs of its own; running: it carries out runs of the fleet; lost: nothing was heard of it for a while"`
	Health   string            `json:"health" enum:"unknown,good,drifting,bad,maintenance" doc:"What its measurements of the reference say, or what a person said"`
	Reason   string            `json:"reason,omitempty" doc:"Why, in words"`
	Joined   time.Time         `json:"joined" doc:"When it joined"`
	Seen     time.Time         `json:"seen" doc:"When it was last heard of"`
	Software string            `json:"software" doc:"Version of its appliance"`
	Image    string            `json:"image,omitempty" doc:"Version of the image that it runs from; absent on a machine without one, which gets no updates from here" example:"1.4"`
	Cores    int               `json:"cores" doc:"Its processors"`
	Memory   int64             `json:"memory_bytes" doc:"Its memory"`
	Labels   map[string]string `json:"labels,omitempty" doc:"Its own, and those that were given here"`
	Devices  []BoxDevice       `json:"devices"`
	Pin      string            `json:"fingerprint" doc:"SHA-256 of its certificate"`
}

// BoxDevice is a device of a box.
type BoxDevice struct {
	Name     string            `json:"name" example:"virtual"`
	Kind     string            `json:"kind" enum:"virtual,port"`
	Ready    bool              `json:"ready"`
	Problem  string            `json:"problem,omitempty"`
	Screen   string            `json:"screen,omitempty"`
	Controls string            `json:"controls,omitempty"`
	Browsers []string          `json:"browsers,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Run      string            `json:"run,omitempty" doc:"The fleet's run that it carries out"`
	Doing    string            `json:"doing,omitempty" doc:"How far that is, in words"`
	Health   string            `json:"health" enum:"unknown,good,drifting,bad,maintenance"`
	Reason   string            `json:"reason,omitempty"`
	// Levels are for a list and for Prometheus; BoxReadings have what they rest on.
	Levels []BoxLevel `json:"levels,omitempty" doc:"By how much its measurements of the reference differ from its baseline; absent without a baseline"`
}

// BoxLevel is by how much the level of a metric differs from the baseline.
type BoxLevel struct {
	Metric  string  `json:"metric" example:"time_to_stable_ms"`
	Percent float64 `json:"percent" doc:"Above 0: it is slower, or larger, than it was" example:"0.4"`
}

// JoinCode lets one box join.
type JoinCode struct {
	Link    string    `json:"link" doc:"What the box is given: appliance join LINK. It holds the code and the fingerprint of the head's certificate, and can be used once" example:"eidetic-head://head.example:8443/K7QM3VTD9XW2?pin=3b1c…"`
	Expires time.Time `json:"expires" doc:"When it is worth nothing any more"`
}

// BoxChange is what is to change of a box; what is nil stays.
type BoxChange struct {
	Maintenance *bool              `json:"maintenance,omitempty" doc:"Whether it gets no runs but those of the reference"`
	Bad         *bool              `json:"bad,omitempty" doc:"Whether it gets no runs; false accepts a box again that was found bad"`
	Reason      *string            `json:"reason,omitempty" maxLength:"300" doc:"Why, for others"`
	Labels      *map[string]string `json:"labels,omitempty" doc:"Labels that are added to its own, in place of those that were given before"`
}

// BoxReadings are what a device of a box measured of the reference.
type BoxReadings struct {
	Box         string           `json:"box"`
	Device      string           `json:"device"`
	Health      string           `json:"health" enum:"unknown,good,drifting,bad,maintenance"`
	Why         string           `json:"why" doc:"In words"`
	Since       *time.Time       `json:"since,omitempty" doc:"Since when it is so"`
	Changed     []string         `json:"changed" doc:"What else changed then: versions, settings"`
	Calibration *lab.Calibration `json:"calibration,omitempty" doc:"What a run on it is given, so that it can be compared with runs on other boxes"`
	Baselines   []BoxBaseline    `json:"baselines" doc:"Of each metric: what is normal for it; none while it has measured too seldom"`
	Readings    []BoxReading     `json:"readings" doc:"Oldest first"`
	Metrics     []BoxMetric      `json:"metrics" doc:"What the readings have, in the order in which they have it"`
}

// BoxMetric is a metric with its name for people.
type BoxMetric struct {
	Metric string `json:"metric" example:"time_to_stable_ms"`
	Label  string `json:"label" doc:"As in reports" example:"Looks finished"`
}

// BoxBaseline is what is normal for a device: the level of a metric when it was accepted, and the band in which a
// steady box's reference runs lie.
type BoxBaseline struct {
	Metric string  `json:"metric" example:"time_to_stable_ms"`
	Unit   string  `json:"unit" example:"ms"`
	Median float64 `json:"median" doc:"The level"`
	Low    float64 `json:"low" doc:"Lower edge of the band"`
	High   float64 `json:"high" doc:"Upper edge of the band"`
	// Drifted says that Since is of this metric.
	Drifted bool `json:"drifted" doc:"Whether the level is another one now"`
}

// BoxReading is one run of the reference.
type BoxReading struct {
	Run     string                 `json:"run" doc:"Identifier of the run"`
	At      time.Time              `json:"at" doc:"When it was made"`
	Levels  []lab.CalibrationLevel `json:"levels" doc:"Of each metric: the median of the run's valid trials, and within it their spread"`
	Thrown  float64                `json:"thrown_percent" doc:"Share of trials that were not valid"`
	Stolen  float64                `json:"stolen_percent" doc:"Processor time that a hypervisor took"`
	ClockMS float64                `json:"clock_ms" doc:"By how much the box's wall clock differs from the head's"`
}

// Reference is what all boxes of a fleet measure regularly, so that their numbers can be compared.
type Reference struct {
	Plan  lab.Plan `json:"plan" doc:"A plan of one page with a recording, without a treatment and without device"`
	Every string   `json:"every" doc:"How often each device measures it" example:"6h"`
	ID    string   `json:"id,omitempty" doc:"Identifies plan and recording; readings of another reference are not compared with"`
}
