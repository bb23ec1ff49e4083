package report

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// trial is one trial as the template shows it.
type trial struct {
	*lab.Trial
	Values   []shown // of the run's columns
	Thumbs   []thumb
	Sheet    *artifact
	Video    *artifact
	Failed   *artifact // the screen when its step failed, or else its last picture
	Heat     *artifact
	Areas    *artifact // the regions, and what is ignored, on the last picture
	Charts   []link
	Numbers  *artifact // what Charts are drawn from
	Analyses []analysis
	Marked   []pageMark
	Others   []link
	Timeline *timeline
	Lines    string // the file of the run's timelines
	Reasons  []string
	End      string
	Measured []measured
	Capture  []pair
	NoVideo  string // why there is no video
	Cost     []cost
	HasLog   bool
	ArmName  string // if the run has two arms
}

// Extra is what a trial is called that was not made to be counted; "" for one that was, and for one made for its
// browser's trace that has faults.
func (t trial) Extra() string {
	switch {
	case t.Warmup:
		return "warm-up"
	case t.Traced && len(t.Invalid) <= 1:
		return "traced"
	}
	return ""
}

// Lead is by how much the trial's video begins before the start, in ms. Trials of older versions do not say it: 15
// frames, mostly of 60 Hz.
func (t trial) Lead() float64 { return round3(cmp.Or(t.VideoLead, 250)) }

// Shown are the pictures of the filmstrip from the first change on.
func (t trial) Shown() []thumb {
	if first, ok := t.Value(metric.FirstChange.String()); ok {
		if k := slices.IndexFunc(t.Thumbs, func(one thumb) bool { return one.TimeMS >= first-1 }); k > 0 {
			return t.Thumbs[k:]
		}
	}
	return t.Thumbs
}

// Last is the last picture of the filmstrip, nil if there is none.
func (t trial) Last() *thumb {
	if n := len(t.Thumbs); n > 0 {
		return &t.Thumbs[n-1]
	}
	return nil
}

// shown is a value in a row, with the text before and after it for screen readers.
type shown struct{ Label, Value, Unit string }

type link struct {
	Role string
	artifact
}

type measured struct {
	Label, Value, Unit, Bounds, Frames string
}

func trialOf(files *os.Root, t *lab.Trial, zero lab.Time, columns []metric.Entry) trial {
	v := trial{
		Trial: t, Video: artifactOf(files, t, "video"), Heat: artifactOf(files, t, "heatmap"), Areas: artifactOf(files, t, "areas"),
		Charts: chartsOf(files, t), Numbers: artifactOf(files, t, "timeline"), Analyses: analysesOf(t), Marked: marksOf(t),
		Timeline: timelineOf(t, zero, columns), Capture: append(captureRows(t.Capture), timely(t)...),
	}
	v.Thumbs, v.Sheet = filmstrip(files, t)
	v.Failed = artifactOf(files, t, "failed")
	for _, m := range columns {
		s := shown{Label: m.Label, Value: "–"}
		if value, ok := t.Value(m.Name); ok {
			s.Value, s.Unit = number(value, m.Unit), m.Unit
		}
		v.Values = append(v.Values, s)
	}
	v.NoVideo, v.Cost = noVideo(t, v.Video), costs(t.Parts)
	for _, reason := range t.Invalid {
		v.Reasons = append(v.Reasons, sentence(reason))
	}
	v.End = map[lab.End]string{
		lab.EndStable: "the screen and the network were still",
		lab.EndRed:    "the red page was seen",
		lab.EndDone:   "the page said that it was done",
		lab.EndLimit:  "the time limit was reached",
		lab.EndSteps:  "all steps came to their ends",
	}[t.Ended]
	for _, role := range []string{"reel", "replay", "events", "input", "timeline", "browser trace", "work"} {
		if a := artifactOf(files, t, role); a != nil {
			v.Others = append(v.Others, link{role, *a})
			v.HasLog = v.HasLog || role == "replay"
		}
	}
	for _, m := range t.Measurements {
		d := describe(m.Name, m.Unit)
		row := measured{Label: d.Label, Value: precise(m.Value), Unit: m.Unit, Frames: frames(m.Frames)}
		if m.Low != nil && m.High != nil {
			row.Bounds = precise(*m.Low) + " – " + precise(*m.High)
		}
		v.Measured = append(v.Measured, row)
	}
	return v
}

// timely describes how late the instruments were, and the machine's other load.
func timely(t *lab.Trial) (rows []pair) {
	for _, c := range []struct {
		label string
		of    *lab.Conditions
	}{{"conditions before", t.Conditions}, {"conditions after", t.ConditionsAfter}} {
		if c.of != nil && c.of.String() != "" {
			rows = append(rows, pair{c.label, c.of.String()})
		}
	}
	if air := lab.TellAir(t.Conditions, t.ConditionsAfter); air != "" {
		rows = append(rows, pair{"Wi-Fi", air})
	}
	if b := t.Blur; b != nil {
		rows = append(rows, pair{"blur of the link", precise(b.Link) + " ms"}, pair{"blur of the recorder", precise(b.Capture) + " ms"})
		if b.Stall > 0 {
			rows = append(rows, pair{"longest stall of the link", precise(b.Stall) + " ms, " + precise(b.StallAt) + " ms after the start"})
		}
	}
	if m := t.Machine; m != nil {
		rows = append(rows, pair{"besides", m.Causes()})
	}
	return rows
}

// frames formats the indices of the frames that a measurement is based on.
func frames(list []int) string {
	const most = 8
	var parts []string
	for i, n := range list {
		if i == most {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, count(n))
	}
	return strings.Join(parts, ", ")
}

// sentence adds a capital letter at the start and a full stop at the end.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return s
	}
	first, n := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[n:]
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}
