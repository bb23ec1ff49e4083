package panel

import (
	"encoding/json"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// TestScriptsFitTheAPI has TypeScript check the pages' scripts against the OpenAPI document of a box and head in one: a field
// or an address that a page reads and the box does not have is an error.
func TestScriptsFitTheAPI(t *testing.T) {
	config, _ := headOf(t, pagesConfig(t))
	config.Token = lab.NewSecret(token)
	p, err := newPanel(config)
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(p.api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	testlab.CheckScripts(t, "../../..", document, "types", "web")
}
