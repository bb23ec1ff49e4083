package report

import "eidetic/internal/lab"

// Words are the result at the top of a report.
type Words struct {
	Verdict  string `json:"verdict,omitempty" doc:"slower, faster, mixed, none, equivalent or unknown; absent from a run of one arm"`
	Headline string `json:"headline,omitempty" doc:"The result in words; absent as long as there is none"`
	Detail   string `json:"detail,omitempty" doc:"The number that it rests on"`
}

// WordsOf is what a report says first of a run: the verdict, or what the pages of its only arm were like.
func WordsOf(run *lab.Run) Words {
	if c := run.Comparison; c != nil {
		return Words{c.Verdict, c.Headline, c.Detail}
	}
	if v := verdictOf(run); v != nil {
		return Words{"", v.Says + " " + v.Value + " " + v.Unit, v.Rest}
	}
	return Words{}
}

// Warnings lists what a report warns of.
func Warnings(run *lab.Run) []string { return append([]string{}, warningsOf(run)...) }

// Arm is an arm of a run as people call it.
type Arm struct{ Arm, Name, Differs string }

// Arms lists the arms of a run, the control first.
func Arms(run *lab.Run) (all []Arm) {
	for _, arm := range armsOf(run) {
		all = append(all, Arm{arm, armName(arm), differsOf(run, arm)})
	}
	return all
}

// Finding says what a comparison found of a metric.
func Finding(run *lab.Run, e *lab.Effect) string { return run.Comparison.Words(e) }
