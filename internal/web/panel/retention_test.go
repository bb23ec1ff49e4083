package panel

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/retention"
	"eidetic/internal/lab"
)

// fakeRetainer would delete one run, whatever the policy is.
type fakeRetainer struct{ applied *retention.Policy }

func (fakeRetainer) Policy() retention.Policy { return retention.Policy{KeepDays: 90} }

func (fakeRetainer) Preview(_ context.Context, p retention.Policy) (Retention, error) {
	return Retention{Policy: p, Free: 7e11, Disk: 1e12, Decision: retention.Decision{
		Delete: []retention.Deletion{{Run: "20260101-000000-old", Wall: time.Unix(1_767_225_600, 0).UTC(), Bytes: 5e8, Why: "older than 90 days"}},
		Kept:   []retention.Kept{{Run: "20260102-000000-release", Bytes: 4e8, Needed: "it is pinned"}},
		Held:   []retention.Kept{{Run: "20260102-000000-release", Bytes: 4e8, Needed: "it is pinned"}, {Run: "20261121-091400-demo", Bytes: 3e8, Needed: "<b>the workflow"}}, Bytes: 2e9, Frees: 5e8,
	}}, nil
}

func (r fakeRetainer) Apply(ctx context.Context, p retention.Policy) (Retention, error) {
	if r.applied != nil {
		*r.applied = p
	}
	return r.Preview(ctx, p)
}

func TestRetentionRoutes(t *testing.T) {
	var applied retention.Policy
	s := newServer(t, setup{Store: newStore(t), Token: lab.NewSecret(token), Retainer: fakeRetainer{&applied}})
	for _, c := range []struct {
		method, path string
		status       int
		within       string
	}{
		{"GET", "/api/v1/retention", 200, `"policy":{"keep_days":90}`},
		{"GET", "/api/v1/retention?keep_gb=1.5", 200, `"policy":{"keep_gb":1.5}`},
		{"GET", "/api/v1/retention?keep_days=-1", 422, "query.keep_days"},
		{"GET", "/api/v1/retention?keep_gb=NaN", 422, "query.keep_gb"},
		{"POST", "/api/v1/retention?keep_days=30", 200, `"run":"20260101-000000-old"`},
	} {
		got := ask(t, s, c.method, c.path, sending(token, ""))
		if got.StatusCode != c.status || !strings.Contains(got.text, c.within) {
			t.Errorf("%s %s = %d %s, want %d with %q", c.method, c.path, got.StatusCode, got.text, c.status, c.within)
		}
	}
	if applied != (retention.Policy{KeepDays: 30}) {
		t.Errorf("applied %+v, want 30 days", applied)
	}
	if log := ask(t, s, http.MethodGet, "/api/v1/audit", sending(token, "")).text; !strings.Contains(log, "POST /api/v1/retention: the evidence of 1 runs, 500 MB") {
		t.Errorf("the audit log has no retention: %s", log)
	}
}

// A pinned run is not deleted until its pin is removed.
func TestPins(t *testing.T) {
	b := newBox(t, newStore(t), filepath.Join(t.TempDir(), "queue.db"))
	defer b.stop()
	const run = "/api/v1/runs/20261121-091400-demo"
	for _, c := range []struct {
		method, path, body string
		status             int
		within             string
	}{
		{"GET", run + "/pin", "", 404, "no pin"},
		{"DELETE", run + "/pin", "", 404, "no pin"},
		{"PUT", "/api/v1/runs/nope/pin", `{}`, 404, "no run"},
		{"PUT", run + "/pin", `{"why":"the <b>release</b>"}`, 200, "release"},
		{"GET", run + "/pin", "", 200, `"by":"this machine"`},
		{"DELETE", run + "?files=true", "", 409, "is pinned"},
		{"DELETE", run + "/pin", "", 204, ""},
		{"DELETE", run + "?files=true", "", 204, ""},
	} {
		status, _, text := b.do(t, c.method, c.path, c.body)
		if status != c.status || !strings.Contains(text, c.within) {
			t.Errorf("%s %s = %d %s, want %d with %q", c.method, c.path, status, text, c.status, c.within)
		}
	}
}

// A file that retention deleted is told from one that never was.
func TestArtifactThatIsGone(t *testing.T) {
	st := newStore(t)
	s := newServer(t, setup{Store: st})
	const id = "20261121-091400-demo"
	if _, err := st.Thin(id, "older than 90 days", testNow()); err != nil {
		t.Fatal(err)
	}
	got := ask(t, s, http.MethodGet, "/runs/"+id+"/trials/001/screen.reel", nil)
	if got.StatusCode != http.StatusGone || !strings.Contains(got.text, "deleted on 2027-01-15, because older than 90 days") {
		t.Errorf("a film that is gone = %d %s, want 410 with when and why", got.StatusCode, got.text)
	}
	for path, want := range map[string]int{"/runs/" + id + "/report.html": 200, "/api/v1/runs/" + id: 200, "/api/v1/history?name=demo": 200} {
		if got := ask(t, s, http.MethodGet, path, nil); got.StatusCode != want {
			t.Errorf("GET %s = %d, want %d", path, got.StatusCode, want)
		}
	}
	if _, err := os.Stat(filepath.Join(st.Root(), "runs", id, "trials/001/screen.reel")); err == nil {
		t.Error("the film is still there")
	}
}
