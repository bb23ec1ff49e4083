package experiment

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"eidetic/internal/lab"
)

// facts is what was seen of a trial besides its pixels.
type facts struct {
	served          []lab.Served
	filmed          bool
	film            FilmStatus
	bound           time.Duration // the plan's, 0: the default
	link            string        // why the link spoils the trial
	throttledBefore int64
	throttledAfter  int64
	offsetBefore    time.Duration // wall clock less monotonic clock
	offsetAfter     time.Duration
}

// clockStep is the change between wall and monotonic clock that counts as a
// step; slewing by NTP (500 ppm at most) stays below it over a trial.
const clockStep = 50 * time.Millisecond

// judge says why a trial must not enter a statistic, in words that say what to
// do; none means that it is valid.
func judge(t *lab.Trial, f facts) (reasons []string) {
	if t.FramesLost > 0 {
		reasons = append(reasons, fmt.Sprintf("%d of %d frames were lost: the machine could not film at the full rate beside its other work", t.FramesLost, t.Frames+t.FramesLost))
	}
	if reason := unseen(t, f); reason != "" {
		reasons = append(reasons, reason)
	}
	if t.Misses > 0 {
		reasons = append(reasons, fmt.Sprintf("%d of %d requests were not in the archive, first %s: see the replay log", t.Misses, t.Requests, firstMiss(f.served)))
	}
	if n, first := aborted(f.served); n > 0 {
		reasons = append(reasons, fmt.Sprintf("%d answers failed on our side, first %s", n, first))
	}
	if f.link != "" {
		reasons = append(reasons, f.link)
	}
	if t.Ended == lab.EndLimit {
		reasons = append(reasons, "the page did not come to rest within the plan's time limit")
	}
	if step := f.offsetAfter - f.offsetBefore; step > clockStep || step < -clockStep {
		reasons = append(reasons, fmt.Sprintf("the wall clock stepped by %v", step.Round(time.Millisecond)))
	}
	if n := f.throttledAfter - f.throttledBefore; n > 0 {
		reasons = append(reasons, fmt.Sprintf("the processor was throttled %d times", n))
	}
	return reasons
}

// unseen says that a change between the start and the end of the trial has a time
// that is known less well than the plan allows.
func unseen(t *lab.Trial, f facts) string {
	start, end := lab.Time(0), lab.Time(math.MaxInt64)
	for _, e := range t.Events {
		switch e.Name {
		case "navigate":
			start = e.Earliest
		case "end":
			end = e.Latest
		}
	}
	allowed := cmp.Or(f.bound, DefaultBound(f.film))
	worst, ok := lab.WorstUnseen(f.film.Unseen, start, end)
	if start == 0 || !ok || worst.Bound() <= allowed {
		return ""
	}
	return fmt.Sprintf("a change on the screen %.2f s after the start is known to within %.1f ms only, %.1f are allowed: nobody looked at the screen meanwhile, because the machine was too busy (%d looks missed)",
		worst.To.Sub(start).Seconds(), worst.Bound().Seconds()*1e3, allowed.Seconds()*1e3, worst.Missed)
}

func firstMiss(served []lab.Served) string {
	for _, s := range served {
		if s.Stage == lab.StageMiss {
			return s.Method + " " + s.URL
		}
	}
	return ""
}

// aborted counts the answers that went wrong on the box's side; a device that
// went away by itself is its own business.
func aborted(served []lab.Served) (n int, first string) {
	for _, s := range served {
		if s.Error == "" || s.Stage == lab.StageMiss || s.Aborted {
			continue
		}
		if n == 0 {
			first = s.Method + " " + s.URL + ": " + s.Error
		}
		n++
	}
	return n, first
}

// clockOffset is the wall clock less the monotonic one.
func (r *Runner) clockOffset() time.Duration {
	return time.Duration(r.Host.Wall().UnixNano() - int64(r.Clock()))
}
