package experiment

import "time"

// Pace reckons how long a run's trials still take, by those that it has seen.
type Pace struct {
	began time.Time // when the first trial began
	first int       // its number; a run that goes on does not begin with 1
	since time.Time // when the trial in progress began
	at    int       // its number
}

// Left takes note of the trial that is in progress, and returns the time until the last one has ended. It is not known
// before a trial has been made.
func (p *Pace) Left(trial, of int, now time.Time) (left time.Duration, known bool) {
	if trial < 1 {
		return 0, false
	}
	if p.first == 0 {
		p.first, p.began = trial, now
	}
	if trial != p.at {
		p.at, p.since = trial, now
	}
	made := trial - p.first
	if made < 1 {
		return 0, false
	}
	each := p.since.Sub(p.began) / time.Duration(made)
	return max(each*time.Duration(max(of-trial+1, 0))-now.Sub(p.since), 0), true
}
