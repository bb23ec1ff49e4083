package report

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/rigs/testlab"
)

// TestScriptsFitTheData has TypeScript check the reports' scripts against what the reports hold for them: a field that a
// script reads and the data does not have is an error.
func TestScriptsFitTheData(t *testing.T) {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	for _, held := range []reflect.Type{reflect.TypeFor[data](), reflect.TypeFor[timelineData]()} {
		schemas.Schema(held, true, "")
	}
	document, err := json.Marshal(&huma.OpenAPI{OpenAPI: "3.1.0", Info: &huma.Info{Title: "reports", Version: "1"},
		Paths: map[string]*huma.PathItem{}, Components: &huma.Components{Schemas: schemas}})
	if err != nil {
		t.Fatal(err)
	}
	testlab.CheckScripts(t, "../../..", document, "types", "assets")
}
