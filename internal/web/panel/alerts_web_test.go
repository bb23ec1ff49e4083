package panel

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/webhook"
	"eidetic/internal/lab"
)

// noBisector lets schedules name repositories; no alert begins anything.
type noBisector struct{}

func (noBisector) CheckRepository(string) error { return nil }
func (noBisector) DeployHead(context.Context, string) (revision, reason string, err error) {
	return "c1", "", nil
}
func (noBisector) PlanAt(_, _ string, p lab.Plan) (lab.Plan, error)        { return p, nil }
func (noBisector) Busy(string) string                                      { return "" }
func (noBisector) Begin(context.Context, automation.Order) (string, error) { return "b1", nil }
func (noBisector) Found(string) (automation.Found, error)                  { return automation.Found{}, nil }

// foundBisect is a bisect that has ended, as it is kept. What its repository says is hostile.
const foundBisect = `{"version": 1, "bisect": {"id": "bdone", "name": "checkout, alert 7", "state": "done", "made": "2026-11-20T09:00:00Z",
	"ended": "2026-11-20T11:30:00Z", "by": "schedule often", "repository": "shop", "good": "4c1f0a", "bad": "9e02d1", "count": 4, "metric": "speed_index_ms",
	"result": {"kind": "culprit", "metric": "speed_index_ms", "text": "77ab30 (search: ask the server twice) by Eve made SpeedIndex 110 ms slower",
		"steps": [{"before": {"name": "4c1f0a"}, "revisions": [{"name": "77ab30", "words": "search: ask the server twice", "author": "Eve"}], "probability": 0.98,
			"size": 110, "runs": ["20261121-101400-links"]}], "effect": {}, "pairs": 60, "trials": 120, "runs": 6, "revisions_tried": 3,
		"untestable": [{"revision": {"name": "81cc05"}, "reason": "the command failed: exit status 2"}],
		"revisions": [{"name": "4c1f0a", "words": "cart: show totals", "author": "Bob", "probability": 0},
			{"name": "77ab30", "words": "search: ask <img src=x onerror=\"document.title='owned'\">", "author": "Eve", "probability": 0.98},
			{"name": "81cc05", "words": "build: try a new bundler", "author": "Ada", "probability": 0.02},
			{"name": "9e02d1", "words": "build: take that back", "author": "Bob", "probability": 0}]}},
	"request": {"plan": {"page": "https://trunk.shop.example/"}, "revisions": [{"name": "4c1f0a"}, {"name": "77ab30"}, {"name": "81cc05"}, {"name": "9e02d1"}],
		"limit_ns": 1000000000, "confidence": 0.95, "pairs": 800, "seed": 1, "repository": "shop"}}`

// bisectionsOf are the bisects of a panel with a repository, one of which has ended.
func bisectionsOf(t *testing.T, c setup) *bisects.Keeper {
	t.Helper()
	dir := t.TempDir()
	err := os.Mkdir(filepath.Join(dir, "bdone"), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "bdone", "bisect.json"), []byte(foundBisect), 0o600)
	}
	var k *bisects.Keeper
	if err == nil {
		k, err = bisects.Open(bisects.Config{Dir: dir, Runs: c.Queue, Store: c.Store, Now: testNow,
			Sender:       webhook.Sender{Resolver: netip.MustParseAddrPort("127.0.0.1:1")},
			Repositories: map[string]bisects.Repository{"shop": {File: "/srv/revisions", Deploy: "true"}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// alertsPage: an alert with rows is assigned, acknowledged, accepted and resolved.
func alertsPage() pageTest {
	return pageTest{"/alerts", `
	const cards = () => [...$("list").children], one = () => cards().find(c => c.querySelector("details"));
	const answer = async (text, fill) => {
		press(one(), text);
		await until(() => $("answer").open);
		fill($("answer").querySelector("form").elements);
		press($("answer"), text);
		await until(() => !$("answer").open || $("answer").querySelector("[role=alert]").textContent);
	};
	await until(() => one());
	says.push("alerts: " + [cards().length, one().querySelector("em").textContent, one().querySelector("summary").textContent, one().querySelectorAll("tbody tr").length].join("; "));
	one().querySelector("summary").click();
	says.push("history: " + one().querySelector("td a").getAttribute("href").replace(/series=\w+/, "series=KEY"));
	await answer("Assign", f => { set(f.owner, evil); set(f.bug, "https://bugs.test/1"); });
	await until(() => one().textContent.includes("Owner"));
	says.push("assigned: " + [one().textContent.includes(evil), one().querySelector("a[rel]").href, one().querySelector("details").open].join("; "));
	await answer("Acknowledge", f => set(f.note, "ada looks"));
	await until(() => one().querySelector("em").textContent === "acknowledged");
	await answer("Accept", f => { set(f.note, "the cache"); set(f.until, "2020-01-01"); });
	says.push("refused: " + $("answer").querySelector("[role=alert]").textContent.replace(/until: .*Z/, "until: TIME"));
	$("not").click();
	await answer("Accept", f => { set(f.note, "the cache"); set(f.until, "2027-02-01"); });
	await until(() => !one());
	says.push("accepted: " + [cards().length, $("none").textContent].join("; "));
	set($("which"), "all");
	await until(() => one());
	says.push("all: " + one().querySelector("em").textContent);
	await answer("Resolve", f => set(f.note, "reverted in 3f1c"));
	await until(() => one().querySelector("em").textContent === "resolved");
	says.push("resolved: " + [one().textContent.includes("reverted in 3f1c"), [...one().querySelectorAll("button")].map(b => b.textContent), document.activeElement.id].join("; "));`,
		[]string{
			"alerts: 1; open; 1 more changed with it; 2",
			"history: /history?series=KEY&metric=speed_index_ms&line=control",
			"assigned: true; https://bugs.test/1; true",
			"refused: until: TIME: a time from now on, within a year",
			"accepted: 0; There is nothing to look after. Choose all to see what is over.",
			"all: accepted",
			"resolved: true; Assign; head",
		}, 0, "?show=all", `
	await send("PATCH", "/api/v1/alerts/1", { owner: "ada", bug: "https://bugs.shop.example/4711" });
	await until(() => $("list").textContent.includes("Owner: ada"));
	$("list").querySelector("summary").click()`}
}

// bisectionsPage: one that has ended shows what it rests on; it is made again, stopped, and deleted.
func bisectionsPage() pageTest {
	return pageTest{"/bisections", `
	const cards = () => [...$("list").children], dialog = async text => { press($("sure"), text); await until(() => !$("sure").open); };
	await until(() => cards().length === 1);
	says.push("done: " + [cards()[0].querySelector("em").textContent, cards()[0].textContent.includes("by Eve made SpeedIndex 110 ms slower")].join("; "));
	cards()[0].querySelector("summary").click();
	await until(() => cards()[0].querySelectorAll("tbody tr").length === 4);
	says.push("evidence: " + [...cards()[0].querySelectorAll("tbody tr")].map(r => r.cells[0].textContent + " " + r.cells[3].textContent.trim()).join(", ") + "; " + cards()[0].querySelector("tbody small").textContent);
	press(cards()[0], "Again");
	await until(() => cards().length === 2);
	const fresh = () => cards().find(c => c.id !== "bdone");
	says.push("again: " + [$("did").textContent.replace(/b[a-z0-9]{12}/, "ID"), fresh().querySelector("em").textContent].join("; "));
	press(fresh(), "Stop"); await dialog("Stop");
	await until(() => fresh().querySelector("em").textContent === "cancelled");
	press(fresh(), "Delete"); await dialog("Delete");
	await until(() => cards().length === 1);
	says.push("deleted: " + [cards()[0].id, document.activeElement.id].join("; "));`,
		[]string{
			"done: done; true",
			"evidence: 4c1f0a 0.00 %, 77ab30 98.0 %, 81cc05 2.00 %, 9e02d1 0.00 %; left out: the command failed: exit status 2",
			"again: Bisection ID begins anew.; waiting",
			"deleted: bdone; head",
		}, 0, "#bdone", `
	await until(() => $("list").querySelectorAll("tbody tr").length === 4);
	[...$("list").querySelectorAll("td")].find(d => d.textContent.includes("<img")).textContent = "search: ask the server twice";
	$("did").textContent = ""`}
}
