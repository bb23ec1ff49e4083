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
	if err := out.Write(head); err != nil {
		return err
	}
	if s.Run.Causes != nil {
		rows := s.Run.Causes.Rows
		if p := s.Run.Causes.Paths; p != nil {
			rows = slices.Concat(rows, p.Rows)
		}
		for _, c := range rows {
			line := []string{cell(s.Run.ID), cell(c.Kind), cell(c.Process), cell(c.Thread), cell(c.Group), cell(c.What), cell(c.After), cell(c.Unit),
				exact(c.Control), exact(c.Treatment), exact(c.Shift), exact(c.Low), exact(c.High), exact(c.P), exact(c.Adjusted),
				strconv.FormatBool(c.Named), exact(c.Explains)}
			if err := out.Write(line); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
