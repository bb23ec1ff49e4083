package service

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/job"
	"eidetic/internal/lab"
	"eidetic/internal/panel"
	"eidetic/internal/store"
	"eidetic/systemd"

	"github.com/google/go-cmp/cmp"
)

// noDevice is there and is asked for nothing else.
type noDevice struct{}

func (noDevice) describe(context.Context) panel.Device {
	return panel.Device{Name: "port", Kind: "port", Ready: true}
}
func (noDevice) carryOut(context.Context, job.Order, job.News) error { return nil }

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

func TestOrderOfARequest(t *testing.T) {
	r := newRunner(t)
	shop := put(t, r.data, UploadsDir, "shop.wacz")
	recorded := put(t, r.data, "runs", "20270101-000000-a", job.ArchiveFile)
	base := panel.RunRequest{Page: "https://www.x.test/", Trials: 3, Still: 1.5, Limit: 60, Seed: 7, Archive: "shop.wacz"}

	q, err := r.Accept(t.Context(), base)
	if err != nil || q.Device != "port" {
		t.Errorf("device %q, %v; want the first", q.Device, err)
	}
	control := job.Arm{Name: lab.Control, Page: base.Page, Archive: shop, Link: "native"}
	treatment := func(change func(*job.Arm)) job.Arm {
		a := control
		a.Name = lab.Treatment
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		treatment *panel.Treatment
		want      []job.Arm
	}{
		"control alone": {nil, []job.Arm{control}},
		"another link":  {&panel.Treatment{Link: "lte"}, []job.Arm{control, treatment(func(a *job.Arm) { a.Link = "lte" })}},
		"another page":  {&panel.Treatment{Page: "https://y.test/"}, []job.Arm{control, treatment(func(a *job.Arm) { a.Page, a.Archive = "https://y.test/", "" })}},
		"a run's":       {&panel.Treatment{Archive: "20270101-000000-a"}, []job.Arm{control, treatment(func(a *job.Arm) { a.Archive = recorded })}},
		"nothing else":  {&panel.Treatment{}, []job.Arm{control, treatment(func(*job.Arm) {})}},
	} {
		q := base
		q.Treatment, q.Device = c.treatment, "port"
		o, err := r.order("id", q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := job.Order{
			ID: "id", Device: "port", Trials: 3, Seed: 7, Arms: c.want,
			Still: job.Duration{Duration: 1500 * time.Millisecond}, Limit: job.Duration{Duration: time.Minute},
		}
		if d := cmp.Diff(want, o); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
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
		change func(*panel.RunRequest)
		says   string
	}{
		{"device", func(q *panel.RunRequest) { q.Device = "toaster" }, "there are: port"},
		{"no such archive", func(q *panel.RunRequest) { q.Archive = "none.wacz" }, `no recording "none.wacz"`},
		{"a path", func(q *panel.RunRequest) { q.Archive = "../secret" }, "neither a file name"},
		{"a link", func(q *panel.RunRequest) { q.Archive = "link.wacz" }, "no recording"},
		{"a script", func(q *panel.RunRequest) { q.Page = "javascript:alert(1)" }, "absolute http or https"},
		{"link", func(q *panel.RunRequest) { q.Link = "warp" }, "warp"},
		{"link of the treatment", func(q *panel.RunRequest) { q.Treatment = &panel.Treatment{Link: "warp"} }, "link of the treatment"},
		{"timing", func(q *panel.RunRequest) { q.Timing = "soon" }, "timing"},
		{"limit", func(q *panel.RunRequest) { q.Limit = 1 }, "the limit no shorter"},
		{"too many", func(q *panel.RunRequest) { q.Trials = store.MaxTrials; q.Treatment = &panel.Treatment{} }, "at most"},
	} {
		q := panel.RunRequest{Page: "https://www.x.test/", Trials: 1, Still: 1.5, Limit: 60}
		c.change(&q)
		if _, err := r.Accept(t.Context(), q); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want a word of %q", c.name, err, c.says)
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
		news job.FilmNews
		wait time.Duration
		want string
	}{
		{job.FilmBegins, 0, "capture port turns"},
		{"", 21 * time.Second, "capture port hangs"},
		{job.FilmTurns, 0, "capture port turns"},
		{job.FilmEnds, 0, ""},
		{job.FilmEnds, 0, ""},
		{job.FilmBegins, 0, "capture port turns"},
	} {
		now = now.Add(c.wait)
		w.hear(c.news)
		if got := ok(); got != c.want {
			t.Errorf("after %q: %q, want %q", c.news, got, c.want)
		}
	}
}
