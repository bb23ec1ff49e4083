package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/run/execute"
	"eidetic/netlab/archive"
)

// fillsWhatIsMissing replays a recording of the sample shop that lacks its API: the first trial
// fetches that, and does not count; the next one gets the same without its origin, and shows the same.
func fillsWhatIsMissing(t *testing.T, whole string) {
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	part, out := filepath.Join(t.TempDir(), "part.wacz"), t.TempDir()
	if err := os.WriteFile(part, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := finishCmd(t, appliance(t, "archive", "rm", part, "--url", "*://"+samplesite.API+"/*")); got.status != exitGood {
		t.Fatalf("archive rm: status %d: %s", got.status, got.err)
	}
	got := finishCmd(t, appliance(t, "demo", "--archive", part, "--page", samplesite.Home, "--miss", "fill", "--match", "strict",
		"--link", "native", "--trials", "1", "--no-serve", "--out", out))
	dir, run := readRun(t, out)
	if len(run.Trials) < 2 || run.Plan.Miss != lab.MissFill || run.Plan.Match != "strict" {
		t.Fatalf("status %d with %d trials, miss %q, match %q; want one that fetches and one that counts\n%s%s", got.status, len(run.Trials), run.Plan.Miss,
			run.Plan.Match, got.out, got.err)
	}
	first, later := run.Trials[0], run.Trials[len(run.Trials)-1]
	if first.Valid || first.Filled == 0 || !strings.Contains(strings.Join(first.Invalid, "; "), "were fetched from their origins") {
		t.Errorf("trial 1 fetched %d requests; valid %v, because %q; want it invalid for that", first.Filled, first.Valid, first.Invalid)
	}
	for _, r := range first.FilledRequests {
		if !strings.Contains(r.URL, "//"+samplesite.API+"/") || r.Status != 200 || r.Wall.IsZero() {
			t.Errorf("trial 1 fetched %+v; want answers of the API alone", r)
		}
	}
	if later.Filled != 0 || later.Misses != 0 {
		t.Errorf("the last trial fetched %d requests and missed %d; want none", later.Filled, later.Misses)
	}
	if first.Ended == lab.EndStable && later.Ended == lab.EndStable && first.FinalFrame != later.FinalFrame {
		t.Errorf("the last trial ends with the picture %s, the one that fetched with %s; want one", later.FinalFrame, first.FinalFrame)
	}
	a, err := archive.Open(filepath.Join(dir, execute.FilledFile))
	if err != nil || run.Filled == nil || len(a.Exchanges()) != run.Filled.Exchanges || len(a.Exchanges()) < len(first.FilledRequests) {
		t.Fatalf("what was fetched is %+v in run.json, and as an archive: %v", run.Filled, err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(page), "Fetched from origins") {
		t.Errorf("the report does not say what was fetched: %v", err)
	}
}

// TestReplayOfAPageAsksItsOrigin: a page whose recording lacks its API is opened with each policy that asks
// origins, and what was fetched completes the recording.
func TestReplayOfAPageAsksItsOrigin(t *testing.T) {
	needLab(t)
	server, port := serveOwn(t, "127.0.0.1:0", false, func(*http.Request) {})
	page, dir := "http://localhost:"+port+"/", t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, args := range [][]string{
		{"record", "--archive", in("a.wacz"), "--still", "2s", page},
		{"archive", "rm", in("a.wacz"), "--url", "*/api*"},
	} {
		if got := finishCmd(t, appliance(t, args...)); got.status != exitGood {
			t.Fatalf("%q: status %d: %s%s", args, got.status, got.out, got.err)
		}
	}
	replay := func(more ...string) result {
		return finishCmd(t, appliance(t, append([]string{"replay", "--archive", in("a.wacz"), "--still", "2s", page}, more...)...))
	}
	if got := replay("--miss", "live"); got.status != exitGood || !strings.Contains(got.out, "1 live") {
		t.Errorf("--miss live: status %d, %s%s; want the API from its server", got.status, got.out, got.err)
	}
	if got := replay("--miss", "fill", "--fill", in("b.wacz")); got.status != exitGood || !strings.Contains(got.out, "1 live") {
		t.Errorf("--miss fill: status %d, %s%s; want the API from its server", got.status, got.out, got.err)
	}
	server.Close()
	if got := replay("--miss", "live"); got.status != exitFailed || !strings.Contains(got.err, "could not be fetched") {
		t.Errorf("--miss live without the server: status %d, %s%s; want %d and the reason", got.status, got.out, got.err, exitFailed)
	}
	merge := finishCmd(t, appliance(t, "archive", "merge", in("c.wacz"), in("a.wacz"), in("b.wacz")))
	got := finishCmd(t, appliance(t, "replay", "--archive", in("c.wacz"), "--still", "2s", page))
	if got.status != exitGood || !strings.Contains(got.out, "2 requests, 2 exact") {
		t.Errorf("the recording with what was fetched: status %d, %s%s (merge: %s); want two exact answers", got.status, got.out, got.err, merge.err)
	}
}
