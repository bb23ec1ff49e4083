package panel

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// A request that makes something and comes again with its key makes nothing more, and is answered as the first was,
// without the secret.
func TestRepeatedRequests(t *testing.T) {
	config, _ := editable(t)
	config.Credentials = credentials.Open(credentials.Options{Own: lab.NewSecret(token)})
	_, other, err := config.Credentials.Create("other", credentials.Admin)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, config)
	post := func(path, key, by, body string) reply {
		return ask(t, s, http.MethodPost, path, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+by)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set(keyHeader, key)
			r.Body = io.NopCloser(strings.NewReader(body))
		})
	}
	count := func(path, what string) int {
		return strings.Count(ask(t, s, http.MethodGet, path, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }).text, what)
	}
	const hook = `{"name":"chat","url":"https://127.0.0.1:1/x","events":["run.finished"]}`
	first := post("/api/v1/webhooks", "k1", token, hook)
	again := post("/api/v1/webhooks", "k1", token, hook)
	if first.StatusCode != 201 || again.StatusCode != 201 || again.Header.Get("Idempotency-Replayed") != "true" || !strings.Contains(first.text, "whsec_") ||
		strings.Contains(again.text, "secret") || !strings.Contains(again.text, `"name":"chat"`) || again.Header.Get("Content-Type") != first.Header.Get("Content-Type") {
		t.Errorf("the answers are %d %s and %d %s; want the same, with the secret in the first alone", first.StatusCode, first.text, again.StatusCode, again.text)
	}
	for _, c := range []struct {
		name, path, key, by, body string
		status                    int
		says                      string
	}{
		{"another request", "/api/v1/webhooks", "k1", token, strings.Replace(hook, "chat", "mail", 1), 422, "another request"},
		{"another's key", "/api/v1/webhooks", "k1", other, strings.Replace(hook, "chat", "others", 1), 201, `"name":"others"`},
		{"another's key again", "/api/v1/webhooks", "k1", other, strings.Replace(hook, "chat", "others", 1), 201, `"name":"others"`},
		{"the same of a run", "/api/v1/runs", "k1", token, `{"page":"https://a.test/"}`, 422, "another request"},
		{"a key with a space", "/api/v1/webhooks", "a b", token, hook, 422, "printable"},
		{"no key", "/api/v1/webhooks", "", token, hook, 422, "printable"},
		{"a refused request", "/api/v1/webhooks", "k2", token, `{"name":"chat"}`, 422, "required"},
		{"the next with its key", "/api/v1/tokens", "k2", token, `{"name":"nightly","scope":"run"}`, 201, "eid_"},
		{"a token again", "/api/v1/tokens", "k2", token, `{"name":"nightly","scope":"run"}`, 201, `"name":"nightly"`},
		{"an alert", "/api/v1/alerts/9/acknowledgement", "k3", token, `{}`, 404, "no alert"},
		{"a long body", "/api/v1/webhooks", "k4", token, strings.Repeat("x", maxPlanBody+1), 413, "more than"},
	} {
		if got := post(c.path, c.key, c.by, c.body); got.StatusCode != c.status || !strings.Contains(got.text, c.says) {
			t.Errorf("%s: %d %s; want %d with %q", c.name, got.StatusCode, got.text, c.status, c.says)
		}
	}
	for what, path := range map[string]string{`"name":"chat"`: "/api/v1/webhooks", `"name":"others"`: "/api/v1/webhooks", `"name":"nightly"`: "/api/v1/tokens"} {
		if n := count(path, what); n != 1 {
			t.Errorf("%d of %s were made, want 1", n, what)
		}
	}
	var runs []string
	for _, by := range []string{token, other, other} {
		got := post("/api/v1/runs", "k9", by, `{"page":"https://a.test/"}`)
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(got.text), &made); err != nil || made.ID == "" {
			t.Fatalf("starting a run = %d %s", got.StatusCode, got.text)
		}
		runs = append(runs, made.ID)
	}
	if runs[0] == runs[1] || runs[1] != runs[2] {
		t.Errorf("a key of two tokens, the second of which came twice, made the runs %q; want two", runs)
	}
	// Many at once: one is carried out, the others are told so, or that it is not answered yet.
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 8 {
		all.Go(func() {
			got := post("/api/v1/webhooks", "k5", token, strings.Replace(hook, "chat", "many", 1))
			mu.Lock()
			defer mu.Unlock()
			statuses[got.StatusCode]++
		})
	}
	all.Wait()
	if statuses[201] == 0 || statuses[201]+statuses[409] != 8 || count("/api/v1/webhooks", `"name":"many"`) != 1 {
		t.Errorf("eight requests at once: %v; want 201 or 409, and one webhook", statuses)
	}
	// A process that was killed meanwhile: nobody knows.
	body := strings.Replace(hook, "chat", "killed", 1)
	if got := post("/api/v1/webhooks", "k6", token, strings.Replace(body, "killed", "other", 1)); got.StatusCode != 201 {
		t.Fatal(got.text)
	}
	if _, err := config.Queue.(*runqueue.Queue).Jobs.Claim(t.Context(), store.Once{Key: "box k7", Request: digestOf("/api/v1/webhooks", "", []byte(body))}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := post("/api/v1/webhooks", "k7", token, body); got.StatusCode != 409 || !strings.Contains(got.text, "has no answer yet") || got.Header.Get("Retry-After") == "" {
		t.Errorf("a request that was cut off: %d %s; want 409", got.StatusCode, got.text)
	}
}

// All operations that make something say that they take a key.
func TestEveryOperationThatMakesSomethingTakesAKey(t *testing.T) {
	config, _ := editable(t)
	config.Seats, config.Errands = &fakeSeats{}, &fakeErrands{}
	p, err := newPanel(config)
	if err != nil {
		t.Fatal(err)
	}
	without := map[string]string{
		"/api/v1/plan": "makes nothing", "/api/v1/session": "a browser's", "/api/v1/restore": "replaces all", "/api/v1/update": "replaces all",
		"/api/v1/reset": "replaces all",
	}
	for path, item := range p.OpenAPI().Paths {
		if item.Post == nil || without[path] != "" {
			continue
		}
		keys := 0
		for _, param := range item.Post.Parameters {
			if param.Name == keyHeader {
				keys++
			}
		}
		if keys != 1 {
			t.Errorf("POST %s describes %d keys, want 1", path, keys)
		}
	}
}
