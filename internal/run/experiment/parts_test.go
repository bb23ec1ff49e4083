package experiment

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
)

// TestPartsOfATrial: the parts are in order and add up. Processor time is read outside of
// the measured span only.
func TestPartsOfATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{changes: []time.Duration{200 * time.Millisecond, 900 * time.Millisecond}}
		r := w.runner()
		var spent time.Duration
		r.Usage = func() map[string]time.Duration {
			if w.pressed != 0 && w.analysed == 0 && now().Sub(w.pressed) < 2400*time.Millisecond {
				t.Errorf("processor time was looked at %v after the navigation", now().Sub(w.pressed))
			}
			spent += 30 * time.Millisecond
			return map[string]time.Duration{"browser": spent, "link": 0}
		}
		p := plan()
		trial, err := r.Trial(t.Context(), p, 1, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		got := map[string]lab.TrialPart{}
		for _, part := range trial.Parts {
			names = append(names, part.Name)
			got[part.Name] = part
		}
		if diff := cmp.Diff(Parts(), names); diff != "" {
			t.Fatalf("parts (-want +got):\n%s", diff)
		}
		for name, want := range map[string][2]float64{PartBirth: {300, 300}, PartLoad: {900, 900}, PartSettle: {700, 740},
			PartStill: {1500, 1540}} {
			if ms := got[name].MS; ms < want[0] || ms > want[1] {
				t.Errorf("%s took %.1f ms, want %.0f … %.0f", name, ms, want[0], want[1])
			}
		}
		for _, name := range []string{PartBirth, PartLoad} {
			if got[name].Processor != nil {
				t.Errorf("%s has a processor time of its own: %v", name, got[name].Processor)
			}
		}
		if diff := cmp.Diff(map[string]float64{"browser": 30}, got[PartStill].Processor); diff != "" {
			t.Errorf("processor time of the load and the stillness (-want +got):\n%s", diff)
		}
	})
}

// TestEvidenceThatIsMissing: a trial without evidence is valid and says why the evidence is missing.
func TestEvidenceThatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{changes: []time.Duration{time.Second}, evidenceErr: errors.New("the encoder is gone")}
		trial, err := w.runner().Trial(t.Context(), plan(), 1, t.TempDir())
		if err != nil || !trial.Valid || trial.NoEvidence != "the encoder is gone" {
			t.Errorf("Trial() = valid %v, without evidence because %q, %v; want a valid one that says why", trial.Valid, trial.NoEvidence,
				err)
		}
	})
}
