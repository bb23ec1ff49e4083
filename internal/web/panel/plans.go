package panel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// SaidPlan is a plan of a request as it was said. huma, which sees no field of it, fills in no defaults: it is judged
// by [plan.Request.Problems], which knows what it is a plan of.
type SaidPlan struct{ request plan.Request }

// UnmarshalJSON implements json.Unmarshaler.
func (s *SaidPlan) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &s.request) }

// MarshalJSON implements json.Marshaler.
func (s SaidPlan) MarshalJSON() ([]byte, error) { return json.Marshal(s.request) }

// Schema implements huma.SchemaProvider.
func (SaidPlan) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: map[string]any{}}
}

// PlanText is a plan that is to be checked: as a person writes it, or as an object.
type PlanText struct {
	YAML string    `json:"yaml,omitempty" maxLength:"65536" doc:"The plan's text, as in a plan file"`
	Plan *SaidPlan `json:"plan,omitempty" doc:"The plan as an object; without yaml"`
}

// CheckedPlan is a plan in both forms, and what is wrong with it.
type CheckedPlan struct {
	YAML     string        `json:"yaml" doc:"The plan's text: that which was sent, or that of the object"`
	Plan     *SaidPlan     `json:"plan,omitempty" doc:"The plan as an object; absent if the text cannot be read"`
	Problems []PlanProblem `json:"problems" doc:"What is wrong with it, in the order in which it was found; a run may still be refused for what the device lacks"`
}

// PlanProblem is something wrong with a plan.
type PlanProblem struct {
	Field string `json:"field,omitempty" doc:"Where it is" example:"steps[2].click"`
	Line  int    `json:"line,omitempty" doc:"Where it is in the text that was sent, from 1"`
	What  string `json:"what" doc:"For people" example:"must be at least 1"`
}

type (
	planTextInput   struct{ Body PlanText }
	checkedPlanBody struct{ Body CheckedPlan }
)

// plans registers the route that the form for plans asks.
func (p runFeature) plans(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "check-plan", Method: http.MethodPost, Path: "/api/v1/plan", Summary: "Check a plan, and write it in both forms",
		Tags: []string{tagRuns}, Description: "Starts nothing and keeps nothing. It reads a plan's text, or writes that of an object, and says what is wrong, with its place.",
		Security: needsToken(), Errors: []int{http.StatusUnprocessableEntity},
	}, p.checkPlan)
}

func (p runFeature) checkPlan(ctx context.Context, in *planTextInput) (*checkedPlanBody, error) {
	if in.Body.YAML != "" && in.Body.Plan != nil {
		return nil, huma.Error422UnprocessableEntity("give yaml or plan, not both")
	}
	done, err := p.checking.Take(ctx) // reading takes up to a second and 200 MB
	if err != nil {
		return nil, err
	}
	defer done()
	checked := CheckedPlan{YAML: in.Body.YAML, Plan: in.Body.Plan, Problems: []PlanProblem{}}
	if in.Body.Plan != nil {
		text, err := in.Body.Plan.request.YAML()
		if err != nil {
			return nil, huma.Error422UnprocessableEntity("plan: " + err.Error())
		}
		checked.YAML = text
	} else {
		read, err := plan.ParseForeign([]byte(in.Body.YAML))
		var wrong *plan.TextError
		if errors.As(err, &wrong) {
			checked.Problems = append(checked.Problems, PlanProblem{Line: wrong.Line, What: wrong.What})
			return &checkedPlanBody{checked}, nil
		}
		checked.Plan = &SaidPlan{read}
	}
	for _, wrong := range p.problemsOf(checked.Plan.request, scopeOf(ctx)) {
		checked.Problems = append(checked.Problems, PlanProblem{
			Field: wrong.Path, Line: checked.Plan.request.Line(wrong.Path), What: wrong.Err.Error(),
		})
	}
	return &checkedPlanBody{checked}, nil
}

// maxSeed is the largest number that a browser can count to.
const maxSeed = 1<<53 - 1

// problemsOf says what is wrong with a plan of a scope, as far as it is known without its device and its files.
func (p runFeature) problemsOf(r plan.Request, s plan.Scope) []*lab.FieldError {
	o := plan.Options{Scope: s, Browsers: p.Browsers, Apps: p.Apps}
	if p.fleet { // each box has an admin of its own
		o.Scope, o.Elsewhere = plan.ScopeRun, true
	}
	problems := plan.Faults(r, o)
	if r.Seed > maxSeed {
		problems = append(problems, &lab.FieldError{Path: "seed", Err: fmt.Errorf(
			"a browser can count to %d only: send a larger seed by the command line", uint64(maxSeed))})
	}
	return problems
}
