package panel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	yamltoken "github.com/goccy/go-yaml/token"

	"eidetic/internal/base/yamlguard"
	"eidetic/internal/lab"
)

// PlanText is a plan that is to be checked: as a person writes it, or as an object.
type PlanText struct {
	YAML string         `json:"yaml,omitempty" maxLength:"65536" doc:"The plan's text, as in a plan file"`
	Plan map[string]any `json:"plan,omitempty" doc:"The plan as an object; without yaml"`
}

// CheckedPlan is a plan in both forms, and what is wrong with it.
type CheckedPlan struct {
	YAML     string         `json:"yaml" doc:"The plan's text: that which was sent, or that of the object"`
	Plan     map[string]any `json:"plan,omitempty" doc:"The plan as an object; absent if the text cannot be read"`
	Problems []PlanProblem  `json:"problems" doc:"What is wrong with it, in the order in which it was found; a run may still be refused for what the device lacks"`
}

// PlanProblem is something wrong with a plan.
type PlanProblem struct {
	Field string `json:"field,omitempty" doc:"Where it is" example:"steps[2].click"`
	Line  int    `json:"line,omitempty" doc:"Where it is in the text that was sent, from 1"`
	What  string `json:"what" doc:"For people" example:"expected number >= 1"`
}

type (
	planTextInput   struct{ Body PlanText }
	checkedPlanBody struct{ Body CheckedPlan }
)

// plans registers the route that the form for plans asks.
func (p *Panel) plans(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "check-plan", Method: http.MethodPost, Path: "/api/v1/plan", Summary: "Check a plan, and write it in both forms",
		Tags: []string{tagRuns}, Description: "Starts nothing and keeps nothing. It reads a plan's text, or writes that of an object, and says what is wrong, with its place.",
		Security: needsToken(), Errors: []int{http.StatusUnprocessableEntity},
	}, p.checkPlan)
}

func (p *Panel) checkPlan(_ context.Context, in *planTextInput) (*checkedPlanBody, error) {
	if in.Body.YAML != "" && in.Body.Plan != nil {
		return nil, huma.Error422UnprocessableEntity("give yaml or plan, not both")
	}
	checked := CheckedPlan{YAML: in.Body.YAML, Plan: in.Body.Plan, Problems: []PlanProblem{}}
	var file *ast.File
	if in.Body.Plan == nil {
		var problem *PlanProblem
		if file, checked.Plan, problem = readPlan(in.Body.YAML); problem != nil {
			checked.Problems = append(checked.Problems, *problem)
			return &checkedPlanBody{checked}, nil
		}
	}
	plan, problems := p.judge(checked.Plan)
	checked.Problems = append(checked.Problems, problems...)
	if file != nil {
		for i := range checked.Problems {
			checked.Problems[i].Line = lineOf(file, checked.Problems[i].Field)
		}
		return &checkedPlanBody{checked}, nil
	}
	text, err := planYAML(plan, checked.Plan)
	checked.YAML = text
	return &checkedPlanBody{checked}, err
}

// readPlan reads a plan's text. It keeps the fields that were written and not a lab.Plan, in which a 0 that was
// written and a field that was not are the same.
func readPlan(text string) (file *ast.File, fields map[string]any, problem *PlanProblem) {
	err := yamlguard.Try(func() error {
		file, fields, problem = parsePlan(text)
		return nil
	})
	if err != nil {
		problem = &PlanProblem{What: err.Error()}
	}
	return file, fields, problem
}

func parsePlan(text string) (*ast.File, map[string]any, *PlanProblem) {
	// A few aliases of aliases are a text of gigabytes.
	for _, t := range lexer.Tokenize(text) {
		if t.Type == yamltoken.AliasType {
			return nil, nil, &PlanProblem{Line: t.Position.Line, What: "an alias (*) is not read here: write out what it stands for"}
		}
	}
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return nil, nil, problemOf(err)
	}
	if len(file.Docs) > 1 {
		return nil, nil, &PlanProblem{What: "more than one document: a plan is one, without --- in between"}
	}
	var typed lab.Plan
	fields := map[string]any{}
	if err = yaml.UnmarshalWithOptions([]byte(text), &typed, yaml.Strict()); err == nil {
		err = yaml.Unmarshal([]byte(text), &fields)
	}
	if err != nil && strings.TrimSpace(text) != "" {
		return nil, nil, problemOf(err)
	}
	if fields == nil { // an empty text
		fields = map[string]any{}
	}
	// In YAML "scroll: 5" and "tolerance: 6" are numbers, and in a plan texts.
	for name, value := range map[string]any{"steps": typed.Steps, "pages": typed.Pages, "users": typed.Users, "measure": typed.Measure} {
		if _, given := fields[name]; given {
			fields[name] = value
		}
	}
	plain := map[string]any{}
	written, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(written, &plain)
	}
	if err != nil {
		return nil, nil, &PlanProblem{What: err.Error()}
	}
	return file, plain, nil
}

// problemOf is an error of the YAML's reader.
func problemOf(err error) *PlanProblem {
	var placed yaml.Error
	if errors.As(err, &placed) && placed.GetToken() != nil {
		return &PlanProblem{Line: placed.GetToken().Position.Line, What: placed.GetMessage()}
	}
	return &PlanProblem{What: err.Error()}
}

// maxSeed is the largest number that a browser can count to.
const maxSeed = 1<<53 - 1

// judge says what is wrong with a plan. The plan that it returns is as far as the fields can be read.
func (p *Panel) judge(fields map[string]any) (plan lab.Plan, problems []PlanProblem) {
	known := p.api.OpenAPI().Components.Schemas
	result := &huma.ValidateResult{}
	schema := known.Schema(reflect.TypeFor[lab.Plan](), true, "Plan")
	huma.Validate(known, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, any(fields), result)
	for _, err := range result.Errors {
		var detail *huma.ErrorDetail
		if errors.As(err, &detail) {
			problems = append(problems, PlanProblem{Field: detail.Location, What: detail.Message})
		}
	}
	text, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	if err != nil {
		if len(problems) == 0 {
			problems = append(problems, PlanProblem{What: err.Error()})
		}
		return plan, problems
	}
	var step *lab.StepError
	if err := lab.CheckSteps(plan.Steps); errors.As(err, &step) {
		problems = append(problems, PlanProblem{Field: step.Path, What: step.Err.Error()})
	}
	if opensNothing(plan) {
		problems = append(problems, PlanProblem{Field: "page", What: "a plan opens a page: give its URL, or steps whose first opens one"})
	}
	if plan.Seed > maxSeed {
		problems = append(problems, PlanProblem{Field: "seed", What: fmt.Sprintf("a browser can count to %d only: send a larger seed by the command line", uint64(maxSeed))})
	}
	return plan, problems
}

// planYAML writes a plan's fields in the order of its type, if they are those of one.
func planYAML(plan lab.Plan, fields map[string]any) (string, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return "", err
	}
	kept := map[string]any{}
	if err := json.Unmarshal(text, &kept); err != nil {
		return "", err
	}
	if !reflect.DeepEqual(kept, fields) { // a zero that was written, or a field that there is not
		if text, err = json.Marshal(fields); err != nil {
			return "", err
		}
	}
	written, err := yaml.JSONToYAML(text)
	return string(bytes.TrimPrefix(written, []byte("{}\n"))), err
}

// lineOf is where a field of a text is, or the nearest that it is in; 0 if none is.
func lineOf(file *ast.File, field string) (line int) {
	if len(file.Docs) == 0 {
		return 0
	}
	var node ast.Node = file.Docs[0].Body
	for _, part := range strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch at := node.(type) {
		case *ast.MappingNode:
			i := slices.IndexFunc(at.Values, func(v *ast.MappingValueNode) bool { return v.Key.GetToken().Value == part })
			if i < 0 {
				return line
			}
			node, line = at.Values[i].Value, at.Values[i].Key.GetToken().Position.Line
		case *ast.SequenceNode:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at.Values) {
				return line
			}
			node, line = at.Values[i], at.Values[i].GetToken().Position.Line
		default:
			return line
		}
	}
	return line
}
