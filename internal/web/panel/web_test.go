package panel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
)

// until is a script that waits for a condition and returns whether it came true.
const until = `const until = test => new Promise(yes => { const end = performance.now() + 60000; const ask = () => test() ? yes(true) : performance.now() > end ? yes(false) : setTimeout(ask, 20); ask(); });`

// A CSV of the panel and one of a report, which is a file of its own, have the same cells.
func TestOneRuleForCSV(t *testing.T) {
	rule := regexp.MustCompile("(?s)const text = typeof cell.*?\n.*?: text;\n")
	var found []string
	for _, name := range []string{"web/common.js", "../../tell/report/assets/csv.js"} {
		script, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, rule.FindString(string(script)))
	}
	if found[0] == "" || found[0] != found[1] {
		t.Errorf("the rules for cells differ:\n%s\n%s", found[0], found[1])
	}
}

// The page in a real browser: token, list, a hostile run, and a report that works under the
// panel's policies.
func TestPageInBrowser(t *testing.T) {
	st := newStore(t)
	evil := reporttest.Run(2, 1)
	evil.ID, evil.Name, evil.Page = "20261121-101500-evil", `<img src=x onerror="document.title='owned'">`,
		`javascript:alert(1)//"><script>document.title='owned'</script>`
	addRun(t, st, evil)
	two := reporttest.Compared(3, 6, 800)
	addRun(t, st, two)
	waiting := &fakeRunner{}
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	s := newServer(t, setup{Store: st, Token: lab.NewSecret(token), Version: "v1", Queue: queueOf(st, q, waiting), Archives: fakeArchives{},
		Certificate: []byte("x"),
		Links:       []string{"native", "lte"}, Parts: func() []Part { return []Part{{"network", true, 5}} },
		Devices: func(context.Context) []Device {
			return []Device{{Name: "<b>laptop</b>", Kind: "port", Ready: true, Port: "enp2s0", Address: "192.168.77.100",
				WiFi: &WiFi{SSID: "<i>air</i>", Passphrase: "abcd-<b>"}}, {Name: "virtual", Kind: "virtual", Problem: "no browser"}}
		}})
	b := browsers.New(t)
	if err := b.Open(s.URL + "/"); err != nil {
		t.Fatal(err)
	}
	if ok, err := reporttest.Eval[bool](b, `(async () => {`+until+` return until(() => !document.getElementById("login").hidden); })()`); err != nil ||
		!ok {
		t.Fatalf("no form asks for the token (%v)", err)
	}
	// The browser's log has the refusal that made the form appear.
	refused := len(b.Problems())
	got, err := reporttest.Eval[string](b, fmt.Sprintf(`(async () => {%s
		document.getElementById("token").value = %q;
		document.querySelector("#login button").click();
		await until(() => document.querySelectorAll(".run").length === 3);
		return [document.title, document.querySelectorAll(".run").length, document.querySelectorAll(".run img, .run script").length, document.querySelector(".run a").getAttribute("href")].join(" | ");
	})()`, until, token))
	if want := "Runs – Eidetic | 3 | 0 | /run?run=20261121-091400-demo"; err != nil || got != want &&
		got != "Runs – Eidetic | 3 | 0 | /run?run=20261121-101500-evil" {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	got, err = reporttest.Eval[string](b, `(() => {
		const run = [...document.querySelectorAll(".run")].find(r => r.querySelector(".found"));
		return [run.querySelector(".found strong").textContent, ...[...run.querySelectorAll(".number")].map(n => n.innerText.replace(/\s+/g, " "))].join(" | ");
	})()`)
	if want := "▲ Treatment (link 3g) is slower. | " + controls(two); err != nil || got != want {
		t.Errorf("the comparison in the list: %q (%v), want %q", got, err, want)
	}
	got, err = reporttest.Eval[string](b, `(async () => {`+until+`
		await until(() => document.querySelectorAll("#devices li").length === 2 && document.querySelectorAll("#new [name=archive] option").length > 2);
		const form = document.getElementById("new").elements;
		form.page.value = "https://www.x.test/"; form.archive.value = "shop.wacz"; form.trials.value = "3";
		form.match.value = "loose"; form.miss.value = "fill";
		document.querySelector("#new button").click();
		document.querySelector("#new button").click(); // a second click, which must not start a second run
		return [document.querySelector("#devices strong").textContent, document.getElementById("health").textContent].join(" | ");
	})()`)
	if want := "<b>laptop</b> | healthy"; err != nil || got != want {
		t.Errorf("devices and form: %q (%v), want %q", got, err, want)
	}
	got, err = reporttest.Eval[string](
		b,
		`[document.querySelector("#devices .ssid").textContent, document.querySelector("#devices code").textContent].join(" | ")`,
	)
	if want := "<i>air</i> | abcd-<b>"; err != nil || got != want {
		t.Errorf("to join by Wi-Fi: %q (%v), want %q", got, err, want)
	}
	// The run that was started opens its page. A script on the page that is left ends with an error, and is made anew
	// on the next.
	for deadline := time.Now().Add(testlab.Hang); ; {
		got, err = reporttest.Eval[string](b, `(async () => {`+until+`
			await until(() => location.pathname === "/run" && document.getElementById("state")?.textContent);
			return [document.getElementById("state").textContent, document.getElementById("edit").getAttribute("href").replace(/=.*/, "=")].join(" | ");
		})()`)
		if err == nil || time.Now().After(deadline) {
			break
		}
	}
	if want := "queued | /plan?run="; err != nil || got != want {
		t.Errorf("the page of the run that was started: %q (%v), want %q", got, err, want)
	}
	if err := b.Open(s.URL + "/runs/20261121-091400-demo/report.html#trial-1"); err != nil {
		t.Fatal(err)
	}
	got, err = reporttest.Eval[string](b, `(async () => {`+until+`
		await until(() => document.querySelectorAll("#trial-1 .log-table td.url").length);
		const seen = await until(() => [...document.querySelectorAll(".seen img, #trial-1 .evidence img")].every(i => i.naturalWidth));
		const back = [...document.querySelectorAll("#back a")].filter(a => a.checkVisibility()).map(a => a.getAttribute("href"));
		return [document.querySelector("#chart").dataset.drawn, document.querySelectorAll("#trial-1 .log-table td.url").length, seen, ...back].join(" ");
	})()`)
	if err != nil || got != "2 62 true / /run?run=20261121-091400-demo /history?name=demo&page=https%3A%2F%2Fwww.shop.example%2F" {
		t.Errorf("the report under the panel: %q (%v)", got, err)
	}
	exports, err := reporttest.Eval[[]string](b, `[...document.querySelectorAll("#exports a")].filter(a => a.checkVisibility()).map(a => a.getAttribute("href"))`)
	if err != nil || len(exports) != 5 {
		t.Errorf("the report's links to exports: %q (%v); want five", exports, err)
	}
	for _, href := range exports {
		if got := ask(t, s, http.MethodGet, href, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }); got.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %s %.200s; want 200", href, got.Status, got.text)
		}
	}
	if jobs, err := q.Jobs(t.Context()); err != nil || len(jobs) != 1 || jobs[0].Plan.Match != "loose" || jobs[0].Plan.Miss != lab.MissFill {
		t.Errorf("two clicks started %+v (%v); want one run with the chosen policies", jobs, err)
	}
	if got := b.Problems()[refused:]; len(got) > 0 {
		t.Errorf("the pages complain: %q", got)
	}
	if got := b.Foreign(s.URL+"/", "about:", "chrome:", "data:image/svg+xml"); len(got) > 0 {
		t.Errorf("requests to others: %q", got)
	}
}

// Older runs that are loaded can be chosen as recordings, and the chosen one stays chosen.
func TestOlderRunsInBrowser(t *testing.T) {
	st := newStore(t)
	bare(t, st, 60)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	s := newServer(t, setup{Store: st, Version: "v1", Queue: queueOf(st, q, &fakeRunner{}), Archives: fakeArchives{},
		Devices: func(context.Context) []Device { return nil }})
	b := browsers.New(t)
	if err := b.Open(s.URL + "/"); err != nil {
		t.Fatal(err)
	}
	got, err := reporttest.Eval[string](b, `(async () => {`+until+`
		const archive = document.getElementById("new").elements.archive;
		await until(() => archive.options.length > 50);
		archive.value = "20261121-105900-r";
		const before = archive.options.length;
		document.getElementById("more").click();
		await until(() => archive.options.length > before);
		return [before, archive.options.length, archive.value].join(" ");
	})()`)
	if want := "52 63 20261121-105900-r"; err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

// The page polls every three seconds and changes only what differs: the focus stays, and a
// screen reader announces the news and not the lists.
func TestStillInBrowser(t *testing.T) {
	st := newStore(t)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var unplugged atomic.Bool
	s := newServer(t, setup{Store: st, Version: "0.1.5-12-g39795b8-dirty", Queue: queueOf(st, q, &fakeRunner{}), Archives: fakeArchives{},
		Links: []string{"native", "lte"},
		Parts: func() []Part { return []Part{{"network", true, 5}} },
		Devices: func(context.Context) []Device {
			laptop := Device{Name: "laptop", Kind: "port", Ready: true, Port: "enp2s0"}
			if unplugged.Load() {
				laptop.Ready, laptop.Problem = false, "nothing is plugged in"
			}
			return []Device{laptop, {Name: "virtual", Kind: "virtual", Ready: true}}
		}})
	b := browsers.New(t)
	if err := b.Open(s.URL + "/"); err != nil {
		t.Fatal(err)
	}
	expect := func(steps, want string) {
		t.Helper()
		const script = until + `
			const asked = () => performance.getEntriesByType("resource").filter(e => e.name.endsWith("/api/v1/health") || e.name.endsWith("/api/v1/devices")).length;
			const quiet = n => { const before = asked(); return until(() => asked() >= before + n); };`
		if got, err := reporttest.Eval[string](b, "(async () => {"+script+steps+"})()"); err != nil || got != want {
			t.Errorf("got %q (%v), want %q", got, err, want)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		if err := b.View(390, 844, scheme); err != nil {
			t.Fatal(err)
		}
		expect(`await until(() => document.querySelectorAll("#devices li").length === 2 && document.querySelector(".remove"));
			document.querySelector(".remove").click();
			const sure = document.getElementById("sure").getBoundingClientRect();
			document.getElementById("no").click();
			return [document.documentElement.scrollWidth, sure.left > 0 && sure.right < innerWidth].join(" ");`, "390 true")
	}
	// Four rounds: when the third has begun, the result of the second is shown.
	expect(`await until(() => document.querySelectorAll("#devices li").length === 2 && document.querySelector(".remove"));
		await quiet(2);
		window.changed = [];
		window.watch = new MutationObserver(all => changed.push(...all.map(m => m.type + " of " + (m.target.id || m.target.nodeName))));
		watch.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
		window.remove = document.querySelector(".remove");
		remove.focus();
		await quiet(6);
		return [changed.join(", "), document.activeElement === remove, document.querySelectorAll("main ul[aria-live], main li[aria-live]").length].join(" | ");`, " | true | 0")
	unplugged.Store(true)
	expect(`const log = document.getElementById("news");
		await until(() => log.childElementCount);
		const lis = document.querySelectorAll("#devices li");
		await quiet(4);
		watch.disconnect();
		return [log.textContent, log.role, document.activeElement === remove, [...lis].map(li => li.querySelector(".state").textContent).join(", "), changed.filter(c => c === "childList of devices").length].join(" | ");`,
		"laptop is not ready: nothing is plugged in | log | true | not ready, ready | 0")
	// A new run at the top moves the others and changes nothing else.
	expect(
		`await fetch("/api/v1/runs", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ page: "https://www.x.test/", device: "virtual" }) });
		await until(() => document.querySelectorAll(".run").length === 2);
		const first = document.querySelector(".run .state").textContent;
		return [first, document.activeElement === remove, remove.isConnected, document.getElementById("news").lastChild.textContent].join(" | ");`,
		"queued | true | true | www.x.test: queued. ",
	)
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

// A run that has ended can be deleted, and a waiting one cancelled, after a question.
func TestDeleteInBrowser(t *testing.T) {
	st := newStore(t)
	held := reporttest.Run(0, 0)
	held.ID, held.Name = "20261121-080000-held", "held"
	folder, err := store.Create(st.Root(), held)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := q.Add(t.Context(), store.Job{ID: "20261121-100000-waits", Device: "virtual", Created: time.Unix(1_800_000_000, 0)}); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, setup{Store: st, Version: "v1", Queue: queueOf(st, q, &fakeRunner{}), Archives: fakeArchives{},
		Devices: func(context.Context) []Device { return nil }})
	b := browsers.New(t)
	if err := b.Open(s.URL + "/"); err != nil {
		t.Fatal(err)
	}
	const script = until + `
		const of = id => [...document.querySelectorAll(".remove")].find(b => b.ariaLabel === "Delete run " + id), sure = document.getElementById("sure"), kept = document.getElementById("kept");`
	expect := func(steps, want string) {
		t.Helper()
		if got, err := reporttest.Eval[string](b, "(async () => {"+script+steps+"})()"); err != nil || got != want {
			t.Errorf("got %q (%v), want %q", got, err, want)
		}
	}
	expect(`await until(() => document.querySelectorAll(".run").length === 3);
		return [document.querySelectorAll(".remove").length, !!of("20261121-100000-waits"), document.querySelector(".cancel").ariaLabel].join(" ");`, "2 false Cancel run 20261121-100000-waits")
	expect(`of("20261121-091400-demo").click();
		const asked = sure.open, which = document.getElementById("which").textContent.endsWith("demo (20261121-091400-demo)"), safe = document.activeElement.id;
		document.getElementById("no").click();
		return [asked, which, safe, sure.open, document.querySelectorAll(".run").length].join(" ");`, "true true no false 3")
	if !st.Has("20261121-091400-demo") {
		t.Error("the run was deleted although the answer was Keep")
	}
	expect(`of("20261121-091400-demo").click();
		document.getElementById("yes").click();
		await until(() => !sure.open);
		return [document.querySelectorAll(".run").length, document.activeElement.id].join(" ");`, "2 heading")
	if st.Has("20261121-091400-demo") {
		t.Error("the deleted run is still in the store")
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
	expect(`of("20261121-080000-held").click();
		document.getElementById("yes").click();
		await until(() => kept.textContent);
		return [kept.textContent, sure.open, document.querySelectorAll(".run").length].join(" ");`,
		"The run could not be deleted: the run goes on: cancel it first, without files=true. true 2")
}

// The button of a waiting run cancels it, and the focus stays on the page.
func TestCancelInBrowser(t *testing.T) {
	st := newStore(t)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := q.Add(t.Context(), store.Job{ID: "20261121-100000-waits", Device: "virtual", Created: time.Unix(1_800_000_000, 0)}); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, setup{Store: st, Version: "v1", Queue: queueOf(st, q, &fakeRunner{}), Archives: fakeArchives{},
		Devices: func(context.Context) []Device { return nil }})
	b := browsers.New(t)
	if err := b.Open(s.URL + "/"); err != nil {
		t.Fatal(err)
	}
	got, err := reporttest.Eval[string](b, `(async () => {`+until+`
		await until(() => document.querySelector(".cancel"));
		document.querySelector(".cancel").focus();
		document.querySelector(".cancel").click();
		const asks = document.getElementById("question").textContent, safe = document.activeElement.textContent;
		document.getElementById("yes").click();
		await until(() => document.querySelectorAll(".run").length === 1);
		return [asks, safe, document.querySelectorAll(".cancel").length, document.activeElement.id].join(" | ");
	})()`)
	if want := "Cancel this run? | Go on | 0 | heading"; err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	if _, err := q.Get(t.Context(), "20261121-100000-waits"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is still in the queue (%v)", err)
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

// controls are the figures of the control, as the list writes them.
func controls(run *lab.Run) string {
	var parts []string
	for _, m := range metric.Guards()[:2] {
		for _, s := range run.Summary {
			if s.Arm == lab.Control && s.Metric == m.String() {
				text := fmt.Sprintf("%.0f", s.Median)
				if len(text) > 3 {
					text = text[:len(text)-3] + " " + text[len(text)-3:]
				}
				parts = append(parts, fmt.Sprintf("%s ms %s, control", text, m.Label()))
			}
		}
	}
	return strings.Join(parts, " | ")
}

// A page that stays open while the service restarts shows the runs' final states.
func TestPageAfterRestart(t *testing.T) {
	st := newStore(t)
	queue := filepath.Join(t.TempDir(), "queue.db")
	box := newBox(t, st, queue)
	box.do(t, http.MethodPost, "/api/v1/runs", request)
	<-box.runner.started
	b := browsers.New(t)
	if err := b.Open(box.url + "/"); err != nil {
		t.Fatal(err)
	}
	state := func(want string) {
		t.Helper()
		got, err := reporttest.Eval[bool](b, fmt.Sprintf(`new Promise(yes => {
			const end = performance.now() + 60000;
			const ask = () => [...document.querySelectorAll(".run .state")].some(e => e.textContent === %q) ? yes(true) : performance.now() > end ? yes(false) : setTimeout(ask, 50);
			ask();
		})`, want))
		if err != nil || !got {
			t.Fatalf("no run is shown as %s (%v)", want, err)
		}
	}
	state(store.StateRunning)
	box.stop()
	newBoxAt(t, st, queue, strings.TrimPrefix(box.url, "http://"))
	state(store.StateInterrupted)
}
