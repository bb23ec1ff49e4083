package testlab

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// CheckScripts has TypeScript check the scripts in a folder against the schemas of an OpenAPI document: a field that a
// script reads and the document does not have is an error. The folder types has tsconfig.json, and declarations that
// find the document's in ./api. root is that of the repository.
func CheckScripts(t testing.TB, root string, document []byte, types, scripts string) {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join(root, "out/clients/node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(modules, ".package-lock.json"))
	Need(t, err == nil, "npm's TypeScript: run make clients")
	node := NeedProgram(t, "node")
	dir := t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o600), os.CopyFS(dir, os.DirFS(types)),
		os.CopyFS(filepath.Join(dir, filepath.Base(scripts)), os.DirFS(scripts)),
		os.Symlink(modules, filepath.Join(dir, "node_modules")),
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
