package store

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// The example of report.json in docs/formats/run-folder.md has exactly the fields of Report.
func TestDocumentedReport(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/formats/run-folder.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```json report\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("there is no example of report.json")
	}
	var r Report
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	var m struct {
		Run    map[string]any
		Trials []map[string]any
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	for kind, fields := range map[reflect.Type]map[string]any{reflect.TypeFor[ReportRun](): m.Run,
		reflect.TypeFor[ReportTrial](): m.Trials[0]} {
		for i := range kind.NumField() {
			name, options, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if _, ok := fields[name]; !ok && options == "" {
				t.Errorf("%s: the example lacks %s", kind.Name(), name)
			}
		}
	}
	if r.Schema != ReportSchema {
		t.Errorf("the example's schema is %q", r.Schema)
	}
}
