package panel

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// sending is a change of a request: its token and its body.
func sending(token, body string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
			r.Body = io.NopCloser(strings.NewReader(body))
		}
	}
}

// logIn opens a session and returns its cookie.
func logIn(t *testing.T, s *httptest.Server, token string) *http.Cookie {
	t.Helper()
	got := ask(t, s, http.MethodPost, "/api/v1/session", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(token)) })
	if got.StatusCode != http.StatusNoContent || len(got.Cookies()) != 1 {
		t.Fatalf("log-in = %d, %d cookies; want 204 and one: %s", got.StatusCode, len(got.Cookies()), got.text)
	}
	return got.Cookies()[0]
}

func withCookie(c *http.Cookie) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(c) }
}

// newToken makes a token over REST.
func newToken(t *testing.T, s *httptest.Server, name, scope string) (made NewToken) {
	t.Helper()
	got := ask(t, s, http.MethodPost, "/api/v1/tokens", sending(token, `{"name":"`+name+`","scope":"`+scope+`"}`))
	if err := json.Unmarshal([]byte(got.text), &made); got.StatusCode != http.StatusCreated || err != nil {
		t.Fatalf("making a token = %d, %v: %s", got.StatusCode, err, got.text)
	}
	return made
}

// A log-out ends the session on the box: the cookie that somebody copied is worth nothing.
// Before there were sessions it was valid for as long as the token.
func TestLogOutEndsTheSession(t *testing.T) {
	s := newServer(t, setup{Store: newStore(t), Token: lab.NewSecret(token)})
	first, second := logIn(t, s, token), logIn(t, s, token)
	if first.Value == second.Value {
		t.Error("two log-ins have the same cookie")
	}
	if got := ask(t, s, http.MethodGet, "/api/v1/session", withCookie(first)); got.StatusCode != 200 || !strings.Contains(got.text, `"scope":"admin"`) {
		t.Errorf("GET session = %d %s; want 200, admin", got.StatusCode, got.text)
	}
	if got := ask(t, s, http.MethodDelete, "/api/v1/session", withCookie(first)); got.StatusCode != 204 {
		t.Fatalf("log-out = %d", got.StatusCode)
	}
	for cookie, want := range map[*http.Cookie]int{first: 401, second: 200} {
		if got := ask(t, s, http.MethodGet, "/api/v1/runs", withCookie(cookie)); got.StatusCode != want {
			t.Errorf("after the log-out: %d, want %d", got.StatusCode, want)
		}
	}
}

func TestScopesOfTokens(t *testing.T) {
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	config, _, resets := whole(t)
	config.Queue = queueOf(config.Store, q, &fakeRunner{})
	config.Automation, config.Bisects = keeperOf(t, config), bisectsOf(t, config)
	config.Devices = func(context.Context) []Device {
		return []Device{{Name: "air", WiFi: &WiFi{SSID: "lab", Passphrase: "secret-words", QR: "WIFI:P:secret-words"}}}
	}
	config, _ = headOf(t, config)
	s := newServer(t, config)
	tokens := map[string]string{"read": newToken(t, s, "looks", "read").Secret, "run": newToken(t, s, "nightly", "run").Secret, "admin": token}
	const run = "/api/v1/runs/20261121-091400-demo"
	for _, c := range []struct {
		method, path, body string
		needs              string
	}{
		{"GET", "/api/v1/runs", "", "read"}, {"GET", run + "/artifacts", "", "read"}, {"GET", run + "/view", "", "read"}, {"GET", run + "/plan", "", "read"}, {"HEAD", "/api/v1/devices", "", "read"},
		{"POST", "/api/v1/devices/laptop/errand", `{"do":"noise"}`, "run"}, {"GET", "/api/v1/devices/laptop/errand", "", "read"},
		{"POST", "/api/v1/devices/laptop/errand/trigger", "", "run"}, {"DELETE", "/api/v1/devices/laptop/errand?keep=true", "", "run"},
		{"GET", "/api/v1/session", "", "read"}, {"GET", "/api/v1/archives/nope/contents", "", "read"},
		{"POST", "/api/v1/plan", `{"yaml":"trials: 3"}`, "run"}, {"POST", "/api/v1/runs", `{"page":"https://x.test/","device":"air"}`, "run"}, {"DELETE", "/api/v1/runs/nope", "", "run"},
		{"DELETE", "/api/v1/runs/nope?files=false", "", "run"},
		{"PUT", "/api/v1/archives/a.wacz", "PK", "run"},
		{"DELETE", "/api/v1/runs/nope?files=true", "", "admin"}, {"DELETE", "/api/v1/runs/nope?files=T", "", "admin"},
		{"DELETE", "/api/v1/archives/shop.wacz", "", "admin"}, {"GET", "/api/v1/config", "", "admin"}, {"PUT", "/api/v1/config", "x", "admin"},
		{"POST", "/api/v1/reset", `{"delete":"nothing"}`, "admin"}, {"POST", "/api/v1/update", "", "admin"},
		{"GET", "/api/v1/backup", "", "admin"}, {"HEAD", "/api/v1/backup", "", "admin"}, {"POST", "/api/v1/restore", "x", "admin"},
		{"GET", "/api/v1/retention", "", "read"}, {"POST", "/api/v1/retention?keep_days=1", "", "admin"},
		{"GET", "/api/v1/fleet", "", "read"}, {"PUT", "/api/v1/fleet", `{"link":"x"}`, "admin"}, {"DELETE", "/api/v1/fleet", "", "admin"},
		{"PUT", run + "/pin", `{}`, "run"}, {"GET", run + "/pin", "", "read"}, {"DELETE", run + "/pin", "", "run"},
		{"GET", "/api/v1/support", "", "admin"}, {"HEAD", "/api/v1/support", "", "admin"},
		{"GET", "/metrics", "", "read"}, {"HEAD", "/metrics", "", "read"},
		{"GET", "/api/v1/tokens", "", "admin"}, {"POST", "/api/v1/tokens", `{"name":"","scope":"admin"}`, "admin"},
		{"DELETE", "/api/v1/tokens/nope", "", "admin"}, {"GET", "/api/v1/audit", "", "admin"},
		{"PATCH", "/api/v1/anything", "", "admin"},
		{"GET", "/api/v1/workflows", "", "read"}, {"GET", "/api/v1/workflows/nope", "", "read"},
		{"PUT", "/api/v1/workflows/checkout", `{"plan":{"page":"https://x.test/"}}`, "run"},
		{"POST", "/api/v1/workflows/checkout/runs", `{}`, "run"}, {"DELETE", "/api/v1/workflows/nope", "", "admin"},
		{"GET", "/api/v1/schedules", "", "read"}, {"GET", "/api/v1/schedules/nope/firings", "", "read"},
		{"PUT", "/api/v1/schedules/often", `{"workflow":"checkout","every":"2h"}`, "run"}, {"DELETE", "/api/v1/schedules/nope", "", "admin"},
		{"GET", "/api/v1/alerts", "", "read"}, {"GET", "/api/v1/alerts/7", "", "read"}, {"POST", "/api/v1/alerts/7/acknowledgement", `{}`, "run"},
		{"POST", "/api/v1/alerts/7/resolution", `{}`, "run"}, {"POST", "/api/v1/alerts/7/acceptance", `{"reason":"x","until":"2026-12-31T00:00:00Z"}`, "run"},
		{"GET", "/api/v1/webhooks", "", "admin"}, {"GET", "/api/v1/deliveries", "", "admin"}, {"HEAD", "/api/v1/deliveries", "", "admin"},
		{"POST", "/api/v1/webhooks", `{"name":"x","url":"https://10.0.0.1/"}`, "admin"}, {"PUT", "/api/v1/webhooks/nope", `{"paused":true}`, "admin"},
		{"GET", "/api/v1/bisects", "", "read"}, {"GET", "/api/v1/bisects/nope", "", "read"}, {"POST", "/api/v1/bisects", `{}`, "run"},
		{"PUT", "/api/v1/bisects/nope/deployment", `{"revision":"a","ok":true}`, "run"}, {"POST", "/api/v1/bisects/nope/resume", "", "run"},
		{"POST", "/api/v1/bisects/nope/again", "", "run"}, {"GET", "/api/v1/repositories", "", "read"},
		{"PUT", "/api/v1/repositories/nope/deployment", `{"revision":"a","ok":true}`, "run"}, {"PATCH", "/api/v1/alerts/7", `{"owner":"ada"}`, "run"},
		{"DELETE", "/api/v1/bisects/nope", "", "run"}, {"DELETE", "/api/v1/bisects/nope?files=true", "", "admin"},
		{"GET", "/api/v1/boxes", "", "read"}, {"GET", "/api/v1/boxes/lab-1", "", "read"}, {"PATCH", "/api/v1/boxes/lab-1", `{"maintenance":true}`, "run"},
		{"DELETE", "/api/v1/boxes/nope", "", "admin"}, {"POST", "/api/v1/boxes/codes", "", "admin"}, {"GET", "/api/v1/boxes/lab-1/devices/virtual/readings", "", "read"},
		{"POST", "/api/v1/boxes/lab-1/devices/virtual/measurements", "", "run"}, {"PUT", "/api/v1/boxes/lab-1/devices/virtual/level", "", "admin"},
		{"POST", "/api/v1/boxes/update", "x", "admin"}, {"POST", "/api/v1/boxes/update/stop", "", "admin"},
		{"GET", "/api/v1/reference", "", "read"}, {"PUT", "/api/v1/reference", `{}`, "admin"}, {"DELETE", "/api/v1/reference", "", "admin"},
		{"POST", "/api/v1/webhooks/nope/test", "", "admin"}, {"DELETE", "/api/v1/webhooks/nope", "", "admin"},
	} {
		for has, secret := range tokens {
			got := ask(t, s, c.method, c.path, sending(secret, c.body))
			allowed := credentials.Scope(has).Allows(credentials.Scope(c.needs))
			if refused := got.StatusCode == http.StatusForbidden; refused == allowed {
				t.Errorf("%s %s with the scope %s = %d, allowed should be %v", c.method, c.path, has, got.StatusCode, allowed)
			}
			if !allowed && c.method != "HEAD" && !strings.Contains(got.text, "needs the scope "+c.needs) {
				t.Errorf("%s %s: the refusal does not say which scope: %s", c.method, c.path, got.text)
			}
		}
	}
	if *resets != 0 {
		t.Error("a refused reset was carried out")
	}
	for scope, want := range map[string]bool{"read": false, "run": true, "admin": true} {
		got := ask(t, s, http.MethodGet, "/api/v1/devices", sending(tokens[scope], ""))
		if strings.Contains(got.text, "secret-words") != want {
			t.Errorf("the scope %s sees the passphrase: %v, want %v", scope, !want, want)
		}
	}
}

// TestReadersSeeNoSecretsOfPlans: what a plan's users have, and what a journey types, is for those who may start it,
// whichever way a run is read; the files that are made of it to be shown have none of it.
func TestReadersSeeNoSecretsOfPlans(t *testing.T) {
	runs := newStore(t)
	run := reporttest.Run(1, 2)
	run.ID, run.Page = "20270101-000000-secret", "https://bob:hushword@shop.example/cart?token=hushquery"
	run.Plan.Page, run.Plan.Name = run.Page, run.Name
	run.Plan.Steps = []lab.Step{{Open: run.Page}, {Type: "hush-typed"}}
	run.Plan.Users = []lab.PlanUser{{Name: "anna", Cookies: []lab.PlanCookie{{Name: "s", Value: lab.NewSecret("hush-cookie")}}, Storage: map[string]lab.Secret{"k": lab.NewSecret("hush-storage")}}}
	run.Warnings = []string{"the cookie hush-cookie is old"}
	addRun(t, runs, run)
	s := newServer(t, setup{Store: runs, Token: lab.NewSecret(token)})
	reader := newToken(t, s, "looks", "read").Secret
	for _, path := range []string{"/api/v1/runs/" + run.ID, "/api/v1/runs/" + run.ID + "/artifacts/run.json", "/runs/" + run.ID + "/run.json"} {
		got := ask(t, s, http.MethodGet, path, sending(reader, ""))
		if got.StatusCode != 200 || !strings.Contains(got.text, `"anna"`) {
			t.Fatalf("GET %s = %d %.200s", path, got.StatusCode, got.text)
		}
		for _, secret := range []string{`"hush-cookie"`, "hush-storage", "hush-typed", "hushword"} {
			if strings.Contains(got.text, secret) {
				t.Errorf("GET %s with the scope read has %s", path, secret)
			}
		}
		if got := ask(t, s, http.MethodGet, path, sending(token, "")); !strings.Contains(got.text, `"hush-cookie"`) {
			t.Errorf("GET %s with the scope admin has no cookie", path)
		}
	}
	for _, file := range []string{"report.json", "report.html", "timeline.html"} {
		got := ask(t, s, http.MethodGet, "/api/v1/runs/"+run.ID+"/artifacts/"+file, sending(token, ""))
		if file != "report.json" && strings.Contains(got.text, "hush") || strings.Contains(got.text, "hushword") || strings.Contains(got.text, `"hush-cookie"`) ||
			strings.Contains(got.text, "hush-typed") || strings.Contains(got.text, "hush-storage") {
			t.Errorf("%s (%d) has a secret", file, got.StatusCode)
		}
	}
}

func TestTokensOverREST(t *testing.T) {
	s := newServer(t, setup{Store: newStore(t), Token: lab.NewSecret(token)})
	made := newToken(t, s, "nightly", "read")
	cookie := logIn(t, s, made.Secret)
	for want, body := range map[int]string{409: `{"name":"Nightly","scope":"read"}`, 422: `{"name":"x","scope":"root"}`} {
		if got := ask(t, s, http.MethodPost, "/api/v1/tokens", sending(token, body)); got.StatusCode != want {
			t.Errorf("making %s = %d, want %d: %s", body, got.StatusCode, want, got.text)
		}
	}
	got := ask(t, s, http.MethodGet, "/api/v1/tokens", sending(token, ""))
	if !strings.Contains(got.text, `"name":"nightly"`) || !strings.Contains(got.text, `"from":"127.0.0.1"`) || strings.Contains(got.text, made.Secret) ||
		strings.Contains(got.text, "sha256") {
		t.Errorf("the list of tokens: %s", got.text)
	}
	if got := ask(t, s, http.MethodDelete, "/api/v1/tokens/"+made.ID, sending(token, "")); got.StatusCode != 204 {
		t.Fatalf("revoking = %d: %s", got.StatusCode, got.text)
	}
	for name, change := range map[string]func(*http.Request){"token": sending(made.Secret, ""), "session": withCookie(cookie)} {
		if got := ask(t, s, http.MethodGet, "/api/v1/runs", change); got.StatusCode != 401 {
			t.Errorf("a revoked %s = %d, want 401", name, got.StatusCode)
		}
	}
	if got := ask(t, s, http.MethodDelete, "/api/v1/tokens/"+made.ID, sending(token, "")); got.StatusCode != 404 {
		t.Errorf("revoking twice = %d, want 404", got.StatusCode)
	}
	log := ask(t, s, http.MethodGet, "/api/v1/audit", sending(token, "")).text
	for _, want := range []string{`"who":"box","what":"POST /api/v1/tokens: nightly, scope read","from":"127.0.0.1","status":201`, `"who":"nightly","what":"log-in"`,
		`"what":"DELETE /api/v1/tokens/` + made.ID + `: nightly"`, `"who":"","what":"a wrong token"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has no %s: %s", want, log)
		}
	}
}

// Guessing becomes slow; a session of the same address goes on.
func TestWrongTokensDelay(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	s := newServer(t, setup{Store: newStore(t), Token: lab.NewSecret(token),
		Credentials: credentials.Open(credentials.Options{Own: lab.NewSecret(token), Now: func() time.Time { return now }})})
	cookie := logIn(t, s, token)
	var got reply
	for n := 0; got.Response == nil || got.StatusCode == 401; n++ {
		if n > 20 {
			t.Fatal("20 wrong tokens were looked at without a delay")
		}
		got = ask(t, s, http.MethodGet, "/api/v1/runs", sending("nope", ""))
	}
	if got.StatusCode != 429 || got.Header.Get("Retry-After") != "1" {
		t.Errorf("after wrong tokens: %d, Retry-After %q; want 429, 1", got.StatusCode, got.Header.Get("Retry-After"))
	}
	if got := ask(t, s, http.MethodGet, "/api/v1/runs", sending(token, "")); got.StatusCode != 429 {
		t.Errorf("the right token within the delay = %d, want 429: otherwise guessing is as fast as before", got.StatusCode)
	}
	if got := ask(t, s, http.MethodPost, "/api/v1/session", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(token)) }); got.StatusCode != 429 {
		t.Errorf("a log-in within the delay = %d, want 429", got.StatusCode)
	}
	if got := ask(t, s, http.MethodGet, "/api/v1/runs", withCookie(cookie)); got.StatusCode != 200 {
		t.Errorf("a session within the delay = %d, want 200", got.StatusCode)
	}
	now = now.Add(time.Second)
	if got := ask(t, s, http.MethodGet, "/api/v1/runs", sending(token, "")); got.StatusCode != 200 {
		t.Errorf("the right token after the delay = %d, want 200", got.StatusCode)
	}
}

// A stream of events that was open ends with the session that opened it.
func TestStreamEndsWithItsSession(t *testing.T) {
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	st := newStore(t)
	queue := queueOf(st, q, &fakeRunner{})
	s := newServer(t, setup{Store: st, Token: lab.NewSecret(token), Queue: queue})
	cookie := logIn(t, s, token)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(cookie)
	stream, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	ask(t, s, http.MethodDelete, "/api/v1/session", withCookie(cookie))
	queue.Events().Publish(runqueue.Progress{Run: "20270115-080000-secret", State: store.StateRunning})
	if text, err := io.ReadAll(stream.Body); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("the stream goes on after the log-out (%v): %s", err, text)
	}
}

// The description is read by many at once from the first moment; the race detector watches.
func TestDescriptionIsReadAtOnce(t *testing.T) {
	s := newServer(t, setup{Store: newStore(t), Token: lab.NewSecret(token)})
	var all sync.WaitGroup
	for range 8 {
		for _, path := range descriptions() {
			all.Go(func() {
				answer, err := s.Client().Get(s.URL + path)
				if err != nil {
					t.Error(err)
					return
				}
				defer answer.Body.Close()
				if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != 200 || len(text) < 1000 {
					t.Errorf("GET %s = %d, %d bytes, %v", path, answer.StatusCode, len(text), err)
				}
			})
		}
	}
	all.Wait()
}
