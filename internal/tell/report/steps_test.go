package report

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/report/reporttest"
)

// journeyRun is a run of three trials with four steps: a click, one without an end, pings and an idle time.
func journeyRun() *lab.Run {
	run := reporttest.Run(3, 3)
	random := rand.New(rand.NewPCG(1, 2))
	for _, t := range run.Trials {
		t.LoadHistogram, t.VisualProgress = nil, nil
		pad := &lab.TrialStep{Name: "pad", Level: "objective", Verb: lab.VerbClick, Region: "40,160,600,400", Valid: true,
			Measurements: []lab.Measurement{metric.ResponseTime.Measure(50, nil)}}
		for range 20 {
			ms := 40 + 20*random.Float64()
			pad.Pings = append(pad.Pings, lab.Event{})
			pad.Answers = append(pad.Answers, lab.Answer{ToFirst: lab.AnswerTime{MS: ms}})
		}
		t.Steps = []*lab.TrialStep{
			{Name: "buy <now>", Level: "objective", Verb: lab.VerbClick, Expect: "changed and still 1s", AimX: 700, AimY: 40, FoundBy: "#buy: the browser's debugging protocol",
				Mask: []string{"1,2,3,4"}, Restless: []string{"5,6,7,8"}, Window: []int{10, 20, 300, 200}, Valid: true, FinalFrame: "ab",
				LoadHistogram: []float64{0, 20, 100}, FrameTimes: []float64{0, 100, 200}},
			{Name: "buy <now>/key 1", Level: "task", Verb: lab.VerbKey, Valid: true},
			pad,
			{Name: "rest", Level: "objective", Verb: lab.VerbIdle, Valid: true, Restless: []string{"5,6,7,8", "9,9,9,9"}},
		}
	}
	for _, name := range []string{"buy <now>/time_to_end_ms", "pad/response_ms", "rest/idle_fps"} {
		run.Summary = append(run.Summary, lab.Summary{Metric: name, Unit: "ms", Arm: lab.Control, N: 3, Median: 123, Q1: 120, Q3: 130, Min: 110, Max: 140})
	}
	return run
}

func TestStepsSection(t *testing.T) {
	_, text := write(t, journeyRun(), reporttest.Options{})
	steps := regexp.MustCompile(`(?s)<section id="steps">.*?</section>`).FindString(text)
	for _, want := range []string{
		`<h3>buy &lt;now&gt;</h3>`, `<code>changed and still 1s</code>`, "700,40 (#buy: the browser&#39;s debugging protocol)", "identical in all 3 valid trials",
		"Masked, and so without influence: 1,2,3,4.", `mask: [&#34;5,6,7,8&#34;]`, "a window of 300×200 pixels at 10,20",
		"the answer to the last of 20 inputs", "region 40,160,600,400", "Distribution of the answers of step pad", ">Response<",
		`mask: [&#34;5,6,7,8&#34;, &#34;9,9,9,9&#34;]`, ">Idle frame rate<", ">Time to end<",
	} {
		if !strings.Contains(steps, want) {
			t.Errorf("the steps lack %q:\n%s", want, steps)
		}
	}
	if n := strings.Count(steps, "<article"); n != 3 {
		t.Errorf("%d steps are shown; want the three that were measured", n)
	}
	curve := regexp.MustCompile(`Distribution of the answers of step pad[^>]*><path class="step-curve arm-control" d="(M0 80\.0[^"]*)"`).FindStringSubmatch(steps)
	if curve == nil || strings.Count(curve[1], "V") != 60 {
		t.Errorf("the distribution is %q; want one path with a rise for each of the 60 answers", curve)
	}
	if strings.Contains(text, "Pad/response") || strings.Contains(text, `href="#metric-pad`) {
		t.Error("a step's metric stands among those of the page")
	}
}

// TestJourneyOverview: at the top of a journey's report are its steps in the order of the plan, and of a
// comparison's metrics only the guarded ones are not folded.
func TestJourneyOverview(t *testing.T) {
	run := journeyRun()
	run.Summary = append(run.Summary,
		lab.Summary{Metric: "journey_ms", Unit: "ms", Arm: lab.Control, N: 3, Median: 500}, lab.Summary{Metric: "replay_confidence", Arm: lab.Control, N: 3, Median: 1})
	_, text := write(t, run, reporttest.Options{})
	var cards []string
	for _, m := range regexp.MustCompile(`<div class="card">\s*<h3>(.*?)</h3>`).FindAllStringSubmatch(text, -1) {
		cards = append(cards, m[1])
	}
	if got := strings.Join(cards, ", "); got != "Journey, buy &lt;now&gt;, pad" {
		t.Errorf("the cards are %s; want the journey and its steps", got)
	}
	for _, trial := range run.Trials {
		trial.Arm = []string{lab.Control, lab.Treatment}[trial.Number%2]
	}
	run.Comparison = &lab.Comparison{Verdict: lab.Unknown, Effects: []lab.Effect{
		{Metric: "pad/response_ms", Unit: "ms", Guard: true}, {Metric: "buy <now>/time_to_end_ms", Unit: "ms", Guard: true},
		{Metric: "pad/response_p90_ms", Unit: "ms"}, {Metric: "buy <now>/speed_index_ms", Unit: "ms"}, {Metric: "journey_ms", Unit: "ms"},
	}}
	_, text = write(t, run, reporttest.Options{})
	section := regexp.MustCompile(`(?s)<section id="comparison">.*?</section>`).FindString(text)
	var rows []string
	for _, m := range regexp.MustCompile(`<th scope="row">(.*?),|(<details)`).FindAllStringSubmatch(section, -1) {
		rows = append(rows, m[1]+m[2])
	}
	want := "buy &lt;now&gt;: Time to end, pad: Response, <details, Journey, buy &lt;now&gt;: SpeedIndex, pad: Response"
	if got := strings.Join(rows, ", "); got != want {
		t.Errorf("the rows are %s; want %s", got, want)
	}
}

// The picture of a journey shows the step in which the arms differ.
func TestTellingStep(t *testing.T) {
	run := journeyRun()
	if got := tellingStep(run); got != "rest" {
		t.Errorf("without a comparison: %q; want the last measured step", got)
	}
	run.Comparison = &lab.Comparison{Effects: []lab.Effect{
		{Metric: "rest/idle_fps", Guard: true, Finding: lab.NoChange}, {Metric: "pad/response_ms", Guard: true, Finding: lab.Slower},
	}}
	if got := tellingStep(run); got != "pad" {
		t.Errorf("where pad is slower: %q", got)
	}
	if got := tellingStep(reporttest.Run(3, 3)); got != "" {
		t.Errorf("of a page load: %q", got)
	}
}
