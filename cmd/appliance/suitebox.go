package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/box/suites"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/suite"
	"eidetic/internal/tell/terminal"
	"eidetic/internal/web/panel"
)

// lookAtSuite is how often a box is asked what became of a suite.
const lookAtSuite = 2 * time.Second

// measureThere has a box measure the suite.
func (c *SuiteRunCmd) measureThere(ctx context.Context, std *streams) error {
	box, err := c.client(std, c.Patience)
	if err != nil {
		return err
	}
	defer box.Close()
	bar := terminal.NewProgress(std.err)
	defer bar.Close()
	if err := box.CheckReady(ctx); err != nil {
		return boxError(err)
	}
	name, err := c.bring(ctx, box, bar)
	if err != nil {
		return err
	}
	if !c.NoWait {
		if _, err := makeOut(c.Out); err != nil {
			return cannot(err)
		}
	}
	if ctx.Err() != nil {
		return cannot(errors.New("interrupted before the suite was asked for"))
	}
	asking, done := untilInterruptedAgain(context.WithoutCancel(ctx), startLimit)
	defer done()
	r, err := box.MeasureSuite(asking, panel.NewSuiteResult{
		Suite: name, Browsers: c.Browsers, Only: c.Only, Trials: c.Trials, Seed: c.Seed, Device: c.Device, Spread: c.Spread,
	})
	if err != nil {
		return boxError(err)
	}
	if c.NoWait {
		fmt.Fprintln(std.out, r.ID)
		return nil
	}
	bar.Say("Result %s on %s: %d %s", r.ID, box.Base(), r.Runs, lab.Plural(r.Runs, "run", "runs"))
	if r, err = c.follow(ctx, box, bar, r); err != nil {
		return err
	}
	found, err := box.SuiteFile(ctx, r.ID)
	if err != nil {
		return boxError(err)
	}
	if err := found.Write(c.Out); err != nil {
		return cannot(err)
	}
	bar.Close()
	err = c.tell(std, found)
	if r.State != ownruns.StateDone {
		return cannot(fmt.Errorf("the result %s %s: %s", r.ID, r.State, terminal.Plain(cmp.Or(r.Error, "somebody stopped it"))))
	}
	return err
}

// bring uploads a suite that is a file here, with the recordings beside it, and returns its name on the box.
func (c *SuiteRunCmd) bring(ctx context.Context, box *client.Client, bar *terminal.Progress) (string, error) {
	if _, err := os.Stat(c.Suite); err != nil { // of the box, or of its program
		return c.Suite, nil
	}
	s, err := suite.Open(c.Suite)
	if err != nil {
		return "", usage(err)
	}
	if slices.Contains(suite.Shipped(), c.Suite) {
		return c.Suite, nil
	}
	for i, e := range s.Entries {
		q, err := s.PlanOf(i, nil, 0, 0)
		if err != nil {
			return "", usage(err)
		}
		if q.Archive == "" {
			continue
		}
		// The suite names it, so it has this name on the box, too.
		file := filepath.Join(filepath.Dir(c.Suite), q.Archive)
		if err := suite.CheckRecording(file, e.SHA256); errors.Is(err, os.ErrNotExist) {
			continue // of the box
		} else if err != nil {
			return "", usage(fmt.Errorf("%w", s.Locate(i, &lab.FieldError{Path: "archive", Err: err})))
		}
		err = box.PutArchive(ctx, q.Archive, file, func(size int64) {
			bar.Say("Uploading %s (%.1f MB) to the box", file, float64(size)/1e6)
		})
		if err != nil {
			return "", boxError(fmt.Errorf("archive %s: %w", q.Archive, err))
		}
	}
	return s.Name, boxError(box.PutSuite(ctx, s))
}

// follow shows how a result goes on until it has ended. Ctrl-C stops it.
func (c *SuiteRunCmd) follow(
	ctx context.Context, box *client.Client, bar *terminal.Progress, r client.SuiteResult,
) (client.SuiteResult, error) {
	said, doing := map[string]bool{}, ""
	tick := time.NewTicker(lookAtSuite)
	defer tick.Stop()
	for {
		now, err := box.SuiteResult(ctx, r.ID)
		if err == nil {
			r = now
			for _, e := range r.Entries {
				if e.State != suite.StateBegun && !said[e.Run] {
					said[e.Run] = true
					bar.Say("%s", terminal.Plain(endOf(e)))
				}
			}
			if r.IsGoing() && r.Doing != "" && r.Doing != doing && !c.Quiet {
				doing = r.Doing
				bar.Say("%s", terminal.Plain(doing))
			}
			if !r.IsGoing() {
				return r, nil
			}
		}
		select {
		case <-ctx.Done():
			stopping, done := untilInterruptedAgain(context.WithoutCancel(ctx), cancelLimit)
			defer done()
			if err := box.StopSuiteResult(stopping, r.ID); err != nil {
				return r, boxError(fmt.Errorf("the result %s goes on: %w", r.ID, err))
			}
			return r, cannot(fmt.Errorf("interrupted: the result %s is stopped; appliance suite resume %s goes on with it", r.ID, r.ID))
		case <-tick.C:
		}
		if err != nil && ctx.Err() == nil {
			return r, boxError(err)
		}
	}
}

// endOf says how a run of a suite has ended.
func endOf(e suites.Entry) string {
	if e.State == store.StateDone {
		return fmt.Sprintf("%s: %d of %d trials valid (%s)", e.Entry, e.Valid, e.Trials, e.Run)
	}
	return fmt.Sprintf("%s: %s: %s (%s)", e.Entry, e.State, e.Error, e.Run)
}
