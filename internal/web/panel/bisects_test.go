package panel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/box/bisects"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// bisectsOf keeps the bisects of a panel's box. Its hooks may be on 127.0.0.1, and its name server does not answer.
func bisectsOf(t *testing.T, c setup) *bisects.Keeper {
	t.Helper()
	k, err := bisects.Open(bisects.Config{
		Dir: filepath.Join(t.TempDir(), "bisects"), Runs: c.Queue, Store: c.Store, Now: testNow, Pauses: []time.Duration{time.Millisecond},
		Sender: webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}, Resolver: netip.MustParseAddrPort("127.0.0.1:1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// slower carries out runs of the queue: a revision's load takes 100 ms more from v3 on.
type slower struct{ store *store.Store }

func (s slower) Accept(_ context.Context, p lab.Plan) (lab.Plan, error) {
	p.Device = "virtual"
	return p, nil
}

func (s slower) Run(_ context.Context, id string, p lab.Plan, _ func(runqueue.Progress)) error {
	run := &lab.Run{ID: id, Name: p.Name, Plan: p, State: store.StateDone, Wall: testNow(), Page: p.Page}
	for i := range 2 * p.Trials {
		t := &lab.Trial{Number: i + 1, Block: 1, Arm: lab.Control, Valid: true}
		page := p.Page
		if i%2 == 1 && p.Treatment != nil {
			t.Arm, page = lab.Treatment, p.Arms()[1].Page
		}
		value := 500 + float64(i*7%5)
		if strings.Contains(page, "v3") || strings.Contains(page, "v4") {
			value += 100
		}
		t.Measurements = []lab.Measurement{{Name: "speed_index_ms", Unit: "ms", Value: value}}
		run.Trials = append(run.Trials, t)
	}
	f, err := store.Create(s.store.Root(), run)
	if err != nil {
		return err
	}
	return f.Close()
}

// Over REST: a bisect whose hook answers 202, and later with PUT; what it says while it waits, and what it finds.
func TestBisectOverREST(t *testing.T) {
	st := emptyStore(t)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	config := setup{Store: st, Token: lab.NewSecret(token), Queue: runqueue.New(runqueue.Config{Jobs: q, Store: st, Runner: slower{st}, Now: testNow})}
	config.Bisects = bisectsOf(t, config)
	s := newServer(t, config)
	asked := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			Data struct{ Revision, Answer string }
		}
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || r.Header.Get("Webhook-Signature") == "" {
			t.Errorf("the hook was posted %v %v", err, r.Header)
		}
		w.WriteHeader(http.StatusAccepted)
		asked <- e.Data.Answer + " " + e.Data.Revision
	}))
	defer hook.Close()
	body := fmt.Sprintf(`{"name": "v0 to v4", "spread": 2, "plan": {"page": "https://{revision}.a.test/", "link": "lte"}, "hook": {"url": %q},
		"revisions": [{"name": "v0"}, {"name": "v1"}, {"name": "v2", "words": "a change"}, {"name": "v3"}, {"name": "v4"}]}`, hook.URL)
	for wrong, want := range map[string]string{
		`"link": "lte"|"link": 7`:                                         "body.plan.link",
		`"link": "lte"|"lonk": "lte"`:                                     "body.plan.lonk",
		`"link": "lte"|"trials": 5001`:                                    "body.plan.trials",
		`"page": "https://{revision}.a.test/", |`:                         "page",
		`"link": "lte"|"users": [{"name": "a"}]`:                          "plan.users",
		`{"name": "v1"}|{"nome": "v1"}`:                                   "body.revisions[1]",
		`"revisions"|"reversions"`:                                        "body.reversions",
		`"spread": 2|"spread": 51`:                                        "body.spread",
		hook.URL + "|https://10.0.0.1/":                                   "hook.url",
		body[strings.Index(body, `"revisions"`):] + `|"revisions": null}`: "revisions: 0 revisions; from 2",
	} {
		from, to, _ := strings.Cut(wrong, "|")
		if got := ask(t, s, "POST", "/api/v1/bisects", sending(token, strings.Replace(body, from, to, 1))); got.StatusCode != 422 || !strings.Contains(got.text, want) {
			t.Errorf("POST with %s = %d %.300s; want 422 that names %s", wrong, got.StatusCode, got.text, want)
		}
	}
	got := ask(t, s, "POST", "/api/v1/bisects", sending(token, body))
	var made NewBisect
	if err := json.Unmarshal([]byte(got.text), &made); err != nil || got.StatusCode != http.StatusAccepted || made.Secret == "" ||
		got.Header.Get("Location") != "/api/v1/bisects/"+made.ID || made.State != ownruns.StateWaiting {
		t.Fatalf("POST = %d %s (%v); want 202", got.StatusCode, got.text, err)
	}
	at := "/api/v1/bisects/" + made.ID
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- config.Queue.(*runqueue.Queue).Work(ctx) }()
	go func() { done <- config.Bisects.Work(ctx) }()
	defer func() { stop(); <-done; <-done }()
	read := func() (b bisects.Bisect) {
		t.Helper()
		got := ask(t, s, "GET", at, sending(token, ""))
		if err := json.Unmarshal([]byte(got.text), &b); err != nil || got.StatusCode != http.StatusOK || strings.Contains(got.text, made.Secret) {
			t.Fatalf("GET = %d %s (%v); want 200 without the secret", got.StatusCode, got.text, err)
		}
		return b
	}
	limit := time.After(testlab.Hang)
	var b bisects.Bisect
	for b.State != ownruns.StateDone {
		select {
		case order := <-asked:
			answer, revision, _ := strings.Cut(order, " ")
			if now := read(); now.Deploying == nil || now.Deploying.Revision != revision || now.State != ownruns.StateRunning {
				t.Errorf("while %s is deployed: %+v", revision, now)
			}
			for _, c := range []struct {
				body   string
				status int
			}{
				{`{"revision": "v77", "ok": true}`, 409}, {`{"revision": "v1"}`, 422}, {fmt.Sprintf(`{"revision": %q, "ok": true}`, revision), 204},
			} {
				if got := ask(t, s, "PUT", answer, sending(token, c.body)); got.StatusCode != c.status {
					t.Errorf("PUT %s %s = %d %s; want %d", answer, c.body, got.StatusCode, got.text, c.status)
				}
			}
		case <-limit:
			t.Fatalf("the bisect is %+v, and does not end", b)
		default:
			if b = read(); b.State == ownruns.StateFailed {
				t.Fatalf("the bisect failed: %s", b.Error)
			}
		}
	}
	if b.Result.Kind != "culprit" || b.Result.Steps[0].Revisions[0].Name != "v3" || b.Result.Trials == 0 || len(b.Result.Revisions) != 5 ||
		!strings.Contains(b.Result.Text, "It was v3") || len(b.Result.Steps[0].Runs) != 2 {
		t.Errorf("it found %+v; want v3, confirmed in two runs", b.Result)
	}
	for _, c := range []call{
		{"GET", "/api/v1/bisects", "", "", 200, `"id":"` + made.ID}, {"GET", "/api/v1/bisects/nope", "", "", 404, `there is no bisect \"nope\"`},
		{"POST", at + "/resume", "", "", 409, "has not failed"}, {"DELETE", at, "", "", 409, "files=true"}, {"DELETE", at + "?files=true", "", "", 204, ""},
		{"GET", at, "", "", 404, ""}, {"PUT", at + "/deployment", "", `{"revision": "v1", "ok": true}`, 404, ""},
	} {
		c.make(t, automated{func(t *testing.T, method, path string, change func(*http.Request)) reply {
			return ask(t, s, method, path, change)
		}, config})
	}
}
