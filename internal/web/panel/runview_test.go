package panel

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/internal/tell/runview"
)

// What the page of a run asks for is small, refuses what the run does not have, and needs a token.
func TestRunView(t *testing.T) {
	st := emptyStore(t)
	run := reporttest.Compared(2, 50, 60)
	putRun(t, st.Root(), run)
	many := reporttest.Many(1, 3, 200)
	putRun(t, st.Root(), many)
	s := newServer(t, setup{Store: st, Token: lab.NewSecret(token), Version: "v1"})
	with := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	const of, cells = "/api/v1/runs/20261121-101400-links/view", "/api/v1/runs/20261121-111400-many/view"
	for path, want := range map[string]int{
		of: 200, of + "?metric=unique_fps": 200, of + "?metric=nope": 404, of + "?step=nope": 404, of + "?cell=nope": 404,
		of + "?metric=" + strings.Repeat("x", 1001): 422, cells: 200, cells + "?cell=search+/+anna": 200, cells + "?cell=search": 404,
		"/api/v1/runs/nope/view": 404, "/api/v1/runs/..%2Fx/view": 422,
	} {
		if got := ask(t, s, http.MethodGet, path, with); got.StatusCode != want {
			t.Errorf("GET %s = %d %.200s, want %d", path, got.StatusCode, got.text, want)
		}
	}
	if got := ask(t, s, http.MethodGet, of, nil); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("GET %s without a token = %d, want 401", of, got.StatusCode)
	}
	got := ask(t, s, http.MethodGet, of, with)
	var v runview.View
	if err := json.Unmarshal([]byte(got.text), &v); err != nil || len(v.Trials) != 100 || v.Planned != run.Plan.Total() || v.Report != "" {
		t.Errorf("the view: %v, %d trials, %d planned, report %q; want 100 trials, those of the plan, and no report, of which there is no file", err, len(v.Trials),
			v.Planned, v.Report)
	}
	if len(got.text) > 40_000 {
		t.Errorf("the view of 100 trials has %d bytes, want at most 40,000", len(got.text))
	}
	t.Logf("%d bytes for 100 trials", len(got.text))
}
