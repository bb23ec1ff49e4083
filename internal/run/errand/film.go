package errand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/capture/source"
	"eidetic/capture/steady"
	"eidetic/capture/tape"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/device"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
)

// film films the device's screen, as a run does, and keeps that as a run of one trial without measurements.
func (k *Keeper) film(ctx context.Context, e *errand, d Device) error {
	run := k.newRun(e, d, lab.KindFilm, "film of "+d.Name)
	return k.put(e, run, func(dir string) error {
		trial, err := k.shoot(ctx, e, d, filepath.Join(dir, "trials", store.TrialName(1)))
		if err != nil {
			return err
		}
		run.Trials, run.Elapsed = append(run.Trials, trial), time.Since(run.Wall).Seconds()
		source := trial.Capture.Source
		run.Environment.Screen = fmt.Sprintf("%s, %d × %d at %g/s", source.Name, source.Width, source.Height, source.Rate)
		if note := e.state().Note; note != "" {
			run.Warnings = append(run.Warnings, note)
		}
		return nil
	})
}

// newRun is the run that a result is kept as.
func (k *Keeper) newRun(e *errand, d Device, kind, name string) *lab.Run {
	at := time.Now()
	name = cmp.Or(e.request.Name, name)
	return &lab.Run{
		ID: k.Store.FreeID(at, name), Name: name, Kind: kind, Wall: at, State: store.StateDone, Plan: lab.Plan{Name: name, Device: d.Name},
		Trials: []*lab.Trial{}, Summary: []lab.Summary{},
		Environment: lab.Environment{Appliance: k.Software, Host: device.Host{}.Facts()},
	}
}

// camera is a recording in progress.
type camera struct {
	*capture.Recorder
	tape  *tape.Tape
	file  string
	noise *steady.Memory
	state *lab.SourceState
	stop  func() // of what shows it live
}

func open(ctx context.Context, d Device, dir string, preRoll time.Duration) (*camera, error) {
	parts, err := d.Seat.Open()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	c := &camera{file: filepath.Join(dir, experiment.ReelFile), noise: &steady.Memory{}}
	parts.Screen.Noise = c.noise
	src, err := source.Open(ctx, parts.Screen)
	if err != nil {
		return nil, fmt.Errorf("the screen: %w", err)
	}
	header := source.Header(src, parts.Screen.Name, time.Now())
	c.state = execute.SourceOf(parts.Screen.Name, header, nil)
	if c.tape, err = tape.Create(tape.Options{File: c.file, Header: header, PreRoll: preRoll}); err == nil {
		c.Recorder, err = capture.Start(ctx, src, c.tape.Sink(), source.Recording(src))
		if err != nil {
			_ = c.tape.Close()
		}
	}
	if err != nil {
		src.Close()
		return nil, err
	}
	showing, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		execute.ShowLive(showing, c.Latest, func() lab.Time { return c.Status().LastChange }, d.Seat.Live)
	}()
	c.stop = func() { stop(); <-ended }
	return c, nil
}

// close ends the recording, and closes its reel.
func (c *camera) close() (capture.Stats, error) {
	c.stop()
	stats, err := c.Stop()
	return stats, errors.Join(err, c.tape.Close())
}

// shoot makes the film in a folder, with its evidence.
func (k *Keeper) shoot(ctx context.Context, e *errand, d Device, dir string) (*lab.Trial, error) {
	began := time.Now()
	c, err := open(ctx, d, dir, e.request.PreRoll)
	if err != nil {
		return nil, err
	}
	asked, note, err := c.follow(ctx, e)
	stats, stopErr := c.close()
	frames := c.tape.Frames()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case frames == 0:
		return nil, errors.Join(errors.New("the screen gave no picture"), stopErr)
	case stopErr != nil:
		note = fmt.Sprintf("the film ended early: %v", stopErr)
	}
	e.tell(func(s *Status) {
		s.State, s.Doing, s.Ends, s.Frames, s.Note = Keeping, "making the video", nil, frames, note
	})
	t := &lab.Trial{
		Number: 1, Arm: lab.Control, Wall: began, Ended: lab.EndLimit, Valid: true, Measurements: []lab.Measurement{}, Events: []lab.Event{},
		Files: map[string]string{"reel": experiment.ReelFile}, Capture: execute.CaptureOf(stats, c.state, c.noise),
	}
	if err := describe(t, c.file, asked); err != nil {
		return nil, err
	}
	if err := execute.FilmEvidence(ctx, dir, t); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		t.NoEvidence = err.Error() // the reel is there
	}
	return t, nil
}

// describe fills in what a reel says. Times count from when the film was asked for, or from its first frame.
func describe(t *lab.Trial, file string, asked lab.Time) error {
	r, err := reel.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	f := r.Format()
	t.Frames, t.FramesLost, t.FirstFrame = r.Len(), r.Lost(), r.Info(0).Time
	t.ContentW, t.ContentH = f.Width, f.Height
	t.StartFrame = max(0, sort.Search(r.Len(), func(i int) bool { return r.Info(i).Time > asked })-1)
	t.StartTime = max(asked, t.FirstFrame)
	t.VideoLead = t.StartTime.Sub(t.FirstFrame).Seconds() * 1e3
	return nil
}

// follow waits until the film has what was asked for, and returns when its time began, and what is to be known of it.
func (c *camera) follow(ctx context.Context, e *errand) (asked lab.Time, note string, err error) {
	r := e.request
	if c.tape.Waits() {
		e.begins(Waiting, fmt.Sprintf("keeping the last %v until the trigger", r.PreRoll), MostWait)
		limit := time.NewTimer(MostWait)
		defer limit.Stop()
		select {
		case <-ctx.Done():
			return 0, "", nil
		case <-c.Done():
			return 0, "", c.early(errors.New("the screen's source ended before the trigger: nothing was filmed"))
		case <-e.finish:
			return 0, "", errors.New("there was no trigger: nothing was filmed")
		case <-limit.C:
			return 0, "", fmt.Errorf("there was no trigger within %v: nothing was filmed", MostWait)
		case <-e.trigger:
		}
		c.tape.Trigger()
	}
	asked = lab.Monotonic()
	e.begins(Working, "filming", r.Length)
	end := time.NewTimer(r.Length)
	defer end.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return asked, "", nil
		case <-c.Done(): // its error is that of the recording's end
			return asked, "", nil
		case <-e.finish:
			return asked, "", nil
		case <-end.C:
			return asked, "", nil
		case <-tick.C:
		}
		e.tell(func(s *Status) { s.Frames = c.Status().Frames })
		if info, err := os.Stat(c.file); err == nil && info.Size() > mostBytes {
			return asked, fmt.Sprintf("the film ended early: it has %d GiB", mostBytes>>30), nil
		}
	}
}

// early returns an error with why the recording ended.
func (c *camera) early(err error) error { return errors.Join(err, c.Status().Err) }
