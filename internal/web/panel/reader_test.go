package panel

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// readerBench is a panel with all of its routes, whose box keeps each kind of secret, and a token of the scope read.
type readerBench struct {
	*httptest.Server
	api    *huma.OpenAPI
	reader string
	// secrets are the texts that nobody who only reads may see. names are what the parameters of paths are, by what
	// stands before them.
	secrets []string
	names   map[string][]string
}

func newReaderBench(t *testing.T) readerBench {
	t.Helper()
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	config, settings, _ := whole(t)
	*settings = "mail: {password: hush-config}\n"
	config.Queue = queueOf(config.Store, q, &fakeRunner{})
	config.Automation, config.Bisects, config.Suites = keeperOf(t, config), bisectsOf(t, config), suitesOf(t, config)
	config.Devices = func(context.Context) []Device {
		return []Device{{Name: "air", WiFi: &WiFi{SSID: "lab", Passphrase: "hush-wifi", QR: "WIFI:P:hush-wifi"}}}
	}
	config, fleet := headOf(t, config)
	p, err := newPanel(config)
	if err != nil {
		t.Fatal(err)
	}
	b := readerBench{Server: httptest.NewServer(p), api: p.OpenAPI()}
	t.Cleanup(b.Close)

	secret := lab.Plan{Name: "secret", Trials: 1, Arm: lab.Arm{Page: "https://bob:hushword@shop.example/cart"},
		Steps: []lab.Step{
			{Open: "https://bob:hushword@shop.example/cart"}, {Name: "log in", Steps: []lab.Step{{Type: "hush-typed"}}},
		},
		Users: []lab.PlanUser{{
			Name: "anna", Cookies: []lab.PlanCookie{{Name: "s", Value: lab.NewSecret("hush-cookie")}},
			Storage: map[string]lab.Secret{"k": lab.NewSecret("hush-storage")},
		}},
		Files: map[string][]byte{"a.js": []byte("hush-file")}}
	run := reporttest.Run(1, 2)
	run.ID, run.Name, run.Page, run.Plan = "20270101-000000-secret", "secret", secret.Page, secret
	run.Plan.Files = nil
	run.Warnings = []string{"the page " + secret.Page + " is slow"}
	for _, trial := range run.Trials {
		typed := trial.Events[0]
		typed.Name, typed.Detail = lab.EventText, "hush-typed"
		trial.Events = append(trial.Events, typed)
	}
	addRun(t, config.Store, run)
	dir := filepath.Join(config.Store.Root(), "runs", run.ID)
	attempt := "attempts/" + run.ID + "-1/" // as on a head
	for to, from := range map[string]string{
		"files/a.js": "", attempt + "files/a.js": "", attempt + "run.json": "run.json",
		attempt + "trials/001/trial.json":   "trials/001/trial.json",
		attempt + "trials/001/events.jsonl": "trials/001/events.jsonl",
	} {
		content, file := []byte("hush-file"), filepath.Join(dir, filepath.FromSlash(to))
		if from != "" {
			content, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(from)))
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o755)
		}
		if err == nil {
			err = os.WriteFile(file, content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	waiting, err := config.Queue.Add(ctx, secret, store.Once{})
	if err == nil {
		_, err = config.Automation.PutWorkflow(ctx, "checkout", secret, nil, "ada", automation.Expect{})
	}
	if err == nil {
		timing := automation.Timing{Workflow: "checkout", Every: "2h"}
		_, err = config.Automation.PutSchedule(ctx, "nightly", timing, "ada", automation.Expect{})
	}
	if err == nil {
		err = fleet.SetReference(ctx, Reference{Plan: secret, Every: "6h"})
	}
	if err != nil {
		t.Fatal(err)
	}
	fleet.boxes[0].Devices[0].Problem = "https://bob:hushword@shop.example/ does not answer"
	made := func(path, body string) (answer struct{ ID, Secret string }) {
		t.Helper()
		got := ask(t, b.Server, http.MethodPost, path, sending(token, body))
		if err := json.Unmarshal([]byte(got.text), &answer); err != nil || got.StatusCode >= 300 {
			t.Fatalf("POST %s = %d %s (%v); want that it is made", path, got.StatusCode, got.text, err)
		}
		return answer
	}
	hook := made("/api/v1/webhooks", `{"name":"chat","url":"http://127.0.0.1:1/hush-hook","events":["run.finished"]}`)
	bisect := made("/api/v1/bisects", `{"plan":{"page":"https://{revision}.a.test/"},"revisions":[{"name":"v0"},{"name":"v1"}],
		"hook":{"url":"http://127.0.0.1:1/hush-bisect"}}`)
	other := newToken(t, b.Server, "nightly", "run")
	b.reader = newToken(t, b.Server, "looks", "read").Secret
	b.secrets = []string{"hushword", "hush-", "aHVzaC", token, other.Secret, hook.Secret, bisect.Secret}
	b.names = map[string][]string{
		"/runs/": {run.ID, waiting}, "/trials/": {"1"}, "/frames/": {"0"}, "/archives/": {"shop.wacz", run.ID},
		"/workflows/": {"checkout"}, "/schedules/": {"nightly"}, "/alerts/": {"1"}, "/references/": {"1"}, "/webhooks/": {hook.ID},
		"/bisects/": {bisect.ID}, "/repositories/": {"shop"}, "/suites/": {"shop"}, "/suite-results/": {"sdone"},
		"/boxes/": {"lab-1"}, "/boxes/lab-1/devices/": {"virtual"}, "/devices/": {"air"}, "/tokens/": {other.ID},
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, _ := filepath.Rel(dir, path)
			b.names["/artifacts/"] = append(b.names["/artifacts/"], filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// secretIn is what stands around a secret in a text, or "".
func (b readerBench) secretIn(text string) string {
	for _, secret := range b.secrets {
		if i := strings.Index(text, secret); i >= 0 {
			return "…" + text[max(0, i-80):min(len(text), i+40)] + "…"
		}
	}
	return ""
}

// paths are those of an operation with names for its parameters.
func (b readerBench) paths(path string) (all []string) {
	before, rest, ok := strings.Cut(path, "{")
	if !ok {
		return []string{path}
	}
	_, rest, _ = strings.Cut(rest, "}")
	best := ""
	for prefix := range b.names {
		if strings.HasSuffix(before, prefix) && len(prefix) > len(best) {
			best = prefix
		}
	}
	for _, name := range append(b.names[best], "nope")[:max(1, len(b.names[best]))] {
		all = append(all, b.paths(before+name+rest)...)
	}
	return all
}

// choices are the values of the parameters of an operation that its description lists, one query for each.
func choices(op *huma.Operation) []string {
	queries := []string{""}
	for _, p := range op.Parameters {
		if p.In != "query" || p.Schema == nil {
			continue
		}
		for _, v := range p.Schema.Enum {
			queries = append(queries, "?"+p.Name+"="+url.QueryEscape(fmt.Sprint(v)))
		}
		if p.Name == "reference" {
			queries = append(queries, "?reference=20261121-091400-demo")
		}
		if p.Name == "name" || p.Name == "device" {
			queries = append(queries, "?"+p.Name+"=secret")
		}
	}
	return queries
}

// Whatever a token of the scope read asks for, no answer has a secret, and none is an error of ours.
func TestReadersSeeNoSecretsAnywhere(t *testing.T) {
	b := newReaderBench(t)
	seen := 0
	for path, item := range b.api.Paths {
		if item.Get == nil || path == "/api/v1/events" { // it does not end
			continue
		}
		for _, at := range b.paths(path) {
			if strings.HasSuffix(at, b.names["/runs/"][1]+"/events") { // of a run that waits, neither
				continue
			}
			for _, query := range choices(item.Get) {
				got := ask(t, b.Server, http.MethodGet, at+query, sending(b.reader, ""))
				if got.StatusCode >= 500 {
					t.Errorf("GET %s%s = %d %.300s; want no error of ours", at, query, got.StatusCode, got.text)
				}
				if got.StatusCode == http.StatusOK {
					seen++
				}
				if around := b.secretIn(got.text); around != "" {
					t.Errorf("GET %s%s = %d with the secret in %s", at, query, got.StatusCode, around)
				}
				if needs(http.MethodGet, at, nil) == credentials.Admin && got.StatusCode != http.StatusForbidden {
					t.Errorf("GET %s = %d; want 403", at, got.StatusCode)
				}
			}
		}
	}
	if seen < 60 {
		t.Errorf("%d answers were read; want at least 60", seen)
	}
	// Whoever may start the run gets all of it.
	events := "/api/v1/runs/" + b.names["/runs/"][0] + "/artifacts/trials/001/events.jsonl"
	for _, path := range []string{"/api/v1/workflows/checkout", events} {
		if got := ask(t, b.Server, http.MethodGet, path, sending(token, "")); !strings.Contains(got.text, "hush-typed") {
			t.Errorf("GET %s with the scope admin = %d %.300s; want what is typed", path, got.StatusCode, got.text)
		}
	}
}

// Drawn calls with a token of the scope read: nothing changes, and none is an error of ours.
func TestReadersChangeNothing(t *testing.T) {
	b := newReaderBench(t)
	state := func() string {
		var all strings.Builder
		for _, path := range []string{
			"runs", "runs/" + b.names["/runs/"][0] + "/pin", "workflows", "workflows/checkout", "schedules", "alerts", "references",
			"webhooks", "bisects", "suites", "suites/shop", "suite-results", "boxes", "reference", "archives", "retention", "config",
		} {
			all.WriteString(ask(t, b.Server, http.MethodGet, "/api/v1/"+path, sending(token, "")).text)
		}
		return all.String()
	}
	before := state()
	draw := rand.New(rand.NewPCG(47, 4))
	one := func(of ...string) string { return of[draw.IntN(len(of))] }
	var routes []string
	for path := range b.api.Paths {
		routes = append(routes, b.paths(path)...)
	}
	slices.Sort(routes)
	bodies := []string{
		"", "{}", "[]", "null", "{", "log: debug\n", "\x00\xff", `{"yaml":"trials: 3"}`, `{"page":"https://x.test/","device":"air"}`,
		`{"plan":{"page":"https://x.test/"}}`, `{"name":"x","scope":"admin"}`, `{"suite":"shop"}`, `{"maintenance":true}`,
		`{"delete":"all"}`, `{"do":"noise"}`, `{"note":"x"}`,
	}
	values := []string{
		"", "-1", "0", "1", "99999999999999999999", "NaN", "true", "csv", "*", "main@latest", "20261121-091400-demo",
		"0001-01-01T00:00:00Z", "2026-11-21T09:14:00Z", "9999-12-31T23:59:59-14:00", "%00", "%ff", "..%2f..%2ftoken",
		"x'%20OR%201=1--", strings.Repeat("9", 2000),
	}
	for range 1500 {
		path := one(routes...)
		if path == "/api/v1/session" || path == "/api/v1/events" || strings.HasSuffix(path, "/events") {
			continue
		}
		method := one("GET", "GET", "GET", "HEAD", "POST", "POST", "PUT", "PUT", "PATCH", "DELETE", "OPTIONS", "post", "MKCOL")
		switch draw.IntN(8) { // another spelling of the path
		case 0:
			path += "/"
		case 1:
			path = "/" + path
		case 2:
			path = strings.Replace(path, "/api/v1/", "/api/v1/./", 1)
		case 3:
			other := one("/api/v1/runs/x/%2e%2e/%2e%2e/", "/API/v1/", "/api%2fv1/", "/api/v1/devices%2fx%2finput/")
			path = strings.Replace(path, "/api/v1/", other, 1)
		case 4:
			i := strings.LastIndexByte(path, '/') + 1
			path = path[:i] + one(values...) + one("", "/driver", "%2fdriver", "%2finput", "%2fannotations", "/errand")
		}
		query := ""
		if item := b.api.Paths[path]; item != nil && item.Get != nil && draw.IntN(2) == 0 {
			for _, p := range item.Get.Parameters {
				if p.In == "query" && draw.IntN(2) == 0 {
					query += "&" + p.Name + "=" + one(values...)
				}
			}
		} else if draw.IntN(3) == 0 {
			query = "&files=" + one("true", "false", "0", "false&files=true") + "&force=true"
		}
		if query != "" {
			query = "?" + query[1:]
		}
		body := one(bodies...)
		got := ask(t, b.Server, method, path+query, func(r *http.Request) {
			sending(b.reader, body)(r)
			for _, name := range []string{"X-HTTP-Method-Override", "X-Original-URL", "X-Forwarded-For", "If-Match"} {
				if draw.IntN(6) == 0 {
					r.Header.Set(name, one("DELETE", "PUT", "/api/v1/config", "127.0.0.1", "*"))
				}
			}
		})
		reads := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
		asked := fmt.Sprintf("%s %.200s%.300s %q = %d", method, path, query, body, got.StatusCode)
		switch {
		case got.StatusCode >= 500:
			t.Errorf("%s %.300s; want no error of ours", asked, got.text)
		case !reads && got.StatusCode < 300:
			t.Errorf("%s %.300s; want it refused", asked, got.text)
		case b.secretIn(got.text) != "":
			t.Errorf("%s with the secret in %s", asked, b.secretIn(got.text))
		}
	}
	if after := state(); after != before {
		t.Errorf("the box's state after the calls is\n%s\nwant what it was:\n%s", after, before)
	}
}
