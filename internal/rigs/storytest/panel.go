package storytest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// Panel is a box's REST interface, as a client program uses it.
type Panel struct {
	URL    string // http://address:port
	Token  string
	Client *http.Client // from where the panel can be reached; without a timeout
}

// Do sends a request and returns the answer's status and body.
func (p *Panel) Do(ctx context.Context, method, path string, body any) (int, []byte, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, p.URL+path, content)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+p.Token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := p.Client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// Get fetches a resource that must exist.
func (p *Panel) Get(t testing.TB, path string) []byte {
	t.Helper()
	status, body, err := p.Do(t.Context(), http.MethodGet, path, nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("GET %s: %d %.300s (%v)", path, status, body, err)
	}
	return body
}

// Artifact fetches a file of a run.
func (p *Panel) Artifact(t testing.TB, run, name string) []byte {
	t.Helper()
	return p.Get(t, "/api/v1/runs/"+run+"/artifacts/"+name)
}

// AwaitDevice waits until a device at a port of the box is ready.
func (p *Panel) AwaitDevice(t testing.TB) (name string) {
	t.Helper()
	return p.await(t, "became ready", func(d listed) bool { return d.Ready })
}

// AwaitSetUp waits until a device at a port has opened the box's first page, and has shown that it trusts the box.
func (p *Panel) AwaitSetUp(t testing.TB) {
	t.Helper()
	p.await(t, "showed that it trusts the box", func(d listed) bool { return d.SetUp.Opened != nil && d.SetUp.Trusted != nil })
}

// listed is a device in the panel's list.
type listed struct {
	Name, Kind string
	Ready      bool
	SetUp      struct{ Opened, Trusted *time.Time } `json:"set_up"`
}

func (p *Panel) await(t testing.TB, what string, is func(listed) bool) (name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last []byte
	for {
		status, body, err := p.Do(ctx, http.MethodGet, "/api/v1/devices", nil)
		var list struct{ Devices []listed }
		if err == nil && status == http.StatusOK && json.Unmarshal(body, &list) == nil {
			last = body
			for _, d := range list.Devices {
				if d.Kind == "port" && is(d) {
					return d.Name
				}
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no device %s: %s (%v)", what, last, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Start asks for a run and returns its ID.
func (p *Panel) Start(t testing.TB, request map[string]any) string {
	t.Helper()
	status, body, err := p.Do(t.Context(), http.MethodPost, "/api/v1/runs", request)
	var accepted struct{ ID string }
	if err != nil || status != http.StatusAccepted || json.Unmarshal(body, &accepted) != nil {
		t.Fatalf("POST /api/v1/runs: %d %s (%v)", status, body, err)
	}
	return accepted.ID
}

// Follow reads a run's events until the run ends or stop returns true; it returns the last
// state.
func (p *Panel) Follow(t testing.TB, run string, limit time.Duration, stop func(Progress) bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/api/v1/runs/"+run+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.Token)
	answer, err := p.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("the events of run %s: %s: %s", run, answer.Status, text)
	}
	var last Progress
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte(text), &last); err != nil {
			t.Fatalf("event %q: %v", text, err)
		}
		if stop != nil && stop(last) {
			return last.State
		}
	}
	if last.State == "" || last.State == "queued" || last.State == "running" {
		t.Fatalf("run %s did not end within %v; its last event: %+v (%v)", run, limit, last, lines.Err())
	}
	return last.State
}

// Progress is an event of a run.
type Progress struct {
	State, Doing, Error string
	Trial, Of           int
}

// Run reads a run.
func (p *Panel) Run(t testing.TB, id string) *lab.Run {
	t.Helper()
	run := &lab.Run{}
	if err := json.Unmarshal(p.Get(t, "/api/v1/runs/"+id), run); err != nil {
		t.Fatal(err)
	}
	return run
}

// replayLog reads a trial's replay log.
func (p *Panel) replayLog(t testing.TB, run string, trial *lab.Trial) (all []lab.Served) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(p.Artifact(t, run, fmt.Sprintf("trials/%03d/%s", trial.Number, trial.Files["replay"]))))
	for decoder.More() {
		var s lab.Served
		if err := decoder.Decode(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}
