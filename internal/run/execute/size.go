package execute

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/verdict"
)

// size says, once enough trials tell, how many pairs find which difference, and chooses how many are made if the plan
// names the one that is to be found. It is nil where nothing is compared.
func (x *Execution) size() func(run *lab.Run) (pairs int, looks []int, known bool) {
	if !x.Plan.Compares() || x.Plan.IsMany() {
		return nil
	}
	asked := 0
	return func(run *lab.Run) (int, []int, bool) {
		said := verdict.Sizes(run)
		if asked++; said == "" {
			return 0, nil, asked > 2*verdict.SizeAfter // nothing to be told of: no verdict rests on these trials
		}
		run.Size = verdict.SizeOf(run)
		s := run.Size
		if s == nil {
			x.News.say("As loads vary here (%s). This run makes %d", said, x.Plan.Trials)
			return 0, nil, true
		}
		more := ""
		if s.Needed > s.Pairs {
			more = fmt.Sprintf(", the most that it may, though %d are needed", s.Needed)
		}
		x.News.say("As loads vary here (%s), this run makes %d pairs to find %s%s", said, s.Pairs, x.Plan.Find, more)
		return s.Pairs, verdict.LooksAfter(run), true
	}
}

// sizeOfLast says the same before the first trial, as the last run of the plan had it.
func (x *Execution) sizeOfLast(ctx context.Context) {
	if !x.Plan.Compares() || x.Plan.IsMany() {
		return
	}
	dirs, err := os.ReadDir(filepath.Join(x.Root, "runs"))
	if err != nil {
		return // the folder of runs is made with the first one
	}
	dirs = dirs[max(len(dirs)-mostEarlier, 0):] // by their IDs, which sort by time
	for _, d := range slices.Backward(dirs) {
		if ctx.Err() != nil || !store.ValidID(d.Name()) || d.Name() == x.ID {
			continue
		}
		run, err := store.ReadRun(filepath.Join(x.Root, "runs", d.Name()))
		if err != nil || run.State != store.StateDone || !sameQuestion(run.Plan, x.run.Plan) {
			continue
		}
		if said := verdict.Sizes(run); said != "" {
			x.News.say("By the last run of this plan, %s (%s)", run.ID, said)
			return
		}
	}
}

// mostEarlier bounds how many runs are looked through.
const mostEarlier = 20

// sameQuestion says whether two plans load the same pages in the same way, however often.
func sameQuestion(a, b lab.Plan) bool {
	return a.Compares() && a.Page == b.Page && a.Link == b.Link && a.Device == b.Device && a.Browser.String() == b.Browser.String() &&
		a.Primary == b.Primary && a.Timing == b.Timing && len(a.Steps) == len(b.Steps)
}
