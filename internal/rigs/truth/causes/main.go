// Command causes holds the table of causes against the truth: it records the sample page, makes copies of which one has
// a known regression (more script, styles computed again and again, a larger picture, a slower server, a lost preload)
// or none, compares them by traced trials in a real browser, and prints how often the first row names the right cause,
// and how often equal arms name any. After an interruption the same command continues.
//
//	go run ./internal/rigs/truth/causes [-dir out/bench/causes] [-experiments 10] [-equal 20] [-pairs 20] [-cases script,style]
//	    [-link native] [-seed 1] [-out out/bench/causes.json]
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/benchrig"
	"eidetic/internal/rigs/benchtable"
	"eidetic/internal/rigs/truth"
	"eidetic/netlab/archive"
)

func main() { benchtable.Main("bench", run) }

// outcome is one experiment: a line of outcomes.jsonl.
type outcome struct {
	Case    string     `json:"case"`
	Number  int        `json:"number"`
	Pairs   int        `json:"pairs"` // asked for
	Link    string     `json:"link"`
	Seed    uint64     `json:"seed"`
	Used    int        `json:"used"` // pairs with whole traces
	Named   int        `json:"named"`
	First   *lab.Cause `json:"first,omitempty"`
	Right   bool       `json:"right"`
	Seconds float64    `json:"seconds"`
}

type bench struct {
	dir, appliance, link string
	pairs                int
	seed                 uint64
}

func run(ctx context.Context) error {
	b := &bench{}
	flag.StringVar(&b.dir, "dir", "out/bench/causes", "folder for recordings, runs and outcomes")
	flag.IntVar(&b.pairs, "pairs", 20, "of each experiment")
	flag.StringVar(&b.link, "link", "native", "access network")
	flag.Uint64Var(&b.seed, "seed", 1, "of everything")
	experiments := flag.Int("experiments", 10, "of each regression")
	equal := flag.Int("equal", 20, "experiments of equal arms")
	cases := flag.String("cases", "", "only these, with commas between them")
	out := flag.String("out", "out/bench/causes.json", "file for the list of results")
	flag.Parse()
	if b.pairs < 2 || *experiments < 0 || *equal < 0 {
		return fmt.Errorf("-pairs %d, -experiments %d, -equal %d: at least 2, 0 and 0", b.pairs, *experiments, *equal)
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	var err error
	if b.appliance, err = benchrig.Build(ctx, filepath.Join(b.dir, "bin")); err != nil {
		return err
	}
	recording := filepath.Join(b.dir, "recording.wacz")
	if err := benchrig.Record(ctx, b.appliance, recording); err != nil {
		return err
	}
	recorded, err := archive.Open(recording)
	if err != nil {
		return err
	}
	known, err := b.known()
	if err != nil {
		return err
	}
	var list []benchtable.Result
	for _, r := range truth.Regressions() {
		if *cases != "" && !slices.Contains(strings.Split(*cases, ","), r.Name) {
			continue
		}
		n, goal := *experiments, 0.9
		if r.Kind == "" {
			n, goal = *equal, 0.95
		}
		right := 0
		for i := range n {
			o, err := b.experiment(ctx, r, i+1, recorded, known)
			if err != nil {
				return err
			}
			if o.Right {
				right++
			}
			fmt.Println(o)
		}
		if n > 0 {
			fmt.Printf("%s: %d of %d right\n", r.Name, right, n)
			list = append(list, benchtable.More("causes: "+r.Name+", experiments that are right", float64(right)/float64(n), "share").Aim(goal))
		}
	}
	return benchtable.Write(*out, list)
}

func (o outcome) String() string {
	text := "nothing named"
	if o.First != nil {
		text = fmt.Sprintf("%s %s %s %+.1f %s (%.1f to %.1f), %d rows named", o.First.Kind, o.First.Group, o.First.What, o.First.Shift, o.First.Unit, o.First.Low,
			o.First.High, o.Named)
	}
	return fmt.Sprintf("%s %d: %s; %d pairs in %.0f s", o.Case, o.Number, text, o.Used, o.Seconds)
}

// tolerance, in ms, is of the one pair that is measured, of which nothing is read here.
const tolerance = 60000

func (b *bench) file() string { return filepath.Join(b.dir, "outcomes.jsonl") }

// known reads what earlier runs of the command have found; a line that was cut off does not count.
func (b *bench) known() (list []outcome, err error) {
	f, err := os.Open(b.file())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var o outcome
		if json.Unmarshal(lines.Bytes(), &o) == nil {
			list = append(list, o)
		}
	}
	return list, lines.Err()
}

// experiment compares the arms of a regression, unless that was done already.
func (b *bench) experiment(
	ctx context.Context, r truth.Regression, number int, recorded *archive.Archive, known []outcome,
) (o outcome, err error) {
	o = outcome{Case: r.Name, Number: number, Pairs: b.pairs, Link: b.link, Seed: b.seed*1000 + uint64(number)}
	for _, k := range known {
		if k.Case == o.Case && k.Number == o.Number && k.Pairs == o.Pairs && k.Link == o.Link && k.Seed == o.Seed {
			return k, nil
		}
	}
	dir, err := filepath.Abs(filepath.Join(b.dir, "run"))
	if err != nil {
		return o, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return o, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return o, err
	}
	control, treatment, err := r.Make(recorded, benchrig.Page)
	if err != nil {
		return o, fmt.Errorf("%s: %w", r.Name, err)
	}
	for name, a := range map[string]*archive.Archive{"control.wacz": control, "treatment.wacz": treatment} {
		if err := archive.Save(filepath.Join(dir, name), a); err != nil {
			return o, err
		}
	}
	plan := fmt.Sprintf("name: causes, %s %d\npage: %s\narchive: %q\nlink: %s\nstill_s: 0.5\ntolerance_ms: %d\ntrials: 1\ntraces: %d\nseed: %d\ntreatment:\n  archive: %q\n",
		r.Name, number, benchrig.Page, filepath.Join(dir, "control.wacz"), b.link, tolerance, b.pairs, o.Seed,
		filepath.Join(dir, "treatment.wacz"))
	if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o644); err != nil {
		return o, err
	}
	command := exec.CommandContext(ctx, b.appliance, "run", "--plan", filepath.Join(dir, "plan.yaml"), "--out", filepath.Join(dir, "out"))
	command.Stderr = os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	start := time.Now()
	said, err := command.Output()
	if ctx.Err() != nil {
		return o, errors.New("interrupted: run the same command again to continue")
	}
	o.Seconds = time.Since(start).Seconds()
	content, readErr := os.ReadFile(filepath.Join(dir, "out", "latest", "run.json"))
	if readErr != nil { // one pair gives no verdict, so that the exit status says nothing
		return o, fmt.Errorf("%s: %w\n%s", r.Name, errors.Join(err, readErr), said)
	}
	var run lab.Run
	if err := json.Unmarshal(content, &run); err != nil {
		return o, err
	}
	if run.Causes == nil {
		return o, fmt.Errorf("%s: the run has no causes: %s\n%s", r.Name, run.Error, said)
	}
	o.Used = run.Causes.Pairs
	for i, c := range run.Causes.Rows {
		if c.Named {
			o.Named++
			if i == 0 {
				o.First = &run.Causes.Rows[0]
			}
		}
	}
	o.Right = o.First == nil && r.Kind == "" ||
		o.First != nil && o.First.Kind == r.Kind && o.First.Group == r.Group && o.First.What == r.What
	return o, b.note(o)
}

func (b *bench) note(o outcome) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(b.file(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
