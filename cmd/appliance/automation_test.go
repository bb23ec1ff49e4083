package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// commandsOf runs commands for a box.
func commandsOf(t *testing.T, b *testBox) func(args ...string) (status int, out, said string) {
	t.Helper()
	t.Setenv(tokenVariable, b.token)
	t.Setenv("EIDETIC_BOX", b.url())
	return func(args ...string) (int, string, string) {
		t.Helper()
		var out, said bytes.Buffer
		status := run(t.Context(), args, &streams{strings.NewReader(""), &out, &said})
		return status, out.String(), said.String()
	}
}

// A plan is kept, started under its name, changed and removed.
func TestWorkflowCommand(t *testing.T) {
	b := newTestBox(t, alone)
	command := commandsOf(t, b)
	plan := filepath.Join(t.TempDir(), "checkout.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(status int, within string, args ...string) string {
		t.Helper()
		got, out, said := command(args...)
		if got != status || !strings.Contains(out+said, within) {
			t.Errorf("appliance %s: status %d, %q, %q; want %d, %q", strings.Join(args, " "), got, out, said, status, within)
		}
		return out
	}
	expect(exitGood, "There are no workflows", "workflow", "ls")
	write("page: https://www.shop.example/\nlink: lte\ntrials: 4\n")
	expect(exitGood, "has version 1. Start it with: appliance run --workflow checkout", "workflow", "put", "checkout", "--plan", plan, "--tag", "team-a")
	expect(exitGood, "has this plan already", "workflow", "put", "checkout", "--plan", plan)
	write("page: https://www.shop.example/\nlink: 4g\ntrials: 5\n")
	expect(exitGood, "has version 2", "workflow", "put", "checkout", "--plan", plan)
	expect(exitGood, "https://www.shop.example/  team-a", "workflow", "ls")
	shown := expect(exitGood, "link: lte", "workflow", "show", "checkout@1")
	write(shown) // what it prints is a plan
	expect(exitGood, "has version 3", "workflow", "put", "checkout", "--plan", plan)
	write("page: https://www.shop.example/\nstill_s: 99\n")
	expect(exitUsage, "still_s", "workflow", "put", "checkout", "--plan", plan)
	expect(exitUsage, "no workflow", "workflow", "show", "nope")
	expect(exitUsage, "checkout@3", "workflow", "show", "checkout@x")

	out := expect(exitGood, "trials are valid", "run", "--workflow", "checkout@2", "--trials", "9")
	asked := <-b.asked
	if asked.Link != "4g" || asked.Trials != 9 || asked.From == nil || *asked.From != (lab.Origin{Workflow: "checkout", Version: 2, Changed: true}) {
		t.Errorf("the run was asked for with %+v, from %+v; want version 2 with 9 trials: %s", asked, asked.From, out)
	}
	id := strings.TrimSuffix(expect(exitGood, "", "run", "--workflow", "checkout", "--no-wait"), "\n") // and nothing else
	if asked = <-b.asked; asked.From.Version != 3 || asked.Link != "lte" {
		t.Errorf("the run was asked for with %+v, from %+v; want version 3", asked, asked.From)
	}
	if !store.ValidID(id) {
		t.Errorf("--no-wait prints %q; want the run's ID", id)
	}
	expect(exitUsage, "no workflow", "run", "--workflow", "nope")
	expect(exitUsage, "can't be used together", "run", "--workflow", "checkout", "--plan", plan)

	expect(exitGood, "There are no schedules", "schedule", "ls")
	expect(exitGood, `starts checkout at "30 2 * * 1-5" (Europe/Berlin): next at`, "schedule", "set", "nightly", "--workflow", "checkout", "--cron", "30 2 * * 1-5",
		"--zone", "Europe/Berlin")
	expect(exitGood, "every 2h: next at", "schedule", "set", "nightly", "--workflow", "checkout", "--every", "2h")
	expect(exitGood, "it is paused", "schedule", "pause", "nightly")
	expect(exitGood, "paused", "schedule", "ls")
	expect(exitGood, "next at", "schedule", "resume", "nightly")
	expect(exitGood, "not been due", "schedule", "log", "nightly")
	expect(exitUsage, "1m to 31d", "schedule", "set", "x", "--workflow", "checkout", "--every", "1s")
	expect(exitUsage, "goes with --cron", "schedule", "set", "x", "--workflow", "checkout", "--every", "2h", "--zone", "UTC")
	expect(exitUsage, "no schedule", "schedule", "pause", "nope")
	expect(exitUsage, "a schedule starts it", "workflow", "rm", "checkout")
	expect(exitGood, "is removed", "schedule", "rm", "nightly")
	expect(exitGood, "is removed", "workflow", "rm", "checkout")
}

// A run that ends is posted, signed with the secret that was printed once.
func TestWebhookCommand(t *testing.T) {
	b := newTestBox(t, alone)
	command := commandsOf(t, b)
	type post struct {
		header http.Header
		body   []byte
	}
	posts := make(chan post, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posts <- post{r.Header, body}
	}))
	defer server.Close()
	status, secret, said := command("webhook", "make", "chat", server.URL, "--event", "run.finished")
	if status != exitGood || webhook.CheckSecret(lab.NewSecret(strings.TrimSpace(secret))) != nil || !strings.Contains(said, "cannot show its secret again") {
		t.Fatalf("webhook make: status %d, %q, %q; want a secret", status, secret, said)
	}
	if status, out, said := command("run", "--page", "https://www.shop.example/"); status != exitGood {
		t.Fatalf("run: status %d, %q, %q", status, out, said)
	}
	got := <-posts
	seconds, err := time.ParseDuration(got.header.Get("Webhook-Timestamp") + "s")
	if err != nil {
		t.Fatal(err)
	}
	want, err := webhook.Sign(lab.NewSecret(strings.TrimSpace(secret)), got.header.Get("Webhook-Id"), time.Unix(0, int64(seconds)), got.body)
	if err != nil || got.header.Get("Webhook-Signature") != want || !bytes.Contains(got.body, []byte(`"state":"done"`)) {
		t.Errorf("posted %v %s; want the signature %q (%v)", got.header, got.body, want, err)
	}
	for _, c := range []struct {
		status int
		want   string
		args   string
	}{
		{exitGood, "posted as msg_", "webhook test chat"},
		{exitGood, "run.finished", "webhook log chat"},
		{exitGood, "run.finished", "webhook log"},
		{exitGood, "events wait", "webhook pause chat"},
		{exitGood, "paused", "webhook ls"},
		{exitGood, "goes on", "webhook resume chat"},
		{exitUsage, "private network", "webhook make x https://10.0.0.1/"},
		{exitUsage, "has no webhook", "webhook test nope"},
		{exitGood, "is removed", "webhook rm chat"},
		{exitGood, "There are no webhooks", "webhook ls"},
	} {
		if status, out, said := command(strings.Fields(c.args)...); status != c.status || !strings.Contains(out+said, c.want) {
			t.Errorf("%s: status %d, %q, %q; want %d, %q", c.args, status, out, said, c.status, c.want)
		}
	}
}

// An open alert that something became slower is status 1, until it is acknowledged.
func TestAlertsCommand(t *testing.T) {
	b := newTestBox(t, alone)
	command := commandsOf(t, b)
	if status, out, _ := command("alerts"); status != exitGood || !strings.Contains(out, "No alert says that something became slower") {
		t.Errorf("alerts of a new box: status %d, %q", status, out)
	}
	for i := range 28 {
		wall := time.Date(2026, 3, 1+i, 9, 0, 0, 0, time.UTC)
		median, browser := 900+float64(i%5), "Chromium 142"
		if i >= 20 {
			median, browser = median+80, "Chromium\x1b[31m 143"
		}
		r := &lab.Run{ID: store.NewID(wall, "checkout"), Name: "checkout", Page: "https://a.test/", Wall: wall, State: store.StateDone,
			Environment: lab.Environment{Browser: browser},
			Summary:     []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 10, Median: median, Low: median - 5, High: median + 5}}}
		f, err := store.Create(b.data, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.keeper.Tell(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, out, said := command("alerts")
	if status != exitFailed || !strings.Contains(out, "checkout: SpeedIndex +80 ms (+8.8 %) since 20260321-090000-checkout") ||
		!strings.Contains(out, "in that run changed: browser from Chromium 142 to Chromium") || strings.Contains(out, "\x1b") {
		t.Errorf("alerts: status %d, %q, %q; want 1 and the step with what changed", status, out, said)
	}
	for _, c := range []struct {
		status     int
		args, want string
	}{
		{exitGood, "history", "checkout  28"},
		{exitGood, "history --name checkout", "SpeedIndex +80 ms (+8.8 %) since 20260321-090000-checkout"},
		{exitGood, "history --name checkout --limit 3", "20260328-090000-checkout  10  982"},
		{exitGood, "history --name checkout --line difference", "have no difference"},
		{exitGood, "history --steady", "10    0.0         0.0       0.2        SpeedIndex  checkout"},
		{exitUsage, "history --steady --name checkout", "leave out --series"},
		{exitUsage, "history --name other", "no finished run belongs to such a series"},
	} {
		if status, out, said := command(strings.Fields(c.args)...); status != c.status || !strings.Contains(out+said, c.want) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: status %d, %q, %q; want %d, %q", c.args, status, out, said, c.status, c.want)
		}
	}
	if status, out, said := command("alerts", "ack", "1", "--note", "as planned", "--tag", "planned"); status != exitGood || !strings.Contains(out, "is acknowledged") {
		t.Errorf("alerts ack: status %d, %q, %q", status, out, said)
	}
	if status, _, said := command("alerts", "ack", "1"); status == exitGood || !strings.Contains(said, "acknowledged already") {
		t.Errorf("alerts ack again: status %d, %q", status, said)
	}
	if status, out, _ := command("alerts"); status != exitFailed || !strings.Contains(out, "acknowledged by box") {
		t.Errorf("alerts after that: status %d, %q; want 1, as nothing is mended", status, out)
	}
	if status, out, said := command("alerts", "accept", "1", "--reason", "the cache", "--until", "2020-01-01"); status == exitGood || !strings.Contains(said, "a time from now on") {
		t.Errorf("alerts accept until the past: status %d, %q, %q", status, out, said)
	}
	day := time.Now().AddDate(0, 1, 0).Format(time.DateOnly)
	if status, out, said := command("alerts", "accept", "1", "--reason", "the cache", "--until", day); status != exitGood || !strings.Contains(out, "until "+day) {
		t.Errorf("alerts accept: status %d, %q, %q", status, out, said)
	}
	if status, out, _ := command("alerts"); status != exitGood || !strings.Contains(out, "No alert says that something became slower") {
		t.Errorf("alerts after it was accepted: status %d, %q", status, out)
	}
	if status, out, said := command("alerts", "resolve", "1", "--note", "reverted"); status != exitGood || !strings.Contains(out, "is resolved") {
		t.Errorf("alerts resolve: status %d, %q, %q", status, out, said)
	}
	if status, out, _ := command("alerts", "ls", "--all", "--tag", "planned"); status != exitGood || !strings.Contains(out, "resolved by box") ||
		!strings.Contains(out, "accepted by box") || !strings.Contains(out, "acknowledged by box") {
		t.Errorf("all alerts: status %d, %q", status, out)
	}
}
