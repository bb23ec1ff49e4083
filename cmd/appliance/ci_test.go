package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// ciScripts reads the scripts out of the examples for build servers.
func ciScripts(t *testing.T) map[string]string {
	t.Helper()
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join("../../docs/ci", name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var github struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
	}
	var gitlab map[string]struct{ Script []string }
	for name, into := range map[string]any{"github-actions.yml": &github, "gitlab-ci.yml": &gitlab} {
		if err := yaml.Unmarshal(read(name), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	scripts := map[string]string{}
	for _, s := range github.Jobs["checkout-page"].Steps {
		if s.Run != "" {
			scripts["github"] = "set -e\n" + s.Run // as GitHub starts bash
		}
	}
	scripts["gitlab"] = "set -e\n" + strings.Join(gitlab["checkout-page"].Script, "\n")
	parts := strings.Split(string(read("Jenkinsfile")), "'''")
	if len(parts) != 3 || scripts["github"] == "" || len(gitlab["checkout-page"].Script) == 0 {
		t.Fatalf("the examples have no script each: %q, %d parts of the Jenkinsfile", scripts, len(parts))
	}
	scripts["jenkins"] = "set -e\n" + parts[1]
	return scripts
}

// The examples of docs/ci do as they say: the build fails when the page is slower, passes when it is
// not, says so when there is no verdict, and has its documents whatever the verdict is. The run
// itself is one that was kept; all else is the program.
func TestCIExamples(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, kept := t.TempDir(), t.TempDir()
	for name, run := range map[string]*lab.Run{"slower": reporttest.Compared(2, 10, 300), "equal": reporttest.Compared(3, 10, 0)} {
		text, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(kept, name+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// In the place of the box: a run ends as the variables say.
	program := fmt.Sprintf(`#!/bin/sh
if [ "$1" = run ]; then
	[ "$*" = "run --plan checkout.yaml --out report" ] || exit 99
	if [ -n "$KEPT" ]; then mkdir -p report && cp "$KEPT" report/run.json; fi
	exit "$ENDS"
fi
%s=1 exec %q "$@"
`, asAppliance, self)
	if err := os.WriteFile(filepath.Join(bin, "appliance"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	for server, script := range ciScripts(t) {
		for _, c := range []struct {
			name   string
			kept   string
			status int
		}{{"slower", "slower.json", exitFailed}, {"equal", "equal.json", exitGood}, {"no box", "", exitCannot}} {
			t.Run(server+" "+c.name, func(t *testing.T) {
				dir := t.TempDir()
				cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), fmt.Sprintf("ENDS=%d", c.status), "KEPT=",
					"GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary.md"))
				if c.kept != "" {
					cmd.Env = append(cmd.Env, "KEPT="+filepath.Join(kept, c.kept))
				}
				got := finishCmd(t, cmd)
				if got.status != c.status {
					t.Errorf("status %d; want %d\n%s%s", got.status, c.status, got.out, got.err)
				}
				wants := map[string]string{"github": "summary.md:| SpeedIndex |", "gitlab": "junit.xml:<testcase ", "jenkins": "trials.csv:speed_index_ms"}
				file, text, _ := strings.Cut(wants[server], ":")
				made, err := os.ReadFile(filepath.Join(dir, file))
				if c.kept != "" && (err != nil || !strings.Contains(string(made), text)) {
					t.Errorf("%s: %v, %.200q; want %q in it", file, err, made, text)
				}
				if errors := strings.Count(got.out, "::error"); server == "github" && (errors > 0) != (c.name == "slower") {
					t.Errorf("%d annotations of an error:\n%s", errors, got.out)
				}
			})
		}
	}
}
