package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"eidetic/analysis/trace"
	"eidetic/internal/tell/timeline"
)

// Memory writes a line for each reading of the memory of a process of the browser: those of traced trials, which alone
// have some.
func Memory(w io.Writer, s *Source) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	head := []string{"run", "arm", "trial", "at_ms", "pid", "process", "rss_bytes", "pss_bytes"}
	if err := out.Write(head); err != nil {
		return err
	}
	list, err := s.trials()
	if err != nil {
		return err
	}
	reader := timeline.NewReader(s.Files)
	for _, t := range list {
		readings, _, err := reader.Memory(t)
		if err != nil {
			return fmt.Errorf("trial %d: %w", t.Number, err)
		}
		from, _ := trace.Window(t)
		for _, m := range readings {
			share := ""
			if m.PSS > 0 {
				share = strconv.FormatInt(m.PSS, 10)
			}
			line := []string{cell(s.Run.ID), cell(t.Arm), strconv.Itoa(t.Number), exact(float64(m.At-from) / 1e6), strconv.Itoa(m.PID),
				cell(m.Name), strconv.FormatInt(m.RSS, 10), share}
			if err := out.Write(line); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
