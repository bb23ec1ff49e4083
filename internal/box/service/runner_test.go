package service

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/errand"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/frequency"
	"eidetic/internal/run/seat"
	"eidetic/internal/web/panel"
	"eidetic/systemd"

	"github.com/google/go-cmp/cmp"
)

// noDevice is there and is asked for nothing else.
type noDevice struct{}

func (noDevice) describe(context.Context) panel.Device {
	return panel.Device{Name: "port", Kind: "port", Ready: true}
}
func (noDevice) place() *seat.Seat { return &seat.Seat{} }

func (noDevice) refuses(plan.Checked) error                                         { return nil }
func (noDevice) carryOut(context.Context, string, plan.Checked, execute.News) error { return nil }
func (noDevice) forErrands() errand.Device                                          { return errand.Device{} }

func newRunner(t *testing.T) *runner {
	t.Helper()
	data := t.TempDir()
	runs, err := store.Open(t.Context(), data, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runs.Close() })
	all := &deviceList{}
	all.add("port", noDevice{})
	return &runner{data: data, runs: runs, devices: all}
}

func put(t *testing.T, parts ...string) string {
	t.Helper()
	file := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestResolvePlan(t *testing.T) {
	r := newRunner(t)
	shop := put(t, r.data, UploadsDir, "shop.wacz")
	recorded := put(t, r.data, "runs", "20270101-000000-a", execute.ArchiveFile)
	base := lab.Plan{Trials: 3, Still: 1.5, Limit: 60, Seed: 7, Arm: lab.Arm{Page: "https://www.x.test/", Archive: "shop.wacz"}}

	q, err := r.Accept(t.Context(), base)
	if err != nil || q.Device != "port" {
		t.Errorf("Accept() = a plan for device %q, %v; want the first device", q.Device, err)
	}
	control := lab.Arm{Page: base.Page, Archive: shop, Link: "native"}
	for name, c := range map[string]struct{ treatment, want *lab.Arm }{
		"control alone": {nil, nil},
		"another link":  {&lab.Arm{Link: "lte"}, &lab.Arm{Page: base.Page, Archive: shop, Link: "lte"}},
		"another page":  {&lab.Arm{Page: "https://y.test/"}, &lab.Arm{Page: "https://y.test/", Link: "native"}},
		"a run's":       {&lab.Arm{Archive: "20270101-000000-a"}, &lab.Arm{Page: base.Page, Archive: recorded, Link: "native"}},
		"matching":      {&lab.Arm{Match: "strict"}, &lab.Arm{Page: base.Page, Archive: shop, Link: "native", Match: "strict"}},
		"nothing else":  {&lab.Arm{}, &control},
	} {
		q := base
		q.Treatment = c.treatment
		got, err := r.resolve(q)
		if err != nil {
			t.Errorf("%s: resolve() = %v", name, err)
		}
		want := base.WithDefaults()
		want.Timing = lab.TimingRecorded // which the plan's check fills in, as it does covariates
		want.Arm, want.Treatment = control, c.want
		want.Covariates = got.Covariates
		if d := cmp.Diff(want, got.WithArms(got.Arms())); d != "" {
			t.Errorf("%s: resolve() (-want +got):\n%s", name, d)
		}
	}
}

func TestAcceptRefuses(t *testing.T) {
	r := newRunner(t)
	put(t, r.data, "secret")
	if err := os.Mkdir(filepath.Join(r.data, UploadsDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret", filepath.Join(r.data, UploadsDir, "link.wacz")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*lab.Plan)
		says   string
	}{
		{"device", func(q *lab.Plan) { q.Device = "toaster" }, "there are: port"},
		{"no such archive", func(q *lab.Plan) { q.Archive = "none.wacz" }, `no recording "none.wacz"`},
		{"a path", func(q *lab.Plan) { q.Archive = "../secret" }, "neither a file name"},
		{"a link", func(q *lab.Plan) { q.Archive = "link.wacz" }, "no recording"},
		{"a script", func(q *lab.Plan) { q.Page = "javascript:alert(1)" }, "absolute http or https"},
		{"link", func(q *lab.Plan) { q.Link = "warp" }, "warp"},
		{"link of the treatment", func(q *lab.Plan) { q.Treatment = &lab.Arm{Link: "warp"} }, "treatment.link: "},
		{"timing", func(q *lab.Plan) { q.Timing = "soon" }, "timing"},
		{"limit", func(q *lab.Plan) { q.Limit = 1 }, "the limit no shorter"},
		{"live", func(q *lab.Plan) { q.Live = true }, "appliance demo --live"},
		{"too many", func(q *lab.Plan) { q.Trials = store.MaxTrials; q.Treatment = &lab.Arm{} }, "at most"},
	} {
		q := lab.Plan{Trials: 1, Still: 1.5, Limit: 60, Arm: lab.Arm{Page: "https://www.x.test/"}}
		c.change(&q)
		if _, err := r.Accept(t.Context(), q); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Accept() = %v; want a word of %q", c.name, err, c.says)
		}
	}
}

// A recording that stands still is seen, one that ended is not waited for.
func TestFilmWatch(t *testing.T) {
	now := time.Unix(1, 0)
	notifier := systemd.NewNotifier(func(string) error { return nil }, 20*time.Second, func() time.Time { return now })
	w := &filmWatch{notifier: notifier, name: "capture port"}
	ok := func() string {
		var all []string
		for _, turn := range notifier.Turns() {
			all = append(all, turn.Name+" "+map[bool]string{true: "turns", false: "hangs"}[turn.OK])
		}
		return strings.Join(all, ", ")
	}
	for _, c := range []struct {
		news execute.FilmNews
		wait time.Duration
		want string
	}{
		{execute.FilmBegins, 0, "capture port turns"},
		{"", 21 * time.Second, "capture port hangs"},
		{execute.FilmTurns, 0, "capture port turns"},
		{execute.FilmEnds, 0, ""},
		{execute.FilmEnds, 0, ""},
		{execute.FilmBegins, 0, "capture port turns"},
	} {
		now = now.Add(c.wait)
		w.hear(c.news)
		if got := ok(); got != c.want {
			t.Errorf("after %q: %q, want %q", c.news, got, c.want)
		}
	}
}

// governed is a device that looks at a processor's governor during a run.
type governed struct {
	noDevice
	file string
	seen *string
}

func (d governed) carryOut(context.Context, string, plan.Checked, execute.News) error {
	text, err := os.ReadFile(d.file)
	*d.seen = strings.TrimSpace(string(text))
	return err
}

// TestRunHoldsProcessors: during a run the processors have one frequency, and afterwards what they had before.
func TestRunHoldsProcessors(t *testing.T) {
	r, root, seen := newRunner(t), t.TempDir(), ""
	file := put(t, root, "sys/devices/system/cpu/cpufreq/policy0/scaling_governor")
	for name, text := range map[string]string{file: "powersave\n", filepath.Join(filepath.Dir(file), "scaling_available_governors"): "performance powersave\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.devices.add("governed", governed{file: file, seen: &seen})
	q := lab.Plan{Device: "governed", Trials: 1, Timing: "recorded", Still: 1, Limit: 60, Arm: lab.Arm{Page: "https://www.x.test/"}}
	for want, m := range map[string]*frequency.Machine{"performance": {Root: root, File: filepath.Join(r.data, "processors.json")}, "powersave": nil} {
		r.processors = m
		told := false
		err := r.Run(t.Context(), "1", q, func(p runqueue.Progress) { told = told || strings.Contains(p.Doing, "governor performance") })
		if err != nil || seen != want || told != (m != nil) {
			t.Errorf("Run() = %v with the governor %q, told: %v; want %q", err, seen, told, want)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "powersave\n" {
			t.Errorf("after the run the governor is %q, %v; want powersave", text, err)
		}
	}
}
