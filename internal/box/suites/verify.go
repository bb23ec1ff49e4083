package suites

import (
	"fmt"
	"math"
	"path/filepath"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/execute"
	"eidetic/internal/tell/suite"
)

// Verified is what was found of one run of a result: whether its files are those that the result names, and its reels
// say what the result says.
type Verified struct {
	Entry    string   `json:"entry"`
	Run      string   `json:"run"`
	Reels    int      `json:"reels"`
	Numbers  int      `json:"numbers"` // that agree
	Problems []string `json:"problems,omitempty"`
}

// Verify checks the hashes of a run in the folder of a result, and measures its reels again.
func Verify(dir string, s *suite.Suite, o *suite.Outcome) (v Verified) {
	v = Verified{Entry: o.Entry, Run: o.Run}
	problem := func(format string, args ...any) { v.Problems = append(v.Problems, fmt.Sprintf(format, args...)) }
	at := s.Index(o.Entry)
	now, err := suite.Take(dir, s.Entries[at], o.Browsers, o.Run, suite.SumsIn(dir))
	if err != nil {
		problem("%v", err)
		return v
	}
	if now.RunSHA256 != o.RunSHA256 {
		problem("run.json is another file than that of the result")
	}
	reels, told := map[int]string{}, map[int]map[string]float64{}
	for _, t := range now.Trials {
		reels[t.Number], told[t.Number] = t.Reel, t.Values
	}
	again, err := measureAgain(dir, s, at, o)
	if err != nil {
		problem("%v", err)
		return v
	}
	for _, t := range o.Trials {
		switch {
		case t.Reel == "" || len(t.Values) == 0:
			continue
		case reels[t.Number] != t.Reel:
			problem("trial %d: its reel is another file than that of the result", t.Number)
			continue
		}
		v.Reels++
		values, ok := again[t.Number]
		for name, said := range t.Values {
			got, has := values[name]
			if suite.IsOwn(name) { // no film has it
				got, has = told[t.Number][name]
			}
			switch {
			case !ok || !has:
				problem("trial %d: %s cannot be measured on its reel", t.Number, name)
			case math.Abs(got-said) > 1e-6*max(1, math.Abs(said)):
				problem("trial %d: %s is %g on its reel, and %g in the result", t.Number, name, got, said)
			default:
				v.Numbers++
			}
		}
	}
	return v
}

// measureAgain measures the reels of a run by the plan of its entry.
func measureAgain(dir string, s *suite.Suite, at int, o *suite.Outcome) (map[int]map[string]float64, error) {
	folder := filepath.Join(dir, "runs", o.Run)
	run, err := store.ReadRun(folder)
	if err != nil {
		return nil, err
	}
	q, err := s.PlanOf(at, nil, 0, 0)
	if err != nil {
		return nil, err
	}
	if err := q.Set("link", lab.NativeLink); err != nil { // that of the plan may be a file of this machine, and is not needed
		return nil, err
	}
	asked, err := plan.Check(q, plan.Options{Scope: plan.ScopePerson, From: &plan.Folder{Path: filepath.Join(folder, execute.FilesFolder)}})
	if err != nil {
		return nil, s.Locate(at, err)
	}
	values := map[int]map[string]float64{}
	for _, t := range execute.Rescore(run, folder, asked) {
		if t.Error == "" {
			values[t.Trial] = t.Metrics
		}
	}
	return values, nil
}

// CheckStrange judges the plans of a suite that came with a result as a box judges those of a token of the scope run:
// they name no program, device or file of this machine but recordings beside it.
func CheckStrange(s *suite.Suite) error {
	for i := range s.Entries {
		q, err := s.PlanOf(i, nil, 0, 0)
		if err != nil {
			return err
		}
		if q.Archive != "" && !filepath.IsLocal(q.Archive) {
			return s.Locate(i, &lab.FieldError{Path: "archive", Err: fmt.Errorf("%.100q is not in this folder", q.Archive)})
		}
		if _, err := plan.Check(q, plan.Options{Scope: plan.ScopeRun, From: &plan.Folder{}}); err != nil {
			return s.Locate(i, err)
		}
	}
	return nil
}
