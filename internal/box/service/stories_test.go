package service

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"eidetic/internal/box/automation"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// A story is twenty commits, of which one does not build, and one has loads that vary four times as much. The loads of
// the others vary by 5 % of their 500 ms, as those of the sample site do.
const (
	storyCommits = 20
	storySpread  = 25
)

// storyOf are the commits of a story: from the culprit on they are slower. Without one all are alike.
func storyOf(rng *rand.Rand, culprit int, slower float64) (all []commit) {
	broken, flaky := 3+rng.IntN(storyCommits-5), 3+rng.IntN(storyCommits-5)
	for i := range storyCommits {
		l := loads{spread: storySpread}
		if culprit > 0 && i >= culprit {
			l.delay = slower
		}
		if i == flaky {
			l.spread *= 4
		}
		c := commit{l.String(), fmt.Sprintf("Author%d", i), fmt.Sprintf("change %d", i)}
		if i == broken && i != culprit {
			c.delay = "broken"
		}
		all = append(all, c)
	}
	return all
}

// tell lets a story happen: a run of the second commit, and then runs of the last. It returns the alerts.
func tell(t *testing.T, story []commit, runs int) (alerts []automation.Alert, commits []string) {
	t.Helper()
	root, ctx := t.TempDir(), t.Context()
	commits = repository(t, filepath.Join(root, "git"), story)
	var mu sync.Mutex
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	b := newLoopBox(root, func() time.Time { mu.Lock(); defer mu.Unlock(); return now }, nil)
	b.world.spread = storySpread
	if err := b.open(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	}()
	plan := lab.Plan{Name: "checkout", Trials: 20, Arm: lab.Arm{Page: "https://www.shop.example/"}, Treatment: &lab.Arm{Page: "https://trunk.shop.example/"}}
	_, err := b.keeper.PutWorkflow(ctx, "checkout", plan, nil, "ada", automation.Expect{})
	if err == nil {
		_, err = b.keeper.PutSchedule(ctx, "often", automation.Timing{Workflow: "checkout", Every: "2h", Bisect: &automation.Bisecting{Repository: "shop"}}, "ada",
			automation.Expect{})
	}
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for i := range runs {
		if i == 1 {
			if out, err := exec.CommandContext(ctx, "git", "-C", filepath.Join(root, "git"), "reset", "--quiet", "--hard", commits[len(commits)-1]).CombinedOutput(); err != nil {
				t.Fatalf("git reset: %v: %s", err, out)
			}
		}
		mu.Lock()
		now = now.Add(2 * time.Hour)
		mu.Unlock()
		b.await(t, "a run", func() bool {
			past, err := b.keeper.Firings(ctx, "often", 1)
			if err != nil || len(past) != 1 || past[0].State != automation.FiringRun || past[0].Run == last {
				return false
			}
			run, err := b.world.store.Run(past[0].Run)
			if err != nil || run.State != store.StateDone {
				return false
			}
			// The schedule leaves out its next time while the queue has the job, which ends a little after its run is kept.
			if going, err := b.works.InProgress(ctx); err != nil || going != "" {
				return false
			}
			last = run.ID
			return true
		})
		if err := b.keeper.Tell(ctx); err != nil {
			t.Fatal(err)
		}
	}
	b.await(t, "the end of the bisects", func() bool {
		alerts, err = b.keeper.Alerts(ctx, automation.Filter{Limit: 50})
		if err != nil {
			return false
		}
		for _, a := range alerts {
			if a.Bisection != nil && (a.Bisection.State == "due" || a.Bisection.State == "waiting" || a.Bisection.State == "running") {
				return false
			}
		}
		return true
	})
	return alerts, commits
}

// TestStories: of ten stories with a culprit at a random place, 60 to 150 ms slower, nine at least end with its author,
// and none with another's name; of twenty without one at most one raises an alert.
func TestStories(t *testing.T) {
	testlab.Long(t, "thirty stories of twenty commits")
	testlab.NeedProgram(t, "git")
	rng := rand.New(rand.NewPCG(48, 1))
	right, trials, alarms := 0, 0, 0
	for i := range 10 {
		culprit, slower := 2+rng.IntN(storyCommits-3), 60+90*rng.Float64()
		alerts, commits := tell(t, storyOf(rng, culprit, slower), 2)
		for _, a := range alerts {
			b := a.Bisection
			if b == nil {
				t.Logf("story %d: alert %d of %s has no bisection", i, a.ID, a.Run)
				continue
			}
			trials += b.Trials
			t.Logf("story %d: commit %d is slower by %.0f ms; %d trials: %s %s %s", i, culprit, slower, b.Trials, b.State, b.Text, b.Reason)
			switch {
			case b.Kind == "culprit" && b.Revision == commits[culprit]:
				right++
			case b.Kind == "culprit":
				t.Errorf("story %d names %s of %s; want %s", i, b.Revision, b.Author, commits[culprit])
			}
		}
	}
	for i := range 20 {
		alerts, _ := tell(t, storyOf(rng, 0, 0), 2)
		alarms += len(alerts)
		for _, a := range alerts {
			t.Logf("flat story %d: alert %d: %s", i, a.ID, a.Text)
		}
	}
	t.Logf("%d of 10 culprits, %d trials each; %d alarms of 20 flat stories", right, trials/10, alarms)
	if right < 9 || alarms > 1 {
		t.Errorf("%d of 10 culprits are found and %d of 20 flat stories raise an alarm; want at least 9 and at most 1", right, alarms)
	}
}
