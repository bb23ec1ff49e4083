package experiment

import (
	"maps"
	"math"
	"time"

	"eidetic/internal/lab"
)

// The parts of a trial, in their order.
const (
	PartBirth    = "birth"    // arming the network, starting the device, until it shows the synchronisation page
	PartSettle   = "settle"   // that page is still, and the wait that is drawn by lot
	PartLoad     = "load"     // from the navigation to the last change on the screen
	PartStill    = "still"    // from there until the end was known
	PartStop     = "stop"     // ending recording and device, writing the logs
	PartAnalysis = "analysis" // measuring the recording
	PartEvidence = "evidence" // pictures and film for people
)

// Parts lists them.
func Parts() []string {
	return []string{PartBirth, PartSettle, PartLoad, PartStill, PartStop, PartAnalysis, PartEvidence}
}

// parts notes what a trial's time and processor time went into. Nothing is
// asked of the system between the navigation and the end.
type parts struct {
	clock lab.Clock
	usage func() map[string]time.Duration // nil: processor time is not known
	trial *lab.Trial
	since lab.Time // where the part begins that goes on
	used  map[string]time.Duration
}

func (r *Runner) parts(t *lab.Trial) *parts {
	p := &parts{clock: r.Clock, usage: r.Usage, trial: t, since: r.Clock()}
	if p.usage != nil {
		p.used = maps.Clone(p.usage())
	}
	return p
}

// end ends the part that goes on, now.
func (p *parts) end(name string) { p.endAt(name, p.clock()) }

// endAt ends it at an instant and notes the processor time until now.
func (p *parts) endAt(name string, at lab.Time) {
	p.wall(name, at)
	if p.usage == nil {
		return
	}
	used := maps.Clone(p.usage())
	spent := map[string]float64{}
	for who, d := range used {
		if more := d - p.used[who]; more > 0 {
			spent[who] = tenth(more)
		}
	}
	p.used = used
	p.trial.Parts[len(p.trial.Parts)-1].Processor = spent
}

// wall ends a part at an instant that may be past. Its processor time counts
// with that of the part which follows.
func (p *parts) wall(name string, at lab.Time) {
	at = max(at, p.since)
	p.trial.Parts = append(p.trial.Parts, lab.TrialPart{Name: name, MS: tenth(at.Sub(p.since))})
	p.since = at
}

// tenth is a duration in milliseconds, with one decimal.
func tenth(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 10 }
