package experiment

import (
	"maps"
	"math"
	"time"

	"eidetic/internal/lab"
)

// The parts of a trial, in order.
const (
	PartBirth    = "birth"    // arming the network and starting the device, until it shows the synchronisation page
	PartSettle   = "settle"   // waiting until that page is still, and a random wait
	PartLoad     = "load"     // from the navigation to the last change on the screen
	PartStill    = "still"    // from the last change until the end is detected
	PartStop     = "stop"     // ending recording and device, writing the logs
	PartAnalysis = "analysis" // measuring the recording
	PartEvidence = "evidence" // pictures and film for people
)

// Parts lists the parts of a trial.
func Parts() []string {
	return []string{PartBirth, PartSettle, PartLoad, PartStill, PartStop, PartAnalysis, PartEvidence}
}

// parts records what a trial's time and processor time are spent on. It does not query the
// system between the navigation and the end.
type parts struct {
	clock lab.Clock
	usage func() map[string]time.Duration // nil if processor time is unknown
	trial *lab.Trial
	since lab.Time // start of the current part
	used  map[string]time.Duration
}

func (r *Runner) parts(t *lab.Trial) *parts {
	p := &parts{clock: r.Clock, usage: r.Usage, trial: t, since: r.Clock()}
	if p.usage != nil {
		p.used = maps.Clone(p.usage())
	}
	return p
}

// end ends the current part now.
func (p *parts) end(name string) { p.endAt(name, p.clock()) }

// endAt ends the current part at an instant and records the processor time until now.
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

// wall ends a part at an instant that may be in the past. Its processor time is counted in
// the part that follows.
func (p *parts) wall(name string, at lab.Time) {
	at = max(at, p.since)
	p.trial.Parts = append(p.trial.Parts, lab.TrialPart{Name: name, MS: tenth(at.Sub(p.since))})
	p.since = at
}

// tenth converts a duration to milliseconds with one decimal.
func tenth(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 10 }
