package export

import (
	"encoding/csv"
	"io"
	"strconv"

	"eidetic/internal/lab"
)

// Paths writes a line for each step of the critical paths of a typical trial of each arm, from the input to the first
// picture in which the arms part; none for a run whose arms part nowhere, or without traced trials.
func Paths(w io.Writer, s *Source) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	head := []string{"run", "arm", "trial", "frame", "share_percent", "step", "from_ms", "to_ms", "ms", "kind", "group", "what", "inferred", "why"}
	many := s.Run.Plan.IsMany()
	if many {
		head = append(head, "page_name", "user")
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for k, view := range s.Run.Views() {
		if view.Causes == nil || view.Causes.Paths == nil {
			continue
		}
		p := view.Causes.Paths
		for n, path := range []lab.Path{p.Control, p.Treatment} {
			arm := []string{lab.Control, lab.Treatment}[n]
			for i, step := range path.Steps {
				line := []string{cell(s.Run.ID), arm, strconv.Itoa(path.Trial), strconv.Itoa(path.Frame), exact(p.Share), strconv.Itoa(i + 1),
					exact(step.FromMS), exact(step.ToMS), exact(step.ToMS - step.FromMS), cell(step.Kind), cell(step.Group), cell(step.What),
					strconv.FormatBool(step.Inferred), cell(step.Why)}
				if many {
					line = append(line, cell(s.Run.Cells[k].Page), cell(s.Run.Cells[k].User))
				}
				if err := out.Write(line); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}
