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

// ciScripts reads out of the examples for build servers what compares the build with the release, and checks that the
// scripts before it can be read.
func ciScripts(t *testing.T) map[string]string {
	t.Helper()
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join("../../docs/ci", name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	type github struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run string }
		}
	}
	var box, without github
	var gitlab map[string]struct {
		Before []string `yaml:"before_script"`
		Script []string
	}
	for name, into := range map[string]any{"github-actions.yml": &box, "github-actions-without-box.yml": &without, "gitlab-ci.yml": &gitlab} {
		if err := yaml.Unmarshal(read(name), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	scripts := map[string]string{}
	for server, g := range map[string]github{"github": box, "github without a box": without} {
		for _, s := range g.Jobs["checkout-page"].Steps {
			readable(t, server+", "+s.Name, s.Run)
			if s.Name == "Compare with the release" {
				scripts[server] = s.Run
			}
		}
	}
	readable(t, "gitlab, before", strings.Join(gitlab["checkout-page"].Before, "\n"))
	scripts["gitlab"] = strings.Join(gitlab["checkout-page"].Script, "\n")
	parts := strings.Split(string(read("Jenkinsfile")), "'''")
	if len(parts) != 5 {
		t.Fatalf("the Jenkinsfile has %d parts; want 5, of which two are scripts", len(parts))
	}
	readable(t, "jenkins, first", parts[1])
	scripts["jenkins"] = parts[3]
	for server, script := range scripts {
		if script == "" {
			t.Fatalf("%s: the example has no script", server)
		}
		scripts[server] = "set -e\n" + script // as the servers start a shell
	}
	return scripts
}

// readable lets a shell read a script, and carry nothing out.
func readable(t *testing.T, what, script string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", script).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", what, err, out)
	}
}

// The examples of docs/ci do as they say: the build fails when the page is slower, passes when it is not, says so when
// there is no verdict, and has its documents and its comment whatever the verdict is. The run itself is one that was
// kept; all else is the program. What starts the servers and posts the comment is replaced.
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
case "$*" in
"run --plan checkout.yaml --page http://192.0.2.1:3000/ --treatment-page http://192.0.2.1:3001/ --out report") ;;
"measure http://localhost:3000/ --against http://localhost:3001/ --trials 20 --no-serve --out report") ;;
run*|measure*) exit 99 ;;
*) %s=1 exec %q "$@" ;;
esac
if [ -n "$KEPT" ]; then mkdir -p report && cp "$KEPT" report/run.json; fi
exit "$ENDS"
`, asAppliance, self)
	for name, text := range map[string]string{
		"appliance": program,
		// The first comment cannot be edited: there is none.
		"gh": "#!/bin/sh\n[ \"$1 $2 $3\" = 'pr comment 7' ] && [ \"$4\" = --body-file ] && cp \"$5\" comment\n",
		"curl": `#!/bin/sh
case "$*" in
*--data-urlencode\ body@summary.md*/projects/1/merge_requests/7/notes) cp summary.md comment ;;
*http://localhost:3000/*) ;;
*) exit 99 ;;
esac
`,
		"hostname": "#!/bin/sh\necho 192.0.2.1 2001:db8::1\n",
		"git":      "#!/bin/sh\nmkdir -p release\n",
		"npm":      "#!/bin/sh\n",
		"python3":  "#!/bin/sh\nexec sleep 600\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
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
					"GITHUB_STEP_SUMMARY="+filepath.Join(dir, "step.md"), "ADDRESS=http://192.0.2.1", "PULL_REQUEST=7", "CHANGE_ID=7",
					"CI_API_V4_URL=https://gitlab.example/api/v4", "CI_PROJECT_ID=1", "CI_MERGE_REQUEST_IID=7")
				if c.kept != "" {
					cmd.Env = append(cmd.Env, "KEPT="+filepath.Join(kept, c.kept))
				}
				got := finishCmd(t, cmd)
				if got.status != c.status {
					t.Errorf("status %d; want %d\n%s%s", got.status, c.status, got.out, got.err)
				}
				const table = "| SpeedIndex |"
				for file, text := range map[string]map[string]string{
					"github":               {"step.md": table, "comment": table},
					"github without a box": {"step.md": table},
					"gitlab":               {"junit.xml": "<testcase ", "comment": table},
					"jenkins":              {"junit.xml": "<testcase ", "trials.csv": "speed_index_ms", "comment": table},
				}[server] {
					made, err := os.ReadFile(filepath.Join(dir, file))
					if c.kept != "" && (err != nil || !strings.Contains(string(made), text)) {
						t.Errorf("%s: %v, %.200q; want %q in it", file, err, made, text)
					}
					if c.kept == "" && err == nil {
						t.Errorf("%s was made without a run: %.200q", file, made)
					}
				}
				if errors := strings.Count(got.out, "::error"); strings.HasPrefix(server, "github") && (errors > 0) != (c.name == "slower") {
					t.Errorf("%d annotations of an error:\n%s", errors, got.out)
				}
			})
		}
	}
}
