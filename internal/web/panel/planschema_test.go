package panel

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	diff "github.com/google/go-cmp/cmp"

	"eidetic/internal/keep/store"
)

// update rewrites the schema: go test ./internal/web/panel -run TestPlanSchema -update
var update = flag.Bool("update", false, "write docs/formats/plan.schema.json anew, from the types")

// TestPlanSchema: docs/formats/plan.schema.json is the schema by which requests are checked.
func TestPlanSchema(t *testing.T) {
	q, err := store.MemoryQueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	st := newStore(t)
	p, err := newPanel(setup{Store: st, Queue: queueOf(st, q, &fakeRunner{})})
	if err != nil {
		t.Fatal(err)
	}
	known := p.api.OpenAPI().Components.Schemas.Map()
	schema := struct {
		Schema string                  `json:"$schema"`
		Title  string                  `json:"title"`
		Ref    string                  `json:"$ref"`
		Defs   map[string]*huma.Schema `json:"$defs"`
	}{"https://json-schema.org/draft/2020-12/schema", "Plan of an Eidetic run", "#/$defs/Plan",
		map[string]*huma.Schema{"Plan": known["Plan"], "Arm": known["Arm"], "PlanStep": known["PlanStep"], "Browser": known["Browser"],
			"PlanPage": known["PlanPage"], "PageTreatment": known["PageTreatment"], "PlanUser": known["PlanUser"], "PlanCookie": known["PlanCookie"],
			"Measure": known["Measure"], "MeasureRegion": known["MeasureRegion"],
			"ScreenPart": known["ScreenPart"], "ControlsPart": known["ControlsPart"]}}
	text, err := json.MarshalIndent(schema, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/") + "\n"
	const file = "../../../docs/formats/plan.schema.json"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(string(want), got); d != "" {
		t.Errorf(
			"the schema in docs is not that of the types; run go test ./internal/web/panel -run TestPlanSchema -update (-docs +types):\n%s",
			d,
		)
	}
}

// TestUnknownFieldsAreRefused: an unknown field of a plan, at any depth, is refused with its
// path, and so is a field that only plans of earlier versions had.
func TestUnknownFieldsAreRefused(t *testing.T) {
	b := newBox(t, newStore(t), filepath.Join(t.TempDir(), "queue.db"))
	for body, field := range map[string]string{
		`{"page": "https://a.test/", "trails": 3}`:               "body.trails",
		`{"page": "https://a.test/", "treatment": {"lnik": ""}}`: "body.treatment.lnik",
		`{"page": "https://a.test/", "arms": []}`:                "body.arms",
		`{"trials": 3}`: "page",
	} {
		status, _, text := b.do(t, http.MethodPost, "/api/v1/runs", body)
		if status != http.StatusUnprocessableEntity || !strings.Contains(text, field) {
			t.Errorf("POST %s = %d %s, want 422 with %q", body, status, text, field)
		}
	}
}
