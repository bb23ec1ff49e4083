package panel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/box/ownruns"
	"eidetic/internal/box/suites"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/suite"
)

// shopSuite is a suite with each kind of row. Somebody has uploaded it.
const shopSuite = `suite: shop
about: <img src=x onerror="document.title='owned'"> the shop, as its visitors see it
trials: 6
browsers: [chromium, firefox-esr]
entries:
  - name: home
    type: load
    visual: load/speed_index_ms
    interactive: load/time_to_stable_ms
    plan: {steps: [{name: load, open: "https://www.shop.test/suite/article"}]}
    truth: [{metric: load/speed_index_ms, is: 900, within: 60}]
  - name: turning
    type: animation
    weight: 2
    visual: play/animation_fps
    plan: {steps: [{name: open, open: "https://www.shop.test/suite/play"}, {name: play, key: space}]}
  - name: search
    type: interaction
    interactive: type/response_ms
    plan: {steps: [{name: open, open: "https://www.shop.test/store/"}, {name: type, type: "tea"}]}
`

// deskSuite is the same without the entry that fails, so that its results have a geometric mean.
var deskSuite = strings.Replace(shopSuite[:strings.Index(shopSuite, "  - name: search")], "suite: shop", "suite: desk", 1) // never written

// shopResult is a result of three browsers in which the second is slower, and the entry search has failed. All take so
// many times as long as usual.
func shopResult(t *testing.T, text, release string, times float64) *suite.Result {
	t.Helper()
	s, err := suite.Parse("shop", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	browsers := []string{lab.Chromium, lab.FirefoxESR, "nightly"}
	r := suite.New(s, "appliance test", browsers, 6, 1, testNow())
	for i, e := range s.Entries {
		o := suite.Outcome{Entry: e.Name, Browsers: browsers, Run: fmt.Sprintf("20261121-0914%02d-%s", i, e.Name), State: store.StateDone,
			Environment: &lab.Environment{Browser: "Chromium " + release}}
		if i == 2 {
			o.State, o.Error = store.StateFailed, "no trial was valid: the machine is <busy>"
			r.Put(o)
			continue
		}
		for k := range 6 * len(browsers) {
			browser, wobble := browsers[k%len(browsers)], times*(1+float64(k*7%5)/100)
			if browser == lab.FirefoxESR {
				wobble *= 1.2
			}
			values := map[string]float64{"load/speed_index_ms": 900 * wobble, "load/time_to_stable_ms": 1400 * wobble}
			if i == 1 {
				values = map[string]float64{"play/animation_fps": 58 / wobble}
			}
			o.Trials = append(o.Trials, suite.Trial{Number: k + 1, Browser: browser, Block: 1, Valid: true, Values: values})
		}
		r.Put(o)
	}
	return r
}

// suitesOf keeps the suites of a panel's box: one that was uploaded, with a result.
func suitesOf(t *testing.T, c setup) *suites.Keeper {
	t.Helper()
	dir := t.TempDir()
	keepResult(t, dir, "sold", shopResult(t, deskSuite, "155.0.7000.1", 1.1), testNow().AddDate(0, 0, -8))
	keepResult(t, dir, "snew", shopResult(t, deskSuite, "156.0.8078.108", 1), testNow().AddDate(0, 0, -1))
	keepResult(t, dir, "sdone", shopResult(t, shopSuite, "156.0.8078.108", 1), testNow())
	k, err := suites.Open(suites.Config{Dir: dir, Runs: c.Queue, Store: c.Store, Software: "appliance test", Now: testNow})
	if err == nil {
		_, err = k.PutSuite("shop", []byte(shopSuite), "", "ada", plan.ScopeRun)
	}
	if err == nil {
		_, err = k.PutSuite("desk", []byte(deskSuite), "", "ada", plan.ScopeRun)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// keepResult writes a result as a keeper does.
func keepResult(t *testing.T, dir, id string, found *suite.Result, made time.Time) {
	t.Helper()
	found.Begun = made
	at := filepath.Join(dir, suites.ResultsDir, id)
	r := suites.Result{ID: id, Suite: found.Suite, SHA256: found.SHA256, State: ownruns.StateDone, Made: made, By: "ada", Browsers: found.Browsers,
		Trials: 6, Seed: 1, Spread: 1, Runs: len(found.Entries)}
	for _, o := range found.Entries {
		if o.State == store.StateDone {
			r.Done++
		} else {
			r.Failed++
		}
	}
	text, err := json.Marshal(map[string]any{"version": 1, "result": r, "request": map[string]any{"scope": 1}})
	if err == nil {
		err = os.MkdirAll(at, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(at, "request.json"), text, 0o600)
	}
	if err == nil {
		err = found.Write(at)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Over REST: a suite is uploaded, measured once however often it is asked for, stopped, resumed and deleted, each by the
// scope that it needs.
func TestSuitesOverREST(t *testing.T) {
	st := emptyStore(t)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	config := setup{Store: st, Token: lab.NewSecret(token), Queue: runqueue.New(runqueue.Config{Jobs: q, Store: st, Runner: slower{st}, Now: testNow})}
	config.Suites = suitesOf(t, config)
	s := newServer(t, config)
	send := func(method, path, body string, want int, has string, headers ...string) string {
		t.Helper()
		got := ask(t, s, method, path, func(r *http.Request) {
			sending(token, body)(r)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
		})
		if got.StatusCode != want || !strings.Contains(got.text, has) {
			t.Errorf("%s %s = %d %.300s; want %d with %q", method, path, got.StatusCode, got.text, want, has)
		}
		return got.text
	}
	of := func(name string) string {
		text, err := json.Marshal(map[string]string{"yaml": strings.Replace(shopSuite, "suite: shop", "suite: "+name, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	send("GET", "/api/v1/suites", "", 200, `"name":"eidetic-1"`)
	send("PUT", "/api/v1/suites/other", of("other"), 200, `"by":"box"`)
	send("PUT", "/api/v1/suites/other", of("other"), 412, "If-Match")
	send("PUT", "/api/v1/suites/other", of("other"), 200, `"shipped":false`, "If-Match", "*")
	send("PUT", "/api/v1/suites/knobs-1", of("knobs-1"), 409, "of this program")
	send("PUT", "/api/v1/suites/other", of("others"), 422, "was sent as")
	send("PUT", "/api/v1/suites/other", `{"yaml": "suite: other\nentries: [{name: a, tipe: load}]\n"}`, 422, "other.yaml:2:")
	send("GET", "/api/v1/suites/none", "", 404, "suite")
	send("GET", "/api/v1/suites/none/releases", "", 404, "suite")
	send("GET", "/api/v1/suites/other/releases", "", 200, `"releases":[]`)
	send("GET", "/api/v1/suites/desk/releases", "", 200, `"version":"Chromium 155.0.7000.1"`)
	const results = "/api/v1/suite-results"
	for body, want := range map[string]string{
		`{"suite": "other", "browsers": ["chromium", "chromium"]}`: "twice",
		`{"suite": "other", "only": ["none"]}`:                     "no entry",
		`{"suite": "other", "on": {"boxes": ["a"]}}`:               "one box",
		`{"suite": "other", "trials": 5001}`:                       "body.trials",
		`{"suite": "other", "spread": 51}`:                         "body.spread",
		`{"sweet": "other"}`:                                       "body.sweet",
	} {
		send("POST", results, body, 422, want)
	}
	send("POST", results, `{"suite": "none"}`, 404, "none")
	once := []string{"Idempotency-Key", "one"}
	first := send("POST", results, `{"suite": "other", "trials": 2, "only": ["home"]}`, 202, `"runs":1`, once...)
	if again := send("POST", results, `{"suite": "other", "trials": 2, "only": ["home"]}`, 202, `"runs":1`, once...); again != first {
		t.Errorf("repeated: %s; want the same answer, %s", again, first)
	}
	var made suites.Result
	if err := json.Unmarshal([]byte(first), &made); err != nil || made.State != ownruns.StateWaiting {
		t.Fatalf("POST = %s (%v); want a result that waits", first, err)
	}
	at := results + "/" + made.ID
	send("GET", results, "", 200, made.ID)
	send("GET", at+"/file", "", 200, suite.ResultSchema)
	send("DELETE", at+"?files=true", "", 409, "stop it first")
	send("DELETE", at, "", 204, "")
	send("DELETE", at, "", 409, "files=true")
	send("POST", at+"/resume", "", 200, `"state":"waiting"`)
	send("DELETE", at, "", 204, "")
	send("DELETE", at+"?files=true", "", 204, "")
	send("GET", at, "", 404, "result")
	send("GET", at+"/file", "", 404, "result")
	send("GET", results+"/sdone", "", 200, `"p_adjusted"`)
	send("DELETE", "/api/v1/suites/other", "", 204, "")
	send("DELETE", "/api/v1/suites/knobs-1", "", 409, "of this program")
}

// suitesPage: what a result says is read; a suite is uploaded, measured, stopped, and all is removed.
func suitesPage() pageTest {
	return pageTest{"/suites", `
	const cards = () => [...$("list").children], dialog = async text => { press($("sure"), text); await until(() => !$("sure").open); };
	await until(() => cards().length === 3 && cards()[0].querySelector("tfoot"));
	const table = cards()[0].querySelector(".marks"), cells = row => [...row.cells].map(c => c.textContent.trim()).join(" | ");
	says.push("head: " + cells(table.tHead.rows[0]));
	says.push("row: " + cells(table.tBodies[0].rows[0]));
	says.push("all: " + cells(table.tFoot.rows[0]));
	says.push("links: " + [...table.tBodies[0].rows[0].querySelectorAll("a")].map(a => a.getAttribute("href")).slice(0, 3).join(" ") + " " + table.tBodies[0].rows[0].cells[14].querySelector("a").getAttribute("href"));
	says.push("failed: " + cards()[0].querySelector("ul").textContent);
	says.push("answers: " + cards()[0].querySelector(".answers summary").textContent);
	await until(() => $("series").firstElementChild);
	const desk = $("series").firstElementChild;
	says.push("releases of: " + [...$("series").children].map(part => part.innerText).join());
	desk.open = true;
	await until(() => desk.querySelector("a.run-point"));
	for (const row of desk.querySelectorAll("tbody tr")) says.push("release: " + cells(row).replace(/\| [^|]* 20[^|]*\|/, "|"));
	says.push("changes: " + [...desk.querySelectorAll("a.run-point")].map(a => a.getAttribute("aria-label").replace(/, .*: takes/, " takes")).join("; "));
	const form = $("measure").elements;
	set(form.suite, "shop");
	says.push("about: " + [...form.suite.options].map(o => o.value).join(" ") + "; " + $("about").textContent.slice(0, 10));
	set(form.more, "nightly, nightly, firefox-esr"); set(form.only, "turning"); set(form.trials, "3"); set(form.device, "virtual");
	press($("measure"), "Measure");
	await until(() => cards().length === 4);
	const fresh = () => cards().find(c => !["sdone", "snew", "sold"].includes(c.id));
	says.push("measured: " + [$("did").textContent, fresh().querySelector("em").textContent, fresh().querySelector("h3").textContent, fresh().querySelector(".soft").textContent.split(" · ").slice(0, 3).join(" · ")].join("; "));
	set(form.only, "none");
	press($("measure"), "Measure");
	await until(() => $("measure").querySelector("[role=alert]").textContent);
	says.push("refused: " + $("measure").querySelector("[role=alert]").textContent);
	press(fresh(), "Stop"); await dialog("Stop");
	await until(() => fresh().querySelector("em").textContent === "cancelled");
	press(fresh(), "Go on");
	await until(() => fresh().querySelector("em").textContent === "waiting");
	press(fresh(), "Stop"); await dialog("Stop");
	await until(() => fresh().querySelector("em").textContent === "cancelled");
	press(fresh(), "Delete"); await dialog("Delete");
	await until(() => cards().length === 3 && document.activeElement.id);
	says.push("deleted: " + [cards()[0].id, document.activeElement.id].join("; "));
	const up = $("upload").elements;
	set(up.yaml, "suite: mine\nentries: []\n");
	press($("upload"), "Upload");
	await until(() => $("upload").querySelector("[role=alert]").textContent);
	says.push("upload: " + $("upload").querySelector("[role=alert]").textContent);
	set(up.yaml, (await (await fetch("/api/v1/suites/shop")).json()).yaml.replace("suite: shop", "suite: mine"));
	press($("upload"), "Upload");
	await until(() => [...form.suite.options].some(o => o.value === "mine"));
	press([...$("suites").children].find(c => c.dataset.key === "mine"), "Remove"); await dialog("Remove");
	await until(() => ![...form.suite.options].some(o => o.value === "mine") && document.activeElement.id === "suites-head");
	says.push("removed: " + document.activeElement.id);`,
		[]string{
			"head: Entry | Type | chromium | firefox-esr | nightly | firefox-esr ÷ chromium | nightly ÷ chromium | Run",
			"row: home | load | 914 | 1421 | 1102 | 1714 | 923 | 1435 | 1.204 | 1.172 … 1.236 | ▲ slower | 1.007 | 0.980 … 1.034 | = no difference found | run",
			"all: Geometric mean |  | – | – | – | 1.204 | 1.182 … 1.226 | ▲ slower | 1.007 | 0.989 … 1.025 | = no difference found | ",
			"links: /trial?run=20261121-091400-home&trial=4 /trial?run=20261121-091400-home&trial=4 /trial?run=20261121-091400-home&trial=2 /run?run=20261121-091400-home",
			"failed: search failed: no trial was valid: the machine is <busy>",
			"answers: Known answers: 2 of 3 hold, 1 does not",
			"releases of: desk",
			"release: Chromium 155.0.7000.1 | 77.6 | – | – | first",
			"release: Chromium 156.0.8078.108 | 70.5 | 0.909 | 0.896 … 0.923 | ▼ faster",
			"release: firefox-esr | 93.4 | – | – | first",
			"release: firefox-esr | 84.9 | 0.909 | 0.898 … 0.921 | ▼ faster",
			"release: nightly | 78.1 | – | – | first",
			"release: nightly | 71.0 | 0.909 | 0.896 … 0.923 | ▼ faster",
			"changes: Chromium 156.0.8078.108 takes 0.909 times as long as the one before; firefox-esr takes 0.909 times as long as the one before; nightly takes 0.909 times as long as the one before",
			"about: desk eidetic-1 knobs-1 shop; <img src=x",
			"measured: shop is measured: 1 run.; waiting; waitingshop: chromium, nightly, firefox-esr; 0 of 1 runs done · 3 trials of each · only turning",
			`refused: only: shop has no entry "none"`,
			"deleted: sdone; results-head",
			"upload: mine.yaml:2: entries: there is none: each is a page or a journey, with a name and a plan",
			"removed: suites-head",
		}, 1, "#sdone", `
	await until(() => $("list").querySelector("tfoot") && $("series").firstElementChild);
	$("series").firstElementChild.open = true;
	await until(() => $("series").querySelector(".run-point"));
	[...$("list").children].filter(c => c.id !== "sdone").forEach(c => c.remove());
	$("measure").reset();
	$("measure").querySelector("[role=alert]").textContent = "";
	$("about").textContent = ""; $("suites").closest("div").querySelectorAll(".cards .soft").forEach(p => { if (p.textContent.includes("<img")) p.textContent = "the shop, as its visitors see it · 3 entries"; });
	$("did").textContent = ""`}
}
