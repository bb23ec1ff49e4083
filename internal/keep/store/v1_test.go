package store

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
)

// TestFilesOfTheFirstVersions reads files written when the plan had a list of arms, and
// link and environment were maps: their content is the same in the current types. The
// files in testdata/v1 come from a demo with --trials 2 --link lte --treatment-link 3g,
// cut to two trials.
func TestFilesOfTheFirstVersions(t *testing.T) {
	for _, name := range []string{"run.json", "report.json"} {
		f, err := os.Open("testdata/v1/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		run, err := DecodeResult(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		page := "https://www.shop.test/"
		want := lab.Plan{
			Name: "demo", Trials: 2, Still: 1.5, Limit: 60, Seed: 1,
			Arm: lab.Arm{Page: page, Link: "lte"}, Treatment: &lab.Arm{Page: page, Link: "3g"},
		}
		if d := cmp.Diff(want, run.Plan); d != "" {
			t.Errorf("%s: plan (-want +got):\n%s", name, d)
		}
		if l := run.Link; l.Name != "lte" || l.BackEnd != "packet" || l.RTT != 70*time.Millisecond || l.Down != 12e6 {
			t.Errorf("%s: link %+v, want lte with 70 ms and 12 Mbit/s, by packets", name, l)
		}
		e := run.Environment
		if e.Kernel != "Linux 6.1.0-41-amd64 x86_64" || e.Cores != 2 || e.Network == nil || e.Network.CongestionControl != "cubic" ||
			e.Isolation == nil || e.Isolation.OutsidePackets == nil {
			t.Errorf("%s: environment %+v, want kernel, cores, network and isolation", name, e)
		}
		if e.Browser == "" || len(e.Network.KernelSettings) != 6 || *e.KeptAwake != true || *e.Realtime != 99 {
			t.Errorf("%s: environment %+v, network %+v", name, e, e.Network)
		}
		if len(run.Trials) != 2 || run.Comparison == nil || run.Comparison.Treatment != "link 3g" {
			t.Errorf("%s: %d trials, comparison %+v", name, len(run.Trials), run.Comparison)
		}
		if name == "run.json" &&
			(run.Trials[0].Capture == nil || run.Trials[0].Capture.Scheduling == "" || run.Trials[0].Capture.Rate < 50) {
			t.Errorf("capture %+v, want rate and scheduling", run.Trials[0].Capture)
		}
		facts := Facts(run)
		for name, want := range map[string]string{"link": "lte", "cores": "2", "plan.still_s": "1.5", "recording": "made by the run",
			"link.rtt_ns": "70000000", "network.congestion_control": "cubic"} {
			if facts[name] != want {
				t.Errorf("fact %s is %q, want %q", name, facts[name], want)
			}
		}
	}
}
