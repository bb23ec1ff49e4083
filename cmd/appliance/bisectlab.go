package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"eidetic/analysis/bisect"
	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/bisection"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/doctor"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
	"eidetic/internal/tell/terminal"
)

// localPairs makes trials on this machine.
type localPairs struct {
	plan    plan.Request
	bar     *terminal.Progress
	run     RunCmd
	checked bool // that this machine can
}

// Record implements bisection.Lab.
func (l *localPairs) Record(ctx context.Context, revision string) (string, error) {
	recording, err := l.plan.Recording(revision)
	if err != nil {
		return "", err
	}
	run, folder, err := l.carryOut(ctx, recording, nil)
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, execute.ArchiveFile)
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("run %s made no recording: %s", run.ID, terminal.Plain(run.Error))
	}
	return file, nil
}

// Compare implements bisection.Lab.
func (l *localPairs) Compare(ctx context.Context, c bisection.Comparison, begun func(string) error) (*lab.Run, error) {
	comparison, err := l.plan.Between(c)
	if err != nil {
		return nil, err
	}
	run, _, err := l.carryOut(ctx, comparison, begun)
	return run, err
}

// Ended implements bisection.Lab: the half in namespaces ended with the program that was killed.
func (l *localPairs) Ended(_ context.Context, id string) (*lab.Run, error) {
	run, err := store.ReadRun(filepath.Join(l.run.Out, "runs", id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return run, err
}

// carryOut carries out a plan. A run that could not do all its trials is returned as far as it got.
func (l *localPairs) carryOut(ctx context.Context, q plan.Request, begun func(string) error) (*lab.Run, string, error) {
	if !l.checked {
		if err := doctor.CheckVirtualDevice(ctx); err != nil {
			return nil, "", cannot(err)
		}
		l.checked = true
	}
	task, _, err := l.run.task(ctx, q)
	if err != nil {
		return nil, "", usage(q.Locate(err))
	}
	if begun != nil {
		if err := begun(task.ID); err != nil {
			return nil, "", cannot(err)
		}
	}
	err = task.RunWithEvents(ctx, ownCommands(), newsOf(l.bar))
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	folder := filepath.Join(task.Out, "runs", task.ID)
	run, readErr := store.ReadRun(folder)
	switch {
	case readErr == nil:
		if c := run.Comparison; c != nil {
			l.bar.Say("%s: %s", terminal.Plain(c.Headline), terminal.Plain(c.Detail))
		}
		return run, folder, nil
	case err != nil:
		return nil, "", runError(ctx, err)
	}
	return nil, "", cannot(readErr)
}

// boxPairs makes trials on a box.
type boxPairs struct {
	*waiting
	plan  plan.Request
	named bool // several runs go on at the same time: what is said of one has its name
}

// Record implements bisection.Lab: a box finds a recording by the run that made it.
func (b *boxPairs) Record(ctx context.Context, revision string) (string, error) {
	recording, err := b.plan.Recording(revision)
	if err != nil {
		return "", err
	}
	run, err := b.carryOut(ctx, recording, nil)
	switch {
	case err != nil:
		return "", err
	case run.State != store.StateDone:
		return "", fmt.Errorf("run %s is %s: %s", run.ID, run.State, terminal.Plain(run.Error))
	}
	return run.ID, nil
}

// Compare implements bisection.Lab.
func (b *boxPairs) Compare(ctx context.Context, c bisection.Comparison, begun func(string) error) (*lab.Run, error) {
	comparison, err := b.plan.Between(c)
	if err != nil {
		return nil, err
	}
	return b.carryOut(ctx, comparison, begun)
}

// Ended implements bisection.Lab: a box goes on with a run whoever is killed.
func (b *boxPairs) Ended(ctx context.Context, id string) (*lab.Run, error) {
	_, err := b.box.Run(ctx, id)
	var refused *client.RefusedError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil, nil
	}
	return b.follow(ctx, id)
}

func (b *boxPairs) carryOut(ctx context.Context, q plan.Request, begun func(string) error) (*lab.Run, error) {
	if err := attachFiles(&q); err != nil {
		return nil, usage(q.Locate(err))
	}
	id, err := b.start(ctx, q)
	if err != nil {
		return nil, err
	}
	if begun != nil {
		if err := begun(id); err != nil {
			return nil, cannot(err)
		}
	}
	return b.follow(ctx, id)
}

func (b *boxPairs) follow(ctx context.Context, id string) (*lab.Run, error) {
	show := b.show()
	if b.named {
		show = b.showNamed(id)
	}
	run, err := b.box.Follow(ctx, id, show)
	if ctx.Err() != nil {
		return nil, b.cancel(ctx, id)
	}
	return run, boxError(err)
}

// showNamed returns what says how the trials of one of several runs went. There is no bar: it has room for one.
func (b *boxPairs) showNamed(id string) func(client.Event) {
	var news queueNews
	return func(e client.Event) {
		switch {
		case e.Queued:
			news.say(b.bar, "Run "+id, e.Doing)
		case e.Done != nil:
			b.bar.Say("Run %s, trial %d of %d: %s", id, e.Trial, e.Of, terminal.TrialResult(e.Done))
		}
	}
}

// partOf finds the frame where the culprit and the revision before it part, in the recordings of the runs that
// confirmed it. It is nil where there are none here, as after a bisect on a box, whose reports show them.
func (c *BisectCmd) partOf(found *bisection.Result) (*bisection.Parting, error) {
	if !c.local || found.Kind != bisect.Culprit || len(found.Steps) != 1 {
		return nil, nil
	}
	part, err := bisects.PartOf(c.Out, found.Steps[0])
	if err != nil || part == nil {
		return nil, err
	}
	name := func(s bisection.Seen) string {
		return filepath.Join(c.Out, "runs", s.Run, "trials", store.TrialName(s.Trial), experiment.ReelFile)
	}
	part.Text += fmt.Sprintf(". To see them: appliance reel export %s --frame %d --out before.png, and %s --frame %d --out after.png",
		name(part.Shown[0]), part.Shown[0].Frame, name(part.Shown[1]), part.Shown[1].Frame)
	return part, nil
}
