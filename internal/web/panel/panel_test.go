package panel

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/report/reporttest"
)

// browsers is the Chromium of this package's tests.
var browsers reporttest.Browsers

func TestMain(m *testing.M) { testlab.NoLeaks(m, browsers.End) }

const token = "correct-horse-battery"

// newStore makes a store with one finished run and its report.
func newStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	addRun(t, s, reporttest.Run(1, 2))
	return s
}

func addRun(t *testing.T, s *store.Store, run *lab.Run) {
	t.Helper()
	f, err := store.Create(s.Root(), run)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := reporttest.Files(f.Path(), run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := report.Write(f.Path(), run); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(run); err != nil {
		t.Fatal(err)
	}
}

func newServer(t testing.TB, c setup) *httptest.Server {
	t.Helper()
	p, err := newPanel(c)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return s
}

type reply struct {
	*http.Response
	text string
}

func ask(t testing.TB, s *httptest.Server, method, path string, change func(*http.Request)) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The path is sent as it is, without the client's normalisation.
	if rest, _, _ := strings.Cut(path, "?"); strings.Contains(path, "..") || strings.Contains(path, "%") {
		r.URL.Opaque = "//" + r.URL.Host + rest
	}
	if change != nil {
		change(r)
	}
	client := s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer, string(b)}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestHandlers(t *testing.T) {
	s := newServer(t, setup{Store: newStore(t), Version: "v1"})
	const run = "20261121-091400-demo"
	for _, c := range []struct {
		name, path   string
		change       func(*http.Request)
		status       int
		kind, within string
	}{
		{"health", "/api/v1/health", nil, 200, "application/json", `"version":"v1"`},
		{"list", "/api/v1/runs", nil, 200, "application/json", `"id":"20261121-091400-demo"`},
		{"list after the last", "/api/v1/runs?before=" + run, nil, 200, "application/json", `"runs":[]`},
		{"bad limit", "/api/v1/runs?limit=0", nil, 422, "application/problem+json", "query.limit"},
		{"series", "/api/v1/history", nil, 200, "application/json", `"name":"demo","page":"https://www.shop.example/","link":"4g","count":1`},
		{"history", "/api/v1/history?name=demo&metric=unique_fps,speed_index_ms", nil, 200, "application/json",
			`"text":"1 run so far: a change can be told from chance from 10 runs on"`},
		{"no such series", "/api/v1/history?name=nope", nil, 404, "application/problem+json", "lists the series"},
		{"no such metric", "/api/v1/history?name=demo&metric=colour", nil, 422, "application/problem+json", "there are: speed_index_ms, "},
		{"bad limit of a history", "/api/v1/history?limit=501", nil, 422, "application/problem+json", "query.limit"},
		{"bad series", "/api/v1/history?series=x", nil, 422, "application/problem+json", "query.series"},
		{"long name", "/api/v1/history?name=" + strings.Repeat("n", 1001), nil, 422, "application/problem+json", "query.name"},
		{"many metrics", "/api/v1/history?name=demo&metric=a,b,c,d,e,f,g,h,i", nil, 422, "application/problem+json", "query.metric"},
		{"run", "/api/v1/runs/" + run, nil, 200, "application/json", `"final_frame_sha256"`},
		{"no run", "/api/v1/runs/nope", nil, 404, "application/problem+json", `there is no run \"nope\"`},
		{"strange ID", "/api/v1/runs/..", nil, 422, "application/problem+json", "path.id"},
		{"report", "/runs/" + run + "/report.html", nil, 200, "text/html; charset=utf-8", "www.shop.example"},
		{"run's page", "/runs/" + run, nil, 303, "", ""},
		{"artifact", "/api/v1/runs/" + run + "/artifacts/report.json", nil, 200, "application/json", store.ReportSchema},
		{"files", "/api/v1/runs/" + run + "/artifacts", nil, 200, "application/json", `{"files":[{"path":"report.html","bytes":`},
		{"files of no run", "/api/v1/runs/nope/artifacts", nil, 404, "application/problem+json", "has no files"},
		{"lines", "/api/v1/runs/" + run + "/artifacts/trials/001/replay.jsonl", nil, 200, "application/jsonl", "GET"},
		{"picture", "/runs/" + run + "/trials/001/heatmap.png", nil, 200, "image/png", "PNG"},
		{"reel", "/runs/" + run + "/trials/001/screen.reel", nil, 200, "application/octet-stream", "reel"},
		{"range", "/runs/" + run + "/trials/001/screen.reel", header("Range", "bytes=1-2"), 206, "application/octet-stream", "ee"},
		{"range outside", "/runs/" + run + "/trials/001/screen.reel", header("Range", "bytes=100-"), 416, "", ""},
		{"folder", "/runs/" + run + "/trials/001", nil, 404, "application/problem+json", ""},
		{"lock", "/runs/" + run + "/.lock", nil, 404, "application/problem+json", ""},
		{"no such file", "/runs/" + run + "/nope", nil, 404, "application/problem+json", `the run has no file \"nope\"`},
		{"page", "/", nil, 200, "text/html", "<title>"},
		{"history's page", "/history", nil, 200, "text/html", "<title>History"},
		{"script", "/assets/app.js", nil, 200, "text/javascript", "EventSource"},
		{"no such script", "/assets/nope.js", nil, 404, "application/problem+json", ""},
		{"no such page", "/nope", nil, 404, "application/problem+json", ""},
		{"OpenAPI", "/openapi.json", nil, 200, "application/openapi+json", `"openapi":"3.1.0"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, s, http.MethodGet, c.path, c.change)
			if got.StatusCode != c.status || c.kind != "" && got.Header.Get("Content-Type") != c.kind ||
				!strings.Contains(got.text, c.within) {
				t.Errorf(
					"%d %q, want %d %q with %q; body %.300s",
					got.StatusCode,
					got.Header.Get("Content-Type"),
					c.status,
					c.kind,
					c.within,
					got.text,
				)
			}
			if got.Header.Get("X-Content-Type-Options") != "nosniff" || got.Header.Get("Content-Security-Policy") == "" {
				t.Error("a security header is missing")
			}
		})
	}
	t.Run("not changed", func(t *testing.T) {
		path := "/runs/" + run + "/report.json"
		first := ask(t, s, http.MethodGet, path, nil)
		if got := ask(t, s, http.MethodGet, path, header("If-None-Match", first.Header.Get("ETag"))); got.StatusCode != http.StatusNotModified {
			t.Errorf("%d, want 304", got.StatusCode)
		}
	})
	t.Run("no such method", func(t *testing.T) {
		if got := ask(t, s, http.MethodPost, "/api/v1/runs", nil); got.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%d, want 405", got.StatusCode)
		}
	})
}

func TestNothingOutsideARunIsServed(t *testing.T) {
	st := newStore(t)
	const secret = "the secret"
	outside := filepath.Join(st.Root(), "secret.txt")
	if err := os.WriteFile(outside, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	const run = "20261121-091400-demo"
	dir := filepath.Join(st.Root(), "runs", run)
	for name, target := range map[string]string{"absolute": outside, "relative": "../../secret.txt", "up": "../.."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// The folder of a run is itself a symbolic link.
	if err := os.Symlink(st.Root(), filepath.Join(st.Root(), "runs", "linked")); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, setup{Store: st})
	for _, base := range []string{"/runs/" + run + "/", "/api/v1/runs/" + run + "/artifacts/", "/runs/linked/", "/runs/../"} {
		for _, path := range []string{
			"../../secret.txt", "../../../secret.txt", "trials/../../../secret.txt", "..%2f..%2fsecret.txt", "%2e%2e/%2e%2e/secret.txt",
			"..%5c..%5csecret.txt",
			"%252e%252e/%252e%252e/secret.txt", "absolute", "relative", "up/secret.txt", "secret.txt", "/etc/passwd", "%2fetc%2fpasswd",
			"../../index.db", "a%00b", "", ".", "%ff",
		} {
			got := ask(t, s, http.MethodGet, base+path, nil)
			if got.StatusCode < 300 || strings.Contains(got.text, secret) || strings.Contains(got.text, "SQLite") ||
				strings.Contains(got.text, "root:") {
				t.Errorf("%s%s: %d %.100q", base, path, got.StatusCode, got.text)
			}
		}
	}
}

// HEAD answers like GET, without the body (RFC 9110, section 9.3.2).
func TestHead(t *testing.T) {
	s := newServer(t, setup{Store: newStore(t)})
	const run = "20261121-091400-demo"
	for _, path := range []string{
		"/", "/assets/app.js", "/openapi.json", "/api/v1/health", "/api/v1/runs", "/api/v1/runs/" + run, "/api/v1/runs/nope", "/nope",
		"/api/v1/events", "/api/v1/runs/" + run + "/events", "/runs/" + run + "/report.html", "/api/v1/runs/" + run + "/artifacts/report.json",
	} {
		head := ask(t, s, http.MethodHead, path, nil)
		if head.text != "" {
			t.Errorf("HEAD %s has a body: %.80q", path, head.text)
		}
		if path == "/api/v1/events" { // a GET of it would not end
			if head.StatusCode != 200 || head.Header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("HEAD %s: %d %v", path, head.StatusCode, head.Header)
			}
			continue
		}
		get := ask(t, s, http.MethodGet, path, nil)
		if head.StatusCode != get.StatusCode || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("HEAD %s: %d %q, GET: %d %q", path, head.StatusCode, head.Header.Get("Content-Type"), get.StatusCode,
				get.Header.Get("Content-Type"))
		}
		if head.ContentLength >= 0 && head.ContentLength != int64(len(get.text)) {
			t.Errorf("HEAD %s: %d bytes, GET has %d", path, head.ContentLength, len(get.text))
		}
	}
}

func TestHealthOfAHungPart(t *testing.T) {
	s := newServer(t, setup{Store: newStore(t), Version: "v1",
		Parts: func() []Part { return []Part{{"capture", false, 21000}, {"panel", true, 3}} }})
	got := ask(t, s, http.MethodGet, "/api/v1/health", nil)
	want := `{"status":"failing","version":"v1","token":false,"starts":false,"joins":false,"parts":[{"name":"capture","ok":false,"ago_ms":21000},{"name":"panel","ok":true,"ago_ms":3}]}`
	if got.StatusCode != http.StatusServiceUnavailable || strings.TrimSpace(got.text) != want {
		t.Errorf("GET health = %d %s; want 503 %s", got.StatusCode, got.text, want)
	}
}

func TestToken(t *testing.T) {
	s := newServer(t, setup{Store: newStore(t), Token: lab.NewSecret(token)})
	const run = "/runs/20261121-091400-demo/report.json"
	for _, c := range []struct {
		name, path string
		change     func(*http.Request)
		status     int
	}{
		{"none", "/api/v1/runs", nil, 401},
		{"wrong", "/api/v1/runs", header("Authorization", "Bearer nope"), 401},
		{"empty", "/api/v1/runs", header("Authorization", "Bearer "), 401},
		{"right", "/api/v1/runs", header("Authorization", "Bearer "+token), 200},
		{"file without", run, nil, 401},
		{"file with", run, header("Authorization", "Bearer "+token), 200},
		{"file of a browser without", run, header("Accept", "text/html"), 303},
		{"events without", "/api/v1/events", nil, 401},
		{"cookie of the token itself", "/api/v1/runs", header("Cookie", cookieName+"="+token), 401},
		{"health", "/api/v1/health", nil, 200},
		{"page", "/", nil, 200},
		{"OpenAPI", "/openapi.json", nil, 200},
		{"unknown paths", "/nope", nil, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ask(t, s, http.MethodGet, c.path, c.change); got.StatusCode != c.status {
				t.Errorf("%d, want %d: %s", got.StatusCode, c.status, got.text)
			}
		})
	}
	t.Run("session", func(t *testing.T) {
		body := func(text string) func(*http.Request) {
			return func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(text)) }
		}
		if got := ask(t, s, http.MethodPost, "/api/v1/session", body("nope")); got.StatusCode != 401 || got.Header.Get("Set-Cookie") != "" {
			t.Errorf("log-in with a wrong token = %d, cookie %q; want 401 and no cookie", got.StatusCode, got.Header.Get("Set-Cookie"))
		}
		got := ask(t, s, http.MethodPost, "/api/v1/session", body(token))
		cookies := got.Cookies()
		if got.StatusCode != 204 || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
			t.Fatalf("log-in = %d, cookies %v; want 204 and one HttpOnly, SameSite=Strict cookie", got.StatusCode, cookies)
		}
		if got := ask(t, s, http.MethodGet, run, func(r *http.Request) { r.AddCookie(cookies[0]) }); got.StatusCode != 200 {
			t.Errorf("with the cookie: %d", got.StatusCode)
		}
	})
}

func TestHostAndOrigin(t *testing.T) {
	s := newServer(t, setup{Store: newStore(t), Hosts: []string{"box.lan"}})
	for host, status := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LOCALHOST.": 200, "127.0.0.1:1": 200, "[::1]:8080": 200, "192.0.2.7": 200, "box.lan": 200,
		"Box.LAN:80":   200,
		"evil.example": 421, "evil.example:8080": 421, "localhost.evil.example": 421, "box.lan.evil.example": 421, "127.0.0.1.evil.example": 421,
	} {
		if got := ask(t, s, http.MethodGet, "/api/v1/health", func(r *http.Request) { r.Host = host }); got.StatusCode != status {
			t.Errorf("Host %s: %d, want %d", host, got.StatusCode, status)
		}
	}
	if got := ask(t, s, http.MethodDelete, "/api/v1/session", header("Sec-Fetch-Site", "cross-site")); got.StatusCode != 403 {
		t.Errorf("a write from another origin: %d, want 403", got.StatusCode)
	}
	// Without a token only requests from this machine are answered, whatever serves the handler.
	p, err := newPanel(setup{Store: newStore(t)})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/v1/health", nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("a request to an unknown local address: %d, want 403", w.Code)
	}
}

func TestNewRefuses(t *testing.T) {
	st := newStore(t)
	for name, c := range map[string]setup{"no store": {}, "short token": {Store: st, Token: lab.NewSecret("short")}} {
		if _, err := newPanel(c); err == nil {
			t.Errorf("New() with %s succeeded; want an error", name)
		}
	}
}

// A hostile run.json is answered with what is wrong with it.
func TestHostileRun(t *testing.T) {
	st := newStore(t)
	dir := filepath.Join(st.Root(), "runs", "evil")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte(strings.Repeat("[", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, setup{Store: st})
	if got := ask(t, s, http.MethodGet, "/api/v1/runs/evil", nil); got.StatusCode != 422 || !strings.Contains(got.text, "nested deeper") {
		t.Errorf("GET of a hostile run = %d %s; want 422 and the reason", got.StatusCode, got.text)
	}
	if got := ask(t, s, http.MethodGet, "/api/v1/runs", nil); got.StatusCode != 200 ||
		!strings.Contains(got.text, `"state":"interrupted"`) {
		t.Errorf("GET runs = %d %s; want 200 with the hostile run as interrupted", got.StatusCode, got.text)
	}
}

func TestOpenAPI(t *testing.T) {
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	config, _, _ := whole(t)
	config.Queue = queueOf(config.Store, q, &fakeRunner{})
	config.Automation, config.Bisects = keeperOf(t, config), bisectsOf(t, config)
	config, _ = headOf(t, config)
	p, err := newPanel(config)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(p.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("openapi: %s", doc.OpenAPI)
	}
	ids := map[string]bool{}
	for path, operations := range doc.Paths {
		for method, raw := range operations {
			var op struct {
				OperationID, Summary string
				Parameters           []struct{ Name, In string }
				Responses            map[string]any
				Security             []any
			}
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(err)
			}
			where := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || len(op.Responses) == 0 {
				t.Errorf("%s: operationId %q is missing or a duplicate, or the summary or response is missing", where, op.OperationID)
			}
			ids[op.OperationID] = true
			if !isPublic(httptest.NewRequest(strings.ToUpper(method), path, nil)) && len(op.Security) == 0 {
				t.Errorf("%s needs a token and does not say so", where)
			}
			declared := map[string]bool{}
			for _, parameter := range op.Parameters {
				declared[parameter.In+" "+parameter.Name] = true
			}
			for _, part := range strings.Split(path, "/") {
				if name, ok := strings.CutPrefix(part, "{"); ok && !declared["path "+strings.TrimSuffix(name, "}")] {
					t.Errorf("%s: the parameter %s is not declared", where, part)
				}
			}
		}
	}
	for _, want := range []string{"health", "list-runs", "get-run", "get-artifact", "start-run", "cancel-run", "stream-events",
		"stream-run-events", "list-devices", "get-certificate", "list-archives", "put-archive", "get-archive", "remove-archive", "get-config",
		"set-config", "get-update", "update", "reset", "log-in", "log-out", "get-session", "list-tokens", "create-token", "revoke-token",
		"list-audit", "backup", "restore", "support", "metrics", "preview-retention", "apply-retention", "pin-run", "get-pin", "unpin-run",
		"get-fleet", "join-fleet", "leave-fleet",
		"list-workflows", "get-workflow", "put-workflow", "remove-workflow", "run-workflow", "list-schedules", "get-schedule",
		"put-schedule", "remove-schedule", "list-firings", "list-webhooks", "make-webhook", "pause-webhook", "remove-webhook", "test-webhook",
		"get-archive-contents", "get-device-code", "check-plan", "get-run-plan", "list-deliveries", "list-alerts", "get-alert", "acknowledge-alert",
		"make-bisect", "list-bisects", "get-bisect", "answer-deployment", "resume-bisect", "cancel-bisect",
		"list-boxes", "get-box", "change-box", "remove-box", "make-join-code", "get-readings", "measure-reference", "accept-level",
		"get-reference", "put-reference", "remove-reference", "start-errand", "get-errand", "trigger-errand", "end-errand"} {
		if !ids[want] {
			t.Errorf("no operation %s", want)
		}
	}
	for _, part := range bytes.Split(b, []byte(`"$ref":"`))[1:] {
		ref, _, _ := strings.Cut(string(part), `"`)
		if name, ok := strings.CutPrefix(ref, "#/components/schemas/"); !ok || doc.Components.Schemas[name] == nil {
			t.Errorf("reference to nothing: %s", ref)
		}
	}
}

// deadlined records the read deadlines that a handler sets.
type deadlined struct {
	*httptest.ResponseRecorder
	until []time.Time
}

func (d *deadlined) SetReadDeadline(t time.Time) error { d.until = append(d.until, t); return nil }

// A client without the token cannot keep a connection open by not sending its body, even if
// the body is not needed; an event stream has no deadline.
func TestStrangersBodiesHaveADeadline(t *testing.T) {
	p, err := newPanel(setup{Store: newStore(t), Token: lab.NewSecret(token)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, token, body string
		want                      bool
	}{
		{"POST", "/api/v1/session", "", "guess", true},
		{"POST", "/api/v1/session", token, "guess", true},
		{"GET", "/", "", "x", true},
		{"PUT", "/api/v1/archives/a.wacz", "", "x", true},
		{"PUT", "/api/v1/archives/a.wacz", "wrong", "x", true},
		{"PUT", "/api/v1/archives/a.wacz", token, "x", false},
		{"GET", "/api/v1/health", "", "", false},
		{"GET", "/api/v1/runs", token, "", false},
	} {
		r := httptest.NewRequest(c.method, "http://127.0.0.1"+c.path, strings.NewReader(c.body))
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
		began := time.Now()
		p.ServeHTTP(w, r)
		if got := len(w.until) > 0; got != c.want || got && w.until[0].Sub(began) > time.Minute {
			t.Errorf("%s %s (token %q, body %q): deadlines %v", c.method, c.path, c.token, c.body, w.until)
		}
	}
}
