package export

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// CSV writes a line for each trial and measurement (RFC 4180), invalid trials too. A text
// that a spreadsheet would take for a formula has an apostrophe before it. A run of many pages or users
// has columns with their names.
func CSV(w io.Writer, s *Source) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	head := []string{"run", "name", "trial", "block", "arm", "valid", "page", "step", "metric", "value", "unit", "low", "high"}
	cells := map[string]lab.Cell{}
	if s.Run.Plan.IsMany() {
		head = append(head, "page_name", "user")
		for _, c := range s.Run.Plan.Cells() {
			cells[c.Name] = c
		}
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, t := range s.Run.Trials {
		for _, m := range t.Measurements {
			step, metric := "", m.Name
			if i := strings.LastIndexByte(m.Name, '/'); i >= 0 {
				step, metric = m.Name[:i], m.Name[i+1:]
			}
			line := []string{cell(s.Run.ID), cell(s.Run.Name), strconv.Itoa(t.Number), strconv.Itoa(t.Block), cell(t.Arm),
				strconv.FormatBool(t.Valid), cell(t.Page), cell(step), cell(metric), exact(m.Value), cell(m.Unit), bound(m, m.Low), bound(m, m.High)}
			if len(cells) > 0 {
				line = append(line, cell(cells[t.Cell].Page), cell(cells[t.Cell].User))
			}
			if err := out.Write(line); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// cell makes a text that others wrote one that a spreadsheet does not calculate.
func cell(text string) string {
	text = printable(text)
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}

func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// bound is an end of what the true value lies in, empty if the measurement has no bounds.
func bound(m lab.Measurement, v *float64) string {
	if v == nil || m.Low == nil || m.High == nil {
		return ""
	}
	return exact(*v)
}
