package head

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/execute"
	"eidetic/internal/tell/report"
)

// partFolder is what a box handed in of a part.
type partFolder struct {
	dir    string // holds the files; its name is the part's ID
	plan   lab.Plan
	box    *lab.BoxState
	device string
	state  string // how the part ended
	err    string
}

// assembled is a run made of its parts.
type assembled struct {
	dir    string // below the folder that was given
	run    *lab.Run
	before []int // by how much the numbers of each part's trials grew
}

// assemble makes the folder of a run, below root, of what its parts left. The files are moved out of the parts'
// folders. A run of one part has the numbers that the box computed; those of several are computed here, over all cells.
// A part that left nothing is named in the run's error.
func assemble(root, id string, plan lab.Plan, created, now time.Time, parts []partFolder) (out assembled, err error) {
	runs := make([]*lab.Run, len(parts))
	for i, p := range parts {
		if runs[i], err = store.ReadWhole(p.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			parts[i].err = cmp.Or(p.err, "what the box handed in cannot be read: "+err.Error())
		}
		if runs[i] != nil {
			correctTimes(runs[i], created, now)
		}
	}
	if !slices.ContainsFunc(runs, func(r *lab.Run) bool { return r != nil }) {
		return out, errNothing(parts)
	}
	before := trialsBefore(runs)
	run := mergedRun(id, plan, created, parts, runs, before)
	final, reason := run.State, run.Error
	run.State, run.Error = store.StateRunning, ""
	folder, err := store.Create(root, run)
	if err != nil {
		return out, err
	}
	defer folder.Close()
	run.State, run.Error = final, reason
	for i, p := range parts {
		if runs[i] == nil {
			continue
		}
		if err := moveFiles(p, folder.Path(), len(parts) > 1, i, cellsBefore(parts, i), before[i]); err != nil {
			return out, fmt.Errorf("assemble %s: part %s: %w", id, filepath.Base(p.dir), err)
		}
	}
	// What one box computed of a whole run stands; a run that was cut off has no results yet.
	again := len(parts) > 1 || runs[0].State != store.StateDone
	if err := execute.Complete(folder, run, again); err != nil {
		return out, fmt.Errorf("assemble %s: %w", id, err)
	}
	return assembled{folder.Path(), run, before}, nil
}

const (
	// clocksDiffer is by how much the clocks of a box and of its head may differ.
	clocksDiffer = 5 * time.Minute
	longestRun   = 366 * 24 * time.Hour
)

// correctTimes puts a run of a box whose clock is wrong at the time when the head was asked for it. Histories, and when a
// box measures its reference next, go by these times: a run of 1970 would be followed by one reference run after the
// other, and one of the future would stay the newest.
func correctTimes(r *lab.Run, created, now time.Time) {
	r.Elapsed = min(max(r.Elapsed, 0), longestRun.Seconds())
	if !r.Wall.Before(created.Add(-clocksDiffer)) && !r.Wall.After(now.Add(clocksDiffer)) {
		return
	}
	r.Warnings = append(r.Warnings, fmt.Sprintf("the box's clock was wrong: it said %s when the run began; the run has the time at which "+
		"the head was asked for it", r.Wall.UTC().Format(time.RFC3339)))
	r.Wall = created
}

// errNothing says that no part left anything that can be read.
func errNothing(parts []partFolder) error {
	for _, p := range parts {
		if p.err != "" {
			return fmt.Errorf("%w: %s", errNoFolder, p.err)
		}
	}
	return errNoFolder
}

// errNoFolder says that a run left nothing behind.
var errNoFolder = errors.New("no box handed anything in") // constant

func cellsBefore(parts []partFolder, i int) (n int) {
	for _, p := range parts[:i] {
		n += len(p.plan.Cells())
	}
	return n
}

// trialsBefore is by how much the numbers of the trials of each part grow.
func trialsBefore(runs []*lab.Run) []int {
	all, n := make([]int, len(runs)), 0
	for i, r := range runs {
		all[i] = n
		n += highest(r)
	}
	return all
}

// highest is the highest number of a run's trials.
func highest(r *lab.Run) (n int) {
	if r != nil {
		for _, t := range r.Trials {
			n = max(n, t.Number)
		}
	}
	return n
}

// mergedRun is the run that the parts make, without what is computed of it.
func mergedRun(id string, plan lab.Plan, created time.Time, parts []partFolder, runs []*lab.Run, before []int) *lab.Run {
	if len(parts) == 1 {
		return soleRun(id, plan, parts[0], runs[0])
	}
	run := &lab.Run{ID: id, Name: plan.Name, Wall: created, State: store.StateDone, Trials: []*lab.Trial{}, Summary: []lab.Summary{}}
	run.Page, run.Plan = plan.FirstPage(), plan
	run.Plan.Files, run.Plan.On = nil, nil
	var began, ended time.Time
	var reasons []string
	for i, p := range parts {
		r := runs[i]
		if p.state != store.StateDone {
			run.State = worse(run.State, p.state)
			reasons = append(reasons, fmt.Sprintf("%s: %s", partName(p), cmp.Or(p.err, p.state)))
		}
		run.Cells = append(run.Cells, cellsOf(p, r, cellsBefore(parts, i))...)
		if r == nil {
			continue
		}
		if began.IsZero() || r.Wall.Before(began) {
			began = r.Wall
		}
		if end := r.Wall.Add(time.Duration(r.Elapsed * float64(time.Second))); end.After(ended) {
			ended = end
		}
		if run.Environment.Appliance == "" {
			run.Environment, run.Link, run.Tolerance = r.Environment, r.Link, r.Tolerance
			run.Archive = r.Archive
		}
		for _, t := range r.Trials {
			t.Number += before[i]
			run.Trials = append(run.Trials, t)
		}
		for _, w := range r.Warnings {
			run.Warnings = append(run.Warnings, fmt.Sprintf("%s: %s", partName(p), w))
		}
	}
	if !began.IsZero() {
		run.Wall, run.Elapsed = began, ended.Sub(began).Seconds()
	}
	run.Error = strings.Join(reasons, "; ")
	run.Environment.Box = commonBox(parts)
	return run
}

// soleRun is a run that one box carried out as a whole.
func soleRun(id string, plan lab.Plan, p partFolder, r *lab.Run) *lab.Run {
	r.ID, r.Environment.Box = id, p.box
	r.Plan.Device, r.Plan.From = p.device, plan.From
	r.Plan.Archive = plan.Archive // the box had it under a name of its own
	if r.Plan.Treatment != nil && plan.Treatment != nil {
		r.Plan.Treatment.Archive = plan.Treatment.Archive
	}
	if r.State == store.StateRunning || p.state != store.StateDone || r.State != store.StateDone {
		r.State = cmp.Or(notDone(p.state), notDone(r.State), store.StateInterrupted)
		r.Error = cmp.Or(p.err, r.Error)
	}
	return r
}

func notDone(state string) string {
	if state == store.StateFailed || state == store.StateInterrupted {
		return state
	}
	return ""
}

// worse is the state of a run with parts of two states.
func worse(a, b string) string {
	if a == store.StateFailed || b == store.StateFailed {
		return store.StateFailed
	}
	return store.StateInterrupted
}

// partName is what a part is called in words.
func partName(p partFolder) string {
	name := filepath.Base(p.dir)
	if len(p.plan.Pages) == 1 {
		if cells := p.plan.Cells(); cells[0].Page != "" {
			name = cells[0].Page
		}
	}
	if p.box != nil {
		name += " on " + p.box.Name
	}
	return name
}

// cellsOf are the results of a part's cells, as those of the run from a number on.
func cellsOf(p partFolder, r *lab.Run, from int) (all []lab.CellResult) {
	for i, c := range p.plan.Cells() {
		one := lab.CellResult{Name: c.Name, Page: c.Page, User: c.User, URL: c.Plan.Arms()[0].Page, Summary: []lab.Summary{}}
		if r != nil && i < len(r.Cells) && r.Cells[i].Name == c.Name {
			one.Archive = r.Cells[i].Archive
			if one.Archive != nil {
				moved := *one.Archive
				moved.File = renumbered(path.Base(moved.File), from)
				one.Archive = &moved
			}
		}
		one.Report, one.Box = report.CellName(from+i), p.box
		all = append(all, one)
	}
	return all
}

// commonBox is the box that made all parts, or nil.
func commonBox(parts []partFolder) *lab.BoxState {
	for _, p := range parts {
		if p.box == nil || p.box.ID != parts[0].box.ID {
			return nil
		}
	}
	return parts[0].box
}

var cellArchive = regexp.MustCompile(`^archive-(\d{2})((?:-treatment)?\.wacz)$`) // constant

// renumbered is the name of a cell's recording, when its part's cells are those of the run from a number on.
func renumbered(name string, from int) string {
	m := cellArchive.FindStringSubmatch(name)
	if m == nil {
		return name
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return name
	}
	return fmt.Sprintf("archive-%02d%s", n+from, m[2])
}

// moveFiles moves the files of a part into the folder of the run.
func moveFiles(p partFolder, to string, several bool, index, cells, trials int) error {
	return filepath.WalkDir(p.dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(p.dir, file)
		if err != nil {
			return err
		}
		target, keep := placeOf(filepath.ToSlash(name), several, index, cells, trials)
		if !keep {
			return nil
		}
		target = filepath.Join(to, filepath.FromSlash(target))
		if _, err := os.Lstat(target); err == nil {
			return nil // the same for all parts
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.Rename(file, target)
	})
}

// placeOf is where a file of a part stands in the run's folder; keep is false for what is made anew there.
func placeOf(name string, several bool, index, cells, trials int) (place string, keep bool) {
	first, rest, below := strings.Cut(name, "/")
	switch {
	case !below && (name == "run.json" || name == "report.json" || report.IsPage(name) || strings.HasPrefix(name, ".")):
		return "", false
	case below && first == "trials":
		number, inside, _ := strings.Cut(rest, "/")
		n, err := strconv.Atoi(number)
		if err != nil || inside == "" || inside == "trial.json" {
			return "", false
		}
		return path.Join("trials", store.TrialName(n+trials), inside), true
	case !several:
		return name, true
	case !below && cellArchive.MatchString(name):
		return renumbered(name, cells), true
	case below && first == execute.FilesFolder:
		return name, true
	}
	return path.Join("parts", fmt.Sprintf("%02d", index+1), name), true
}
