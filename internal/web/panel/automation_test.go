package panel

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// keeperOf keeps what a panel's box does by itself. Its webhooks may call 127.0.0.1, and its name
// server does not answer.
func keeperOf(t *testing.T, c setup) *automation.Keeper {
	t.Helper()
	k, err := automation.Open(t.Context(), automation.Config{
		File: filepath.Join(t.TempDir(), "automation.db"), Runs: c.Queue, Store: c.Store, Now: testNow,
		Sender: webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}, Resolver: netip.MustParseAddrPort("127.0.0.1:1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// call is a request with a token, a body and one more header, and what is wanted of the answer.
type call struct {
	method, path, header, body string
	status                     int
	within                     string
}

func (c call) make(t *testing.T, a automated) string {
	t.Helper()
	got := a.ask(t, c)
	if got.StatusCode != c.status || !strings.Contains(got.text, c.within) {
		t.Errorf("%s %s %s %.200s = %d %.400s; want %d with %q", c.method, c.path, c.header, c.body, got.StatusCode, got.text, c.status, c.within)
	}
	return got.text
}

// automated is a panel with a keeper.
type automated struct {
	askPath func(t *testing.T, method, path string, change func(*http.Request)) reply
	config  setup
}

func (a automated) ask(t *testing.T, c call) reply {
	t.Helper()
	return a.askPath(t, c.method, c.path, func(r *http.Request) {
		sending(token, c.body)(r)
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
	})
}

func newAutomated(t *testing.T) automated {
	t.Helper()
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	config := setup{Store: newStore(t), Token: lab.NewSecret(token)}
	config.Queue = queueOf(config.Store, q, &fakeRunner{})
	config.Automation = keeperOf(t, config)
	s := newServer(t, config)
	return automated{func(t *testing.T, method, path string, change func(*http.Request)) reply {
		t.Helper()
		return ask(t, s, method, path, change)
	}, config}
}

func TestWorkflowRoutes(t *testing.T) {
	a := newAutomated(t)
	const at = "/api/v1/workflows/checkout"
	for _, c := range []call{
		{"GET", at, "", "", 404, `there is no workflow \"checkout\"`},
		{"PUT", at, "If-Match: \"1\"", `{"plan":{"page":"https://a.test/"}}`, 412, "read it again"},
		{"PUT", at, "", `{"plan":{"page":"https://a.test/","trials":4},"tags":["team-a"]}`, 200, `"version":1`},
		{"PUT", at, "If-None-Match: *", `{"plan":{"page":"https://b.test/"}}`, 412, "If-Match"},
		{"PUT", at, "", `{"plan":{"page":"https://b.test/"}}`, 412, "If-Match"},
		{"PUT", at, "If-Match: W/x", `{"plan":{"page":"https://b.test/"}}`, 412, "no ETag"},
		{"PUT", at, "If-Match: \"1\"", `{"plan":{"page":"https://b.test/","trials":5,"treatment":{"link":"lte"}},"tags":["team-a"]}`, 200, `"version":2`},
		{"GET", at, "", "", 200, `"trials":5`},
		{"GET", at + "?version=1", "", "", 200, `"trials":4`},
		// A timing that is left out stays left out: of two addresses it is another one than of one.
		{"PUT", "/api/v1/workflows/two", "", `{"plan":{"page":"https://a.test/","treatment":{"page":"https://b.test/"}}}`, 200, `"limit_s":60,"seed":1,"treatment"`},
		{"PUT", "/api/v1/workflows/said", "", `{"plan":{"page":"https://a.test/","timing":"recorded"}}`, 200, `"timing":"recorded"`},
		{"GET", at + "?version=9", "", "", 404, "only the newest versions"},
		{"GET", "/api/v1/workflows", "", "", 200, `"tags":["team-a"]`},
		// What is wrong is said with its place, as for a run.
		{"PUT", "/api/v1/workflows/x", "", `{"plan":{"page":"https://a.test/","trails":4}}`, 422, "body.plan.trails"},
		{"PUT", "/api/v1/workflows/x", "", `{"plan":{"trials":4}}`, 422, "a page is missing"},
		{"PUT", "/api/v1/workflows/x", "", `{"plan":{"page":"https://a.test/","from":{"workflow":"y","version":1}}}`, 422, "set by the box alone"},
		{"PUT", "/api/v1/workflows/X", "", `{"plan":{"page":"https://a.test/"}}`, 422, "path.name"},
		{"PUT", "/api/v1/workflows/..", "", `{"plan":{"page":"https://a.test/"}}`, 422, "path.name"},
		{"PUT", "/api/v1/workflows/x", "", `{"plan":{"page":"https://a.test/"},"tags":["a b"]}`, 422, "tags"},
		{"PUT", "/api/v1/workflows/x", "", `{"plan":{"page":"https://a.test/","name":"` + strings.Repeat("x", maxPlanBody) + `"}}`, 413, ""},
		// Runs of it.
		{"POST", at + "/runs", "", `{"change":{"trials":7,"treatment":null}}`, 202, `"state":"queued"`},
		{"POST", at + "/runs", "", "", 202, `"state":"queued"`},
		{"POST", at + "/runs", "", `{"version":1}`, 202, `"state":"queued"`},
		{"POST", at + "/runs", "", `{"change":{"trials":0}}`, 422, "body.change.trials"},
		{"POST", at + "/runs", "", `{"change":{"steps":[{"colour":1}]}}`, 422, "body.change.steps"},
		{"POST", at + "/runs", "", `{"change":{"trails":3}}`, 422, "body.change.trails"},
		{"POST", at + "/runs", "", `{"change":{"archive":"missing.wacz"}}`, 422, "there is no archive"},
		{"POST", at + "/runs", "", `{"version":9}`, 404, "newest versions"},
		{"POST", "/api/v1/workflows/nope/runs", "", "", 404, "no workflow"},
		{"POST", "/api/v1/runs", "", `{"page":"https://a.test/","from":{"workflow":"checkout","version":1}}`, 422, "only the box sets it"},
		{"DELETE", at, "If-Match: \"1\"", "", 412, "read it again"},
	} {
		c.make(t, a)
	}
	jobs, err := a.config.Queue.List(t.Context())
	if err != nil || len(jobs) != 3 {
		t.Fatalf("%d runs wait (%v); want three", len(jobs), err)
	}
	for i, want := range []string{"1 4 false false", "2 5 true false", "2 7 false true"} { // the newest first
		p := jobs[i].Plan
		got := strings.Join([]string{strconv.Itoa(p.From.Version), strconv.Itoa(p.Trials), strconv.FormatBool(p.Treatment != nil),
			strconv.FormatBool(p.From.Changed)}, " ")
		if got != want || p.From.Workflow != "checkout" {
			t.Errorf("run %d has version, trials, treatment, changed = %s of %q; want %s", i, got, p.From.Workflow, want)
		}
	}
	call{"GET", "/api/v1/runs/" + jobs[0].ID, "", "", 200, `"from":{"workflow":"checkout","version":1}`}.make(t, a)
	// A request that is made again starts one run.
	first := call{"POST", at + "/runs", "Idempotency-Key: k1", `{}`, 202, ""}.make(t, a)
	if again := (call{"POST", at + "/runs", "Idempotency-Key: k1", `{}`, 202, ""}).make(t, a); again != first {
		t.Errorf("the same key = %s; want %s", again, first)
	}
	call{"POST", at + "/runs", "Idempotency-Key: k1", `{"version":1}`, 422, "another request"}.make(t, a)
	call{"DELETE", at, "If-Match: \"2\"", "", 204, ""}.make(t, a)
}

// A seed that is larger than the numbers of JSON hold exactly stays as it is.
func TestLargeSeedOfAWorkflow(t *testing.T) {
	a := newAutomated(t)
	call{"PUT", "/api/v1/workflows/w", "", `{"plan":{"page":"https://a.test/","seed":9007199254740993}}`, 200, "9007199254740993"}.make(t, a)
	call{"PUT", "/api/v1/workflows/many", "", `{"plan":{"pages":[{"name":"a","page":"https://a.test/"},{"name":"b","page":"https://b.test/"}]}}`, 200, "https://b.test/"}.make(t, a)
	call{"POST", "/api/v1/workflows/w/runs", "", `{"change":{"trials":2}}`, 202, ""}.make(t, a)
	jobs, err := a.config.Queue.List(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].Plan.Seed != 9007199254740993 {
		t.Errorf("the run's seed is %+v (%v); want 9007199254740993", jobs, err)
	}
}

func TestScheduleRoutes(t *testing.T) {
	a := newAutomated(t)
	const at = "/api/v1/schedules/nightly"
	for _, c := range []call{
		{"PUT", at, "", `{"workflow":"checkout","every":"2h"}`, 422, "keep its plan first"},
		{"PUT", "/api/v1/workflows/checkout", "", `{"plan":{"page":"https://a.test/"}}`, 200, ""},
		{"PUT", at, "", `{"workflow":"checkout","cron":"30 2 * * 1-5","zone":"Europe/Berlin"}`, 200, `"next":"2027-01-18T01:30:00Z"`},
		{"PUT", at, "", `{"workflow":"checkout","every":"2h"}`, 412, "If-Match"},
		{"PUT", at, "If-Match: \"1\"", `{"workflow":"checkout","every":"2h","paused":true}`, 200, `"revision":2`},
		{"GET", at, "", "", 200, `"paused":true`},
		{"GET", "/api/v1/schedules", "", "", 200, `"name":"nightly"`},
		{"GET", at + "/firings", "", "", 200, `"firings":[]`},
		{"GET", "/api/v1/schedules/nope/firings", "", "", 404, "no schedule"},
		{"PUT", "/api/v1/schedules/x", "", `{"workflow":"checkout"}`, 422, "say when"},
		{"PUT", "/api/v1/schedules/x", "", `{"workflow":"checkout","cron":"TZ=0"}`, 422, "five fields"},
		{"PUT", "/api/v1/schedules/x", "", `{"workflow":"checkout","every":"1s"}`, 422, "1m to 31d"},
		{"PUT", "/api/v1/schedules/x", "", `{"workflow":"checkout","cron":"* * * * *","zone":"../../etc/passwd"}`, 422, "zone"},
		{"DELETE", "/api/v1/workflows/checkout", "", "", 409, "a schedule starts it"},
		{"DELETE", at, "", "", 204, ""},
		{"DELETE", at, "", "", 404, "no schedule"},
	} {
		c.make(t, a)
	}
}

func TestWebhookRoutes(t *testing.T) {
	a := newAutomated(t)
	for _, c := range []call{
		{"POST", "/api/v1/webhooks", "", `{"name":"x","url":"https://169.254.169.254/latest/meta-data"}`, 422, "link-local"},
		{"POST", "/api/v1/webhooks", "", `{"name":"x","url":"https://[::ffff:10.0.0.1]/"}`, 422, "private network"},
		{"POST", "/api/v1/webhooks", "", `{"name":"x","url":"http://hooks.example/"}`, 422, "use https"},
		{"POST", "/api/v1/webhooks", "", `{"name":"x","url":"file:///etc/passwd"}`, 422, "must begin with https"},
		{"POST", "/api/v1/webhooks", "", `{"name":"x","url":"https://hooks.example/","events":["nope"]}`, 422, "there are: run.finished"},
		{"POST", "/api/v1/webhooks", "", `{"name":"x","url":"https://hooks.example/","secret":"short"}`, 422, "secret"},
		{"POST", "/api/v1/webhooks", "", `{"name":"x","url":"https://hooks.example/` + strings.Repeat("y", 2000) + `"}`, 422, "body.url"},
		{"GET", "/api/v1/webhooks", "", "", 200, `"webhooks":[]`},
		{"POST", "/api/v1/webhooks/nope/test", "", "", 404, "no webhook"},
		{"GET", "/api/v1/deliveries?state=lost", "", "", 422, "query.state"},
	} {
		c.make(t, a)
	}
	var made NewWebhook
	text := call{"POST", "/api/v1/webhooks", "", `{"name":"chat","url":"https://hooks.example/s3cr3t","events":["alert.raised"]}`, 201, "whsec_"}.make(t, a)
	if err := json.Unmarshal([]byte(text), &made); err != nil || webhook.CheckSecret(lab.NewSecret(made.Secret)) != nil {
		t.Fatalf("the answer has the secret %q (%v)", made.Secret, err)
	}
	at := "/api/v1/webhooks/" + made.ID
	for _, c := range []call{
		{"POST", "/api/v1/webhooks", "", `{"name":"chat","url":"https://hooks.example/"}`, 409, "already"},
		{"PUT", at, "", `{"paused":true}`, 200, `"paused":true`},
		{"POST", at + "/test", "", "", 202, `"state":"waiting"`},
		{"GET", "/api/v1/deliveries?webhook=" + made.ID, "", "", 200, `"event":"webhook.test"`},
	} {
		if got := c.make(t, a); strings.Contains(got, made.Secret) {
			t.Errorf("%s %s shows the secret again", c.method, c.path)
		}
	}
	if list := (call{"GET", "/api/v1/webhooks", "", "", 200, "chat"}).make(t, a); strings.Contains(list, "whsec_") {
		t.Errorf("the list shows the secret: %s", list)
	}
	log := call{"GET", "/api/v1/audit", "", "", 200, "POST /api/v1/webhooks: chat"}.make(t, a)
	if strings.Contains(log, "s3cr3t") || strings.Contains(log, "whsec_") {
		t.Errorf("the log shows an address or a secret: %s", log)
	}
	call{"DELETE", at, "", "", 204, ""}.make(t, a)
	call{"GET", "/api/v1/deliveries?state=failed", "", "", 200, "the webhook was removed"}.make(t, a)
}

func TestAlertRoutes(t *testing.T) {
	a := newAutomated(t)
	daily(t, a.config.Store, 30, 20)
	if err := a.config.Automation.Tell(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list struct{ Alerts []automation.Alert }
	text := call{"GET", "/api/v1/alerts", "", "", 200, `"trend":"slower"`}.make(t, a)
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Alerts) != 1 || len(list.Alerts[0].Rows) != 1 {
		t.Fatalf("%d alerts (%v); want one, with a row for each of two metrics: %s", len(list.Alerts), err, text)
	}
	first := list.Alerts[0]
	at := "/api/v1/alerts/" + strconv.FormatInt(first.ID, 10)
	for _, c := range []call{
		{"GET", at, "", "", 200, `"name":"browser"`},
		{"GET", "/api/v1/alerts?series=" + first.SeriesKey + "&limit=1", "", "", 200, first.SeriesKey},
		{"GET", "/api/v1/alerts?series=nope", "", "", 422, "query.series"},
		{"GET", "/api/v1/alerts/99", "", "", 404, "no alert 99"},
		{"GET", "/api/v1/alerts/-1", "", "", 422, "path.id"},
		{"POST", at + "/acknowledgement", "", `{"note":"` + strings.Repeat("x", 1001) + `"}`, 422, "body.note"},
		{"POST", at + "/acknowledgement", "", `{"tags":["a b"]}`, 422, "tags"},
		{"PATCH", at, "", `{"bug":"javascript:alert(1)"}`, 422, "bug"},
		{"PATCH", "/api/v1/alerts/2", "", `{"owner":"ada"}`, 200, `"id":1,`}, // by its row
		{"POST", at + "/acknowledgement", "", `{"note":"as planned","tags":["planned"]}`, 200, `"by":"box"`},
		{"POST", at + "/acknowledgement", "", `{"note":"me too"}`, 409, "acknowledged already"},
		{"GET", "/api/v1/alerts?state=all&tag=planned", "", "", 200, `"note":"as planned"`},
	} {
		c.make(t, a)
	}
	text = call{"GET", "/api/v1/alerts", "", "", 200, ""}.make(t, a)
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Alerts) != 0 {
		t.Errorf("%d open alerts (%v) after it was acknowledged; want none", len(list.Alerts), err)
	}
}

// An open alert stands on the history page of its series, once, and leads to where it is answered.
func TestAlertsInBrowser(t *testing.T) {
	b := browsers.New(t)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	config := setup{Store: emptyStore(t)}
	config.Queue = queueOf(config.Store, q, &fakeRunner{})
	config.Automation = keeperOf(t, config)
	daily(t, config.Store, 30, 20)
	if err := config.Automation.Tell(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, config)
	for width, scheme := range map[int64]string{1100: "light", 390: "dark"} {
		if err := b.View(width, 900, scheme); err != nil {
			t.Fatal(err)
		}
		if err := b.Open(s.URL + "/history"); err != nil {
			t.Fatal(err)
		}
		got, err := reporttest.Eval[string](b, `(async () => {`+until+`
			await until(() => document.querySelector(".alerts a"));
			const items = document.querySelectorAll(".alerts li");
			return [items.length, items[0].querySelector("a").getAttribute("href"), document.documentElement.scrollWidth <= innerWidth].join(" ");
		})()`)
		if want := "1 /alerts?show=open#alert-1 true"; err != nil || got != want {
			t.Errorf("%d pixels wide: %q (%v); want %q", width, got, err, want)
		}
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

// References over REST: the run of one is not deleted, and a comparison finds it by branch.
func TestReferenceRoutes(t *testing.T) {
	a := newAutomated(t)
	run := reporttest.Run(1, 12)
	run.ID = "20261121-091400-old"
	addRun(t, a.config.Store, run)
	later := reporttest.Run(2, 12)
	later.ID = "20261122-091400-new"
	addRun(t, a.config.Store, later)
	const at = "/api/v1/references"
	for _, c := range []call{
		{"GET", at, "", "", 200, `"references":[]`},
		{"POST", at, "", `{"branch":"main","run":"nope"}`, 404, "nope"},
		{"POST", at, "", `{"branch":"../x","run":"20261121-091400-old"}`, 422, "branch"},
		{"POST", at, "", `{"branch":"release/4.2","run":"20261121-091400-old","revision":"3f1c2ab"}`, 201, `"version":1`},
		{"GET", at + "?branch=release%2F4.2&name=demo", "", "", 200, `"revision":"3f1c2ab"`},
		{"GET", at + "?branch=main", "", "", 200, `"references":[]`},
		{"GET", "/api/v1/runs/20261122-091400-new/comparison?reference=release%2F4.2@latest", "", "", 200, `"named":"release/4.2@1"`},
		{"GET", "/api/v1/runs/20261122-091400-new/comparison?reference=main@latest", "", "", 422, "has no reference yet"},
		{"DELETE", "/api/v1/runs/20261121-091400-old?files=true", "", "", 409, "it is the reference release/4.2@1"},
		{"DELETE", at + "/9", "", "", 404, "no reference 9"},
		{"DELETE", at + "/1", "", "", 204, ""},
		{"DELETE", "/api/v1/runs/20261121-091400-old?files=true", "", "", 204, ""},
	} {
		c.make(t, a)
	}
}
