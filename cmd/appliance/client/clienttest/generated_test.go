package clienttest

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/rigs/testlab"
)

// installed is where make clients installs npm's packages; it downloads the Go modules as well.
const installed = "../../../../out/clients/node_modules"

// session is what a session with a client that was generated prints, in each language.
const session = `health ok
workflow checkout 1
events done
run done 3 first_visual_change_ms ms
file 200 true
export 200 true
archives 0
refused 403 true
`

// TestGeneratedClients makes clients of the box's OpenAPI document with other projects'
// generators. The clients compile, and make a run over TLS with a token of the scope run.
func TestGeneratedClients(t *testing.T) {
	testlab.Long(t, "other languages' clients")
	modules, err := filepath.Abs(installed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(modules, ".package-lock.json"))
	testlab.Need(t, err == nil, "the generators: run make clients")
	for name, language := range map[string]func(t *testing.T, dir string, b *Box) (run []string){
		// oapi-codegen reads OpenAPI 3.0 only.
		"go": func(t *testing.T, dir string, b *Box) []string {
			fetch(t, b, "/openapi-3.0.json", filepath.Join(dir, "openapi.json"))
			if err := os.Mkdir(filepath.Join(dir, "box"), 0o755); err != nil {
				t.Fatal(err)
			}
			do(t, dir, nil, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "box", "-o", "box/box.gen.go", "openapi.json")
			do(t, dir, nil, "go", "build", "-o", "session", ".")
			return []string{"./session"}
		},
		"typescript": func(t *testing.T, dir string, b *Box) []string {
			node := testlab.NeedProgram(t, "node")
			fetch(t, b, "/openapi.json", filepath.Join(dir, "openapi.json"))
			if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
				t.Fatal(err)
			}
			// Without the flag a field of a plan that has a default would be required.
			do(t, dir, nil, node, "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "--output", "box.d.ts", "--default-non-nullable=false")
			do(t, dir, nil, node, "node_modules/typescript/bin/tsc", "--project", ".")
			return []string{node, "session.js"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
				t.Fatal(err)
			}
			b := start(t)
			run := language(t, dir, b)
			got := do(t, dir, []string{
				"BOX=" + b.URL, "FINGERPRINT=" + b.Fingerprint, "NODE_EXTRA_CA_CERTS=" + b.Authority,
				"RUN_TOKEN=" + token(t, b, client.ScopeRun), "READ_TOKEN=" + token(t, b, client.ScopeRead),
			}, run...)
			if got != session {
				t.Errorf("the session printed\n%s\nwant\n%s", got, session)
			}
		})
	}
}

// do runs a program in a folder, and returns what it printed.
func do(t *testing.T, dir string, env []string, program ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(program, " "), err, out, said.String())
	}
	return string(out)
}

// token makes a token of the scope.
func token(t *testing.T, b *Box, scope client.Scope) string {
	t.Helper()
	c := client.New(client.Config{Base: b.URL, Token: client.NewSecret(b.Token), Trust: client.Trust{Fingerprint: b.Fingerprint}})
	defer c.Close()
	made, err := c.CreateToken(t.Context(), "session-"+string(scope), scope)
	if err != nil {
		t.Fatal(err)
	}
	return made.Secret
}

// fetch writes a document of the box to a file. It needs no token, and here no TLS.
func fetch(t *testing.T, b *Box, path, file string) {
	t.Helper()
	answer, err := http.Get(strings.Replace(b.URL, "https:", "http:", 1) + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s = %s, %v", path, answer.Status, err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
