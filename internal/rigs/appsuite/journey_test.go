package appsuite

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// wikiUser is a user of DokuWiki's file of users: the password is "secret", as MD5.
const wikiUser = "# <?php exit()?>\nada:5ebe2294ecd0e0f08eab7690d2a6ee69:Ada Lovelace:ada@example.test:user\n"

// TestWikiJourney logs into a wiki that nobody here wrote and goes through it, first at the wiki itself,
// and then in the recording, when the wiki is gone.
func TestWikiJourney(t *testing.T) {
	testlab.Long(t, "other people's applications")
	testlab.NeedNamespaces(t)
	for _, name := range []string{"chromium", "Xvfb", "php"} {
		testlab.NeedProgram(t, name)
	}
	folder := testlab.TempDir(t)
	program := filepath.Join(folder, "appliance")
	if out, err := exec.Command("go", "build", "-o", program, "eidetic/cmd/appliance").CombinedOutput(); err != nil {
		t.Fatalf("build the appliance: %v\n%s", err, out)
	}
	h, err := newHost(testlab.TempDir(t), "", t.Output(), func(cmd *exec.Cmd) error { return testlab.Start(t, cmd) })
	if err != nil {
		t.Fatal(err)
	}
	defer h.stop()
	page, err := startDokuWiki(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.write("conf/users.auth.php", wikiUser); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../docs/plans/apps/wiki-journey.yaml")
	if err != nil {
		t.Fatal(err)
	}
	origin, _, _ := strings.Cut(page, "/doku.php")
	plan := strings.NewReplacer("https://localhost:8443", origin, "trials: 3", "trials: 1").Replace(string(text))
	file := filepath.Join(folder, "plan.yaml")
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	b := Bench{Appliance: program, Log: t.Output(), Start: func(cmd *exec.Cmd) error { return testlab.Start(t, cmd) }}
	out := filepath.Join(folder, "out")
	if err := b.appliance(t.Context(), h, []string{"run", "--plan", file, "--insecure-origin", "--out", out}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Trials []*lab.Trial }
	if err := json.Unmarshal(content, &report); err != nil || len(report.Trials) == 0 {
		t.Fatalf("%d trials, %v", len(report.Trials), err)
	}
	for _, trial := range report.Trials {
		var names []string
		for _, s := range trial.Steps {
			if s.Measured() {
				names = append(names, s.Name)
			}
			if s.Misses > 0 || s.Measured() && s.End == lab.StepLimit {
				t.Errorf("trial %d, step %s: %d misses, ended by %s: %q", trial.Number, s.Name, s.Misses, s.End, s.Invalid)
			}
		}
		if want := []string{"open", "login", "changes"}; trial.Ended != lab.EndSteps || !slices.Equal(names, want) {
			t.Errorf("trial %d ended by %q after %q, invalid %q; want all of %q", trial.Number, trial.Ended, names, trial.Invalid, want)
		}
	}
}
