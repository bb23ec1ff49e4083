package plan

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
)

// request is a plan as JSON says it.
func request(t *testing.T, text string) (r Request) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckRevisions(t *testing.T) {
	for want, text := range map[string]string{
		"":                    `{"page": "https://a.test/", "link": "lte", "browser": {"flags": ["--v={revision}"]}}`,
		"pages: ":             `{"pages": []}`,
		"users: ":             `{"page": "https://a.test/", "users": []}`,
		"treatment: ":         `{"page": "https://a.test/", "treatment": {}}`,
		"looks: ":             `{"page": "https://a.test/", "looks": 4}`,
		"on.each: ":           `{"page": "https://a.test/", "on": {"each": "box"}}`,
		"name: {revision}":    `{"page": "https://a.test/", "name": "{revision}"}`,
		"archive: all revisi": `{"page": "https://a.test/", "archive": "a.wacz"}`,
	} {
		if err := request(t, text).CheckRevisions(); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("CheckRevisions(%s) = %v; want an error that begins with %q", text, err, want)
		}
	}
}

// A recording is made with one trial and nothing that costs time or needs a second arm; the plan itself stays as it is.
func TestRecording(t *testing.T) {
	p := request(t, `{"page": "https://{revision}.a.test/", "trials": 20, "warmups": 2, "traces": 10, "margin_percent": 3, "primary": "x", "link": "lte"}`)
	want := lab.Plan{Trials: 1, Name: "record v1", Arm: lab.Arm{Page: "https://v1.a.test/", Link: "lte"}}
	got, err := p.Recording("v1")
	if d := cmp.Diff(want, got.Plan); d != "" || err != nil {
		t.Errorf("Recording() = %v (-want +got):\n%s", err, d)
	}
	if p.Trials != 20 || p.Page != "https://{revision}.a.test/" || !p.Records() {
		t.Errorf("the plan has become %+v", p.Plan)
	}
	if long, err := p.Recording(strings.Repeat("é", 200)); err != nil || len([]rune(long.Name)) != 91 {
		t.Errorf("Recording() has a name of %d characters, %v; want 91: a run's may have 100", len([]rune(long.Name)), err)
	}
}

// The arms differ in what names the revision, or in the recordings that were made of them; what was written stays.
func TestBetween(t *testing.T) {
	p := request(t, `{"page": "https://a.test/", "browser": {"flags": ["--v={revision}"]}, "primary": "mine", "warmups": 1}`)
	got, err := p.Between(Comparison{
		Control: "v1", Treatment: "v2", ControlArchive: "a", TreatmentArchive: "b", Metric: "m", Pairs: 7, Seed: math.MaxUint64,
	})
	want := lab.Plan{
		Arm:     lab.Arm{Page: "https://a.test/", Browser: &lab.Browser{Flags: []string{"--v=v1"}}, Archive: "a"},
		Primary: "mine", Warmups: 1, Trials: 7, Seed: math.MaxUint64, Name: "bisect v1 v2",
		Treatment: &lab.Arm{Browser: &lab.Browser{Flags: []string{"--v=v2"}}, Archive: "b"},
	}
	if d := cmp.Diff(want, got.Plan); d != "" || err != nil {
		t.Errorf("Between() = %v (-want +got):\n%s", err, d)
	}
	p = request(t, `{"page": "https://{revision}.a.test/", "archive": "{revision}.wacz", "link": "lte"}`)
	got, err = p.Between(Comparison{Control: "v1", Treatment: "v2", Metric: "m", Pairs: 7, Seed: 1})
	if err != nil || p.Records() || got.Page != "https://v1.a.test/" || got.Archive != "v1.wacz" || got.Treatment.Page != "https://v2.a.test/" ||
		got.Treatment.Archive != "v2.wacz" || got.Treatment.Link != "" || got.Primary != "m" {
		t.Errorf("Between() = %+v %+v, %v; want the recordings that the plan names", got.Plan, got.Treatment, err)
	}
}
