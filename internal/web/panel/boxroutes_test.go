package panel

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// The head of a fleet lists, changes, measures and removes boxes.
func TestBoxes(t *testing.T) {
	config, _, _ := whole(t)
	config, fleet := headOf(t, config)
	s := newServer(t, config)
	desk := url.PathEscape("a desk " + hostile)
	for _, c := range []struct {
		method, path, body string
		status             int
		within             string
	}{
		{"GET", "/api/v1/boxes", "", 200, `"name":"lab-2"`},
		{"GET", "/api/v1/boxes", "", 200, `"devices":[]`}, // lab-3 said nothing of devices
		{"GET", "/api/v1/boxes/lab-1", "", 200, `"state":"running","health":"drifting"`},
		{"GET", "/api/v1/boxes/lab-9", "", 404, `no box`},
		{"GET", "/api/v1/boxes/LAB%2F1", "", 422, "path.name"},
		{"PATCH", "/api/v1/boxes/lab-2", `{"maintenance":true,"reason":"new disk"}`, 200, `"health":"maintenance","reason":"new disk"`},
		{"PATCH", "/api/v1/boxes/lab-2", `{"maintenance":false}`, 200, `"health":"good"`},
		{"PATCH", "/api/v1/boxes/lab-2", `{"labels":{"room":"2.15"}}`, 200, `"labels":{"room":"2.15"}`},
		{"PATCH", "/api/v1/boxes/lab-2", `{"labels":{"Colour":"red"}}`, 422, "no key of a label"},
		{"PATCH", "/api/v1/boxes/lab-2", `{"bad":true,"maintenance":true}`, 422, "not both"},
		{"PATCH", "/api/v1/boxes/lab-2", `{}`, 422, "nothing is to change"},
		{"PATCH", "/api/v1/boxes/lab-2", `{"colour":"red"}`, 422, "there is no such field"},
		{"PATCH", "/api/v1/boxes/lab-2", `{"reason":"` + strings.Repeat("x", 301) + `"}`, 422, "300"},
		{"PATCH", "/api/v1/boxes/lab-9", `{"bad":true}`, 404, "no box"},
		{"POST", "/api/v1/boxes/codes", "", 201, `"link":"eidetic-head://`},
		{"GET", "/api/v1/boxes/lab-1/devices/virtual/readings", "", 200, `"changed":["browser: Chromium 140 became Chromium 141"]`},
		{"GET", "/api/v1/boxes/lab-2/devices/" + desk + "/readings", "", 200, `"changed":[],"baselines":[],"readings":[]`},
		{"GET", "/api/v1/boxes/lab-2/devices/nope/readings", "", 404, "no device"},
		{"POST", "/api/v1/boxes/lab-2/devices/" + desk + "/measurements", "", 202, `"run":"/api/v1/runs/20261124-090001-reference"`},
		{"POST", "/api/v1/boxes/lab-2/devices/nope/measurements", "", 404, "no device"},
		{"PUT", "/api/v1/boxes/lab-1/devices/virtual/level", "", 204, ""},
		{"PUT", "/api/v1/boxes/lab-2/devices/virtual/level", "", 409, "too seldom"},
		{"GET", "/api/v1/reference", "", 200, `"every":"6h"`},
		{"PUT", "/api/v1/reference", `{"plan":{"page":"https://x.test/","archive":"shop.wacz"},"every":"5 bananas"}`, 422, "every:"},
		{"PUT", "/api/v1/reference", `{"plan":{"archive":"shop.wacz"},"every":"6h"}`, 422, "plan.page"},
		{"PUT", "/api/v1/reference", `{"plan":{"page":"https://x.test/"},"every":"6h"}`, 422, "plan.archive"},
		{"PUT", "/api/v1/reference", `{"plan":{"page":"https://x.test/","archive":"nope.wacz"},"every":"6h"}`, 422, "no recording nope.wacz"},
		{"PUT", "/api/v1/reference", `{"plan":{"page":"https://x.test/","archive":"shop.wacz","device":"lab-1/virtual"},"every":"6h"}`, 422, "plan.device"},
		{"PUT", "/api/v1/reference", `{"plan":{"page":"https://x.test/","archive":"shop.wacz","treatment":{"link":"lte"}},"every":"6h"}`, 422, "plan.treatment"},
		{"PUT", "/api/v1/reference", `{"plan":{"page":"https://x.test/","archive":"shop.wacz"},"every":"2h"}`, 200, `"id":"r-77aa"`},
		{"DELETE", "/api/v1/reference", "", 204, ""},
		{"GET", "/api/v1/reference", "", 404, "PUT /api/v1/reference"},
		{"POST", "/api/v1/boxes/lab-2/devices/virtual/measurements", "", 409, "no reference"},
		{"DELETE", "/api/v1/boxes/lab-2", "", 204, ""},
		{"DELETE", "/api/v1/boxes/lab-2", "", 404, "no box"},
	} {
		got := ask(t, s, c.method, c.path, sending(token, c.body))
		if got.StatusCode != c.status || !strings.Contains(got.text, c.within) {
			t.Errorf("%s %s %s: %d %.300s, want %d with %q", c.method, c.path, c.body, got.StatusCode, got.text, c.status, c.within)
		}
		if bare := ask(t, s, c.method, c.path, nil); bare.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s without the token: %d, want 401", c.method, c.path, bare.StatusCode)
		}
	}
	if want := []string{"lab-2/a desk " + hostile}; !slices.Equal(fleet.measured, want) {
		t.Errorf("measured %q, want %q", fleet.measured, want)
	}
	audit := ask(t, s, http.MethodGet, "/api/v1/audit", sending(token, "")).text
	for _, want := range []string{`boxes/lab-2: maintenance true, reason \"new disk\"`, "boxes/codes: valid until 2026-11-24T10:00:00Z", `reference: \"https://x.test/\" every 2h`} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit log lacks %q: %s", want, audit)
		}
	}
	if strings.Contains(audit, "K7QM3VTD9XW") {
		t.Error("the audit log has the join code")
	}
}

// An update of the boxes is asked for, seen and stopped; what is no such request begins nothing.
func TestFleetUpdateRoutes(t *testing.T) {
	config, _, _ := whole(t)
	config, fleet := headOf(t, config)
	s := newServer(t, config)
	const path = "/api/v1/boxes/update"
	many := "?" + strings.Repeat("box=lab-1&", mostAsked+1)
	for _, c := range []struct {
		name, method, path, body, key string
		status                        int
		within                        string
	}{
		{"stop of none", "POST", path + "/stop", "", "", 409, "no update goes on"},
		{"no bundle", "POST", path, "tampered", "", 422, "not an update bundle"},
		{"nothing", "POST", path, "", "", 422, "not an update bundle"},
		{"no such box", "POST", path + "?box=lab-9", "signed", "", 404, "no box"},
		{"a parameter that is none", "POST", path + "?boxes=lab-1", "signed", "", 422, "no such parameter"},
		{"many boxes", "POST", path + many, "signed", "", 422, "more than 1000 boxes"},
		{"a bad key", "POST", path, "signed", "two words", 422, keyHeader},
		{"a long key", "POST", path, "signed", strings.Repeat("k", 129), 422, keyHeader},
		{"good", "POST", path + "?box=lab-1&box=lab-2&label=room%3D2.*", "signed", "k1", 202, `"version":"1.4","state":"running"`},
		{"another one", "POST", path, "signed", "", 409, "goes on"},
		{"list", "GET", "/api/v1/boxes", "", "", 200, `"rollout":{"id":"20261124-090000-k7qm3v"`},
		{"stop", "POST", path + "/stop", "", "", 200, `"state":"stopped","why":"stopped by box"`},
	} {
		got := ask(t, s, c.method, c.path, func(r *http.Request) {
			sending(token, c.body)(r)
			r.Header.Set("Content-Type", "application/octet-stream")
			if c.key != "" {
				r.Header.Set(keyHeader, c.key)
			}
		})
		if got.StatusCode != c.status || !strings.Contains(got.text, c.within) {
			t.Errorf("%s: %d %.300s, want %d with %q", c.name, got.StatusCode, got.text, c.status, c.within)
		}
	}
	if u := fleet.asked; !slices.Equal(u.Boxes, []string{"lab-1", "lab-2"}) || !slices.Equal(u.Labels, []string{"room=2.*"}) || u.By != "box" || u.Key != "k1" {
		t.Errorf("the fleet was asked for %+v; want both boxes, the label, who asked, and the key", u)
	}
	audit := ask(t, s, http.MethodGet, "/api/v1/audit", sending(token, "")).text
	if !strings.Contains(audit, "boxes/update: 1.4 to 2 boxes") {
		t.Errorf("the audit log lacks the update: %s", audit)
	}
}

// A bundle that is larger than any is refused, whether it says so or not, and it is not kept in memory.
func TestFleetUpdateIsBounded(t *testing.T) {
	config, _, _ := whole(t)
	config, fleet := headOf(t, config)
	s := newServer(t, config)
	for name, length := range map[string]int64{"with its length": maxBundle + 1, "without": -1} {
		got := ask(t, s, http.MethodPost, "/api/v1/boxes/update", func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+token)
			r.Body, r.ContentLength = io.NopCloser(io.LimitReader(zeros{}, maxBundle+1)), length
		})
		if got.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("a huge update %s = %d %.200s; want 413", name, got.StatusCode, got.text)
		}
	}
	if fleet.rollout != nil {
		t.Errorf("a refused update began %+v", fleet.rollout)
	}
}

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A box that is no head has none of the routes.
func TestBoxesOnlyOnAHead(t *testing.T) {
	config, _, _ := whole(t)
	s := newServer(t, config)
	for _, path := range []string{"/api/v1/boxes", "/api/v1/boxes/lab-1", "/api/v1/reference", "/boxes"} {
		if got := ask(t, s, http.MethodGet, path, sending(token, "")); got.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, got.StatusCode)
		}
	}
	for _, path := range []string{"/", "/plan"} {
		if got := ask(t, s, http.MethodGet, path, nil); strings.Contains(got.text, "Boxes") {
			t.Errorf("%s of a box that is no head has Boxes", path)
		}
	}
	if got := ask(t, s, http.MethodGet, "/api/v1/health", nil); strings.Contains(got.text, "fleet") {
		t.Errorf("health of a box: %s; want no fleet", got.text)
	}
}

// The scope run is enough for maintenance, and not for what changes which runs a box gets for good.
func TestScopesOfBoxChanges(t *testing.T) {
	config, _, _ := whole(t)
	config, _ = headOf(t, config)
	s := newServer(t, config)
	run := newToken(t, s, "nightly", "run").Secret
	for body, want := range map[string]int{
		`{"maintenance":true,"reason":"x"}`: 200, `{"bad":true}`: 403, `{"labels":{}}`: 403, `{"maintenance":true,"bad":false}`: 403,
	} {
		got := ask(t, s, http.MethodPatch, "/api/v1/boxes/lab-2", sending(run, body))
		if got.StatusCode != want || want == 403 && !strings.Contains(got.text, "need the scope admin") {
			t.Errorf("%s with the scope run: %d %s, want %d", body, got.StatusCode, got.text, want)
		}
	}
}

// Health counts the boxes, names none, and asks the database once for many who ask.
func TestHealthOfAHead(t *testing.T) {
	config, _, _ := whole(t)
	config, fleet := headOf(t, config)
	s := newServer(t, config)
	for range 5 {
		got := ask(t, s, http.MethodGet, "/api/v1/health", nil)
		if !strings.Contains(got.text, `"fleet":{"idle":1,"reserved":0,"running":1,"lost":1}`) || strings.Contains(got.text, "lab-") {
			t.Errorf("health = %s; want the counts and no names", got.text)
		}
	}
	if fleet.lists >= 5 {
		t.Errorf("five requests for the health listed the boxes %d times", fleet.lists)
	}
	config, fleet = headOf(t, config)
	fleet.broken = errors.New("the database is away: secret detail")
	s = newServer(t, config)
	got := ask(t, s, http.MethodGet, "/api/v1/health", nil)
	if got.StatusCode != 200 || !strings.Contains(got.text, "cannot be listed") || strings.Contains(got.text, "secret detail") {
		t.Errorf("health without the database = %d %s; want a warning without details", got.StatusCode, got.text)
	}
}

// The list of runs says where each is or was carried out.
func TestListSaysWhere(t *testing.T) {
	config, _, _ := whole(t)
	config, fleet := headOf(t, config)
	run := reporttest.Run(0, 0)
	run.ID, run.State = "20261122-091400-runs", store.StateRunning
	folder, err := store.Create(config.Store.Root(), run)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	fleet.boxes[0].Devices[0].Run = run.ID
	ended := reporttest.Run(0, 0)
	ended.ID, ended.Environment.Box, ended.Plan.Device = "20261122-081400-ended", &lab.BoxState{Name: "lab-2"}, "virtual"
	addRun(t, config.Store, ended)
	s := newServer(t, config)
	got := ask(t, s, http.MethodGet, "/api/v1/runs", sending(token, ""))
	var list Runs
	if err := json.Unmarshal([]byte(got.text), &list); err != nil {
		t.Fatal(err)
	}
	on := map[string]string{}
	for _, e := range list.Runs {
		on[e.ID] = strings.Join(e.On, " ")
	}
	for id, want := range map[string]string{run.ID: "lab-1/virtual", ended.ID: "lab-2/virtual", "20261121-091400-demo": ""} {
		if got, ok := on[id]; !ok || got != want {
			t.Errorf("run %s is on %q, want %q", id, got, want)
		}
	}
}

func TestMetricsOfAHead(t *testing.T) {
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	config, _, _ := whole(t)
	config.Queue = queueOf(config.Store, q, &fakeRunner{})
	config, fleet := headOf(t, config)
	levels := &fleet.boxes[1].Devices[0].Levels
	*levels = append(*levels, (*levels)[0]) // twice
	for range 100 {
		*levels = append(*levels, BoxLevel{"m" + strings.Repeat("x", len(*levels)), 1})
	}
	for id, on := range map[string]*lab.On{"20270103-000000-a": nil, "20270103-000000-b": {Priority: 1}, "20270103-000000-c": {Priority: 1}} {
		if err := q.Add(t.Context(), store.Job{ID: id, Device: "laptop", Created: testNow(), Plan: lab.Plan{On: on}}); err != nil {
			t.Fatal(err)
		}
	}
	got := ask(t, newServer(t, config), http.MethodGet, "/metrics", sending(token, ""))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(got.text)); err != nil || got.StatusCode != 200 {
		t.Errorf("%d; Prometheus's own parser says: %v", got.StatusCode, err)
	}
	for _, want := range []string{
		`eidetic_boxes{health="drifting",state="running"} 1`, `eidetic_boxes{health="good",state="idle"} 1`, `eidetic_boxes{health="bad",state="lost"} 0`,
		`eidetic_box_seen_timestamp_seconds{box="lab-1"} 1.7955`, `eidetic_box_level_percent{box="lab-1",device="virtual",metric="time_to_stable_ms"} 5.1`,
		`eidetic_queue_waiting{priority="1"} 2`, `eidetic_queue_waiting{priority="2"} 1`, `eidetic_queue_waiting{priority="3"} 0`,
		`eidetic_scrape_failed{part="fleet"} 0`,
	} {
		if !strings.Contains(got.text, "\n"+want) {
			t.Errorf("no line %q", want)
		}
	}
	if n := strings.Count(got.text, `eidetic_box_level_percent{box="lab-2"`); n == 0 || n > maxScrapedLevels {
		t.Errorf("a box with a hundred levels has %d, want at most %d", n, maxScrapedLevels)
	}
}
