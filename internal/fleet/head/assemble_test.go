package head

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// handIn writes what a box hands in of the part n of a run of many: the trials of its page alone, numbered from 1.
func handIn(t *testing.T, whole *lab.Run, n int, box string) partFolder {
	t.Helper()
	part := *whole
	part.ID = fmt.Sprintf("%s.%02d", whole.ID, n+1)
	part.Plan = fleet.Split(whole.Plan)[n]
	part.Cells, part.Trials, part.Comparison, part.Summary = nil, []*lab.Trial{}, nil, []lab.Summary{}
	for i, c := range part.Plan.Cells() {
		part.Cells = append(part.Cells, lab.CellResult{Name: c.Name, Page: c.Page, User: c.User, Summary: []lab.Summary{},
			Archive: &lab.ArchiveInfo{File: fmt.Sprintf("archive-%02d.wacz", i+1)}})
		for _, trial := range whole.Trials {
			if trial.Cell == c.Name {
				one := *trial
				one.Number = len(part.Trials) + 1
				part.Trials = append(part.Trials, &one)
			}
		}
	}
	root := t.TempDir()
	folder, err := store.Create(root, &part)
	if err != nil {
		t.Fatal(err)
	}
	if err := reporttest.Files(folder.Path(), &part, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	part.State = store.StateDone
	if err := folder.Save(&part); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"archive-01.wacz", "files/a.png", "recording/screen.reel"} {
		path := filepath.Join(folder.Path(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(box+" "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	return partFolder{dir: folder.Path(), plan: part.Plan, box: &lab.BoxState{Name: box, ID: box}, device: "virtual", state: store.StateDone}
}

// What two boxes hand in makes the run that one box would have made: the same numbers, cells and verdict.
func TestAssembleIsTheWhole(t *testing.T) {
	whole := reporttest.Many(7, 4, 120)
	parts := []partFolder{handIn(t, whole, 0, "lab-1"), handIn(t, whole, 1, "lab-2"), handIn(t, whole, 2, "lab-1")}
	made, err := assemble(t.TempDir(), whole.ID, whole.Plan, whole.Wall, whole.Wall.Add(time.Hour), parts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.ReadRun(made.dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != store.StateDone || len(got.Trials) != len(whole.Trials) || len(got.Cells) != len(whole.Cells) {
		t.Fatalf("assembled: state %s, %d trials, %d cells; want done, %d, %d", got.State, len(got.Trials), len(got.Cells), len(whole.Trials), len(whole.Cells))
	}
	reporttest.CompareMany(whole)
	if diff := cmp.Diff(effects(whole), effects(got)); diff != "" {
		t.Errorf("the verdict differs from that of one box (-want +got):\n%s", diff)
	}
	for i, c := range got.Cells {
		if c.Name != whole.Cells[i].Name || c.Comparison == nil || c.Comparison.Verdict != whole.Cells[i].Comparison.Verdict {
			t.Errorf("cell %d = %s; want %s with the verdict %s", i, c.Name, whole.Cells[i].Name, whole.Cells[i].Comparison.Verdict)
		}
	}
	if got.Environment.Box != nil || got.Cells[2].Box == nil || got.Cells[2].Box.Name != "lab-2" || got.Cells[0].Box.Name != "lab-1" {
		t.Errorf("boxes = %+v, %+v; want none for the whole, and one for each cell", got.Environment.Box, got.Cells[2].Box)
	}
	if got.Cells[2].Archive == nil || got.Cells[2].Archive.File != "archive-03.wacz" {
		t.Errorf("the recording of the third cell = %+v; want archive-03.wacz", got.Cells[2].Archive)
	}
	for name, want := range map[string]string{
		"archive-01.wacz": "lab-1 archive-01.wacz", "archive-03.wacz": "lab-2 archive-01.wacz", "files/a.png": "lab-1 files/a.png",
		"parts/02/recording/screen.reel": "lab-2 recording/screen.reel",
	} {
		text, err := os.ReadFile(filepath.Join(made.dir, filepath.FromSlash(name)))
		if err != nil || string(text) != want {
			t.Errorf("%s = %q, %v; want %q", name, text, err, want)
		}
	}
	for _, name := range []string{"report.html", "cell-01.html", "cell-06.html", "cell-06-timeline.html", "trials/" + store.TrialName(len(whole.Trials)) + "/trial.json"} {
		if _, err := os.Stat(filepath.Join(made.dir, filepath.FromSlash(name))); err != nil {
			t.Errorf("%s is missing: %v", name, err)
		}
	}
	st, err := store.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for range 2 { // a head that was killed does it again
		if _, err := os.Stat(made.dir); err != nil {
			break
		}
		if err := st.Adopt(made.dir, made.run); err != nil || !st.Has(whole.ID) {
			t.Fatalf("Adopt() = %v; want the run in the store", err)
		}
	}
}

func effects(r *lab.Run) string {
	text, err := json.Marshal(r.Comparison.Effects)
	if err != nil {
		return err.Error()
	}
	return r.Comparison.Verdict + string(text)
}

// A part that left nothing is named, and the others are kept.
func TestAssembleWithoutAPart(t *testing.T) {
	whole := reporttest.Many(7, 2, 0)
	gone := partFolder{dir: filepath.Join(t.TempDir(), whole.ID+".02"), plan: fleet.Split(whole.Plan)[1], device: "virtual",
		state: store.StateInterrupted, err: "lab-2 was not heard of again", box: &lab.BoxState{Name: "lab-2", ID: "2"}}
	parts := []partFolder{handIn(t, whole, 0, "lab-1"), gone, handIn(t, whole, 2, "lab-1")}
	made, err := assemble(t.TempDir(), whole.ID, whole.Plan, whole.Wall, whole.Wall.Add(time.Hour), parts)
	if err != nil {
		t.Fatal(err)
	}
	if made.run.State != store.StateInterrupted || made.run.Error == "" || len(made.run.Cells) != 6 {
		t.Errorf("state %s, error %q, %d cells; want interrupted, a reason, 6", made.run.State, made.run.Error, len(made.run.Cells))
	}
	gone.dir = filepath.Join(t.TempDir(), "x")
	if _, err := assemble(t.TempDir(), whole.ID, whole.Plan, whole.Wall, whole.Wall.Add(time.Hour), []partFolder{gone, gone, gone}); !errors.Is(err, errNoFolder) {
		t.Errorf("assemble(nothing) = %v; want errNoFolder", err)
	}
}

// A run of one part is the box's own, with its name; one that was cut off gets its results here.
func TestAssembleOnePart(t *testing.T) {
	run := reporttest.Run(3, 6)
	root := t.TempDir()
	folder, err := store.Create(root, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := reporttest.Files(folder.Path(), run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	run.State = store.StateRunning
	if err := folder.Save(run); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	p := partFolder{dir: folder.Path(), plan: run.Plan, box: &lab.BoxState{Name: "lab-1", ID: "1"}, device: "virtual", state: store.StateInterrupted, err: "gone"}
	made, err := assemble(t.TempDir(), run.ID, run.Plan, run.Wall, run.Wall.Add(time.Hour), []partFolder{p})
	if err != nil {
		t.Fatal(err)
	}
	if made.run.State != store.StateInterrupted || made.run.Error != "gone" || len(made.run.Summary) == 0 || made.run.Environment.Box.Name != "lab-1" {
		t.Errorf("state %s, error %q, %d summaries, box %+v; want interrupted, gone, some, lab-1", made.run.State, made.run.Error, len(made.run.Summary), made.run.Environment.Box)
	}
	if err := errors.Join(statAll(made.dir, "report.html", "trials/001/trial.json", "run.json")); err != nil {
		t.Error(err)
	}
}

func statAll(dir string, names ...string) error {
	var all []error
	for _, name := range names {
		_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		all = append(all, err)
	}
	return errors.Join(all...)
}

// A box whose clock is wrong, or that says so, does not move its runs in the head's history.
func TestAssembleOfAWrongClock(t *testing.T) {
	whole := reporttest.Many(7, 2, 0)
	created := whole.Wall
	for name, c := range map[string]struct {
		wall  time.Time
		wrong bool
	}{
		"right":          {created.Add(time.Minute), false},
		"a minute ahead": {created.Add(time.Hour + time.Minute), false},
		"without":        {time.Unix(0, 0), true},
		"a day behind":   {created.AddDate(0, 0, -1), true},
		"in the future":  {time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -14*3600)), true},
	} {
		box := *whole
		box.Wall, box.Elapsed = c.wall, 1e300
		parts := []partFolder{handIn(t, &box, 0, "lab-1"), handIn(t, &box, 1, "lab-2"), handIn(t, &box, 2, "lab-1")}
		made, err := assemble(t.TempDir(), whole.ID, whole.Plan, created, created.Add(time.Hour), parts)
		if err != nil {
			t.Fatal(err)
		}
		want := c.wall
		if c.wrong {
			want = created
		}
		if !made.run.Wall.Equal(want) || made.run.Elapsed < 0 || made.run.Elapsed > longestRun.Seconds() {
			t.Errorf("%s: the run began at %v and took %g s; want %v, and no more than a year", name, made.run.Wall, made.run.Elapsed, want)
		}
		said := slices.ContainsFunc(made.run.Warnings, func(w string) bool { return strings.Contains(w, "clock was wrong") })
		if said != c.wrong {
			t.Errorf("%s: warnings %q; want one of the clock: %v", name, made.run.Warnings, c.wrong)
		}
	}
}
