package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// TestReportSaysWhatATrialCostAndLacks: the report lists the cost of a trial's parts, and
// says that a video is missing and why.
func TestReportSaysWhatATrialCostAndLacks(t *testing.T) {
	run := reporttest.Run(3, 3)
	dir := t.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	run.Trials[0].NoEvidence = "film: vpxenc: no space left on device"
	run.Trials[1].Files["video"] = "evidence.webm" // removed by somebody
	run.Trials[2].Parts = []lab.TrialPart{
		{Name: "birth", MS: 612.4},
		{Name: "settle", MS: 735.9, Processor: map[string]float64{"browser": 1480, "appliance": 230}},
	}
	if err := Write(dir, run); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(content), `<details class="trial`)
	if len(parts) != 4 {
		t.Fatalf("the page has %d trials, want 3", len(parts)-1)
	}
	for i, want := range [][]string{
		{"There is no video: Film: vpxenc: no space left on device."},
		{"The video evidence.webm is not in the trial&#39;s folder."},
		{"There is no video of this trial.", "Cost of the trial", "browser " + number(1480, "ms") + ", appliance 230",
			"<th scope=\"row\">all</th><td>" + number(1348, "ms")},
	} {
		for _, w := range want {
			if !strings.Contains(parts[i+1], w) {
				t.Errorf("trial %d does not say %q", i+1, w)
			}
		}
	}
	if strings.Contains(parts[1], "Cost of the trial") {
		t.Error("the report shows a table of parts for a trial without parts")
	}
}
