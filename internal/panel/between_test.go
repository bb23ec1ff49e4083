package panel

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"eidetic/internal/compare"
	"eidetic/internal/lab"
	"eidetic/internal/report/reporttest"
	"eidetic/internal/store"
)

// A run is compared with an earlier one over REST, and what cannot be compared is refused with the reason.
func TestCompareRuns(t *testing.T) {
	st := emptyStore(t)
	for id, change := range map[string]func(*lab.Run){
		"old": func(*lab.Run) {},
		"new": func(run *lab.Run) {
			run.Environment["kernel"] = "Linux 6.12"
			for _, trial := range run.Trials {
				for i := range trial.Measurements {
					trial.Measurements[i].Value += 500
				}
			}
		},
		"failed": func(run *lab.Run) { run.State = store.StateFailed },
	} {
		run := reporttest.Run(1, 12)
		run.ID = id
		change(run)
		addRun(t, st, run)
	}
	s := newServer(t, Config{Store: st, Version: "v1"})
	got := ask(t, s, http.MethodGet, "/api/v1/runs/new/comparison?reference=old", nil)
	var found compare.Between
	if err := json.Unmarshal([]byte(got.text), &found); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("%d %v %.300s", got.StatusCode, err, got.text)
	}
	if found.Comparison.Verdict != lab.Slower || found.Comparison.Pairs != 11 || found.Margin != 5 || len(found.Different) != 1 || found.Different[0].Name != "kernel" {
		t.Errorf("%+v, %+v", found, found.Comparison)
	}
	for query, want := range map[string]string{
		"new/comparison?reference=old&margin=300": "200 No difference of more than 300 %",
		"new/comparison":                         "422 reference",
		"new/comparison?reference=nope":          "404 nope",
		"nope/comparison?reference=old":          "404 nope",
		"failed/comparison?reference=old":        "409 run failed: it is failed: only one that is done can be compared",
		"new/comparison?reference=old&margin=-1": "422 margin",
	} {
		got := ask(t, s, http.MethodGet, "/api/v1/runs/"+query, nil)
		status, text, _ := strings.Cut(want, " ")
		if status != strings.Fields(got.Status)[0] || !strings.Contains(got.text, text) {
			t.Errorf("%s: %s %.300s, want %q", query, got.Status, got.text, want)
		}
	}
}
