package verdict

import (
	"math/rand/v2"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/testlab"
)

// recordedRun is a run of 20 pairs, of arms with so many recordings: each recording has the waits of one occasion,
// which differ by spread. The treatment's server is slower by shift.
func recordedRun(r *rand.Rand, recordings int, spread, shift float64) *lab.Run {
	run := &lab.Run{Plan: lab.Plan{Trials: 20, Treatment: &lab.Arm{}, Timing: "recorded", Recordings: recordings, Primary: metric.SpeedIndex.String()}}
	occasion := map[string][]float64{}
	for arm, name := range []string{lab.Control, lab.Treatment} {
		for range recordings {
			occasion[name] = append(occasion[name], spread*r.Float64()+shift*float64(arm))
		}
	}
	nth := map[string]int{}
	for block := range 4 {
		for _, place := range r.Perm(10) {
			arm := []string{lab.Control, lab.Treatment}[place/5]
			number := nth[arm] % recordings
			nth[arm]++
			run.Trials = append(run.Trials, &lab.Trial{
				Number: len(run.Trials) + 1, Arm: arm, Block: block + 1, Valid: true, Recording: number + 1, Measurements: []lab.Measurement{
					{Name: metric.SpeedIndex.String(), Unit: "ms", Value: 900 + occasion[arm][number] + 8*r.NormFloat64()},
				},
			})
		}
	}
	return run
}

// Two equal servers whose waits differ from occasion to occasion are no difference, however often each occasion is
// replayed; a server that is slower is.
func TestRecordingsAreWhatVaries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	alarms, asTrials, found := 0, 0, 0
	runs := testlab.Repeat(60, 1000)
	for range runs {
		equal := recordedRun(r, 6, 60, 0)
		if Of(equal, 1).Verdict != lab.NoChange {
			alarms++
		}
		equal.Plan.Recordings = 0
		if Of(equal, 1).Verdict != lab.NoChange {
			asTrials++
		}
	}
	for range runs / 4 {
		if Of(recordedRun(r, 6, 60, 100), 1).Verdict == lab.Slower {
			found++
		}
	}
	t.Logf("of %d equal pairs of servers %d differ; counted by trials, %d would; of %d slower ones %d are found", runs, alarms, asTrials, runs/4, found)
	if float64(alarms) > 0.05*float64(runs)+7 || asTrials < 3*alarms || asTrials < runs/5 || found < runs/4*8/10 {
		t.Error("want at most one in twenty, many more where trials are counted, and most of the slower ones found")
	}
}

func TestFewRecordingsTellNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	c := Of(recordedRun(r, 3, 10, 400), 1)
	if c.Verdict != lab.Unknown {
		t.Errorf("Of() of three recordings = %s, %s; want unknown", c.Verdict, c.Detail)
	}
	if c := Of(recordedRun(r, 6, 10, 400), 1); c.Verdict != lab.Slower || c.Effects[0].Recordings != 6 ||
		!strings.Contains(c.Detail, "20 pairs of trials, 6 recordings of each, p = 0.00") {
		t.Errorf("Of() = %s, %s, %+v; want slower over 6 recordings", c.Verdict, c.Detail, c.Effects[0])
	}
}
