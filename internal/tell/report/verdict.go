package report

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

func troubleOf(run *lab.Run) string {
	text := map[string]string{
		store.StateRunning:     "This run is still going on",
		store.StateFailed:      "This run failed",
		store.StateInterrupted: "This run was interrupted before it was done",
	}[run.State]
	if text != "" && run.Error != "" {
		text += ": "
	}
	if text += run.Error; text != "" {
		text = strings.TrimSuffix(text, ".") + "."
	}
	text += map[string]string{
		store.StateRunning:     " The report shows what is there so far.",
		store.StateInterrupted: " The report shows what was saved.",
	}[run.State]
	if valid(run) == 0 && run.State == store.StateDone {
		text = strings.TrimSpace(text + " No trial is valid, so there is no result. Each trial below says why.")
	}
	return text
}

// failureOf is the picture of what stood on the screen when the recording failed, or else the first trial: of the step
// that did, or the film's last.
func failureOf(files *os.Root, run *lab.Run) *artifact {
	if valid(run) > 0 {
		return nil
	}
	if len(run.Trials) == 0 {
		for _, dir := range recordings(files) {
			if a := fileAt(files, path.Join(dir, lab.FailedFile)); a != nil {
				return a
			}
		}
	}
	for _, t := range run.Trials {
		if a := artifactOf(files, t, "failed"); a != nil {
			return a
		}
		if thumbs, _ := filmstrip(files, t); len(thumbs) > 0 {
			return &thumbs[len(thumbs)-1].artifact
		}
	}
	return nil
}

// recordings are the folders of what was recorded for a run.
func recordings(files *os.Root) []string {
	list, err := fs.Glob(files.FS(), "recording*")
	if err != nil {
		return nil
	}
	return list[:min(len(list), maxThumbs)]
}

func valid(run *lab.Run) int {
	n := 0
	for _, t := range run.Trials {
		if t.Valid {
			n++
		}
	}
	return n
}

// summaryOf finds the summary of a metric for an arm.
func summaryOf(run *lab.Run, name, arm string) *lab.Summary {
	for i := range run.Summary {
		if s := &run.Summary[i]; s.Metric == name && s.Arm == arm && s.N > 0 {
			return s
		}
	}
	return nil
}

func verdictOf(run *lab.Run) *verdict {
	m, s := firstMedian(run)
	if s == nil {
		return nil
	}
	says := m.Says
	if both(run) { // and the comparison is not made yet
		says = armName(s.Arm) + ": " + says
	}
	return &verdict{Says: says, Value: number(s.Median, m.Unit), Unit: m.Unit, Rest: spreadOf(s, m)}
}

// factTrials is the label of how many trials are valid.
const factTrials = "Valid trials"

func factsOf(run *lab.Run) []fact {
	n, ok := run.Measured(), valid(run)
	if n == 0 {
		return nil
	}
	facts := []fact{{Good: ok == n, Label: factTrials, Value: fmt.Sprintf("%d of %d", ok, n)}}
	var requests, misses, fetched, frames, lost int
	finals := map[string]map[string]bool{} // distinct final pictures, by arm
	var pictures int
	same := true
	for _, t := range run.Trials {
		requests += t.Requests
		misses += t.Misses
		fetched += t.Filled
		frames += t.Frames
		lost += t.FramesLost
		if t.Valid && t.FinalFrame != "" {
			if finals[t.Arm] == nil {
				finals[t.Arm] = map[string]bool{}
			}
			finals[t.Arm][t.FinalFrame] = true
		}
	}
	if !run.Plan.Live { // a live run replays nothing
		value := fmt.Sprintf("%s of %s matched", count(requests-misses-fetched), count(requests))
		if fetched > 0 {
			value += fmt.Sprintf(", %s fetched", count(fetched))
		}
		facts = append(facts, fact{Good: misses == 0 && requests > 0, Label: "Replayed requests", Value: value})
	}
	facts = append(facts,
		fact{Good: lost == 0 && frames > 0, Label: "Frames lost", Value: fmt.Sprintf("%s of %s", count(lost), count(frames+lost))},
	)
	if ok > 1 {
		for _, arm := range finals {
			pictures += len(arm)
			same = same && len(arm) == 1
		}
		f := fact{Good: same, Label: "Final picture",
			Value: map[bool]string{false: "identical in all", true: "identical in all of an arm"}[both(run)]}
		if !f.Good {
			f.Value = fmt.Sprintf("%d different ones", pictures)
		}
		if len(finals) > 0 {
			facts = append(facts, f)
		}
	}
	for i := range facts {
		switch f := &facts[i]; {
		case f.Good:
			f.Kind = "good"
		case ok > 0:
			f.Kind = "warn"
		default:
			f.Kind = "bad"
		}
	}
	return facts
}
