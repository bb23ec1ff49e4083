package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/netlab/nstest"
)

// byLabel begins each script: fields and buttons are found by what a person reads.
const byLabel = `
	const until = async test => {
		for (const end = performance.now() + 240000; !test();) {
			if (performance.now() > end) throw new Error("never: " + test + "; the page shows " + document.querySelector("main").innerText.slice(0, 2000));
			await new Promise(yes => setTimeout(yes, 50));
		}
	};
	const shows = text => document.querySelector("main").innerText.includes(text);
	const all = (css, text) => [...document.querySelectorAll(css)].filter(e => e.checkVisibility() && e.textContent.trim().startsWith(text));
	const press = text => all("button", text)[0].click();
	const follow = text => all("a", text)[0].click();
	const field = (text, i = 0) => all("label", text)[i].querySelector("input, select, textarea");
	const write = (text, value, i) => { const f = field(text, i); f.focus(); f.value = value; for (const type of ["input", "change"]) f.dispatchEvent(new Event(type, { bubbles: true })); };
`

// TestFirstVisit is somebody who has never seen the panel, and measures a journey on the virtual device by its pages
// alone: from the token, over the plan, to the frames of a trial.
func TestFirstVisit(t *testing.T) {
	needLab(t)
	if !nstest.Inside(t) {
		return
	}
	v := &village{box: nstest.Here(t), site: nstest.New(t), data: t.TempDir()}
	nstest.Veth(t, v.box, "up0", v.site, "eth0")
	v.box.Address(t, "up0", boxAddress+"/24")
	for address := range addresses() {
		v.site.Address(t, "eth0", address+"/24")
	}
	roots := filepath.Join(v.data, "origins.pem")
	v.origin = appliance(t, "site", "--ca-out", roots)
	v.start(t, v.site, v.origin, "ready")
	v.config = filepath.Join(v.data, "box.yaml")
	text := fmt.Sprintf("panel: {listen: '127.0.0.1:8080'}\nnetwork: {resolver: '%s', trust: %s}\n", samplesite.Resolver(), roots)
	if err := os.WriteFile(v.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	v.serve(t)
	b := reporttest.NewBrowser(t)
	if err := b.View(1100, 900, "light"); err != nil {
		t.Fatal(err)
	}
	shot := func(name string) {
		dir := os.Getenv("VISIT_SHOTS")
		if dir == "" {
			return
		}
		if picture, err := b.Shot(); err != nil || os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644) != nil {
			t.Errorf("picture %s: %v", name, err)
		}
	}
	visit := func(name, script string) string {
		t.Helper()
		said, err := reporttest.Eval[string](b, `(async () => {`+byLabel+script+`; return location.pathname + location.search; })()`)
		shot(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return said
	}
	if err := b.Open("http://127.0.0.1:8080/"); err != nil {
		t.Fatal(err)
	}
	visit("1-token", `await until(() => shows("Enter a token"))`)
	token, err := json.Marshal(v.panel.Token)
	if err != nil {
		t.Fatal(err)
	}
	visit("2-runs", `document.querySelector("#token").value = `+string(token)+`; press("Open"); await until(() => shows("There are no runs yet") && shows("virtual") && shows("ready"))`)
	if err := b.Open("http://127.0.0.1:8080/plan"); err != nil {
		t.Fatal(err)
	}
	visit("3-plan", `await until(() => all("button", "Add a step").length);
		write("Page", "`+samplesite.Home+`tricks/consent"); write("Name", "first visit"); write("Trials", "1");
		press("Add a step"); press("Add a step");
		await until(() => all("label", "What").length === 2);
		write("What", "css #accept", 1);
		await until(() => document.querySelector("#yaml").value.includes("#accept"))`)
	visit("4-started", `press("Start a run"); await until(() => shows("waits in the queue") || document.querySelector("#refused").textContent)`)
	if err := b.Open("http://127.0.0.1:8080/"); err != nil {
		t.Fatal(err)
	}
	visit("5-queue", `await until(() => document.querySelectorAll("#runs .run").length === 1)`)
	id, err := reporttest.Eval[string](b, `fetch("/api/v1/runs").then(a => a.json()).then(list => list.runs[0].id)`)
	if err != nil {
		t.Fatal(err)
	}
	v.panel.URL, v.panel.Client = "http://127.0.0.1:8080", http.DefaultClient
	v.panel.Follow(t, id, 3*testlab.Hang, nil)
	visit("6-done", `await until(() => document.querySelector("#runs .run h2 a"))`)
	run := v.panel.Run(t, id)
	if run.State != "done" || len(run.Trials) == 0 || len(run.Trials[0].Steps) != 2 || run.Trials[0].Ended != lab.EndSteps {
		t.Fatalf("the run is %s with %d trials: %s", run.State, len(run.Trials), run.Error)
	}
	visit("7-report", `document.querySelector("#runs .run h2 a").click()`)
}
