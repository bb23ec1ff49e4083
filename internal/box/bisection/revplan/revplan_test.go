package revplan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	for want, p := range map[string]Plan{
		"":                    {"page": "https://a.test/", "link": "lte", "browser": map[string]any{"flags": []any{"--v=" + Mark}}},
		"pages: ":             {"pages": []any{}},
		"users: ":             {"page": "https://a.test/", "users": []any{}},
		"treatment: ":         {"page": "https://a.test/", "treatment": map[string]any{}},
		"looks: ":             {"page": "https://a.test/", "looks": 4},
		"on.each: ":           {"page": "https://a.test/", "on": map[string]any{"each": "box"}},
		"name: {revision}":    {"page": "https://a.test/", "name": Mark},
		"archive: all revisi": {"page": "https://a.test/", "archive": "a.wacz"},
	} {
		if err := p.Check(); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Check(%v) = %v; want an error that begins with %q", p, err, want)
		}
	}
}

// A recording is made with one trial and nothing that costs time or needs a second arm; the plan itself stays as it is.
func TestRecording(t *testing.T) {
	p := Plan{"page": "https://" + Mark + ".a.test/", "trials": 20, "warmups": 2, "traces": 10, "margin_percent": 3, "primary": "x", "link": "lte"}
	want := Plan{"page": "https://v1.a.test/", "trials": 1, "link": "lte", "name": "record v1"}
	if d := cmp.Diff(want, p.Recording("v1")); d != "" {
		t.Error("Recording() (-want +got):", d)
	}
	if p["trials"] != 20 || p["page"] != "https://{revision}.a.test/" || !p.Records() {
		t.Errorf("the plan has become %v", p)
	}
	if long := p.Recording(strings.Repeat("é", 200)); len([]rune(long["name"].(string))) != 91 {
		t.Errorf("a name of %d characters; a run's may have 100", len([]rune(long["name"].(string))))
	}
}

// The arms differ in what names the revision, or in the recordings that were made of them; what was written stays.
func TestBetween(t *testing.T) {
	p := Plan{"page": "https://a.test/", "browser": map[string]any{"flags": []any{"--v=" + Mark}}, "primary": "mine", "warmups": 1}
	got := p.Between(Comparison{Control: "v1", Treatment: "v2", ControlArchive: "a", TreatmentArchive: "b", Metric: "m", Pairs: 7, Seed: 9})
	want := Plan{
		"page": "https://a.test/", "browser": map[string]any{"flags": []any{"--v=v1"}}, "archive": "a", "primary": "mine", "warmups": 1, "trials": 7,
		"seed": uint64(9), "name": "bisect v1 v2",
		"treatment": map[string]any{"browser": map[string]any{"flags": []any{"--v=v2"}}, "archive": "b"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("Between() (-want +got):", d)
	}
}
