package export

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
)

// Causes writes a line for each row of the run's causes, the first of which explains most, and then
// for those of its critical paths; none for a run without traced trials.
func Causes(w io.Writer, s *Source) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	head := []string{"run", "kind", "process", "thread", "group", "what", "after", "unit", "control", "treatment", "shift", "low", "high", "p", "adjusted", "named", "explains_ms"}
	many := s.Run.Plan.IsMany()
	if many {
		head = append(head, "page_name", "user")
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for i, view := range s.Run.Views() {
		if view.Causes == nil {
			continue
		}
		rows := view.Causes.Rows
		if p := view.Causes.Paths; p != nil {
			rows = slices.Concat(rows, p.Rows)
		}
		for _, c := range rows {
			line := []string{cell(s.Run.ID), cell(c.Kind), cell(c.Process), cell(c.Thread), cell(c.Group), cell(c.What), cell(c.After), cell(c.Unit),
				exact(c.Control), exact(c.Treatment), exact(c.Shift), exact(c.Low), exact(c.High), exact(c.P), exact(c.Adjusted),
				strconv.FormatBool(c.Named), exact(c.Explains)}
			if many {
				line = append(line, cell(s.Run.Cells[i].Page), cell(s.Run.Cells[i].User))
			}
			if err := out.Write(line); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
