package panel

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"eidetic/internal/report/reporttest"
	"eidetic/internal/store"
)

// The page in a real browser: token, list, a hostile run, and a report that
// works under the panel's policies.
func TestPageInBrowser(t *testing.T) {
	st := newStore(t)
	evil := reporttest.Run(2, 1)
	evil.ID, evil.Name, evil.Page = "20261121-101500-evil", `<img src=x onerror="document.title='owned'">`, `javascript:alert(1)//"><script>document.title='owned'</script>`
	addRun(t, st, evil)
	waiting := &fakeRunner{}
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	s := newServer(t, Config{Store: st, Token: token, Version: "v1", Queue: q, Runner: waiting, Archives: fakeArchives{}, Certificate: []byte("x"),
		Links: []string{"native", "lte"}, Parts: func() []Part { return []Part{{"network", true, 5}} },
		Devices: func(context.Context) []Device {
			return []Device{{Name: "<b>laptop</b>", Kind: "port", Ready: true, Port: "enp2s0", Address: "192.168.77.100"}, {Name: "virtual", Kind: "virtual", Problem: "no browser"}}
		}})
	b := reporttest.NewBrowser(t)
	if err := b.Open(s.URL + "/"); err != nil {
		t.Fatal(err)
	}
	const until = `const until = test => new Promise(yes => { const end = performance.now() + 20000; const ask = () => test() ? yes(true) : performance.now() > end ? yes(false) : setTimeout(ask, 20); ask(); });`
	if ok, err := reporttest.Eval[bool](b, `(async () => {`+until+` return until(() => !document.getElementById("login").hidden); })()`); err != nil || !ok {
		t.Fatalf("no form asks for the token (%v)", err)
	}
	// The refusal that made the form appear is in the browser's log.
	refused := len(b.Problems())
	got, err := reporttest.Eval[string](b, fmt.Sprintf(`(async () => {%s
		document.getElementById("token").value = %q;
		document.querySelector("#login button").click();
		await until(() => document.querySelectorAll(".run").length === 2);
		return [document.title, document.querySelectorAll(".run").length, document.querySelectorAll(".run img, .run script").length, document.querySelector(".run a").getAttribute("href")].join(" | ");
	})()`, until, token))
	if want := "Runs – Eidetic | 2 | 0 | /runs/20261121-091400-demo/report.html"; err != nil || got != want && got != "Runs – Eidetic | 2 | 0 | /runs/20261121-101500-evil/report.html" {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	got, err = reporttest.Eval[string](b, `(async () => {`+until+`
		await until(() => document.querySelectorAll("#devices li").length === 2 && document.querySelectorAll("#new [name=archive] option").length > 2);
		const form = document.getElementById("new").elements;
		form.page.value = "https://www.x.test/"; form.archive.value = "shop.wacz"; form.trials.value = "3";
		document.querySelector("#new button").click();
		const waits = await until(() => document.querySelectorAll(".run").length === 3);
		return [document.querySelector("#devices strong").textContent, document.getElementById("health").textContent, waits, document.querySelector(".run .state").textContent].join(" | ");
	})()`)
	if want := "<b>laptop</b> | healthy | true | queued"; err != nil || got != want {
		t.Errorf("devices and form: %q (%v), want %q", got, err, want)
	}
	if err := b.Open(s.URL + "/runs/20261121-091400-demo/report.html#trial-1"); err != nil {
		t.Fatal(err)
	}
	got, err = reporttest.Eval[string](b, `(async () => {`+until+`
		await until(() => document.querySelectorAll("#trial-1 .log-table td.url").length);
		const seen = await until(() => [...document.querySelectorAll(".seen img, #trial-1 .evidence img")].every(i => i.naturalWidth));
		return [document.querySelector("#chart").dataset.drawn, document.querySelectorAll("#trial-1 .log-table td.url").length, seen].join(" ");
	})()`)
	if err != nil || got != "2 62 true" {
		t.Errorf("the report under the panel: %q (%v)", got, err)
	}
	if got := b.Problems()[refused:]; len(got) > 0 {
		t.Errorf("the pages complain: %q", got)
	}
	if got := b.Foreign(s.URL+"/", "about:", "chrome:", "data:image/svg+xml"); len(got) > 0 {
		t.Errorf("requests to others: %q", got)
	}
}
