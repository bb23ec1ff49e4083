package panel

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
)

// pageTest is what a person does on a page. What the page answers is the same in each browser.
type pageTest struct {
	path   string
	script string // that fills says
	want   []string
	charts int // that are seen at the end, each with a table and a download
	// query and show make the page's picture for docs/img, after the page was opened anew; show may be noPicture.
	query, show string
}

const noPicture = "none"

func pageTests() []pageTest {
	return []pageTest{
		automationPage(), alertsPage(), bisectionsPage(), suitesPage(), recordingsPage(), planPage(), devicePage(), errandPage(), storagePage(), browsersPage(),
		historyPage(), runPage(), fleetSection(),
	}
}

// route is the path without its query.
func (p pageTest) route() string {
	route, _, _ := strings.Cut(p.path, "?")
	return route
}

// onPage begins each script. evil is a text that would change the page's title if it became markup.
const onPage = reporttest.Charts + `
	const until = async test => {
		for (const end = performance.now() + 60000; !test();) {
			if (performance.now() > end) throw new Error("never: " + test + " " + [...document.querySelectorAll("#trouble, #did, [role=alert]")].map(e => e.textContent).join(" ") + " after " + says.join("; "));
			await new Promise(yes => setTimeout(yes, 20));
		}
	};
	const $ = id => document.getElementById(id), says = [];
	const evil = '<img src=x onerror="document.title=\'owned\'">';
	const send = (method, path, body, headers) => fetch(path, { method, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) }).then(a => a.text());
	const set = (input, value) => { input.value = value; input.dispatchEvent(new Event("input", { bubbles: true })); input.dispatchEvent(new Event("change", { bubbles: true })); };
	const press = (where, text) => [...where.querySelectorAll("button")].find(b => b.checkVisibility() && b.textContent === text).click();
	const seen = id => $(id).checkVisibility();
	await until(() => !$("all") || seen("all"));
`

// endPage says what no hostile text may have changed.
const endPage = `
	says.push("charts: " + (await charts()).join(" "));
	says.push(document.title !== "owned" && !document.querySelector("main img[src=x]") ? "no markup" : "markup");
	return says.join("\n");`

func (p pageTest) code() string { return onPage + p.script + endPage }

func (p pageTest) expect() string {
	return strings.Join(append(slices.Clone(p.want), fmt.Sprint("charts: ", p.charts), "no markup"), "\n")
}

// pagesConfig is a box with runs, an alert and a device.
func pagesConfig(t *testing.T) setup {
	t.Helper()
	st := emptyStore(t)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	file := filepath.Join(t.TempDir(), "shop.wacz")
	if err := os.WriteFile(file, []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}
	seats := &fakeSeats{}
	config := setup{Store: st, Version: "v1", Archives: fakeArchives{file: file}, Links: []string{"native", "lte"}, Seats: seats, Errands: &fakeErrands{}, Retainer: fakeRetainer{}, Fleet: &fakeMembership{}, Certificate: []byte("x"),
		Fingerprint: strings.Repeat("3b1c", 16), Devices: func(context.Context) []Device {
			return []Device{{Name: "a desk/2", Kind: "port", Port: "enp2s0", Ready: true, Screen: "v4l2:/dev/video0", Errands: []string{"film", "record", "qualify", "noise"}}, {Name: "virtual", Kind: "virtual", Ready: true, Browsers: []string{"chromium", "nightly"}},
				seats.phone()}
		}}
	config.Queue = queueOf(st, q, &fakeRunner{})
	config.Automation, config.Bisects = keeperOf(t, config), bisectionsOf(t, config)
	config.Automation.Bisector = noBisector{}
	config.Suites = suitesOf(t, config)
	run := reporttest.Compared(3, 6, 800)
	addRun(t, st, run)
	if err := os.WriteFile(filepath.Join(st.Root(), "runs", run.ID, recordingName), []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}
	filmedPairs(t, st)
	daily(t, st, 30, 20) // a step, so that there is an alert
	dailyIn(t, st, &lab.Browser{Name: lab.FirefoxESR}, 3, 3)
	if err := config.Automation.Tell(t.Context()); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestPagesInChromium does it, and looks for what keeps people out: on all pages, with axe-core, in both themes.
func TestPagesInChromium(t *testing.T) {
	config := pagesConfig(t)
	b, s := browsers.New(t), newServer(t, config)
	const series = "/history?name=checkout&page=https%3A%2F%2Fwww.shop.example%2F&link=4g"
	for name, path := range map[string]string{"history": series, "history-browsers": series + "&browsers=all"} {
		picture(t, b, s.URL+path, name, "await until(() => document.querySelector('.run-point'))")
	}
	pagesInChromium(t, config, pageTests(), "/", "/history", "/access", "/gesture", "/device?name=a%20desk%2F2", "/trial",
		"/runs/20261121-101400-links/report.html", "/recordings?name=20261121-101400-links",
		"/run?run=20261123-091400-pairs&pair=1&lock=progress", "/help/panel", "/help/security")
}

// pagesInChromium makes the tests, and has axe-core look at their pages and at others.
func pagesInChromium(t *testing.T, config setup, tests []pageTest, others ...string) {
	t.Helper()
	s := newServer(t, config)
	b := browsers.New(t)
	for _, p := range tests {
		others = append(others, p.path)
		t.Run(strings.TrimPrefix(p.route(), "/"), func(t *testing.T) {
			if err := b.View(1100, 900, "light"); err != nil {
				t.Fatal(err)
			}
			if err := b.Open(s.URL + p.path); err != nil {
				t.Fatal(err)
			}
			got, err := reporttest.Eval[string](b, `(async () => {`+p.code()+`})()`)
			if err != nil || plain(got) != p.expect() {
				t.Errorf("the page says (%v)\n%s\nwant\n%s", err, plain(got), p.expect())
			}
			// The documents' pictures of these two are of a box with tokens, and of a device in a run.
			if p.show != noPicture && p.route() != "/access" && p.route() != "/device" {
				picture(t, b, s.URL+p.path+p.query, strings.TrimPrefix(p.route(), "/"), p.show)
			}
		})
	}
	// What the scripts get wrong on purpose is in the log, and that their own looks at canvases are slow; a broken page
	// has exceptions.
	for _, problem := range b.Problems() {
		if !strings.Contains(problem, "the server responded with a status of 4") && !strings.Contains(problem, "Unexpected response code: 4") &&
			!strings.Contains(problem, "willReadFrequently") {
			t.Errorf("the pages complain: %q", problem)
		}
	}
	if got := b.Foreign(s.URL+"/", "about:", "chrome:", "data:", "blob:"); len(got) > 0 {
		t.Errorf("requests to others: %q", got)
	}
	t.Run("axe", func(t *testing.T) {
		accessible(t, b, s.URL, others)
		reportsAccessible(t, b, s.URL)
	})
}

// picture writes what a page looks like, after the script show, into the folder PANEL_SHOTS: with docs/img it makes the
// documentation's.
func picture(t *testing.T, b *reporttest.Browser, address, name, show string) {
	t.Helper()
	dir := os.Getenv("PANEL_SHOTS")
	if dir == "" {
		return
	}
	err := b.Open(address)
	if err == nil {
		_, err = reporttest.Eval[bool](b, `(async () => {`+onPage+show+`; document.activeElement.blur(); scrollTo(0, 0); return true; })()`)
	}
	var tall int64
	if err == nil {
		tall, err = reporttest.Eval[int64](b, `Math.ceil(document.querySelector("main").getBoundingClientRect().bottom)`)
	}
	if err == nil {
		most, ok := map[string]int64{"run": 2300, "history": 870, "history-browsers": 680}[name] // a run's films are at the end
		if !ok {
			most = 1500
		}
		err = b.View(1100, min(tall, most), "light")
	}
	if err == nil {
		var shot []byte
		if shot, err = b.Shot(); err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o644)
		}
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// accessible has axe-core look at pages.
func accessible(t *testing.T, b *reporttest.Browser, address string, paths []string) {
	t.Helper()
	axe, err := os.ReadFile("../../../out/axe/node_modules/axe-core/axe.min.js")
	testlab.Need(t, err == nil, "npm's axe-core: run make axe")
	type look struct {
		width  int64
		scheme string
	}
	var all []look
	for _, width := range []int64{390, 1024, 1600} {
		for _, scheme := range []string{"dark", "forced", "light"} {
			all = append(all, look{width, scheme})
		}
	}
	for i, path := range paths {
		looks, levels := all, "minor moderate serious critical"
		if testing.Short() { // one look at each page, so that each width and scheme has a turn
			look := i % len(all)
			looks = all[look : look+1]
		}
		if strings.HasSuffix(path, "/report.html") { // a file of its own, whose page the report's tests look at
			looks, levels = looks[:1], "serious critical"
		}
		for i, look := range looks {
			scheme := fmt.Sprintf("%s, %d pixels", look.scheme, look.width)
			if err := b.View(look.width, 844, look.scheme); err != nil {
				t.Fatal(err)
			}
			if i == 0 { // later the page is as it was, and draws itself anew
				if err := b.Open(address + path); err != nil {
					t.Fatal(err)
				}
			}
			got, err := reporttest.Eval[[]string](b, `(async () => {`+until+reporttest.Charts+string(axe)+`;
				await until(() => !document.querySelector("#all[hidden]") || document.querySelector("#none:not([hidden])"));
				if (location.search.includes("pair=")) await until(() => document.querySelector("#both:not([hidden])"));
				const found = await axe.run({ resultTypes: ["violations"] });
				const wide = document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways: " + [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll, .wide-table")).map(e => e.outerHTML.slice(0, 80)).slice(0, 3)] : [];
				return found.violations.filter(v => `+fmt.Sprintf("%q", levels)+`.includes(v.impact)).map(v => v.id + ": " + v.nodes.map(n => n.html).slice(0, 3).join(" ")).concat(wide, (await charts()).slice(1));
			})()`)
			if err != nil || len(got) > 0 {
				t.Errorf("%s, %s: %q (%v)", path, scheme, got, err)
			}
		}
	}
}

// reportsAccessible has axe-core look at what a run leaves: nothing of any impact is found on it, at a phone's, a
// tablet's and a desk's width, in both schemes. A short test has one look at each page.
func reportsAccessible(t *testing.T, b *reporttest.Browser, address string) {
	t.Helper()
	axe, err := os.ReadFile("../../../out/axe/node_modules/axe-core/axe.min.js")
	testlab.Need(t, err == nil, "npm's axe-core: run make axe")
	const run = "/runs/20261121-101400-links"
	for n, path := range []string{run + "/report.html", run + "/timeline.html", "/trial?run=20261121-101400-links&trial=1"} {
		for i, width := range []int64{390, 1024, 1600} {
			for k, scheme := range []string{"light", "dark"} {
				if testing.Short() && (i != n || i%2 != k) {
					continue
				}
				if err := b.View(width, 900, scheme); err != nil {
					t.Fatal(err)
				}
				if err := b.Open(address + path); err != nil {
					t.Fatal(err)
				}
				got, err := reporttest.Eval[[]string](b, `(async () => {`+string(axe)+`;
					for (const d of [...document.querySelectorAll("details")].slice(0, 12)) d.open = true;
					const lines = document.querySelector("#timelines");
					for (const key of lines ? ["ArrowDown", "ArrowDown", ">", ".", "[", ".", ".", "]"] : []) lines.dispatchEvent(new KeyboardEvent("keydown", { key }));
					await new Promise(requestAnimationFrame);
					const wide = document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : [];
					return (await axe.run({ resultTypes: ["violations"] })).violations.map(v => v.id + ": " + v.nodes.map(n => n.html).slice(0, 3).join(" ")).concat(wide);
				})()`)
				if err != nil || len(got) > 0 {
					t.Errorf("%s, %d pixels wide, %s: %q (%v)", path, width, scheme, got, err)
				}
			}
		}
	}
}

// TestPagesInFirefox does the same in one Firefox. A script that the test's server adds to each page sends what
// it saw, and goes on to the next page.
func TestPagesInFirefox(t *testing.T) {
	testlab.Long(t, "second browser")
	pagesInFirefox(t, pagesConfig(t), pageTests())
}

func pagesInFirefox(t *testing.T, config setup, tests []pageTest) {
	t.Helper()
	program := testlab.NeedProgram(t, "firefox-esr", "firefox")
	p, err := newPanel(config)
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan string, len(tests))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at := len(answers); r.URL.Path == "/probe.js" && at < len(tests) { // several tests may be of one page
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprintf(w, `(async () => {%s})().catch(e => "failed: " + e).then(body => fetch("/probe", { method: "POST", body })).then(a => a.text()).then(next => { if (next) location = next; });`,
				tests[at].code())
			return
		}
		if r.URL.Path == "/probe" {
			body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			select {
			case answers <- string(body):
				if n := len(answers); n < len(tests) {
					fmt.Fprint(w, tests[n].path)
				}
			default:
			}
			return
		}
		if !slices.ContainsFunc(tests, func(p pageTest) bool { return r.URL.Path == p.route() }) {
			p.ServeHTTP(w, r)
			return
		}
		page := httptest.NewRecorder()
		p.ServeHTTP(page, r)
		for name, values := range page.Header() {
			w.Header()[name] = values
		}
		fmt.Fprint(w, strings.Replace(page.Body.String(), "</body>", `<script type="module" src="/probe.js"></script></body>`, 1))
	}))
	t.Cleanup(s.Close)
	startFirefox(t, program, s.URL+tests[0].path)
	deadline := time.After(testlab.Hang)
	for len(answers) < len(tests) {
		select {
		case <-deadline:
			t.Fatalf("Firefox was on %d of %d pages", len(answers), len(tests))
		case <-time.After(50 * time.Millisecond):
		}
	}
	for _, p := range tests {
		if got := <-answers; plain(got) != p.expect() {
			t.Errorf("%s says\n%s\nwant\n%s", p.path, plain(got), p.expect())
		}
	}
}

// startFirefox opens an address in a Firefox that ends with the test.
func startFirefox(t *testing.T, program, address string) {
	t.Helper()
	profile := testlab.TempDir(t)
	prefs := `user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.normandy.enabled", false);
`
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(prefs), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless", "--no-remote", "--profile", profile, address)
	cmd.Env = append(os.Environ(), "HOME="+testlab.TempDir(t), "MOZ_CRASHREPORTER_DISABLE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its helpers too
		_ = cmd.Wait()
	})
}
