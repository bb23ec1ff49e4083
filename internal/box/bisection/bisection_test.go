package bisection

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/analysis/bisect"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

const metric = "speed_index_ms"

// fakeLab makes trials of revisions whose times are known.
type fakeLab struct {
	times    map[string]float64
	spread   float64
	compared int // runs
	recorded []string
	// cut, if it is positive, is the run in whose middle the program is killed.
	cut   int
	runs  map[string]*lab.Run
	spoil map[string]bool // revisions whose trials are all invalid
	// spoils, if it is set, says whether the trials of a run are.
	spoils func(c Comparison) bool

	// away, if it is positive, is the run that is asked for when the lab is not there.
	away int

	mu sync.Mutex
	// meet, if it is set, is called at the beginning of each run, which others may be beside.
	meet func(c Comparison)
}

var errKilled = errors.New("killed") // constant

func (f *fakeLab) Record(_ context.Context, revision string) (string, error) {
	f.recorded = append(f.recorded, revision)
	return revision + ".wacz", nil
}

func (f *fakeLab) Compare(_ context.Context, c Comparison, begun func(string) error) (*lab.Run, error) {
	if f.meet != nil {
		f.meet(c)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.compared++; f.compared == f.away {
		f.compared--
		f.away = 0
		return nil, &LabError{errors.New("away")}
	}
	if c.ControlArchive != "" && (c.ControlArchive != c.Control+".wacz" || c.TreatmentArchive != c.Treatment+".wacz") {
		return nil, fmt.Errorf("%+v has recordings of other revisions", c)
	}
	valid := !f.spoil[c.Treatment] && (f.spoils == nil || !f.spoils(c))
	id := fmt.Sprintf("run-%d-%s-%s", c.Seed, c.Control, c.Treatment)
	r := rand.New(rand.NewPCG(c.Seed, 5))
	run := &lab.Run{ID: id, State: "done"}
	for i := range 2 * c.Pairs {
		t := &lab.Trial{Number: i + 1, Block: 1 + i/4, Arm: lab.Control, Valid: valid}
		name := c.Control
		if i%2 == 1 {
			t.Arm, name = lab.Treatment, c.Treatment
		}
		t.Measurements = []lab.Measurement{{Name: metric, Value: f.times[name] + f.spread*r.NormFloat64()}}
		run.Trials = append(run.Trials, t)
	}
	if f.runs[id] != nil {
		return nil, fmt.Errorf("%s is made twice", id)
	}
	if f.runs == nil {
		f.runs = map[string]*lab.Run{}
	}
	f.runs[id] = run
	if f.compared == f.cut {
		run.State, run.Trials = "running", run.Trials[:len(run.Trials)/2]
	}
	if err := begun(id); err != nil {
		return nil, err
	}
	if f.compared == f.cut {
		return nil, errKilled
	}
	return run, nil
}

func (f *fakeLab) Ended(_ context.Context, id string) (*lab.Run, error) { return f.runs[id], nil }

// setting is a bisect of so many revisions, of which the culprit takes more time.
func setting(t *testing.T, revisions, culprit int, more float64) (Config, *fakeLab) {
	t.Helper()
	f := &fakeLab{times: map[string]float64{}, spread: 10, spoil: map[string]bool{}}
	c := Config{Dir: t.TempDir(), Deploy: `echo "$1" "$REVISION" >> ` + `"$BISECT_TEST_LOG"`, Limit: time.Minute, Metric: metric, Plan: "p", Seed: 1,
		Lab: f, Say: t.Logf, Since: func() time.Duration { return time.Second }}
	t.Setenv("BISECT_TEST_LOG", filepath.Join(c.Dir, "log"))
	for i := range revisions {
		name := "r" + strconv.Itoa(i)
		c.Revisions = append(c.Revisions, Revision{Name: name, Words: "change " + strconv.Itoa(i)})
		f.times[name] = 500
		if i >= culprit {
			f.times[name] += more
		}
	}
	return c, f
}

func deployedLog(t *testing.T, c Config) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(c.Dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(content))
}

func TestFindsTheCulprit(t *testing.T) {
	c, f := setting(t, 33, 21, 25)
	c.Records = true
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Kind != bisect.Culprit || len(r.Steps) != 1 || r.Steps[0].Revisions[0].Name != "r21" || r.Steps[0].Before.Name != "r20" {
		t.Fatalf("found %+v; want r21", r)
	}
	s := r.Steps[0]
	if s.Direct == nil || s.Direct.Low > 25 || s.Direct.High < 25 || s.Pairs < 6 || len(s.Runs) == 0 {
		t.Errorf("the step is %+v; want an interval with 25 in it, from pairs of its own", s)
	}
	if !strings.Contains(r.Text, "It was r21 (change 21)") || !strings.Contains(r.Text, fmt.Sprintf("%d trials", r.Trials)) {
		t.Errorf("the text is %q", r.Text)
	}
	log := deployedLog(t, c)
	for i := 0; i < len(log); i += 2 {
		if log[i] != log[i+1] || slices.Index(log, log[i]) != i && slices.Index(log, log[i])%2 == 0 && slices.Index(log, log[i]) < i-1 {
			t.Errorf("deployed: %v; want each once, with argument and variable alike", log)
		}
	}
	if len(f.recorded) != len(log)/2 || len(log)/2 > 14 {
		t.Errorf("%d recorded, %d deployed of 33; want as few as possible, each recorded", len(f.recorded), len(log)/2)
	}
}

// A bisect that is killed in the middle of any of its runs goes on, and finds the same.
func TestGoesOnAfterBeingKilled(t *testing.T) {
	for cut := 1; cut <= 8; cut++ {
		c, f := setting(t, 17, 5, 30)
		f.cut = cut
		_, err := Run(t.Context(), c)
		if !errors.Is(err, errKilled) {
			t.Fatalf("killed in run %d: %v", cut, err)
		}
		// A line was being written, too.
		name := filepath.Join(c.Dir, JournalFile)
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, append(content, `{"ended":{"state":"do`...), 0o644); err != nil {
			t.Fatal(err)
		}
		before := len(deployedLog(t, c))
		f.cut = 0
		r, err := Run(t.Context(), c)
		if err != nil {
			t.Fatalf("after being killed in run %d: %v", cut, err)
		}
		if r.Kind != bisect.Culprit || r.Steps[0].Revisions[0].Name != "r5" {
			t.Errorf("after being killed in run %d: %s", cut, r.Text)
		}
		seen := map[string]int{}
		for i, name := range deployedLog(t, c) {
			if i%2 == 0 {
				seen[name]++
			}
		}
		for name, n := range seen {
			if n != 1 {
				t.Errorf("%s was deployed %d times (%d words before the kill)", name, n, before)
			}
		}
		cutOff := f.runs[fmt.Sprintf("run-%d-r0-r16", 1)]
		if cut == 1 && (cutOff == nil || len(cutOff.Trials) == 0) {
			t.Error("the run that was cut off is not there")
		}
		// Asked once more, it says the same without a trial.
		runs := f.compared
		again, err := Run(t.Context(), c)
		if err != nil || f.compared != runs {
			t.Fatalf("asked again: %v, %d more runs", err, f.compared-runs)
		}
		if d := cmp.Diff(r, again); d != "" {
			t.Error("asked again (-first +again):", d)
		}
	}
}

// The pairs of an experiment are divided over runs that go on at the same time. If the program is killed in one of
// them, what the others found counts, and nothing is measured again.
func TestSpread(t *testing.T) {
	for cut := range 7 {
		c, f := setting(t, 17, 5, 30)
		c.Spread, f.cut = 3, cut
		var doing, pairs []int // what is announced, and what is asked for
		c.Say = func(format string, args ...any) {
			if strings.Contains(format, "pairs of trials") {
				doing = append(doing, args[2].(int))
			}
		}
		seeds, at := map[uint64]bool{}, make(chan struct{})
		var mu sync.Mutex
		var under, most int
		f.meet = func(c Comparison) {
			mu.Lock()
			if seeds[c.Seed] {
				t.Errorf("two runs have the seed %d", c.Seed)
			}
			seeds[c.Seed] = true
			pairs = append(pairs, c.Pairs)
			if under++; under == 3 {
				close(at) // the first experiment has three runs: none goes on before all have begun
			}
			most = max(most, under)
			mu.Unlock()
			select {
			case <-at:
			case <-time.After(testlab.Hang):
				t.Error("the runs of an experiment are not under way at the same time")
			}
		}
		r, err := Run(t.Context(), c)
		if cut > 0 {
			if !errors.Is(err, errKilled) {
				t.Fatalf("killed in run %d: %v", cut, err)
			}
			asked := f.compared
			f.cut, f.meet = 0, nil
			if r, err = Run(t.Context(), c); err == nil && f.compared == asked {
				t.Error("it did not go on")
			}
		}
		if err != nil || r.Kind != bisect.Culprit || r.Steps[0].Revisions[0].Name != "r5" || len(r.Steps[0].Runs) < 2 {
			t.Fatalf("killed in run %d: %+v (%v); want r5, confirmed in several runs", cut, r, err)
		}
		if r.Runs != f.compared {
			t.Errorf("killed in run %d: %d runs count of %d that were made", cut, r.Runs, f.compared)
		}
		if sum(doing[:1]) != sum(pairs[:3]) || most < 3 {
			t.Errorf("%d pairs were announced, and runs of %d asked for", doing[0], pairs[:3])
		}
	}
}

func sum(of []int) (n int) {
	for _, one := range of {
		n += one
	}
	return n
}

// If one of the runs cannot be asked for, the others count, once.
func TestSpreadOverAWayThatIsCut(t *testing.T) {
	for away := range 9 {
		c, f := setting(t, 17, 5, 30)
		c.Spread, f.away = 3, away+1
		_, err := Run(t.Context(), c)
		var cannot *LabError
		if !errors.As(err, &cannot) {
			t.Fatalf("run %d could not be asked for: %v; want an error of the lab", away+1, err)
		}
		if r, err := Run(t.Context(), c); err != nil || r.Kind != bisect.Culprit || r.Runs != f.compared {
			t.Errorf("run %d could not be asked for, and then: %+v (%v); want the culprit from all of %d runs", away+1, r, err, f.compared)
		}
	}
}

// A revision is left out if none of the runs has a valid pair, and not because one has none.
func TestSpreadUntestable(t *testing.T) {
	c, f := setting(t, 9, 4, 60)
	c.Spread = 2
	f.spoil["r2"] = true
	f.spoils = func(c Comparison) bool { return c.Treatment != "r8" && c.Seed%2 == 0 }
	r, err := Run(t.Context(), c)
	if err != nil || r.Kind != bisect.Culprit {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, u := range r.Untestable {
		if u.Revision.Name != "r2" || strings.Count(u.Reason, "no pair of valid trials") != 2 {
			t.Errorf("%s is left out: %s", u.Revision.Name, u.Reason)
		}
	}
}

func TestUntestable(t *testing.T) {
	c, f := setting(t, 17, 9, 40)
	// The culprit's predecessor does not build, and a revision far from it has no valid trial.
	c.Deploy = `case "$1" in r8) echo "no rule to make target"; exit 125;; r7) exit 2;; esac`
	f.spoil["r4"] = true
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Kind != bisect.Culprit || !slices.Equal(names(r.Steps[0].Revisions), []string{"r7", "r8", "r9"}) || r.Steps[0].Before.Name != "r6" {
		t.Fatalf("found %s %+v; want one of r7, r8 and r9", r.Text, r.Steps)
	}
	reasons := map[string]string{}
	for _, u := range r.Untestable {
		reasons[u.Revision.Name] = u.Reason
	}
	if !strings.Contains(reasons["r8"], "status 125") || !strings.Contains(reasons["r8"], "no rule to make target") ||
		!strings.Contains(reasons["r7"], "exit status 2") {
		t.Errorf("left out: %q", reasons)
	}
	if why, ok := reasons["r4"]; ok && !strings.Contains(why, "no pair of valid trials") {
		t.Errorf("r4 was left out: %q", why)
	}
}

func TestCannotGoOn(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config, *fakeLab)
		want   string
	}{
		{"good fails", func(c *Config, _ *fakeLab) { c.Deploy = `test "$1" != r0` }, "r0 cannot be tried: the command failed: exit status 1"},
		{"bad fails", func(c *Config, _ *fakeLab) { c.Deploy = `test "$1" != r4` }, "r4 cannot be tried"},
		{"no such command", func(c *Config, _ *fakeLab) { c.Deploy = "no-such-command-here" }, "the shell cannot run it (status 127)"},
		{"too long", func(c *Config, _ *fakeLab) { c.Deploy, c.Limit = "sleep 1000 & wait", 50*time.Millisecond }, "did not end within 50ms"},
		{"another metric", func(c *Config, _ *fakeLab) { c.Metric = "x" }, "valid trials do not have it; choose another metric"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, f := setting(t, 5, 2, 40)
			tt.change(&c, f)
			if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v; want one with %q", err, tt.want)
			}
		})
	}
}

func TestFindings(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config, *fakeLab)
		kind   string
		words  []string
	}{
		{"none", func(_ *Config, f *fakeLab) {
			for name := range f.times {
				f.times[name] = 500
			}
		}, bisect.None, []string{"no difference between good and bad", "with 80 % probability"}},
		{"several", func(_ *Config, f *fakeLab) {
			for i := 4; i < 17; i++ {
				f.times["r"+strconv.Itoa(i)] += 30
			}
		}, bisect.Several, []string{"several steps", "Bisect each for itself: --good"}},
		{"unsure", func(c *Config, f *fakeLab) { c.Problem.Budget, f.spread = 30, 60 }, bisect.Unsure, []string{"Not sure: about ", "more pairs"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, f := setting(t, 17, 12, 30)
			tt.change(&c, f)
			r, err := Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if r.Kind != tt.kind {
				t.Fatalf("%s: %s; want %s", r.Kind, r.Text, tt.kind)
			}
			for _, w := range tt.words {
				if !strings.Contains(r.Text, w) {
					t.Errorf("%q does not say %q", r.Text, w)
				}
			}
			if r.Kind == bisect.Unsure && r.More < 1 {
				t.Errorf("%d pairs are missing", r.More)
			}
		})
	}
}

// Another bisect's folder is refused, and so is one in use.
func TestFoldersOfOthers(t *testing.T) {
	c, _ := setting(t, 5, 2, 40)
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	other := c
	other.Metric = "first_visual_change_ms"
	if _, err := Run(t.Context(), other); !errors.Is(err, errOther) {
		t.Errorf("a bisect of another metric: %v", err)
	}
	j, err := openJournal(c.Dir, header{Version: 1, Revisions: names(c.Revisions), Deploy: c.Deploy, Metric: c.Metric, Plan: c.Plan, Seed: c.Seed})
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "another bisect is at work") {
		t.Errorf("two at once: %v", err)
	}
}

func TestReadRevisions(t *testing.T) {
	const list = "# since the release\nabc1 first change\n\nabc2 second\ndef3\n  ffe4   fourth  one \n"
	all, err := ReadRevisions("list", strings.NewReader(list), "abc1", "ffe")
	if err != nil {
		t.Fatal(err)
	}
	want := []Revision{{Name: "abc1", Words: "first change"}, {Name: "abc2", Words: "second"}, {Name: "def3"}, {Name: "ffe4", Words: "fourth  one"}}
	if d := cmp.Diff(want, all); d != "" {
		t.Error(d)
	}
	all, err = ReadRevisions("list", strings.NewReader(list), "v41", "")
	if err != nil || len(all) != 5 || all[0].Name != "v41" || all[4].Name != "ffe4" {
		t.Errorf("a good one that is not listed: %v, %v", all, err)
	}
	windows := "\xff\xfe" + strings.Join(strings.Split("a\tone\r\nb\ttwo\r\n", ""), "\x00") + "\x00"
	for _, list := range []string{windows, "\ufeffa one\nb two\n"} {
		all, err = ReadRevisions("list", strings.NewReader(list), "a", "")
		if d := cmp.Diff([]Revision{{Name: "a", Words: "one"}, {Name: "b", Words: "two"}}, all); err != nil || d != "" {
			t.Errorf("a list of Windows, %q: %v\n%s", list, err, d)
		}
	}
	for _, tt := range []struct{ name, list, good, bad, want string }{
		{"empty", "# nothing\n", "a", "b", "lists no revision"},
		{"twice", "a\nb\na\n", "a", "b", "list:3: revision a is in line 1 already"},
		{"order", "a\nb\nc\n", "c", "a", "is not before"},
		{"the newest first", "c\nb\n", "a", "c", "list: --bad c is the first of 2: the oldest revision comes first"},
		{"no bad", "a\nb\n", "a", "x", `--bad: list does not list "x"`},
		{"unclear", "ab1\nab2\nc\n", "ab", "c", "begins the names of several"},
		{"a flag", "a\n--upload-pack=x\n", "a", "", "list:2: "},
		{"a path", "a\n../../etc/passwd\n", "a", "", "list:2: "},
		{"control", "a\nb\x1b[2J\n", "a", "", "list:2: "},
		{"long line", strings.Repeat("x", maxLine+1), "a", "", "a line is longer than"},
		{"long name", "a\n" + strings.Repeat("x", maxName+1) + "\n", "a", "", "list:2: "},
		{"good is no name", "a\nb\n", "x y", "b", "--good"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadRevisions("list", strings.NewReader(tt.list), tt.good, tt.bad)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v; want one with %q", err, tt.want)
			}
		})
	}
}

func FuzzRevisions(f *testing.F) {
	f.Add("a one\nb two\n# c\n", "a", "b")
	f.Add("a\r\nb", "", "")
	f.Fuzz(func(t *testing.T, list, good, bad string) {
		defer testlab.Input(t)()
		all, err := ReadRevisions("list", strings.NewReader(list), good, bad)
		if err != nil {
			return
		}
		if len(all) < 2 {
			t.Fatalf("%d revisions", len(all))
		}
		for _, r := range all {
			if checkName(r.Name) != nil {
				t.Errorf("%q", r.Name)
			}
		}
	})
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"bisect":{"version":1,"revisions":["a","b","c"],"deploy":"d","metric":"m","plan":"p","seed":1,"records":false}}
{"deployed":{"revision":0,"seconds":1}}
{"begun":{"run":"r","control":0,"treatment":2,"pairs":3}}
{"ended":{"of_run":"r","state":"done","trials":2,"seconds":9,"blocks":[{"Control":[1],"Treatment":[2]}]}}
{"untestable":{"revision":1,"reason":"x"}}
`))
	f.Add([]byte(`{"bisect":{"version":1,"revisions":["a","b","c"],"deploy":"d","metric":"m","plan":"p","seed":1,"records":false}}
{"begun":{"run":"r","control":0,"treatment":2,"pairs":3}}
{"begun":{"run":"s","number":1,"control":0,"treatment":2,"pairs":3}}
{"ended":{"of_run":"s","state":"done","trials":2,"seconds":9,"blocks":[{"Control":[1],"Treatment":[2]}]}}
{"ended":{"of_run":"r","state":"done","trials":2,"seconds":9,"blocks":[]}}
`))
	h := header{Version: 1, Revisions: []string{"a", "b", "c"}, Deploy: "d", Metric: "m", Plan: "p", Seed: 1}
	f.Fuzz(func(t *testing.T, content []byte) {
		defer testlab.Input(t)()
		j := &journal{deployed: map[int]deployed{}, archives: map[int]string{}}
		whole, err := j.read(content, h)
		if err != nil {
			return
		}
		if whole > len(content) {
			t.Fatalf("%d of %d bytes", whole, len(content))
		}
		if d, err := bisect.Decide(bisect.Problem{Revisions: 3}, j.state()); err == nil && d.Next == nil && d.Found == nil {
			t.Error("nothing is to be done, and nothing was found")
		}
	})
}
