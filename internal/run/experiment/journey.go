package experiment

import (
	"context"
	"fmt"
	"time"

	"eidetic/internal/lab"
)

// Journey carries out the steps of a plan on the device.
type Journey interface {
	// Begin is called while the device shows the synchronisation page.
	Begin(film Film) (Play, error)
}

// Play is a journey in one trial.
type Play interface {
	// Run carries out the steps, of which the first one's input has been given, and fills in
	// the trial's steps. An error that Broken marks makes the trial invalid.
	Run(ctx context.Context, s Scene) error
}

// Scene is what the steps of a trial are carried out with.
type Scene struct {
	Trial *lab.Trial
	Dir   string // of the trial's artifacts
	Steps []lab.Step
	// Navigate is the input of the first step.
	Navigate lab.Event
	Still    time.Duration // of the default end
	Limit    time.Duration // of a step that has none of its own
	Film     Film
	Life     Life
	Traffic  func() Traffic
	// Look waits until the trial is to be checked again. Its error ends the trial.
	Look        func(context.Context) error
	MainThreads func() map[int]time.Duration
	Doing       func(step string)
}

// scene is what perform has made for a trial.
type scene struct {
	trial   *lab.Trial
	dir     string
	play    Play
	life    Life
	film    Film
	session Session
	borne   *breaks
}

// toEnd waits for the end of the page load, or carries out the steps of a journey. A recording listens on after that.
func (r *Runner) toEnd(ctx context.Context, p Plan, s scene, navigate lab.Event) (lab.End, error) {
	end := r.carryOut
	if s.play == nil {
		end = r.awaitEnd
	}
	ended, err := end(ctx, p, s, navigate)
	if err != nil || !p.recording || ended == lab.EndLimit {
		return ended, err
	}
	return ended, r.listenOn(ctx, p.Still, s.session)
}

// carryOut carries out the steps of a journey.
func (r *Runner) carryOut(ctx context.Context, p Plan, s scene, navigate lab.Event) (lab.End, error) {
	err := s.play.Run(ctx, Scene{
		Trial: s.trial, Dir: s.dir, Steps: p.Steps, Navigate: navigate, Still: p.Still, Limit: p.Limit,
		Film: s.film, Life: s.life, Traffic: s.session.Traffic, MainThreads: r.MainThreads,
		Look: func(ctx context.Context) error { return r.look(ctx, s.life, s.film, s.borne) },
		Doing: func(step string) {
			r.progress(Step{Trial: s.trial.Number, Of: p.Trials, Doing: "step " + step})
		},
	})
	if err != nil {
		return failedEnd(s.trial), err
	}
	noteRest(s.session, r.Clock())
	return lab.EndSteps, nil
}

// failedEnd is the end of a trial of which a step failed.
func failedEnd(t *lab.Trial) lab.End {
	for _, s := range t.Steps {
		if s.End == lab.StepLimit {
			return lab.EndLimit
		}
	}
	return ""
}

// marksOf returns the calls of lab.done() that belong into the event log: a load has one end.
func marksOf(t Traffic, journey bool) []lab.Event {
	switch {
	case journey:
		return t.Marks
	case t.Done != nil:
		return []lab.Event{*t.Done}
	}
	return nil
}

// judgeSteps counts each step's requests, and returns why a trial's steps make it invalid. What
// ended the trial is told by Play's error, and misses by the trial's own count.
func judgeSteps(t *lab.Trial, served []lab.Served) (reasons []string) {
	for _, s := range t.Steps {
		if s.End != lab.StepLimit && s.End != lab.StepFailed {
			for _, reason := range s.Invalid {
				reasons = append(reasons, fmt.Sprintf("step %q: %s", s.Name, reason))
			}
		}
		s.Requests, s.Misses = 0, 0
		for _, one := range served {
			if one.Time < s.First.Earliest || s.Seen > 0 && one.Time > s.Seen || one.Stage == lab.StageBox {
				continue
			}
			s.Requests++
			if one.Stage == lab.StageMiss {
				s.Misses++
			}
		}
		if s.Misses > 0 {
			s.Invalid = append(s.Invalid, fmt.Sprintf("%d of %d requests were not in the archive", s.Misses, s.Requests))
		}
		s.Valid = len(s.Invalid) == 0
	}
	return reasons
}
