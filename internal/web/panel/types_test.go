package panel

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// TestScriptsFitTheAPI has TypeScript check the pages' scripts against the OpenAPI document of a box and head in one: a field
// or an address that a page reads and the box does not have is an error.
func TestScriptsFitTheAPI(t *testing.T) {
	modules, err := filepath.Abs("../../../out/clients/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(modules, ".package-lock.json"))
	testlab.Need(t, err == nil, "npm's TypeScript: run make clients")
	node := testlab.NeedProgram(t, "node")
	config, _ := headOf(t, pagesConfig(t))
	config.Token = lab.NewSecret(token)
	p, err := newPanel(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	document, err := json.Marshal(p.api.OpenAPI())
	for _, err := range []error{
		err, os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o600), os.CopyFS(dir, os.DirFS("types")),
		os.CopyFS(filepath.Join(dir, "web"), os.DirFS("web")), os.Symlink(modules, filepath.Join(dir, "node_modules")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range [][]string{
		{"node_modules/openapi-typescript/bin/cli.js", "openapi.json", "--output", "api.d.ts", "--default-non-nullable=false"},
		{"node_modules/typescript/bin/tsc", "--project", "."},
	} {
		cmd := exec.CommandContext(t.Context(), node, program...)
		cmd.Dir = dir
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", program[0], err, said)
		}
	}
}
