package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/analysis/bisect"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
)

// bisectBox is a box whose pages are slower by 120 ms from revision r11 on. It knows a revision by the name of the
// run.
func bisectBox(t *testing.T, asked func(lab.Plan)) *testBox {
	t.Helper()
	var b *testBox
	b = newTestBox(t, func() *lab.Run {
		plan := <-b.asked
		asked(plan)
		words := strings.Fields(plan.Name) // "bisect r0000 r0016" or "record r0016"
		var control, treatment int
		if words[0] == "bisect" {
			_, err := fmt.Sscanf(words[1]+words[2], "r%04dr%04d", &control, &treatment)
			if err != nil || !strings.Contains(plan.Archive, words[1]) || !strings.Contains(plan.Treatment.Archive, words[2]) {
				t.Errorf("%q replays %q and %q: %v", plan.Name, plan.Archive, plan.Treatment.Archive, err)
			}
		}
		slower := func(r int) float64 {
			if r >= 11 {
				return 120
			}
			return 0
		}
		run := reporttest.Compared(plan.Seed, max(plan.Trials, 2), slower(treatment)-slower(control))
		if words[0] == "record" {
			run = reporttest.Run(1, 2)
		}
		run.Plan, run.State = plan, "done"
		r := rand.New(rand.NewPCG(plan.Seed, 1))
		for _, trial := range run.Trials {
			for i := range trial.Measurements {
				if m := &trial.Measurements[i]; m.Name == "speed_index_ms" {
					m.Value = 900 + 20*r.NormFloat64()
					if trial.Arm == lab.Treatment {
						m.Value += slower(treatment)
					} else {
						m.Value += slower(control)
					}
				}
			}
		}
		return run
	})
	return b
}

// bisectFiles writes a plan and a list, and returns the flags of a bisect of them.
func bisectFiles(t *testing.T, box string) (dir string, flags []string) {
	t.Helper()
	dir = t.TempDir()
	var list strings.Builder
	for i := range 17 {
		fmt.Fprintf(&list, "r%04d change %d\n", i, i)
	}
	for name, text := range map[string]string{"plan.yaml": "page: https://www.shop.example/\n", "list": list.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, []string{"bisect", "--box", box, "--plan", filepath.Join(dir, "plan.yaml"), "--good", "r0000", "--revisions", filepath.Join(dir, "list"),
		"--deploy", fmt.Sprintf(`echo "$REVISION" >> %s/deployed; test "$1" != r0008 || { echo it does not build; exit 125; }`, dir),
		"--out", filepath.Join(dir, "out")}
}

// TestBisectOnABox: over REST, killed with SIGKILL while the box makes trials, and gone on with: the culprit is found,
// what was deployed is not deployed again, no experiment is asked for twice, and what cannot be built is left out.
func TestBisectOnABox(t *testing.T) {
	const killedAfter = 4
	var names []string
	reached, release := make(chan struct{}), make(chan struct{})
	held := false
	b := bisectBox(t, func(p lab.Plan) {
		names = append(names, fmt.Sprint(p.Name, " ", p.Seed))
		if !held && len(names) > killedAfter && strings.HasPrefix(p.Name, "bisect ") {
			held = true
			close(reached)
			<-release
		}
	})
	dir, flags := bisectFiles(t, b.url())
	t.Setenv(tokenVariable, b.token)
	first := appliance(t, flags...)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reached:
	case <-time.After(testlab.Hang):
		t.Fatal("the box was not asked for so many runs")
	}
	// The journal has the line of the run as soon as the client knows its ID.
	testlab.Await(t, "the run in the journal", func() bool {
		content, _ := os.ReadFile(filepath.Join(dir, "out", "bisect.jsonl"))
		return strings.Count(string(content), `"begun"`) > strings.Count(string(content), `"ended"`)
	})
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	close(release)
	got := finishCmd(t, appliance(t, append(flags, "--json")...))
	if got.status != exitGood {
		t.Fatalf("status %d\n%s\n%s", got.status, got.out, got.err)
	}
	var found outcome
	if err := json.Unmarshal([]byte(got.out), &found); err != nil {
		t.Fatalf("%v\n%s", err, got.out)
	}
	if found.Kind != bisect.Culprit || found.Steps[0].Revisions[0].Name != "r0011" {
		t.Errorf("found %s", found.Text)
	}
	if len(found.Untestable) != 1 || found.Untestable[0].Revision.Name != "r0008" || !strings.Contains(found.Untestable[0].Reason, "it does not build") {
		t.Errorf("left out: %+v", found.Untestable)
	}
	if !strings.Contains(got.err, "Going on with the bisect") {
		t.Errorf("the news are\n%s", got.err)
	}
	deployed, err := os.ReadFile(filepath.Join(dir, "deployed"))
	if err != nil {
		t.Fatal(err)
	}
	for what, list := range map[string][]string{"deployed": strings.Fields(string(deployed)), "asked for": names} {
		seen := map[string]bool{}
		for _, name := range list {
			if seen[name] {
				t.Errorf("%s was %s twice", name, what)
			}
			seen[name] = true
		}
	}
	// Asked again it answers at once, in words.
	asked := len(names)
	got = finishCmd(t, appliance(t, flags...))
	if got.status != exitGood || !strings.Contains(got.out, "It was r0011 (change 11), with a probability of") ||
		!strings.Contains(got.out, "Left out: r0008") || len(names) != asked {
		t.Errorf("asked again: status %d, %d runs\n%s%s", got.status, len(names)-asked, got.out, got.err)
	}
}

func TestBisectUsage(t *testing.T) {
	dir, flags := bisectFiles(t, "http://127.0.0.1:1")
	plan := func(text string) []string {
		file := filepath.Join(t.TempDir(), "plan.yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return append(flags, "--plan", file)
	}
	for _, tt := range []struct {
		name  string
		flags []string
		want  string
	}{
		{"two arms", plan("page: https://a.test/\ntreatment: {link: lte}\n"), "a bisect's plan has one arm"},
		{"many pages", plan("pages:\n  - page: https://a.test/\n"), "a bisect's plan is of one page"},
		{"one recording", plan("page: https://a.test/\narchive: shop.wacz\n"), "all revisions would be loaded from the same recording"},
		{"mark in a name", plan("page: https://a.test/\nname: \"{revision}\"\n"), "name: {revision} may stand in"},
		{"no page", plan("link: lte\n"), "names no page"},
		{"order", append(flags, "--good", "r0016", "--bad", "r0000"), "is not before"},
		{"bad is unknown", append(flags, "--bad", "x"), "does not list \"x\""},
		{"confidence", append(flags, "--confidence", "1"), "--confidence 1"},
		{"no spread", append(flags, "--spread", "0"), "--spread 0: from 1 to 50"},
		{"spread here", append(slices.Delete(slices.Clone(flags), 1, 3), "--spread", "2"), "--spread is for bisects on the boxes of a head"},
		{"for each box", plan("page: https://a.test/\non: {each: box}\n"), "on.each: a bisect compares one pair"},
		{"no list", append(flags, "--revisions", filepath.Join(dir, "none")), "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := finishCmd(t, appliance(t, tt.flags...))
			if got.status != exitUsage || !strings.Contains(got.err, tt.want) {
				t.Errorf("status %d: %s; want %d and %q", got.status, got.err, exitUsage, tt.want)
			}
		})
	}
}

// TestBisectSpread: the runs of an experiment are asked for at the same time, and what is said of a trial has its run's
// name.
func TestBisectSpread(t *testing.T) {
	var b *testBox
	var once sync.Once
	b = bisectBox(t, func(p lab.Plan) {
		if strings.HasPrefix(p.Name, "bisect ") {
			once.Do(func() {
				testlab.Await(t, "three jobs in the queue", func() bool { jobs, err := b.queue.Jobs(t.Context()); return err == nil && len(jobs) == 3 })
			})
		}
	})
	_, flags := bisectFiles(t, b.url())
	t.Setenv(tokenVariable, b.token)
	got := finishCmd(t, appliance(t, append(flags, "--spread", "3")...))
	if got.status != exitGood || !strings.Contains(got.out, "It was r0011 (change 11)") || !strings.Contains(got.out, "10 pairs of trials in 3 runs") {
		t.Errorf("status %d\n%s\n%s", got.status, got.out, got.err)
	}
	if !regexp.MustCompile(`(?m)^Run \S+-bisect-r0000-r0016\S*, trial 1 of \d+: `).MatchString(got.out) {
		t.Errorf("no trial has its run's name:\n%s", got.out)
	}
	if !regexp.MustCompile(`(?m)^Run \S+ waits: virtual (carries out \S+, and|is about to be free;) (it is next|\d runs? comes? first)\.$`).MatchString(got.out) {
		t.Errorf("no run is said to wait behind another:\n%s", got.out)
	}
}

func TestSeriesCommand(t *testing.T) {
	var text strings.Builder
	text.WriteString("day,requests\n")
	r := rand.New(rand.NewPCG(8, 8))
	for i := range 60 {
		v := 1000 + 10*r.NormFloat64()
		if i >= 40 {
			v -= 60
		}
		fmt.Fprintf(&text, "%d,%.1f\n", i, v)
	}
	file := filepath.Join(t.TempDir(), "s.csv")
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		flags  []string
		status int
		want   string
	}{
		{nil, exitGood, "1 change of their level"},
		{[]string{"--worse", "down"}, exitFailed, "41    42    40"},
		{[]string{"--worse", "down", "--recent", "10"}, exitGood, "from value"},
		{[]string{"--csv"}, exitGood, "41,42,40,"},
		{[]string{"--json"}, exitGood, `"value": 41`},
		{[]string{"--last", "15"}, exitGood, "15 values, no change of their level"},
		{[]string{"--json", "--csv"}, exitUsage, ""},
	} {
		got := finishCmd(t, appliance(t, append([]string{"series", file, "--column", "requests", "--time", "day"}, tt.flags...)...))
		if got.status != tt.status || !strings.Contains(got.out, tt.want) {
			t.Errorf("%v: status %d; want %d and %q in\n%s%s", tt.flags, got.status, tt.status, tt.want, got.out, got.err)
		}
	}
}
