package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openAPI is as much of a document as the commands rest on.
type openAPI struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	Parameters  []struct{ Name string }
	RequestBody *struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref        string `json:"$ref"`
	Items      *schema
	Properties map[string]schema
}

// of follows a reference.
func (d openAPI) of(s schema) schema {
	if s.Items != nil {
		return d.of(*s.Items)
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.Components.Schemas[name]
	}
	return s
}

// answers returns what an operation answers when it did what was asked.
func (d openAPI) answers(o operation) schema {
	for status, r := range o.Responses {
		if strings.HasPrefix(status, "2") {
			return d.of(r.Content["application/json"].Schema)
		}
	}
	return schema{}
}

// Each command that is one request asks for an operation of the OpenAPI document with its parameters, and shows
// properties of its answer.
func TestCallsAreOfTheDocument(t *testing.T) {
	b := newTestBoxOf(t, alone, newHeadBoxes())
	answer, err := http.Get(b.url() + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var doc openAPI
	if err := json.NewDecoder(answer.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	for name, c := range calls() {
		method, path, _ := strings.Cut(c.request, " ")
		path, query, _ := strings.Cut(path, "?")
		o, ok := doc.Paths["/api/v1"+path][strings.ToLower(method)]
		if !ok {
			t.Errorf("%s: the document has no %s", name, c.request)
			continue
		}
		for pair := range strings.SplitSeq(query, "&") {
			name, _, _ := strings.Cut(pair, "=")
			if name != "" && !slices.ContainsFunc(o.Parameters, func(p struct{ Name string }) bool { return p.Name == name }) {
				t.Errorf("%s: the document's %s has no parameter %s", name, c.request, name)
			}
		}
		if sends := c.body != nil || c.sends; sends != (o.RequestBody != nil) {
			t.Errorf("%s: it sends a body: %v; the document wants one: %v", name, sends, o.RequestBody != nil)
		}
		if c.find != "" {
			list := doc.of(doc.answers(doc.Paths["/api/v1/"+c.find]["get"]).Properties[c.find])
			if _, ok := list.Properties["id"]; !ok {
				t.Errorf("%s: the document has no list of %s with identifiers", name, c.find)
			}
		}
		if c.list == "" {
			continue
		}
		one := doc.of(doc.answers(o).Properties[c.list])
		for _, column := range c.columns {
			_, paths, _ := strings.Cut(column, "=")
			paths, _, _ = strings.Cut(paths, "|")
			for path := range strings.FieldsSeq(paths) {
				at := one
				for part := range strings.SplitSeq(path, ".") {
					next, ok := at.Properties[part]
					if !ok {
						t.Errorf("%s: the document's answer to %s has no property %s", name, c.request, path)
					}
					at = doc.of(next)
				}
			}
		}
	}
}

func TestCell(t *testing.T) {
	thing, err := decode[any]([]byte(`{"name": "n", "paused": true, "off": false, "count": 12345678901234567890, "tags": ["a", "b"], "last": {"run": "r"}, "made": "2026-01-02T03:04:05Z"}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, column := range []string{"A=name", "B=paused none|on", "C=off|on", "D=count", "E=tags", "F=last.run last.state", "G=last.run.x|none", "H=none.run"} {
		got = append(got, cell(column, thing))
	}
	if d := cmp.Diff([]string{"n", "paused", "on", "12345678901234567890", "a, b", "r", "none", ""}, got); d != "" {
		t.Errorf("cells (-want +got):\n%s", d)
	}
	if got := cell("MADE=made", thing); len(got) != len("2026-01-02 03:04") {
		t.Errorf("cell of a time = %q; want it as people write it", got)
	}
}

func TestAPIPath(t *testing.T) {
	for request, want := range map[string]string{
		"/workflows/{name}":                      "/api/v1/workflows/a%2F..%3F",
		"/deliveries?limit={limit}&webhook={id}": "/api/v1/deliveries?limit=20",
		"/alerts/{n}/x":                          "/api/v1/alerts/7/x",
	} {
		if got := apiPath(request, things{"name": "a/..?", "limit": 20, "n": int64(7)}); got != want {
			t.Errorf("apiPath(%q) = %q; want %q", request, got, want)
		}
	}
}
