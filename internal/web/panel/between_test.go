package panel

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/compare"
	"eidetic/internal/tell/report/reporttest"
)

// REST compares a run with an earlier one, and says why runs cannot be compared.
func TestCompareRuns(t *testing.T) {
	st := emptyStore(t)
	for id, change := range map[string]func(*lab.Run){
		"old": func(*lab.Run) {},
		"new": func(run *lab.Run) {
			run.Environment.Kernel = "Linux 6.12"
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
	s := newServer(t, setup{Store: st, Version: "v1"})
	got := ask(t, s, http.MethodGet, "/api/v1/runs/new/comparison?reference=old", nil)
	var found compare.Between
	if err := json.Unmarshal([]byte(got.text), &found); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("GET comparison = %d, %v, %.300s; want 200 and JSON", got.StatusCode, err, got.text)
	}
	if found.Comparison.Verdict != lab.Slower || found.Comparison.Pairs != 11 || found.Margin != 5 || len(found.Different) != 1 ||
		found.Different[0].Name != "kernel" {
		t.Errorf("comparison = %+v, %+v; want slower, 11 pairs, margin 5, kernel changed", found, found.Comparison)
	}
	for query, want := range map[string]string{
		"new/comparison?reference=old&margin=300": "200 No difference of more than 300 %",
		"new/comparison":                           "422 reference",
		"new/comparison?reference=nope":            "404 nope",
		"nope/comparison?reference=old":            "404 nope",
		"failed/comparison?reference=old":          "409 run failed: it is failed: only one that is done can be compared",
		"new/comparison?reference=old&margin=-1":   "422 margin",
		"new/comparison?reference=old&margin=NaN":  "422 margin: it must be a finite number",
		"new/comparison?reference=old&margin=-Inf": "422 margin: it must be a finite number",
	} {
		got := ask(t, s, http.MethodGet, "/api/v1/runs/"+query, nil)
		status, text, _ := strings.Cut(want, " ")
		if status != strings.Fields(got.Status)[0] || !strings.Contains(got.text, text) {
			t.Errorf("%s: %s %.300s, want %q", query, got.Status, got.text, want)
		}
	}
}

// The history page compares two runs through its controls.
func TestCompareInBrowser(t *testing.T) {
	st := emptyStore(t)
	for i, id := range []string{"20261121-091400-shop", "20261122-091400-shop", "20261123-091400-shop"} {
		run := reporttest.Run(uint64(i), 12)
		run.ID, run.Name, run.Wall = id, "shop", run.Wall.AddDate(0, 0, i)
		if i == 2 {
			run.Environment.Kernel = `Linux <img src=x onerror="document.title='owned'">`
			for _, trial := range run.Trials {
				for k := range trial.Measurements {
					trial.Measurements[k].Value += 500
				}
			}
		}
		addRun(t, st, run)
	}
	s := newServer(t, setup{Store: st, Version: "v1"})
	b := browsers.New(t)
	if err := b.Open(s.URL + "/history?name=shop"); err != nil {
		t.Fatal(err)
	}
	expect := func(script, want string) {
		t.Helper()
		got, err := reporttest.Eval[string](b, `(async () => {`+until+`
			await until(() => document.querySelector(".comparing"));
			const [run, reference] = document.querySelectorAll(".comparing select"), says = document.querySelector(".says"), press = () => document.querySelector(".comparing button").click();
			document.querySelector(".comparing").open = true;
			`+script+`
		})()`)
		if err != nil || got != want {
			t.Errorf("got %q (%v), want %q", got, err, want)
		}
	}
	expect(
		`const preset = [run.value, reference.value].join(" ");
		press();
		await until(() => says.querySelector("li"));
		return [preset, says.querySelector("strong").textContent, says.querySelector("li").textContent.startsWith("kernel: Linux 6.1.0-41-amd64, then Linux <img"), says.querySelectorAll("img").length, document.title].join(" | ");`,
		"20261123-091400-shop 20261122-091400-shop | ▲ The run is slower than the reference, by more than 5 %. | true | 0 | History – Eidetic",
	)
	expect(`run.value = "20261122-091400-shop"; reference.value = "20261121-091400-shop";
		press();
		await until(() => !says.textContent.includes("slower than the reference, by"));
		return [says.querySelector("strong").textContent, says.querySelectorAll("li").length].join(" | ");`,
		"= No difference of more than 5 % from the reference was found. | 0")
	expect(`reference.options[0].value = reference.value = "gone"; reference.selectedIndex = 0;
		press();
		await until(() => says.querySelector(".slower"));
		return says.textContent;`, `The runs could not be compared: there is no run "gone".`)
}
