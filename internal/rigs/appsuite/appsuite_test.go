package appsuite

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// TestApplications records the quick ones of the suite and replays each twice when it is gone. A
// trial that is invalid because the machine stalled is no failure; make test-apps asks for ten valid ones.
func TestApplications(t *testing.T) {
	testlab.Long(t, "other people's applications")
	testlab.NeedNamespaces(t)
	for _, name := range []string{"chromium", "Xvfb", "php", "syncthing"} {
		testlab.NeedProgram(t, name)
	}
	program := filepath.Join(testlab.TempDir(t), "appliance")
	if out, err := exec.Command("go", "build", "-o", program, "eidetic/cmd/appliance").CombinedOutput(); err != nil {
		t.Fatalf("build the appliance: %v\n%s", err, out)
	}
	b := Bench{
		Appliance: program, Modules: filepath.Join(testlab.TempDir(t), "node_modules"), Out: testlab.TempDir(t), Trials: 2, Log: t.Output(),
		Start: func(cmd *exec.Cmd) error { return testlab.Start(t, cmd) }, Browser: lab.Chromium, Still: time.Second,
	}
	for _, app := range Apps() {
		if !app.Quick {
			continue
		}
		t.Run(app.Name, func(t *testing.T) {
			r, err := b.Measure(t.Context(), app)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r.Row())
			for _, text := range r.Faults {
				t.Error(text)
			}
			if r.Misses > 0 || r.Pictures != 1 || !r.SameRequests() {
				t.Errorf("%d misses, %d pictures, requests %v of %d recorded; want 0, 1, as recorded\n%s", r.Misses, r.Pictures, r.Requests,
					r.Recorded, strings.Join(r.Misfits, "\n"))
			}
		})
	}
}
