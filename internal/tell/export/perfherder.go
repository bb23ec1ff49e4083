package export

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// What Perfherder takes: the structure and the bounds of Mozilla's performance-artifact
// schema, with the replicates that Mozilla's own harnesses add.
type (
	perfArtifact struct {
		Framework   perfName  `json:"framework"`
		Application *perfName `json:"application,omitempty"`
		Suites      []suite   `json:"suites"`
	}
	perfName struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	suite struct {
		Name         string    `json:"name"`
		ExtraOptions []string  `json:"extraOptions,omitempty"`
		Tags         []string  `json:"tags,omitempty"`
		Subtests     []subtest `json:"subtests"`
	}
	subtest struct {
		Name          string    `json:"name"`
		Value         float64   `json:"value"`
		Unit          string    `json:"unit,omitempty"`
		LowerIsBetter *bool     `json:"lowerIsBetter,omitempty"`
		ShouldAlert   bool      `json:"shouldAlert"`
		Replicates    []float64 `json:"replicates,omitempty"`
	}
)

// The schema's bounds.
const (
	mostVersion    = 40
	mostOption     = 100
	mostUnit       = 20
	mostPerfValue  = 1e12
	mostSuiteName  = 1000
	perfReplicates = 1000
)

// Perfherder writes a suite for each arm, whose subtests are the medians over its valid
// trials, and in a run of many pages or users those of each, on one line: a log that has the line after
// "PERFHERDER_DATA: " is read by Treeherder.
func Perfherder(w io.Writer, s *Source) error {
	run := s.Run
	a := perfArtifact{Framework: perfName{Name: "eidetic"}, Application: application(run), Suites: []suite{}}
	arms := []string{}
	views, cells := run.Views(), run.Plan.Cells()
	for _, view := range views {
		for _, m := range view.Summary {
			if !slices.Contains(arms, m.Arm) {
				arms = append(arms, m.Arm)
			}
		}
	}
	for _, arm := range arms {
		one := suite{Name: clip(title(run), mostSuiteName), ExtraOptions: options(run, arm), Tags: tags(run), Subtests: []subtest{}}
		for i, view := range views {
			for _, m := range view.Summary {
				if m.Arm == arm && math.Abs(m.Median) <= mostPerfValue {
					test := subtestOf(view, m)
					if cells[i].Name != "" {
						test.Name = clip(cells[i].Name+" "+test.Name, mostSuiteName)
					}
					one.Subtests = append(one.Subtests, test)
				}
			}
		}
		a.Suites = append(a.Suites, one)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(true)
	return e.Encode(a)
}

// application is the browser, if Perfherder knows it.
func application(run *lab.Run) *perfName {
	name, _, _ := strings.Cut(strings.ToLower(run.Environment.Browser), " ")
	known := map[string]string{"firefox": "firefox", "mozilla": "firefox", "chromium": "chrome", "google": "chrome", "chrome": "chrome"}[name]
	if known == "" {
		return nil
	}
	version := regexp.MustCompile(`[0-9][0-9A-Za-z.]*`).FindString(run.Environment.Browser)
	return &perfName{known, clip(version, mostVersion)}
}

// options are what makes a series another one: the arm, and the access network.
func options(run *lab.Run, arm string) []string {
	link := cmp.Or(run.Link.Name, run.Plan.Link)
	for _, a := range run.Plan.Cells()[0].Plan.Arms() {
		if a.Name == arm && a.Name != lab.Control {
			link = a.Link
		}
	}
	all := []string{clip(cmp.Or(arm, lab.Control), mostOption)}
	if link = clip(link, mostOption); link != "" && link != all[0] {
		all = append(all, link)
	}
	return all
}

// tags say what a suite belongs to, in the letters that a tag may have.
func tags(run *lab.Run) []string {
	all := []string{"eidetic"}
	name := strings.Trim(regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(run.Name, "-"), "-")
	if name = strings.Trim(name[:min(len(name), 24)], "-"); name != "" && name != all[0] {
		all = append(all, name)
	}
	return all
}

func subtestOf(run *lab.Run, m lab.Summary) subtest {
	r := metric.Parse(m.Metric)
	t := subtest{Name: clip(m.Metric, mostSuiteName), Value: m.Median, Unit: clip(m.Unit, mostUnit), ShouldAlert: r.IsGuard()}
	if better := r.Entry().Better; better != metric.Neither {
		lower := better == metric.Lower
		t.LowerIsBetter = &lower
	}
	for _, trial := range run.Trials {
		if v, ok := trial.Value(m.Metric); ok && trial.Valid && cmp.Or(trial.Arm, lab.Control) == cmp.Or(m.Arm, lab.Control) &&
			len(t.Replicates) < perfReplicates {
			t.Replicates = append(t.Replicates, v)
		}
	}
	return t
}

// clip cuts a text to so many characters.
func clip(text string, most int) string {
	runes := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	return string(runes[:min(len(runes), most)])
}
